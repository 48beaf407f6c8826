"""What synthetic scenes are made of: surfaces with a known disparity, an outline and a texture.

Everything is a function of (y, x), the place of the surface's points in the centre view, in pixels.
The functions go on outside the frame, because the other views look there. Arrays only, no files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from oaccdepth.lightfield import FloatArray

Function = Callable[[FloatArray, FloatArray], FloatArray]  # (y, x) [px] of the centre view -> value
Colour = tuple[float, float, float]

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


@dataclass(frozen=True)
class Wave:
    """A curved surface: a plane with a sine of disparity on it."""

    plane: Plane
    height: float  # px of disparity
    by_y: float  # radians per px
    by_x: float
    phase: float = 0.0

    def __call__(self, y: FloatArray, x: FloatArray) -> FloatArray:
        """Disparity at (y, x) of the centre view."""
        angle = np.float32(self.by_y) * y + np.float32(self.by_x) * x + np.float32(self.phase)
        result = self.plane(y, x) + np.float32(self.height) * np.sin(angle)
        return np.asarray(result, np.float32)


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


# Outlines


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


def lattice(period: float, width: float, angle: float = 0.0, offset: float = 0.0) -> Outline:
    """Outline of thin bars in two directions."""
    first = bars(period, width, angle, offset).inside
    second = bars(period, width, angle + np.pi / 2, offset).inside
    return Outline(lambda rows, columns: np.maximum(first(rows, columns), second(rows, columns)))


def leaves(places: Sequence[tuple[float, float]], length: float, width: float) -> Outline:
    """Outline of slender ellipses [px] around the given (y, x), each turned further."""
    angles = 2.4 * np.arange(len(places))  # the golden angle, as leaves grow

    def inside(rows: FloatArray, columns: FloatArray) -> FloatArray:
        result = np.full_like(rows, -np.inf)
        for (y, x), sine, cosine in zip(places, np.sin(angles), np.cos(angles), strict=True):
            down, right = rows - np.float32(y), columns - np.float32(x)
            along = down * np.float32(sine * 2 / length) + right * np.float32(cosine * 2 / length)
            across = down * np.float32(cosine * 2 / width) - right * np.float32(sine * 2 / width)
            np.maximum(result, 1 - along**2 - across**2, out=result)
        return result

    centres, reach = np.array(places), max(length, width) / 2
    top, left = (float(value) for value in centres.min(axis=0) - reach)
    bottom, right = (float(value) for value in centres.max(axis=0) + reach)
    return Outline(inside, (top, left, bottom, right))


def _box_around(y: float, x: float, radius: float) -> tuple[float, float, float, float]:
    return y - radius, x - radius, y + radius, x + radius


# Textures: (t, t, 3) in [0, 1], periodic


def cloud_texture(
    rng: np.random.Generator, texels: int, falloff: float = 1.0, ground: Colour | None = None
) -> FloatArray:
    """Make noise with amplitude 1 / frequency ** `falloff`, as in natural pictures."""
    shades = rng.standard_normal((2, texels, texels), np.float32)
    return _coloured(rng, _filtered(shades[0], falloff), _filtered(shades[1], falloff), ground)


def weave_texture(
    rng: np.random.Generator,
    texels: int,
    px_per_wave: float = 8.0,
    ground: Colour | None = None,
) -> FloatArray:
    """Make stripes or checks with soft edges and some grain: a regular pattern, hard to match."""
    number = texels / TEXELS_PER_PX / px_per_wave
    turn = rng.uniform(0, np.pi)
    # Whole numbers of waves, so that the pattern is periodic.
    wave_y, wave_x = (np.float32(round(number * part)) for part in (np.sin(turn), np.cos(turn)))
    y, x = np.mgrid[:texels, :texels].astype(np.float32) * np.float32(2 * np.pi / texels)
    pattern = np.tanh(3 * np.sin(wave_y * y + wave_x * x))
    if rng.random() < 0.5:
        pattern = pattern * np.tanh(3 * np.sin(wave_x * y - wave_y * x))
    grain = _filtered(rng.standard_normal((texels, texels), np.float32), 0.5)
    return _coloured(rng, np.asarray(pattern + 0.3 * grain, np.float32), grain, ground)


def speckle_texture(rng: np.random.Generator, texels: int, share: float = 0.02) -> FloatArray:
    """Make small dots on a plain ground: sparse texture."""
    dots = (rng.random((texels, texels)) < share / TEXELS_PER_PX**2).astype(np.float32)
    grain = _filtered(rng.standard_normal((texels, texels), np.float32), 1.5)
    return _coloured(rng, _filtered(dots, 0.0, sigma=2.0) + 0.1 * grain, grain)


def plain_texture(rng: np.random.Generator, texels: int, contrast: float = 0.1) -> FloatArray:
    """Make almost one colour; `contrast` is relative to the other textures."""
    texture = cloud_texture(rng, texels, falloff=1.2)
    mean = texture.mean(axis=(0, 1))
    return np.asarray(mean + (texture - mean) * np.float32(contrast), np.float32)


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
    rng: np.random.Generator, light: FloatArray, tint: FloatArray, ground: Colour | None = None
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
