"""Rendered scenes -> folders in the layout of the HCI benchmark, each whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from oaccdepth.files.atomic import prepare_folder, remove_leftovers
from oaccdepth.progress import ReportProgress
from oaccdepth.readers.parameters import FILE_NAME
from oaccdepth.rendering import scenes, stress
from oaccdepth.rendering.meshes import Mesh
from oaccdepth.rendering.objects import read_object
from oaccdepth.rendering.renderer import Scene
from oaccdepth.rendering.rig import camera_places
from oaccdepth.writers.scenes import write_light_field

OBJECTS_PER_SCENE = 8


@dataclass(frozen=True)
class DatasetOptions:
    """What to render."""

    scenes: int = 20
    seed: int = 0
    grid: tuple[int, int] = (9, 9)
    size: tuple[int, int] = (512, 512)  # height, width of a view [px]
    samples: int = 2  # per pixel and axis


def render_dataset(
    folder: Path, options: DatasetOptions, objects: Sequence[Path], progress: ReportProgress
) -> list[Path]:
    """Render the scenes of `seed`, `seed` + 1, ...; scenes that are there are skipped.

    Returns
    -------
    list of Path
        The folders of all scenes, also of those that were there.
    """

    def build(seed: int) -> tuple[Scene, scenes.Finish]:
        return scenes.random_scene(seed, choose_objects(seed, objects), options.size)

    seeds = range(options.seed, options.seed + options.scenes)
    builders = {f"scene_{seed:05d}": partial(build, seed) for seed in seeds}
    return _render_all(folder, builders, options, progress)


def render_stress(folder: Path, options: DatasetOptions, progress: ReportProgress) -> list[Path]:
    """Render the stress scenes; scenes that are there are skipped."""
    builders = {name: partial(stress.stress_scene, name) for name in stress.SCENES}
    return _render_all(folder, builders, options, progress)


def _render_all(
    folder: Path,
    builders: Mapping[str, Callable[[], tuple[Scene, scenes.Finish]]],
    options: DatasetOptions,
    progress: ReportProgress,
) -> list[Path]:
    prepare_folder(folder, [], overwrite=False)
    remove_leftovers(folder)
    places = camera_places(options.grid)
    for number, (name, build) in enumerate(builders.items()):
        progress(name, number / len(builders))
        if not (folder / name / FILE_NAME).exists():
            scene, finish = build()
            rendered = scenes.render(scene, finish, places, samples=options.samples)
            write_light_field(
                rendered.light_field, folder / name, to="hci", truth=rendered.disparity
            )
    progress("done", 1.0)
    return [folder / name for name in builders]


def choose_objects(seed: int, objects: Sequence[Path]) -> list[Mesh]:
    """Read the few objects that a scene uses."""
    rng = np.random.default_rng([seed, 7])
    number = min(OBJECTS_PER_SCENE, len(objects))
    return [read_object(objects[k]) for k in rng.choice(len(objects), number, replace=False)]
