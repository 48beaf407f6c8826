"""A scene with ground truth -> a disturbed piece of it, and its evidence, to cut patches from.

Sixteen scenes in a few fixed variants are learnt by heart; these are made anew all the time, and
every one follows from its seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch import Tensor

from oaccdepth import evidence
from oaccdepth.evidence.noise import calmed, measured
from oaccdepth.evidence.views import ABSENT, Views, thin_out, voters
from oaccdepth.lightfield import Array, BoolArray, FloatArray
from oaccdepth.networks.fast import LEVELS, FastConfig
from oaccdepth.options import TrainOptions
from oaccdepth.training.scenes import Scene

LARGEST_DISPARITY = 3.9  # px; the levels reach 4
UNKNOWN = 50.0  # px: a truth from here on means that nothing can be known
STEP = FastConfig.level_step
MARGIN = 20  # px around a piece: four views away, 4.5 px and a little more
FULL_SIZE = TrainOptions.full_size  # share of the pieces
SUB_SAMPLED = (11 / 14, 3 / 14)  # shares of the others that are reduced by 2, and by 3
REFOCUSED = 0.3  # share of the pieces
SIDE = 288  # px of a piece, at the most
LEAST_SIDE = 96  # px of a piece, at the least
LEAST_VALID = 0.3  # share of a piece whose truth may be learnt, at the least
PATIENCE = 50  # tries to find such a piece; some scenes have none


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a scene, cut, turned and disturbed."""

    views: FloatArray  # (u, v, h + 2*MARGIN, w + 2*MARGIN, 3) in [0, 1], or ABSENT
    kept: BoolArray  # (u, v): which views there are
    truth: FloatArray  # (h, w) [px]
    valid: BoolArray  # (h, w)


@dataclass(frozen=True, eq=False)
class Variant:
    """A piece of a scene, as the fast network sees it."""

    views: Views  # those that later passes look at
    volume: Tensor  # (l/2, 24, h, w) uint8
    levels: Tensor  # (l) [px]
    truth: Tensor  # (h, w) [px]
    valid: Tensor  # (h, w) bool


def make_piece(
    scene: Scene, rng: np.random.Generator, least: int = LEAST_SIDE, full_size: float = FULL_SIZE
) -> Piece:
    """Cut, turn and disturb a part of a scene; `full_size` is the share that stays so large."""
    piece = cut(scene, rng, least, full_size)
    tries = 1
    while piece is None:
        piece = cut(scene, rng, least, full_size, LEAST_VALID if tries < PATIENCE else 0.0)
        tries += 1
    views, truth, valid = turn(*piece, rng)
    kept = choose_views(views.shape[:2], rng)
    views = disturb(views, rng)
    if rng.random() < 0.03:
        views, truth = empty(views, rng), np.full_like(truth, 2 * UNKNOWN)
        valid = np.ones_like(valid)
    return Piece(views, kept, np.ascontiguousarray(truth), np.ascontiguousarray(valid))


def gather_evidence(piece: Piece, refine_views: int) -> Variant:
    """What the fast network is given of a piece."""
    centre = (piece.views.shape[0] // 2, piece.views.shape[1] // 2)
    others = piece.kept.copy()
    others[centre] = False
    places = np.argwhere(others)
    steps = torch.from_numpy((np.array(centre) - places).astype(np.float32))
    pictures = piece.views[places[:, 0], places[:, 1]].transpose(0, 3, 1, 2)
    reference = piece.views[centre][MARGIN:-MARGIN, MARGIN:-MARGIN].transpose(2, 0, 1)
    whole = Views(
        torch.from_numpy(np.ascontiguousarray(pictures)),
        torch.from_numpy(np.ascontiguousarray(reference)),
        steps,
        MARGIN,
    )
    whole = whole.only(voters(steps))
    levels = torch.arange(LEVELS) * STEP - 4
    whole = measured(whole, levels)
    volume = evidence.sweep(calmed(whole), levels)
    chosen = thin_out(whole.steps, refine_views) if refine_views else torch.arange(0)
    truth, valid = torch.from_numpy(piece.truth), torch.from_numpy(piece.valid)
    return Variant(whole.only(chosen), volume, levels, truth, valid)


def cut(
    scene: Scene,
    rng: np.random.Generator,
    least: int,
    full_size: float = FULL_SIZE,
    least_valid: float = LEAST_VALID,
) -> tuple[FloatArray, FloatArray, BoolArray] | None:
    """Views with margin, truth and validity of a piece, sub-sampled and refocused at random.

    None if it is smaller than `least` px, or too little of its truth may be learnt.
    """
    smaller = (1 - full_size) * np.array(SUB_SAMPLED)
    scale = int(rng.choice((1, 2, 3), p=(full_size, *smaller)))
    height, width = (side // scale for side in scene.truth.shape)
    size = [min(SIDE, side) // 8 * 8 for side in (height, width)]
    if min(size) < least:
        return None
    y, x = int(rng.integers(height - size[0] + 1)), int(rng.integers(width - size[1] + 1))
    window = tuple(
        slice(scale * start, scale * (start + side), scale)
        for start, side in zip((y, x), size, strict=True)
    )
    truth, valid = scene.truth[window] / np.float32(scale), scene.valid[window]
    if valid.mean() < least_valid:
        return None
    shear = choose_shear(truth[valid], rng) if valid.any() else 0
    views = cut_views(scene.views, (y, x), size, scale, shear)
    truth = np.asarray(truth + np.float32(shear), dtype=np.float32)
    return views, truth, valid & (np.abs(truth) <= LARGEST_DISPARITY)


def choose_shear(truth: FloatArray, rng: np.random.Generator) -> int:
    """An integer refocus that keeps the truth within reach, in a share of the cases."""
    if rng.random() >= REFOCUSED and np.abs(truth).max() <= LARGEST_DISPARITY:
        return 0
    low = int(np.ceil(-LARGEST_DISPARITY - truth.min()))
    high = int(np.floor(LARGEST_DISPARITY - truth.max()))
    return int(rng.integers(low, high + 1)) if low <= high else 0


def cut_views(
    views: Array, corner: tuple[int, int], size: list[int], scale: int, shear: int
) -> FloatArray:
    """All views of a piece with margin, refocused by `shear`; ABSENT outside the frame."""
    rows, columns, height, width = views.shape[:4]
    shape = [side + 2 * MARGIN for side in size]
    result = np.full((rows, columns, *shape, 3), ABSENT, dtype=np.float32)
    for u in range(rows):
        # a point at y of the centre lies at y - d*(u-uc): to add shear to d, sample further on
        ys, into_y = inside(corner[0] - MARGIN + shear * (u - rows // 2), shape[0], scale, height)
        for v in range(columns):
            left = corner[1] - MARGIN + shear * (v - columns // 2)
            xs, into_x = inside(left, shape[1], scale, width)
            np.divide(views[u, v, ys, xs], np.float32(255), out=result[u, v, into_y, into_x])
    return result


def inside(start: int, length: int, scale: int, limit: int) -> tuple[slice, slice]:
    """What of start..start+length (sub-sampled pixels) is in the picture, and where it goes."""
    count = limit // scale
    first = min(max(start, 0), count)
    last = max(min(start + length, count), first)
    return slice(scale * first, scale * last, scale), slice(first - start, last - start)


def turn(
    views: FloatArray, truth: FloatArray, valid: BoolArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Flips and transposes of picture and camera axes together: the disparity stays as it is."""
    if rng.random() < 0.5:
        views, truth, valid = views[::-1, :, ::-1], truth[::-1], valid[::-1]
    if rng.random() < 0.5:
        views, truth, valid = views[:, ::-1, :, ::-1], truth[:, ::-1], valid[:, ::-1]
    if rng.random() < 0.5:
        views, truth, valid = views.swapaxes(0, 1).swapaxes(2, 3), truth.T, valid.T
    return views, truth, valid


def disturb(views: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Tones, contrast, blur, calibration, exposure and noise; ABSENT stays."""
    absent = views > 1
    views = np.where(absent, np.float32(0), views)
    if rng.random() < 0.05:
        views = each_view(views, rng, blurred(rng))
    if rng.random() < 0.06:
        views = each_view(views, rng, moved(rng))
    views = change_tones(views, rng)
    if rng.random() < 0.2:  # exposure: what is left of it after normalising
        spread = rng.uniform(0.002, 0.012)
        views = views * (1 + rng.normal(0, spread, (*views.shape[:2], 1, 1, 1))).astype(np.float32)
    strength = choose_noise(rng)
    if strength:
        views = views + np.float32(strength) * rng.standard_normal(views.shape, dtype=np.float32)
    views = np.round(np.clip(views, 0, 1) * 255) / np.float32(255)  # as a file would hold them
    return np.where(absent, np.float32(ABSENT), views).astype(np.float32)


def empty(views: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Pictures of nothing: one tone, or noise in every view; ABSENT stays."""
    level, strength = rng.uniform(0, 1), rng.choice((0.0, 0.002, 0.01, 0.05, 0.2))
    noise = np.float32(strength) * rng.standard_normal(views.shape, dtype=np.float32)
    tones = np.round(np.clip(np.float32(level) + noise, 0, 1) * 255) / np.float32(255)
    return np.where(views > 1, views, tones).astype(np.float32)


def change_tones(views: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Gamma, gain, colour balance; in a fifth of the pieces next to no contrast; at times grey."""
    if rng.random() < 0.6:
        views = views ** np.float32(rng.uniform(0.75, 1.3))
    gains = rng.uniform(0.7, 1.1) * rng.uniform(0.85, 1.15, 3)
    views = np.minimum(views * gains.astype(np.float32), 1)
    if rng.random() < 0.2:
        contrast, level = np.float32(np.exp(rng.uniform(np.log(0.06), 0))), rng.uniform(0.1, 0.9)
        views = np.float32(level * (1 - contrast)) + contrast * views
    if rng.random() < 0.1:
        views = np.repeat(views.mean(-1, keepdims=True, dtype=np.float32), 3, -1)
    return views


def choose_noise(rng: np.random.Generator) -> float:
    """Standard deviation: none in most pieces, mild in a quarter, heavy in some."""
    draw = rng.random()
    if draw < 0.25:
        return float(rng.uniform(0.002, 0.03))
    return float(rng.uniform(0.03, 0.2)) if draw < 0.35 else 0.0


def each_view(views: FloatArray, rng: np.random.Generator, change) -> FloatArray:  # type: ignore[no-untyped-def]
    """Apply a function of a picture and whether it is the centre to every view."""
    rows, columns = views.shape[:2]
    result = np.empty_like(views)
    for u in range(rows):
        for v in range(columns):
            result[u, v] = change(views[u, v], (u, v) == (rows // 2, columns // 2))
    return result


def blurred(rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """All views out of focus alike."""
    sigma = float(rng.uniform(0.4, 1.0))
    return lambda view, is_centre: cv2.GaussianBlur(view, (0, 0), sigma)


def moved(rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """Every view but the centre moved a few hundredths of a pixel: calibration is never exact."""
    spread = rng.uniform(0.02, 0.1)

    def move(view: FloatArray, is_centre: bool) -> FloatArray:
        dy, dx = (0.0, 0.0) if is_centre else rng.normal(0, spread, 2)
        matrix = np.array([[1, 0, dx], [0, 1, dy]], dtype=np.float64)
        size = (view.shape[1], view.shape[0])
        return np.asarray(cv2.warpAffine(view, matrix, size, borderMode=cv2.BORDER_REPLICATE))

    return move


def choose_views(grid: tuple[int, ...], rng: np.random.Generator) -> BoolArray:
    """Which views stay: all of them in most pieces, the centre always."""
    kept = np.ones(grid, dtype=bool)
    draw = rng.random()
    u, v = np.ogrid[: grid[0], : grid[1]]
    u, v = u - grid[0] // 2, v - grid[1] // 2
    if draw < 0.1:  # a smaller array, or a thinner one
        reach = rng.integers(1, 5, 2) if rng.random() < 0.3 else [int(rng.integers(1, 5))] * 2
        kept = (np.abs(u) <= reach[0]) & (np.abs(v) <= reach[1])
    elif draw < 0.14:  # vignetted corners
        kept = np.hypot(u, v) <= rng.uniform(3.0, 5.5)
    elif draw < 0.18:  # rows, columns or single views missing
        kept = rng.random(grid) > rng.uniform(0.1, 0.6)
    elif draw < 0.21:  # a cross, a row or a column
        kind = rng.random()
        kept = ((u == 0) & (kind < 0.75)) | ((v == 0) & ((kind < 0.5) | (kind >= 0.75)))
    kept[grid[0] // 2, grid[1] // 2] = True
    return kept
