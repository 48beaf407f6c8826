"""Stress scenes: fixed scenes of primitives for validation, each hard in one way. Arrays only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oaccdepth.options import Range
from oaccdepth.rendering import gaps, rooms, textures
from oaccdepth.rendering.renderer import Scene
from oaccdepth.rendering.rig import Rig
from oaccdepth.rendering.scenes import EVEN, Builder, Finish, focused, random_lighting
from oaccdepth.rendering.stage import Stage
from oaccdepth.rendering.textures import Painter

SIZE = (256, 256)  # height, width [px]


@dataclass(frozen=True)
class Stress:
    """What makes a scene hard."""

    build: Builder
    seed: int
    disparity: Range  # [px]
    contrast: Range | None = None  # of its textures [grey levels]
    noise: float = 0.0
    glossy: float = 0.0  # share of glossy surfaces
    painters: Sequence[Painter] = textures.PAINTERS
    even: bool = False  # lit evenly: no shading helps


PERIODIC = (textures.stripes, textures.weave, textures.tiles)

# The seeds were chosen by looking at the pictures: each shows what its name says.
SCENES: dict[str, Stress] = {
    "narrow_gaps": Stress(gaps.combs, 1, (-2.0, 2.0), even=True),
    "gaps_in_lattices": Stress(gaps.fences, 42, (-2.5, 2.0)),
    "faint_texture": Stress(rooms.table, 43, (-1.5, 1.5), contrast=(1.0, 2.0), even=True),
    "faint_stripes": Stress(gaps.stripes, 64, (-1.0, 1.0), contrast=(2.0, 5.0), even=True),
    "noise": Stress(rooms.clutter, 65, (-2.0, 2.0), noise=0.2),
    "dots_in_noise": Stress(gaps.dots, 26, (-1.5, 1.5), noise=0.1, even=True),
    "periodic_patterns": Stress(rooms.clutter, 7, (-2.0, 2.0), painters=PERIODIC),
    "grazing_walls": Stress(rooms.corridor, 28, (-3.0, 3.0)),
    "glossy_things": Stress(rooms.table, 29, (-1.5, 2.0), glossy=1.0),
}


def stress_scene(name: str, size: tuple[int, int] = SIZE) -> tuple[Scene, Finish]:
    """Build one of SCENES; always the same."""
    stress = SCENES[name]
    rng = np.random.default_rng([stress.seed, 88])
    rig = Rig(size, 1.7 * max(size))
    stage = Stage(rng, rig, (), stress.contrast, stress.painters, stress.glossy)
    stress.build(stage)
    lighting = EVEN if stress.even else random_lighting(rng)
    scene = focused(Scene(tuple(stage.meshes), lighting, rig), stress.disparity)
    return scene, Finish(0.45, stress.noise, stress.seed)
