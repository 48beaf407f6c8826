"""Lights, their shadow maps, and the ambient light of a sky. Arrays only."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat

import numpy as np

from oaccdepth.compiling import run_in_threads
from oaccdepth.rendering.rig import Numbers

SHADOW_MAP = 1024  # texels a side
SKY_LIGHTS, SKY_MAP = 32, 256


@dataclass(frozen=True, eq=False)
class Light:
    """A distant light, like the sun."""

    direction: tuple[float, float, float]  # towards the light: right, down, away from the camera
    colour: tuple[float, float, float]  # on a surface that faces it


@dataclass(frozen=True, eq=False)
class Lighting:
    """Everything that shines on a scene."""

    lights: tuple[Light, ...]
    ambient: tuple[float, float, float] = (0.4, 0.4, 0.4)  # of a sky that nothing hides
    shadows: bool = True


def project_to_light(direction: Numbers, points: Numbers, size: int) -> Numbers:
    """(3, 4) affine map from space to a light's shadow map: x, y [texels], nearness to the light.

    The map covers all `points`.
    """
    forward = direction / np.linalg.norm(direction)
    helper = np.array([1.0, 0.0, 0.0]) if abs(forward[0]) < 0.8 else np.array([0.0, 1.0, 0.0])
    right = np.cross(helper, forward)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(forward, right), forward])  # (3, 3)
    seen = points @ axes.T
    low, high = seen.min(axis=0), seen.max(axis=0)
    scale = np.append((size - 6) / np.maximum(high - low, 1e-6)[:2], 1.0)
    shift = np.array([3.0, 3.0, 0.0]) - np.append(low[:2], 0.0) * scale
    return np.column_stack([axes * scale[:, None], shift])


def shadow_maps(corners: Numbers, directions: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """Shadow maps (l, size, size) of triangles (t, 3, 3), and their projections (l, 3, 4)."""
    from oaccdepth.rendering import rasteriser

    covered = corners.reshape(-1, 3)
    projections = np.stack([project_to_light(d, covered, size) for d in directions])
    maps = np.empty((len(directions), size, size), np.float32)
    run_in_threads(rasteriser.draw_map, zip(repeat(corners), projections, maps, strict=False))
    return maps, projections


def sky_directions(count: int = SKY_LIGHTS) -> Numbers:
    """Directions to an even sky, (l, 3): a spiral that is denser above than at the horizon."""
    number = np.arange(count) + 0.5
    height = 1 - 1.1 * number / count
    angle = number * np.pi * (3 - 5**0.5)
    radius = np.sqrt(np.maximum(1 - height**2, 0))
    # The sky lies above and on the camera's side: what is behind the back wall lights nothing.
    directions = np.stack([radius * np.cos(angle), -height, radius * np.sin(angle) - 0.5], axis=-1)
    return np.asarray(directions / np.linalg.norm(directions, axis=-1, keepdims=True), np.float32)


def ambient_light(points: Numbers, normals: Numbers, casting: Numbers) -> Numbers:
    """Part of the sky's light that arrives at points (n, 3); 1 where nothing hides it."""
    from oaccdepth.rendering import rasteriser

    directions = sky_directions()
    maps, projections = shadow_maps(casting, directions, SKY_MAP)
    extent = float(np.linalg.norm(np.ptp(casting.reshape(-1, 3), axis=0)))
    lifted = points + normals * np.float32(2 * extent / SKY_MAP)  # two texels off the surface
    out = np.zeros(len(points), np.float32)
    for shadow_map, projection, direction in zip(maps, projections, directions, strict=True):
        rasteriser.add_light(lifted, normals, shadow_map, projection, direction, out)
    whole = np.clip(normals @ directions.T, 0, None).sum(axis=1)
    return np.asarray(out / np.maximum(whole, 0.25 * whole.max()), np.float32)
