"""Where the tiles of a picture lie, and how they are put together.

A tile is what is kept of a region: the region has a margin of the network's reach on all sides that
lie within the picture, so that what is kept does not depend on how the picture was cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

Region = tuple[slice, slice]  # rows and columns


@dataclass(frozen=True)
class Tile:
    """What is computed (the region) and what is kept of it; rows and columns of the picture."""

    region: Region
    kept: Region

    @property
    def kept_in_region(self) -> Region:
        """What is kept, counted from the region's corner."""
        (y, x), (kept_y, kept_x) = self.region, self.kept
        return (
            slice(kept_y.start - y.start, kept_y.stop - y.start),
            slice(kept_x.start - x.start, kept_x.stop - x.start),
        )


def plan_tiles(height: int, width: int, tile: int, margin: int, alignment: int) -> list[Tile]:
    """Cut a picture into tiles of about equal size, `tile` at most, row by row.

    Regions begin and end at multiples of `alignment`; the last may reach beyond the picture, to the
    next multiple.
    """
    return [
        Tile((region_y, region_x), (kept_y, kept_x))
        for region_y, kept_y in _cut(height, tile, margin, alignment)
        for region_x, kept_x in _cut(width, tile, margin, alignment)
    ]


def put(whole: Tensor | None, values: Tensor, tile: Tile, size: tuple[int, int]) -> Tensor:
    """A region's values (..., h, w), as far as they are kept, in the whole picture of this size."""
    if whole is None:
        whole = values.new_empty(*values.shape[:-2], *size)
    whole[(..., *tile.kept)] = values[(..., *tile.kept_in_region)]
    return whole


def _cut(length: int, tile: int, margin: int, alignment: int) -> list[tuple[slice, slice]]:
    """Region and kept part of every tile along one side."""
    count = max(1, -(-length // tile))
    step = _round_up(-(-length // count), alignment)
    end = _round_up(length, alignment)
    margin = _round_up(margin, alignment)
    return [
        (
            slice(max(0, start - margin), min(end, start + step + margin)),
            slice(start, min(start + step, length)),
        )
        for start in range(0, length, step)
    ]


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def overlap(start: int, length: int, limit: int) -> tuple[slice, slice]:
    """What of start..start+length lies in 0..limit, and where that is in the window."""
    first = min(max(start, 0), limit)
    last = max(min(start + length, limit), first)
    return slice(first, last), slice(first - start, last - start)
