"""Memory limits: every reader checks how much a file claims before it allocates memory.

A file of n bytes may claim 256 MiB, or 200 n bytes if that is more, but never more than 16 GiB.
Pictures and arrays of views stay far below. A file that claims more is damaged or malicious.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from oaccdepth.errors import UnreadableFile

MOST_BYTES = 16 << 30
FREE_BYTES = 1 << 28  # every file may claim this much
COMPRESSION = 200  # bytes claimed per stored byte; no picture compresses so well, only zeros do
MOST_COMPRESSION = 2000  # deflate reaches 1032; no file can really hold more
MOST_VIEW_PIXELS = 1 << 26  # 8192 x 8192
MOST_PICTURE_PIXELS = 81 * 2048 * 2048  # all views of a large light field in one picture


def allowed(stored: int) -> int:
    """Return how many bytes a file (or part of one) of `stored` bytes may claim."""
    return min(MOST_BYTES, max(FREE_BYTES, COMPRESSION * stored))


def check_array(path: Path, name: str, claimed: int, stored: int) -> None:
    """Refuse an array that claims far more bytes than the file stores."""
    if claimed > allowed(stored) or claimed > MOST_COMPRESSION * max(1, stored):
        raise UnreadableFile(
            f"{path}: {name} claims {claimed} bytes and holds {stored}. Copy or export it again."
        )


def check_picture(path: Path, size: tuple[int, int], most_pixels: int, pixel_bytes: int) -> None:
    """Refuse a picture whose header gives a (height, width) that is 0 or far too large."""
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
    """Return the size of an array in bytes; never overflows, unlike NumPy's product."""
    return math.prod(int(size) for size in shape) * itemsize
