"""Freed memory is kept for what comes next, instead of being returned to the system at once.

Maps of a hundred megabytes come and go. To fetch each from the system again took a seventh of the
time of an estimate. Only glibc, the C library of most Linux systems, can be told so.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Timer
from typing import Any

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # mallopt(3)
LARGE = 100 << 20  # bytes: what is larger is needed once only, and would leave holes
ALL = 1 << 30  # bytes: freed memory up to here is kept
SOON = 0.1  # s
USUAL_TRIM, USUAL_MMAP = 1 << 26, 1 << 25  # what glibc arrives at by itself once it freed so much


@cache
def glibc() -> Any:
    """The C library, if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


@contextmanager
def keeping_memory() -> Iterator[None]:
    """While this lasts, freed memory stays with the process; soon afterwards all of it is returned.

    That takes some hundredths of a second, during which nobody else can get memory. So it waits
    until the map has been put together.
    """
    library = glibc()
    if library is None:
        yield
        return
    library.mallopt(MMAP_THRESHOLD, LARGE)
    library.mallopt(TRIM_THRESHOLD, ALL)
    try:
        yield
    finally:
        library.mallopt(MMAP_THRESHOLD, USUAL_MMAP)
        library.mallopt(TRIM_THRESHOLD, USUAL_TRIM)
        later = Timer(SOON, library.malloc_trim, (0,))
        later.daemon = True
        later.start()
