"""Patches for the network of the paper, augmented. Every patch follows from (seed, number).

A patch is what the networks take: grey views with a margin, ABSENT where a sample must not vote,
and the disparity of its centre view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from oaccdepth.lightfield import Array, BoolArray, FloatArray
from oaccdepth.options import TrainOptions
from oaccdepth.training.scenes import Scene
from oaccdepth.training.variants import choose_shear, turn

REFOCUSED = 0.2  # share of the patches, as in the paper's code
SUBSAMPLING = {2: 2 / 3, 3: 1 / 3}  # how often, of the patches that are sub-sampled
ABSENT = -1.0  # stands where there is no picture; pictures are in [0, 1]
MARGIN = 16  # px around a patch, for shifts of up to 4 px over 4 views
NOISY = 0.2  # share of patches with noise


@dataclass(frozen=True, eq=False)
class Patch:
    """One training example."""

    views: FloatArray  # (u, v, size + 2*margin, size + 2*margin), or ABSENT
    truth: FloatArray  # (size, size)
    valid: BoolArray  # (size, size)


@dataclass(frozen=True, eq=False)
class GreyBatch:
    """Patches of one step."""

    views: Tensor  # (b, u, v, size + 2*margin, size + 2*margin), or ABSENT
    truth: Tensor  # (b, size, size)
    valid: Tensor  # (b, size, size)

    def to(self, device: torch.device) -> GreyBatch:
        """The same on a device."""
        return GreyBatch(self.views.to(device), self.truth.to(device), self.valid.to(device))


class GreyBatches(Dataset[GreyBatch]):
    """Batch number n of a process is always the same: that makes a run resumable."""

    def __init__(self, scenes: Sequence[Scene], options: TrainOptions, rank: int, world: int):
        self.sampler = PatchSampler(scenes, options.patch, MARGIN, options.seed, options.full_size)
        self.batch, self.rank, self.world = options.batch, rank, world

    def __getitem__(self, step: int) -> GreyBatch:
        first = (step * self.world + self.rank) * self.batch
        patches = [self.sampler.draw(first + index) for index in range(self.batch)]
        return GreyBatch(
            torch.from_numpy(np.stack([patch.views for patch in patches])),
            torch.from_numpy(np.stack([patch.truth for patch in patches])),
            torch.from_numpy(np.stack([patch.valid for patch in patches])),
        )


class PatchSampler:
    """Draws augmented patches from scenes."""

    def __init__(
        self,
        scenes: Sequence[Scene],
        size: int,
        margin: int,
        seed: int,
        full_size: float = TrainOptions.full_size,  # share of those that are not sub-sampled
    ) -> None:
        self.scenes, self.size, self.margin = scenes, size, margin
        self.seed, self.full_size = seed, full_size

    def draw(self, number: int) -> Patch:
        """The patch of this number: always the same."""
        rng = np.random.default_rng((self.seed, number))
        while True:
            patch = self._crop(rng)
            if patch is not None:
                return augment(patch, rng)

    def _crop(self, rng: np.random.Generator) -> Patch | None:
        """A geometric crop: sub-sampled, refocused, grey; None if it has nothing to teach."""
        scene = self.scenes[int(rng.integers(len(self.scenes)))]
        scale = 1
        if rng.random() >= self.full_size:
            scale = int(rng.choice(list(SUBSAMPLING), p=list(SUBSAMPLING.values())))
        phase = rng.integers(scale, size=2)
        height, width = (
            (side - int(first) + scale - 1) // scale
            for side, first in zip(scene.truth.shape, phase, strict=True)
        )
        if min(height, width) < self.size:
            return None
        y, x = int(rng.integers(height - self.size + 1)), int(rng.integers(width - self.size + 1))
        window = np.s_[
            phase[0] + scale * y : phase[0] + scale * (y + self.size) : scale,
            phase[1] + scale * x : phase[1] + scale * (x + self.size) : scale,
        ]
        truth, valid = scene.truth[window] / scale, scene.valid[window]
        centre = scene.views[scene.views.shape[0] // 2, scene.views.shape[1] // 2][window]
        if valid.mean() < 0.5 or (centre.std(axis=(0, 1)).max() < 3 and rng.random() < 0.9):
            return None
        shear = choose_shear(truth[valid].astype(np.float32), rng, REFOCUSED)
        lookup = choose_tones(rng)
        views = crop_views(scene.views, (y, x), self.size, self.margin, scale, phase, shear, lookup)
        return Patch(views, (truth + shear).astype(np.float32), valid)


def choose_tones(rng: np.random.Generator) -> FloatArray:
    """Random colour weights, gamma, gain and offset as one table (3, 256) to be summed."""
    weights = rng.dirichlet((1.0, 1.0, 1.0))
    gamma, gain = rng.uniform(0.8, 1.2), rng.uniform(0.6, 1.1)
    offset = rng.uniform(0, 0.1)
    tones = np.arange(256) / 255
    return np.stack([w * (gain * tones**gamma + offset) for w in weights]).astype(np.float32)


def crop_views(
    views: Array,
    corner: tuple[int, int],
    size: int,
    margin: int,
    scale: int,
    phase: Array,
    shear: int,
    lookup: FloatArray,
) -> FloatArray:
    """Grey crops with margin of all views, refocused by `shear`; ABSENT outside the frame."""
    rows, columns, height, width = views.shape[:4]
    side = size + 2 * margin
    result = np.full((rows, columns, side, side), ABSENT, dtype=np.float32)
    for u in range(rows):
        # a point at y of the centre lies at y - d*(u-uc): to add shear to d, sample further on
        top = corner[0] - margin + shear * (u - rows // 2)
        ys, into_y = inside(top, side, int(phase[0]), scale, height)
        for v in range(columns):
            left = corner[1] - margin + shear * (v - columns // 2)
            xs, into_x = inside(left, side, int(phase[1]), scale, width)
            crop = views[u, v, ys, xs]
            grey = lookup[0][crop[..., 0]]
            grey += lookup[1][crop[..., 1]]
            grey += lookup[2][crop[..., 2]]
            result[u, v, into_y, into_x] = grey
    return result


def inside(start: int, length: int, phase: int, scale: int, limit: int) -> tuple[slice, slice]:
    """What of start..start+length (sub-sampled pixels) is in the picture, and where it goes."""
    count = (limit - phase + scale - 1) // scale
    first, last = min(max(start, 0), count), max(min(start + length, count), 0)
    last = max(last, first)
    source = slice(phase + scale * first, max(phase + scale * (last - 1) + 1, 0), scale)
    return (source if last > first else slice(0, 0)), slice(first - start, last - start)


def augment(patch: Patch, rng: np.random.Generator, noisy: float = NOISY) -> Patch:
    """Turn, drop views, disturb exposure, sharpness, calibration; add noise, in a share of them."""
    views, truth, valid = turn(patch.views, patch.truth, patch.valid, rng)
    absent = views < 0
    if rng.random() < 0.05:
        views = blur(views, rng)
    if rng.random() < 0.05:
        views = shift_slightly(views, rng)
    if rng.random() < 0.05:
        views = views * (1 + rng.normal(0, 0.03, (*views.shape[:2], 1, 1))).astype(np.float32)
    views = add_noise(views, rng, noisy)
    np.clip(views, 0, 1, out=views)
    views[absent] = ABSENT
    end_frame(views, (views.shape[-1] - truth.shape[-1]) // 2, rng)
    views[~choose_views(views.shape[:2], rng)] = ABSENT
    return Patch(np.ascontiguousarray(views), np.ascontiguousarray(truth), valid.copy())


def end_frame(views: FloatArray, margin: int, rng: np.random.Generator) -> None:
    """At times, let the pictures end where the patch does: small pictures are all border."""
    sides = (np.s_[:margin, :], np.s_[-margin:, :], np.s_[:, :margin], np.s_[:, -margin:])
    if rng.random() < 0.15:
        for side in sides:
            if rng.random() < 0.5:
                views[(..., *side)] = ABSENT


def blur(views: FloatArray, rng: np.random.Generator) -> FloatArray:
    """All views out of focus alike; frame edges smear a little, absent samples stay absent."""
    sigma = float(rng.uniform(0.4, 1.0))
    flat = views.reshape(-1, *views.shape[2:])
    blurred = [cv2.GaussianBlur(np.maximum(view, 0), (0, 0), sigma) for view in flat]
    return np.stack(blurred).reshape(views.shape)


def shift_slightly(views: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Every view but the centre moved a few hundredths of a pixel: calibration is never exact."""
    result = np.empty_like(views)
    rows, columns, height, width = views.shape
    spread = rng.uniform(0.02, 0.1)
    for u in range(rows):
        for v in range(columns):
            dy, dx = (0.0, 0.0) if (u, v) == (rows // 2, columns // 2) else rng.normal(0, spread, 2)
            matrix = np.array([[1, 0, dx], [0, 1, dy]], dtype=np.float64)
            moved = np.maximum(views[u, v], 0)
            result[u, v] = cv2.warpAffine(
                moved, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE
            )
    return result


def add_noise(views: FloatArray, rng: np.random.Generator, share: float) -> FloatArray:
    """Mild or heavy noise at times, mostly none: what tells surfaces apart is faint."""
    draw = rng.random()
    if draw < 0.6 * share:
        strength = rng.uniform(0, 0.02)
    elif draw < share:
        strength = rng.uniform(0.02, 0.3)
    else:
        return np.array(views)
    noise = rng.standard_normal(views.shape, dtype=np.float32)
    noise *= np.float32(strength)
    noise += views
    return noise


def choose_views(grid: tuple[int, ...], rng: np.random.Generator) -> BoolArray:
    """Which views stay: all of them in most patches, the centre always."""
    kept = np.ones(grid, dtype=bool)
    draw = rng.random()
    if draw < 0.08:  # a smaller array
        cut = [(side - int(rng.choice((3, 5, 7)))) // 2 for side in grid]
        if rng.random() < 0.7:
            cut = [cut[0]] * 2
        kept[:] = False
        kept[cut[0] : grid[0] - cut[0], cut[1] : grid[1] - cut[1]] = True
    elif draw < 0.11:  # vignetted corners
        u, v = np.ogrid[: grid[0], : grid[1]]
        radius = rng.uniform(3.5, 5.5)
        kept = np.hypot(u - grid[0] // 2, v - grid[1] // 2) <= radius
    elif draw < 0.14:  # rows, columns or single views missing
        kept[rng.random(grid[0]) < 0.2] = False
        kept[:, rng.random(grid[1]) < 0.2] = False
        kept &= rng.random(grid) > 0.1
    kept[grid[0] // 2, grid[1] // 2] = True
    return kept
