"""Stage: a scene while it is built at random: meshes, textures, objects. Arrays only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from oaccdepth.lightfield import FloatArray
from oaccdepth.options import Range
from oaccdepth.rendering import textures
from oaccdepth.rendering.meshes import Material, Mesh, Texture, turned, turned_at_random
from oaccdepth.rendering.primitives import box, cage, cylinder, lathe, sphere, torus
from oaccdepth.rendering.rig import Numbers, Rig
from oaccdepth.rendering.textures import PAINTERS, Painter

TEXELS = 512
PALETTE = 6  # textures made for a scene; each surface takes one of them


@dataclass(eq=False)
class Stage:
    """A scene that grows. Everything random comes from `rng`."""

    rng: np.random.Generator
    rig: Rig
    objects: Sequence[Sequence[Mesh]] = ()  # a few scanned ones; without any, primitives stand in
    contrast: Range | None = None  # of faint textures [grey levels]; None: as they are painted
    painters: Sequence[Painter] = PAINTERS
    glossy: float = 0.1  # share of glossy surfaces
    meshes: list[Mesh] = field(default_factory=list)
    palette: list[Texture] = field(default_factory=list)

    def texture(self) -> Texture:
        """Any texture: painted, or cut out of a photograph."""
        if len(self.palette) >= PALETTE:
            return self.palette[int(self.rng.integers(PALETTE))]
        photographs = [mesh.material.texture.picture for thing in self.objects for mesh in thing]
        if photographs and self.rng.random() < 0.4:
            picture = textures.crop(self.rng, photographs, TEXELS)
        else:
            painter = self.painters[int(self.rng.integers(len(self.painters)))]
            picture = painter(self.rng, TEXELS)
        self.palette.append(self.finished(picture))
        return self.palette[-1]

    def finished(self, picture: FloatArray) -> Texture:
        """Texture of a painted picture, faded where the scene is faint."""
        if self.contrast is not None:
            picture = textures.faded(picture, self.rng.uniform(*self.contrast))
        return Texture(np.clip(picture, 0.01, 1).astype(np.float32))

    def material(self, texture: Texture | None = None) -> Material:
        """Any material; some are glossy."""
        gloss, sharpness = 0.0, 1.0
        if self.rng.random() < self.glossy:
            gloss, sharpness = float(self.rng.uniform(0.1, 0.6)), float(self.rng.uniform(5, 90))
        return Material(texture or self.texture(), gloss, sharpness)

    def add(self, *meshes: Mesh) -> None:
        """Put meshes into the scene."""
        self.meshes.extend(meshes)

    def thing(self) -> list[Mesh]:
        """Any solid within [-1, 1], upright along the third axis: scanned, or a primitive."""
        if not self.objects or self.rng.random() > 0.9:
            return [primitive(self.rng, self.material())]
        parts = self.objects[int(self.rng.integers(len(self.objects)))]
        return [part.with_material(self.material(self._dimmed(part))) for part in parts]

    def _dimmed(self, mesh: Mesh) -> Texture:
        """Texture of an object; in a faint scene with little contrast."""
        texture = mesh.material.texture
        if self.contrast is None:
            return texture
        return replace(texture, picture=_nearly_even(texture.picture, self.rng))


def _nearly_even(picture: Numbers, rng: np.random.Generator) -> Numbers:
    """Reduce the contrast of a photograph; its colours still differ a little."""
    mean = picture.mean(axis=(0, 1))
    return np.asarray(mean + rng.uniform(0.02, 0.2) * (picture - mean), np.float32)


def primitive(rng: np.random.Generator, material: Material) -> Mesh:
    """Any solid within [-1, 1] that needs no file."""
    kind = int(rng.integers(7))
    if kind == 0:
        return box(material, rng.uniform(0.2, 1, 3).tolist())
    if kind == 1:
        return sphere(material)
    if kind == 2:
        return cylinder(material, float(rng.uniform(0.3, 1))).moved(
            np.diag([rng.uniform(0.2, 0.8)] * 2 + [1.0]), (0, 0, 0)
        )
    if kind == 3:
        return torus(material, float(rng.uniform(0.08, 0.4)))
    if kind == 4:
        return cage(material, int(rng.integers(2, 5)), float(rng.uniform(0.015, 0.06)))
    heights = np.linspace(-1, 1, 13)
    radii = 0.45 + 0.35 * np.sin(rng.uniform(0, 6) + heights * rng.uniform(0.5, 3.5))
    profile = list(zip(radii.tolist(), heights.tolist(), strict=True))
    return lathe(material, [(0.0, -1.0), *profile] if kind == 5 else [*profile, (0.0, 1.0)])


@dataclass(frozen=True, eq=False)
class Ground:
    """A plane that things stand on."""

    point: Numbers  # (3,), where it passes the optical axis or the middle of a board
    up: Numbers  # (3,)

    @property
    def axes(self) -> Numbers:
        """Columns: right, away along the plane, up; (3, 3)."""
        right = np.array([1.0, 0.0, 0.0]) - self.up[0] * self.up
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(self.up, right), self.up], axis=1)


def put_on(
    stage: Stage, ground: Ground, right: float, away: float, size: float, upright: float = 0.6
) -> None:
    """Put a thing on the ground: upright with this probability, or as if thrown."""
    rng = stage.rng
    if rng.random() < upright:
        turn = turned((0, 0, 1), float(rng.uniform(0, 2 * np.pi)))
    else:
        turn = turned_at_random(rng)
    matrix = (ground.axes @ turn) * size
    parts = stage.thing()
    lowest = min(float((part.moved(matrix, (0, 0, 0)).points @ ground.up).min()) for part in parts)
    place = ground.point + ground.axes @ np.array([right, away, -lowest])
    stage.add(*(part.moved(matrix, place) for part in parts))
