"""Where the samples of views at a sweep's levels lie: whole pixels, and few different fractions.

All pixels of a view are shifted alike at a level. On a grid of cameras, levels a quarter of a pixel
apart have only four different fractions, so each row of a view is interpolated four times at most,
not once for every level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

ROUNDING = 1e-3  # px: a shift so near a whole number is one
MOST_KEPT = 16_000  # interpolated rows that one thread may keep: 50 MB if they are 512 px long
MOST_TOGETHER = 21  # views whose votes are added up in 16 bits


class Shifts(NamedTuple):
    """Views in order of their sector, and the shift of each at every level."""

    number: Ints  # (k): of the view
    whole: Ints  # (k, l, 2) rows and columns [px]
    phase: Ints  # (k, l): which of a view's fractions
    fraction: Floats  # (k, p, 2) [px]
    phases: Ints  # (k): how many of these there are; 0: too many to keep interpolated rows
    lowest: Ints  # (k): of the rows that are kept at a time, the first one ...
    height: Ints  # (k): ... and how many there are
    first: Ints  # (k): where a view's rows begin among those of all views
    groups: Ints  # (n + 1): where groups of views of one sector begin
    sectors: Ints  # (n): of each group


def plan_shifts(steps: Floats, sectors: Ints, levels: Floats) -> Shifts:
    """Shifts of views with steps (k, 2), in order of their sectors (k), at levels (l) [px]."""
    number = np.argsort(sectors, kind="stable")
    steps, sectors = steps[number], sectors[number]
    shift = steps[:, None, :] * levels[None, :, None]
    whole = np.floor(shift + np.float32(ROUNDING))
    fraction = np.maximum(shift - whole, 0)
    fraction[fraction < 2 * ROUNDING] = 0
    phase = np.zeros(shift.shape[:2], np.int64)
    phases = np.zeros(len(steps), np.int64)
    different = np.zeros_like(fraction)
    for k, every in enumerate(fraction):
        found, index = np.unique(every, axis=0, return_inverse=True)
        different[k, : len(found)], phase[k], phases[k] = found, index.ravel(), len(found)
    lowest = whole[..., 0].min(1).astype(np.int64)
    height = whole[..., 0].max(1).astype(np.int64) - lowest + 1
    is_shared = 2 * phases <= max(len(levels), 2)
    if (phases * height)[is_shared].sum() > MOST_KEPT:
        is_shared[:] = False
    phases, height = np.where(is_shared, phases, 0), np.where(is_shared, height, 1)
    rows = np.maximum(phases, 1) * height
    groups = group(sectors)
    return Shifts(
        number,
        whole.astype(np.int64),
        phase,
        different,
        phases,
        lowest,
        height,
        np.cumsum([0, *rows]),
        groups,
        sectors[groups[:-1]],
    )


def group(sectors: Ints) -> Ints:
    """Where groups of neighbours of one sector begin, none of them too large; and the end."""
    starts = [0]
    for k in range(1, len(sectors)):
        if sectors[k] != sectors[k - 1] or k - starts[-1] == MOST_TOGETHER:
            starts.append(k)
    return np.array([*starts, len(sectors)], np.int64)
