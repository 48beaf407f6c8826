"""Renders small light fields of known disparity and visibility: the demo, the tests, training.

A scene is a list of surfaces (`surfaces.py`) in any order; in each view the one with the largest
disparity is in front. Arrays only, no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from oaccdepth.lightfield import BoolArray, Camera, FloatArray, LightField
from oaccdepth.options import Range
from oaccdepth.rendering.surfaces import (
    TEXELS_PER_PX,
    Outline,
    Plane,
    Sphere,
    Surface,
    Wave,
    bars,
    cloud_texture,
    lattice,
    leaves,
    plain_texture,
    polygon,
    speckle_texture,
    weave_texture,
)

Size = tuple[int, int]  # height, width [px]

MAX_SLOPE = 0.08  # px per px, of random scenes; a surface folds over at 1 / view distance
DEMO_CAMERA = Camera(baseline_mm=5.0, focal_mm=50.0, sensor_mm=36.0, focus_mm=600.0)


@dataclass(frozen=True, eq=False)
class SyntheticScene:
    """A rendered light field and the truth about it."""

    light_field: LightField
    disparity: FloatArray  # (h, w) [px], at the pixel centres of the centre view
    visibility: BoolArray  # (u, v, h, w): the centre view's point is seen in view (u, v)


def render(
    surfaces: Sequence[Surface],
    grid: tuple[int, int] = (9, 9),
    size: Size = (96, 96),
    *,
    samples: int = 2,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
    camera: Camera | None = None,
) -> SyntheticScene:
    """Render every view of a scene, with its true disparity and visibility.

    Parameters
    ----------
    surfaces
        At least one must be everywhere: a background. All textures have the same size.
    samples
        Each pixel is the mean of samples x samples points.
    noise
        Standard deviation of Gaussian noise, drawn from `rng`, on values in [0, 1].
    """
    if all(surface.outline is not None for surface in surfaces):
        raise ValueError("the scene has no background: one surface must have no outline")
    owner, disparity = _nearest(surfaces, 0, 0, *_sample_grid(size, 1))
    views = np.empty((*grid, *size, 3), np.float32)
    visibility = np.empty((*grid, *size), bool)
    atlas = _atlas(surfaces)
    for u, v in np.ndindex(*grid):
        step_u, step_v = u - grid[0] // 2, v - grid[1] // 2
        views[u, v] = _render_view(surfaces, atlas, step_u, step_v, _sample_grid(size, samples))
        visibility[u, v] = _is_seen(surfaces, owner[0], disparity[0], step_u, step_v)
    if noise > 0:
        rng = rng or np.random.default_rng(0)
        views += rng.standard_normal(views.shape, np.float32) * np.float32(noise)
        np.clip(views, 0, 1, out=views)
    light_field = LightField(
        views, source="synthetic scene", format="synthetic", reason="rendered", camera=camera
    )
    return SyntheticScene(light_field, disparity[0], visibility)


def _sample_grid(size: Size, samples: int) -> tuple[FloatArray, FloatArray]:
    """Rows (s*s, h, 1) and columns (s*s, 1, w) of the samples, which broadcast to (s*s, h, w).

    No two samples of a pixel share a row or a column: slanted edges come out smoother.
    """
    slow, fast = np.divmod(np.arange(samples * samples), samples)
    along_y = (slow * samples + fast + 0.5) / samples**2 - 0.5  # (s*s,) within the pixel
    along_x = (fast * samples + slow + 0.5) / samples**2 - 0.5
    y = along_y[:, None, None] + np.arange(size[0])[:, None]
    x = along_x[:, None, None] + np.arange(size[1])
    return y.astype(np.float32), x.astype(np.float32)


def _nearest(
    surfaces: Sequence[Surface], step_u: int, step_v: int, y: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Index and disparity of the surface in front at each sample of a view, (s*s, h, w) each."""
    shape = np.broadcast_shapes(y.shape, x.shape)
    owner, nearest = np.zeros(shape, np.float32), np.full(shape, -np.inf, np.float32)
    for index, surface in enumerate(surfaces):
        rows, columns = surface.rows_and_columns(step_u, step_v, (shape[1], shape[2]))
        disparity = surface.seen_from(step_u, step_v, y[:, rows], x[:, :, columns])
        so_far = nearest[:, rows, columns]
        in_front = disparity > so_far
        np.copyto(so_far, disparity, where=in_front)
        np.copyto(owner[:, rows, columns], np.float32(index), where=in_front)
    return owner, nearest


def _atlas(surfaces: Sequence[Surface]) -> FloatArray:
    """All textures below each other, each with its first row and column repeated at its end."""
    tiles = [np.pad(s.texture, ((0, 1), (0, 1), (0, 0)), mode="wrap") for s in surfaces]
    return np.concatenate(tiles)  # (k * (t + 1), t + 1, 3)


def _render_view(
    surfaces: Sequence[Surface],
    atlas: FloatArray,
    step_u: int,
    step_v: int,
    samples: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """One view, (h, w, 3): the texture of the surface in front at each sample, averaged."""
    y, x = samples
    owner, disparity = _nearest(surfaces, step_u, step_v, y, x)
    period = atlas.shape[1] - 1
    texel_y = _wrapped((y + disparity * step_u) * TEXELS_PER_PX, period) + owner * (period + 1)
    texel_x = _wrapped((x + disparity * step_v) * TEXELS_PER_PX, period)
    number, height, width = owner.shape
    # Linear interpolation makes the texture a plain function of the surface: all views agree.
    colours = cv2.remap(
        atlas,
        texel_x.reshape(number * height, width),
        texel_y.reshape(number * height, width),
        cv2.INTER_LINEAR,
    )  # (s*s*h, w, 3)
    mean = colours.reshape(number, height, width, 3).mean(axis=0, dtype=np.float32)
    return np.asarray(mean)


def _wrapped(position: FloatArray, period: int) -> FloatArray:
    turns = np.floor(position * np.float32(1 / period))
    return np.asarray(position - turns * np.float32(period), np.float32)


def _is_seen(
    surfaces: Sequence[Surface],
    owner: FloatArray,
    disparity: FloatArray,
    step_u: int,
    step_v: int,
) -> BoolArray:
    """Where the centre view's points lie inside a view's frame, with no other surface in front."""
    height, width = disparity.shape
    y, x = _sample_grid((height, width), 1)
    y, x = y[0] - disparity * step_u, x[0] - disparity * step_v  # (h, w): the points in the view
    seen = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    for index, surface in enumerate(surfaces):
        in_front = surface.seen_from(step_u, step_v, y, x) > disparity
        seen &= ~(in_front & (owner != index))
    return np.asarray(seen)


def demo_scene(size: Size = (192, 256), grid: tuple[int, int] = (9, 9)) -> SyntheticScene:
    """Render slanted planes, a sphere, a curved surface and thin occluders; always the same."""
    rng = np.random.default_rng(2022)
    height, width = size
    unit = min(size)  # everything scales with the picture
    texels = 1 << (TEXELS_PER_PX * max(size) - 1).bit_length()
    sphere = Sphere(0.55 * height, 0.3 * width, 0.26 * unit, -0.2, 0.9)
    hill = Wave(Plane(-1.0, 1.2 / height), 0.15, 0.0, 6 * np.pi / width)
    edge = Outline(lambda y, x: y - np.float32(0.62 * height) - np.float32(0.1) * x)
    square = polygon(0.32 * height, 0.62 * width, 0.2 * unit, 4, 0.4)
    stem = bars(10.0 * width, max(3.0, 0.016 * unit), 0.15, 0.8 * width)
    places = [
        (part * height, (0.81 + side) * width - 0.15 * part * height)
        for part, side in ((0.15, 0.06), (0.35, -0.05), (0.55, 0.07), (0.8, -0.06))
    ]
    foliage = leaves(places, 0.22 * unit, 0.07 * unit)
    wall = Plane(-1.6, 0.6 / height, -0.4 / width)
    board = Plane(-0.6, 0.3 / height, 1.0 / width)
    surfaces = [
        Surface(wall, cloud_texture(rng, texels, 1.0, (0.45, 0.52, 0.62))),
        Surface(hill, cloud_texture(rng, texels, 0.8, (0.55, 0.47, 0.35)), edge),
        Surface(board, weave_texture(rng, texels, unit / 10, (0.62, 0.35, 0.3)), square),
        Surface(sphere, cloud_texture(rng, texels, 1.1, (0.7, 0.6, 0.35)), sphere.outline()),
        Surface(Plane(1.3), cloud_texture(rng, texels, 0.9, (0.3, 0.25, 0.2)), stem),
        Surface(Plane(1.7), cloud_texture(rng, texels, 1.0, (0.35, 0.55, 0.25)), foliage),
    ]
    return render(surfaces, grid, size, camera=DEMO_CAMERA)


def random_scene(
    rng: np.random.Generator,
    grid: tuple[int, int] = (9, 9),
    size: Size = (96, 96),
    disparity_range: Range = (-4.0, 4.0),
    *,
    max_noise: float = 0.02,
) -> SyntheticScene:
    """Render random planes, curved surfaces and thin occluders, for training.

    The scene spans a random part of `disparity_range`; half of the scenes have noise.
    """
    low, high = disparity_range
    span = (high - low) * rng.uniform(0.15, 1.0)
    low = rng.uniform(low, high - span)
    texels = 1 << (TEXELS_PER_PX * max(size) - 1).bit_length()
    surfaces = [Surface(_random_shape(rng, low, low + 0.3 * span, size), _any_texture(rng, texels))]
    for _ in range(rng.integers(2, 7)):
        near = low + span * rng.uniform(0.2, 1.0)
        surfaces.append(_random_object(rng, low, near, size, texels))
    noise = max_noise * rng.random() if rng.random() < 0.5 else 0.0
    return render(surfaces, grid, size, noise=noise, rng=rng)


def _any_texture(rng: np.random.Generator, texels: int) -> FloatArray:
    kind = rng.random()
    if kind < 0.6:
        return cloud_texture(rng, texels, rng.uniform(0.4, 1.6))
    if kind < 0.8:
        return weave_texture(rng, texels, rng.uniform(4, 24))
    if kind < 0.9:
        return speckle_texture(rng, texels, rng.uniform(0.01, 0.06))
    return plain_texture(rng, texels, rng.uniform(0.05, 0.4))


def _random_shape(rng: np.random.Generator, low: float, high: float, size: Size) -> Plane | Wave:
    """Make a plane or a curved surface whose disparity stays within [low, high] in the frame."""
    height, width = size
    room = (high - low) / 2
    wave = room * rng.uniform(0.1, 0.5) if rng.random() < 0.3 else 0.0
    tilt = (room - wave) * rng.random() if rng.random() < 0.7 else 0.0  # px, at the corners
    slope = min(2 * tilt / float(np.hypot(height, width)), MAX_SLOPE / 2)
    by_y, by_x = _turned(rng, slope)
    plane = Plane((low + high - by_y * height - by_x * width) / 2, by_y, by_x)
    if wave == 0.0:
        return plane
    frequency = min(2 * np.pi / rng.uniform(20, 80), MAX_SLOPE / 2 / wave)
    return Wave(plane, wave, *_turned(rng, frequency), rng.uniform(0, 2 * np.pi))


def _turned(rng: np.random.Generator, length: float) -> tuple[float, float]:
    """Give a vector of this length in a random direction."""
    turn = rng.uniform(0, 2 * np.pi)
    return length * float(np.sin(turn)), length * float(np.cos(turn))


def _random_object(
    rng: np.random.Generator, low: float, near: float, size: Size, texels: int
) -> Surface:
    """Make a patch, a sphere or thin occluders, with disparity up to `near`."""
    unit = min(size)
    y, x = rng.uniform(0, size[0]), rng.uniform(0, size[1])
    if rng.random() < 0.2:
        radius = unit * rng.uniform(0.12, 0.4)
        # The slope at the rim is 2.9 times height / radius.
        rise = min((near - low) * rng.uniform(0.2, 0.8), MAX_SLOPE * radius / 2.9)
        sphere = Sphere(y, x, radius, near - rise, rise)
        return Surface(sphere, _any_texture(rng, texels), sphere.outline())
    shape = _random_shape(rng, near - 0.3 * (near - low), near, size)
    return Surface(shape, _any_texture(rng, texels), _random_outline(rng, y, x, unit))


def _random_outline(rng: np.random.Generator, y: float, x: float, unit: int) -> Outline:
    """Make the outline of a patch with straight edges, of bars, a lattice or leaves."""
    kind, turn = rng.random(), rng.uniform(0, 2 * np.pi)
    if kind < 0.55:
        return polygon(y, x, unit * rng.uniform(0.08, 0.35), int(rng.integers(3, 9)), turn)
    if kind < 0.75:
        return bars(unit * rng.uniform(0.2, 3.0), rng.uniform(1.5, 8.0), turn, x)
    if kind < 0.87:
        return lattice(unit * rng.uniform(0.12, 0.5), rng.uniform(1.5, 4.0), turn, x)
    around = rng.normal(0, 0.2 * unit, (int(rng.integers(3, 7)), 2))
    places = [(y + float(down), x + float(right)) for down, right in around]
    return leaves(places, unit * rng.uniform(0.1, 0.4), unit * rng.uniform(0.03, 0.12))
