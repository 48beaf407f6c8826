"""Strips of a picture, a few rows each: they stay in the cache; and strips as one again."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

STRIP = 40  # rows at full resolution
STRIP_MARGIN = 4  # rows around them that three 3x3 layers see, rounded up to an even number


def cut_strips(height: int, strip: int) -> list[tuple[slice, slice]]:
    """Rows to process together, and the same rows with the margin that they depend on.

    At full resolution the volume is large. Outside of training, a few rows at a time are faster,
    because they stay in the cache.
    """
    return [
        (
            slice(start, min(start + strip, height)),
            slice(max(0, start - STRIP_MARGIN), min(height, start + strip + STRIP_MARGIN)),
        )
        for start in range(0, height, strip)
    ]


def kept_of(rows: slice, wide: slice) -> slice:
    """Which of the wide rows to keep."""
    return slice(rows.start - wide.start, rows.stop - wide.start)


def assemble(strips: Iterable[Tensor], height: int) -> Tensor:
    """Strips (n, c, rows, w) one below the other, without holding them twice."""
    whole, first = torch.empty(0), 0
    for strip in strips:
        count, channels, rows, width = strip.shape
        if rows == height:
            return strip
        if not first:
            shape = (count, channels, height, width)
            whole = torch.empty(
                shape, dtype=strip.dtype, device=strip.device, memory_format=torch.channels_last
            )
        whole[..., first : first + rows, :] = strip
        first += rows
    return whole
