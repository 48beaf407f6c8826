"""Strips of a picture, a few rows each: they stay in the cache; and strips as one again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

STRIP = 40  # rows at full resolution
STRIP_MARGIN = 2  # rows around them that two 3x3 layers see


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


def assemble(strips: Iterable[tuple[Tensor, ...]], height: int) -> Tensor:
    """Strips (n, c, rows, w) one below the other, without holding them twice.

    A strip of two terms is their sum, which is written where it belongs at once.
    """
    whole, first = torch.empty(0), 0
    for terms in strips:
        count, channels, rows, width = terms[0].shape
        if rows == height:
            return sum(terms[1:], terms[0])
        if not first:
            like: dict[str, Any] = {"dtype": terms[0].dtype, "device": terms[0].device}
            shape = (count, channels, height, width)
            whole = torch.empty(shape, **like, memory_format=torch.channels_last)
        into = whole[..., first : first + rows, :]
        torch.add(*terms, out=into) if len(terms) == 2 else into.copy_(terms[0])
        first += rows
    return whole
