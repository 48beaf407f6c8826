"""A second renderer, for tests: layers with analytic disparity and visibility, in plain NumPy.

It shares nothing with `oaccdepth.rendering`, which is compared with it. Everything is a function of
(y, x), the place of a surface's points in the centre view, in pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from oaccdepth.lightfield import BoolArray, Camera, FloatArray, LightField

Function = Callable[[FloatArray, FloatArray], FloatArray]  # (y, x) [px] of the centre view -> value

TEXELS_PER_PX = 2
TOLERANCE_PX = 1e-3  # of a curved surface's disparity, in each view
MAX_STEPS = 60  # of the fixed point; reached only by a surface so steep that it folds over


@dataclass(frozen=True)
class Plane:
    """A plane of the scene: disparity `level` + `by_y` * y + `by_x` * x [px]."""

    level: float
    by_y: float = 0.0
    by_x: float = 0.0

    def __call__(self, y: FloatArray, x: FloatArray) -> FloatArray:
        """Disparity at (y, x) of the centre view."""
        # The brackets matter for speed: y and x may be a column and a row that broadcast.
        return (np.float32(self.level) + np.float32(self.by_y) * y) + np.float32(self.by_x) * x

    def seen_from(self, step_u: int, step_v: int, y: FloatArray, x: FloatArray) -> FloatArray:
        """Disparity of the point that lies at (y, x) of another view; exact."""
        foreshortening = 1 / (1 - self.by_y * step_u - self.by_x * step_v)
        scaled = (self.level, self.by_y, self.by_x)
        return Plane(*(part * foreshortening for part in scaled))(y, x)


@dataclass(frozen=True)
class Sphere:
    """A bulge of disparity: the front of a sphere, up to where its slope would fold it over."""

    y: float
    x: float
    radius: float  # of its rim [px]
    level: float  # disparity of its rim [px]
    height: float  # disparity of its middle above the rim [px]

    CUT = 0.85  # the rim's part of the full radius; beyond it the slope grows without bound

    def __call__(self, y: FloatArray, x: FloatArray) -> FloatArray:
        """Disparity at (y, x) of the centre view; constant outside the rim."""
        floor = 1 - self.CUT**2
        inverse = np.float32(self.CUT / self.radius)
        down, right = (y - np.float32(self.y)) * inverse, (x - np.float32(self.x)) * inverse
        rise = np.sqrt(np.maximum(1 - (down**2 + right**2), np.float32(floor)))
        scale = self.height / (1 - floor**0.5)
        result = rise * np.float32(scale) + np.float32(self.level - scale * floor**0.5)
        return np.asarray(result, np.float32)

    def outline(self) -> Outline:
        """Where the sphere is."""
        return disc(self.y, self.x, self.radius)


@dataclass(frozen=True, eq=False)
class Outline:
    """Where a surface is."""

    inside: Function  # positive there
    box: tuple[float, float, float, float] | None = (
        None  # top, left, bottom, right [px], if it ends
    )


@dataclass(frozen=True, eq=False)
class Surface:
    """One surface of a scene."""

    disparity: Function  # px; larger is nearer and hides what is behind
    texture: FloatArray  # (t, t, 3) in [0, 1], periodic, TEXELS_PER_PX texels per pixel
    outline: Outline | None = None  # None: everywhere

    def seen_from(self, step_u: int, step_v: int, y: FloatArray, x: FloatArray) -> FloatArray:
        """Disparity of the point that lies at (y, x) of a view; -inf where the surface is not."""
        disparity = solve_disparity(self.disparity, step_u, step_v, y, x)
        if self.outline is not None:
            inside = self.outline.inside(y + disparity * step_u, x + disparity * step_v) > 0
            disparity = np.where(inside, disparity, np.float32(-np.inf))
        return disparity

    def rows_and_columns(
        self, step_u: int, step_v: int, size: tuple[int, int]
    ) -> tuple[slice, slice]:
        """Part of a view outside of which the surface cannot be."""
        if self.outline is None or self.outline.box is None:
            return slice(0, size[0]), slice(0, size[1])
        top, left, bottom, right = self.outline.box
        y, x = np.linspace(top, bottom, 9), np.linspace(left, right, 9)
        near = self.disparity(*np.meshgrid(y, x, indexing="ij"))  # type: ignore[arg-type]
        low, high = float(near.min()) - 0.1, float(near.max()) + 0.1  # between the points asked
        return (
            _range_in_view(top, bottom, (low * step_u, high * step_u), size[0]),
            _range_in_view(left, right, (low * step_v, high * step_v), size[1]),
        )


def _range_in_view(first: float, last: float, shifts: Sequence[float], length: int) -> slice:
    start = int(np.floor(first - max(shifts))) - 1
    stop = int(np.ceil(last - min(shifts))) + 2
    return slice(min(max(start, 0), length), min(max(stop, 0), length))


def solve_disparity(
    disparity: Function, step_u: int, step_v: int, y: FloatArray, x: FloatArray
) -> FloatArray:
    """Solve d = disparity(y + d * step_u, x + d * step_v) for the point at (y, x) of a view."""
    if isinstance(disparity, Plane):
        return disparity.seen_from(step_u, step_v, y, x)
    result = disparity(y, x)
    if (step_u, step_v) == (0, 0) or result.size == 0:
        return result
    for _ in range(MAX_STEPS):
        previous, result = result, disparity(y + result * step_u, x + result * step_v)
        if np.abs(result - previous).max() < TOLERANCE_PX:
            return result
    raise ValueError("a surface is so steep that it hides parts of itself; make it flatter")


def disc(y: float, x: float, radius: float) -> Outline:
    """Outline of a disc [px] around (y, x)."""

    def inside(rows: FloatArray, columns: FloatArray) -> FloatArray:
        square = (rows - np.float32(y)) ** 2 + (columns - np.float32(x)) ** 2
        return np.float32(radius**2) - square

    return Outline(inside, _box_around(y, x, radius))


def polygon(y: float, x: float, radius: float, sides: int, angle: float = 0.0) -> Outline:
    """Outline of a regular polygon around (y, x); `radius` is the distance of its sides [px]."""
    angles = angle + 2 * np.pi * np.arange(sides) / sides

    def inside(rows: FloatArray, columns: FloatArray) -> FloatArray:
        result = np.full_like(rows, np.inf)
        for sine, cosine in zip(np.sin(angles), np.cos(angles), strict=True):
            away = np.float32(sine) * (rows - y) + np.float32(cosine) * (columns - x)
            np.minimum(result, np.float32(radius) - away, out=result)
        return result

    return Outline(inside, _box_around(y, x, radius / float(np.cos(np.pi / sides))))


def bars(period: float, width: float, angle: float = 0.0, offset: float = 0.0) -> Outline:
    """Outline of parallel bars [px], upright for `angle` 0; a long `period` gives a single one."""
    sine, cosine = np.float32(np.sin(angle)), np.float32(np.cos(angle))

    def inside(rows: FloatArray, columns: FloatArray) -> FloatArray:
        across = sine * rows + cosine * columns - np.float32(offset)
        across -= np.rint(across * np.float32(1 / period)) * np.float32(period)
        return np.float32(width / 2) - np.abs(across)

    return Outline(inside)


def _box_around(y: float, x: float, radius: float) -> tuple[float, float, float, float]:
    return y - radius, x - radius, y + radius, x + radius


def cloud_texture(
    rng: np.random.Generator,
    texels: int,
    falloff: float = 1.0,
    ground: tuple[float, float, float] | None = None,
) -> FloatArray:
    """Make noise with amplitude 1 / frequency ** `falloff`, as in natural pictures."""
    shades = rng.standard_normal((2, texels, texels), np.float32)
    return _coloured(rng, _filtered(shades[0], falloff), _filtered(shades[1], falloff), ground)


def _filtered(values: FloatArray, falloff: float, sigma: float = 1.0) -> FloatArray:
    """Shape the spectrum: 1 / f ** falloff, band-limited by a Gaussian [texels]; variance 1."""
    texels = values.shape[0]
    fy, fx = np.fft.fftfreq(texels)[:, None], np.fft.rfftfreq(texels)[None]
    square = fy**2 + fx**2  # (t, t/2 + 1)
    square[0, 0] = 1.0
    gain = square ** (-falloff / 2) * np.exp(-2 * (np.pi * sigma) ** 2 * square)
    gain[0, 0] = 0.0
    result = np.fft.irfft2(np.fft.rfft2(values) * gain, s=values.shape)
    return np.asarray(result / max(float(result.std()), 1e-9), np.float32)


def _coloured(
    rng: np.random.Generator,
    light: FloatArray,
    tint: FloatArray,
    ground: tuple[float, float, float] | None = None,
) -> FloatArray:
    """Two patterns of about unit size as variations of a colour, random if none is given."""
    base = rng.uniform(0.25, 0.75, 3) if ground is None else np.array(ground)
    towards = rng.uniform(0.08, 0.22) + rng.uniform(-0.05, 0.05, 3)
    aside = rng.uniform(-0.06, 0.06, 3)
    colours = np.empty((*light.shape, 3), np.float32)
    for channel in range(3):
        colours[..., channel] = light * np.float32(towards[channel])
        colours[..., channel] += tint * np.float32(aside[channel]) + np.float32(base[channel])
    return np.clip(colours, 0, 1, out=colours)


@dataclass(frozen=True, eq=False)
class LayeredScene:
    """A rendered light field and the truth about it."""

    light_field: LightField
    disparity: FloatArray  # (h, w) [px], at the pixel centres of the centre view
    visibility: BoolArray  # (u, v, h, w): the centre view's point is seen in view (u, v)


def render(
    surfaces: Sequence[Surface],
    grid: tuple[int, int] = (9, 9),
    size: tuple[int, int] = (96, 96),
    *,
    samples: int = 2,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
    camera: Camera | None = None,
) -> LayeredScene:
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
    return LayeredScene(light_field, disparity[0], visibility)


def _sample_grid(size: tuple[int, int], samples: int) -> tuple[FloatArray, FloatArray]:
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
