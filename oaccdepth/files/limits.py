"""Limits on what a file may ask for: one budget that every reader checks before it allocates.

A file of n bytes may claim 256 MiB, or 200 n if that is more, and never more than 16 GiB. Pictures
and arrays of views stay far below; what claims more is damaged, or made to fill the memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from oaccdepth.errors import UnreadableFile

MOST_BYTES = 16 << 30
FREE_BYTES = 1 << 28  # that any file may claim
COMPRESSION = 200  # bytes claimed for one that is stored: no pictures compress so well; zeros do
MOST_COMPRESSION = 2000  # deflate reaches 1032; what claims more was never written
MOST_VIEW_PIXELS = 1 << 26  # 8192 x 8192
MOST_PICTURE_PIXELS = 81 * 2048 * 2048  # all views of a large light field in one picture


def allowed(stored: int) -> int:
    """Bytes that a file, or a part of one, may claim if it holds `stored` bytes."""
    return min(MOST_BYTES, max(FREE_BYTES, COMPRESSION * stored))


def check_array(path: Path, name: str, claimed: int, stored: int) -> None:
    """Refuse an array that claims far more than the file holds."""
    if claimed > allowed(stored) or claimed > MOST_COMPRESSION * max(1, stored):
        raise UnreadableFile(
            f"{path}: {name} claims {claimed} bytes and holds {stored}. Copy or export it again."
        )


def check_picture(path: Path, size: tuple[int, int], most_pixels: int, pixel_bytes: int) -> None:
    """Refuse a picture, by the (height, width) in its header, that is empty or far too large."""
    height, width = size
    pixels = height * width
    if pixels > most_pixels:
        raise UnreadableFile(
            f"{path}: claims {width} x {height} pixels, more than "
            f"{most_pixels // 1_000_000} million. Check the file, or give a smaller picture."
        )
    stored = path.stat().st_size
    if pixels * pixel_bytes > allowed(stored):
        raise UnreadableFile(
            f"{path}: claims {width} x {height} pixels in {stored} bytes, "
            "too few for any picture of that size. Check the file."
        )
    if pixels <= 0:
        raise UnreadableFile(f"{path}: has no pixels.")


def claimed_bytes(shape: Sequence[int], itemsize: int) -> int:
    """Bytes of an array of this shape, however large; NumPy's own product overflows."""
    return math.prod(int(size) for size in shape) * itemsize
