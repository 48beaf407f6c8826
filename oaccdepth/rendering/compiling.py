"""Python loops -> machine code, kept between runs where a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

Loop = Callable[..., Any]


def compiled(function: Loop) -> Loop:
    """Compile a loop with numba, to be called from other compiled loops."""
    return _compile(function, parallel=False)


def compiled_parallel(function: Loop) -> Loop:
    """Compile a loop with numba whose `prange` runs on all cores."""
    return _compile(function, parallel=True)


def _compile(function: Loop, *, parallel: bool) -> Loop:
    import numba

    options: dict[str, Any] = {"nogil": True, "fastmath": True, "parallel": parallel}
    try:
        result: Loop = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written: compile in every process
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
    cache: Any = result._cache  # type: ignore[attr-defined]
    save = cache.save_overload

    def save_if_possible(*arguments: Any) -> None:
        with suppress(OSError):  # a full disk costs time in the next process, nothing else
            save(*arguments)

    cache.save_overload = save_if_possible
    return result
