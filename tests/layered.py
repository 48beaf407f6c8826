"""A second renderer, for tests: layers with analytic disparity and visibility, in plain NumPy.

It shares no code with `oaccdepth.rendering`, which is compared with it. Everything is a function of
(y, x), the position of a surface's points in the centre view, in pixels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import cv2
import numpy as np

from oaccdepth.lightfield import BoolArray, FloatArray, LightField

Function = Callable[[FloatArray, FloatArray], FloatArray]  # (y, x) [px] of the centre view -> value

TEXELS_PER_PX = 2
TOLERANCE_PX = 1e-5  # of a surface's disparity, in each view
MAX_STEPS = 60  # of the fixed-point iteration; reached only if a surface is so steep that it folds


@dataclass(frozen=True)
class Plane:
    """A plane of the scene: disparity `level` + `by_y` * y + `by_x` * x [px]."""

    level: float
    by_y: float = 0.0
    by_x: float = 0.0

    def __call__(self, y, x):
        return np.float32(self.level) + np.float32(self.by_y) * y + np.float32(self.by_x) * x


@dataclass(frozen=True)
class Sphere:
    """A bulge of disparity: the front of a sphere, up to where its slope would fold it over."""

    y: float
    x: float
    radius: float  # of its rim [px]
    level: float  # disparity of its rim [px]
    height: float  # disparity of its middle above the rim [px]

    CUT = 0.85  # radius of the rim as a share of the full radius; beyond it the slope is unbounded

    def __call__(self, y, x):
        """Constant outside the rim."""
        floor = 1 - self.CUT**2
        square = ((y - self.y) ** 2 + (x - self.x) ** 2) * (self.CUT / self.radius) ** 2
        rise = np.sqrt(np.maximum(1 - square, floor)) - floor**0.5
        return np.float32(self.level + rise * self.height / (1 - floor**0.5))

    def outline(self):
        """Positive where the sphere is."""
        return lambda y, x: self.radius**2 - (y - self.y) ** 2 - (x - self.x) ** 2


@dataclass(frozen=True, eq=False)
class Surface:
    """One surface of a scene."""

    disparity: Function  # px; a larger one is nearer and hides what is behind
    texture: FloatArray  # (t, t, 3) in [0, 1], periodic, TEXELS_PER_PX texels per pixel
    outline: Function | None = None  # positive where the surface is; None: everywhere

    def seen_from(self, step_u, step_v, y, x):
        """Disparity of the point at (y, x) of a view; -inf where there is no surface.

        Solves d = disparity(y + d * step_u, x + d * step_v).
        """
        found = self.disparity(y, x)
        for _ in range(MAX_STEPS):
            before, found = found, self.disparity(y + found * step_u, x + found * step_v)
            if np.abs(found - before).max() < TOLERANCE_PX:
                break
        else:
            raise ValueError("a surface is so steep that it hides parts of itself; make it flatter")
        if self.outline is None:
            return found
        return np.where(self.outline(y + found * step_u, x + found * step_v) > 0, found, -np.inf)


def polygon(y, x, radius, sides, angle=0.0):
    """Outline of a regular polygon around (y, x); `radius` is the distance of its sides [px]."""
    angles = angle + 2 * np.pi * np.arange(sides) / sides
    ways = np.stack([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)

    def inside(rows, columns):
        away = (down * (rows - y) + right * (columns - x) for down, right in ways)
        return radius - reduce(np.maximum, away)

    return inside


def bars(period, width, angle=0.0, offset=0.0):
    """Outline of parallel bars [px], upright for `angle` 0; a long `period` gives a single one."""

    def inside(rows, columns):
        across = np.float32(np.sin(angle)) * rows + np.float32(np.cos(angle)) * columns - offset
        return width / 2 - np.abs(across - np.rint(across / period) * period)

    return inside


def cloud_texture(rng, texels, falloff=1.0):
    """Noise with amplitude 1 / frequency ** `falloff`, as in natural pictures: (t, t, 3)."""
    shades = rng.standard_normal((2, texels, texels), np.float32)
    light, tint = (_filtered(shade, falloff)[..., None] for shade in shades)
    base = rng.uniform(0.25, 0.75, 3)
    towards = rng.uniform(0.08, 0.22) + rng.uniform(-0.05, 0.05, 3)
    aside = rng.uniform(-0.06, 0.06, 3)
    return np.clip(base + light * towards + tint * aside, 0, 1).astype(np.float32)


def _filtered(values, falloff):
    """Shape the spectrum: 1 / f ** falloff, band-limited by a Gaussian of a texel; variance 1."""
    fy, fx = np.fft.fftfreq(len(values))[:, None], np.fft.rfftfreq(len(values))
    square = fy**2 + fx**2  # (t, t/2 + 1)
    square[0, 0] = np.inf  # no mean
    gain = square ** (-falloff / 2) * np.exp(-2 * np.pi**2 * np.where(square < 1, square, 0))
    result = np.fft.irfft2(np.fft.rfft2(values) * gain, s=values.shape)
    return result / result.std()


@dataclass(frozen=True, eq=False)
class LayeredScene:
    """A rendered light field and the truth about it."""

    light_field: LightField
    disparity: FloatArray  # (h, w) [px], at the pixel centres of the centre view
    visibility: BoolArray  # (u, v, h, w): the centre view's point is seen in view (u, v)


def render(surfaces, grid=(9, 9), size=(96, 96), *, samples=2, noise=0.0, rng=None, camera=None):
    """Render every view of a scene, with its true disparity and visibility.

    At least one surface must be everywhere: a background. Each pixel is the mean of samples x
    samples points; `noise` is the deviation of Gaussian noise, drawn from `rng`.
    """
    y, x = _sample_grid(size, 1)
    owner, disparity = _nearest(surfaces, 0, 0, y, x)
    owner, disparity = owner[0], disparity[0].astype(np.float32)
    views = np.empty((*grid, *size, 3), np.float32)
    visibility = np.empty((*grid, *size), bool)
    for u, v in np.ndindex(*grid):
        steps = u - grid[0] // 2, v - grid[1] // 2
        views[u, v] = _render_view(surfaces, *steps, *_sample_grid(size, samples))
        visibility[u, v] = _is_seen(surfaces, owner, disparity, *steps)
    if noise > 0:
        rng = rng or np.random.default_rng(0)
        views += rng.standard_normal(views.shape, np.float32) * np.float32(noise)
        np.clip(views, 0, 1, out=views)
    about = {"source": "synthetic scene", "format": "synthetic", "reason": "rendered"}
    return LayeredScene(LightField(views, camera=camera, **about), disparity, visibility)


def scene_between(low, high, size=(96, 128), grid=(9, 9), texels=256):
    """A far wall, a middle board and a near one; textures repeat, with two texels per pixel."""
    rng = np.random.default_rng(5)
    textures = [cloud_texture(rng, texels, 1.0) for _ in range(3)]
    middle = (low + high) / 2
    height, width = size
    surfaces = [
        Surface(Plane(low), textures[0]),
        Surface(Plane(middle), textures[1], polygon(height * 0.4, width * 0.3, 22.0, 4, 0.2)),
        Surface(Plane(high), textures[2], polygon(height * 0.55, width * 0.68, 24.0, 5, 0.5)),
    ]
    return render(surfaces, grid, size)


def _sample_grid(size, samples):
    """Rows (s*s, h, 1) and columns (s*s, 1, w) of the samples, which broadcast to (s*s, h, w).

    No two samples of a pixel share a row or a column: slanted edges come out smoother.
    """
    slow, fast = np.divmod(np.arange(samples * samples), samples)
    along_y = (slow * samples + fast + 0.5) / samples**2 - 0.5  # (s*s,) within the pixel
    along_x = (fast * samples + slow + 0.5) / samples**2 - 0.5
    y = along_y[:, None, None] + np.arange(size[0])[:, None]
    x = along_x[:, None, None] + np.arange(size[1])
    return y.astype(np.float32), x.astype(np.float32)


def _nearest(surfaces, step_u, step_v, y, x):
    """Index and disparity of the surface in front at each sample of a view, (s*s, h, w) each."""
    shape = np.broadcast_shapes(y.shape, x.shape)
    owner, nearest = np.zeros(shape, np.uint8), np.full(shape, -np.inf, np.float32)
    for index, surface in enumerate(surfaces):
        disparity = surface.seen_from(step_u, step_v, y, x)
        np.copyto(owner, index, where=disparity > nearest, casting="unsafe")
        np.maximum(nearest, disparity, out=nearest)
    return owner, nearest


def _render_view(surfaces, step_u, step_v, y, x):
    """One view, (h, w, 3): the texture of the surface in front at each sample, averaged."""
    owner, disparity = _nearest(surfaces, step_u, step_v, y, x)
    texel_y, texel_x = (
        ((place + disparity * step) * TEXELS_PER_PX).reshape(-1, owner.shape[-1])
        for place, step in ((y, np.float32(step_u)), (x, np.float32(step_v)))
    )  # (s*s*h, w)
    colours = np.empty((*texel_y.shape, 3), np.float32)
    # With linear interpolation, the texture depends on the surface point only: all views agree.
    for index, surface in enumerate(surfaces):
        wrap = cv2.BORDER_WRAP
        found = cv2.remap(surface.texture, texel_x, texel_y, cv2.INTER_LINEAR, borderMode=wrap)
        np.copyto(colours, found, where=(owner == index).reshape(*texel_y.shape, 1))
    return colours.reshape(*owner.shape, 3).mean(axis=0)


def _is_seen(surfaces, owner, disparity, step_u, step_v):
    """Where the centre view's points are inside a view's frame, with no other surface in front."""
    height, width = disparity.shape
    y, x = _sample_grid((height, width), 1)
    y, x = y[0] - disparity * step_u, x[0] - disparity * step_v  # (h, w): the points in the view
    seen = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    for index, surface in enumerate(surfaces):
        seen &= (owner == index) | (surface.seen_from(step_u, step_v, y, x) <= disparity)
    return seen
