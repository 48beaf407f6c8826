"""Python loops -> machine code, kept between runs where a folder can be written; and threads."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

Loop = Callable[..., Any]
FOLLOW = (
    "import os, threading; "
    "threading.Thread(target=lambda: os._exit(bool(sys.stdin.read())), daemon=True).start()"
)
PARTS = 4  # parts of the work per core, if some rows take longer than others


def compiled(function: Loop) -> Loop:
    """Compile a loop with numba, without the GIL, so that threads run in parallel.

    Division by zero gives infinity, as in NumPy: loops that look out for it cannot work on many
    pixels at once.
    """
    return _compile(function, {"nogil": True, "fastmath": True, "error_model": "numpy"})


def inlined(function: Loop) -> Loop:
    """Compile a step of a loop into each loop that calls it.

    Views take 30 % less time than with calls, which pass each array as half a dozen numbers.
    """
    from numba.core.options import DefaultOptions

    known = hasattr(DefaultOptions, "forceinline")  # numba 0.60 does not have it
    options = {"fastmath": True, "error_model": "numpy"}
    return _compile(function, options | ({"forceinline": True} if known else {}))


def _compile(function: Loop, options: dict[str, Any]) -> Loop:
    import numba

    if function.__name__.startswith("_"):  # only other loops call it
        options = options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    try:
        result: Loop = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable folder for the cache: compile in every process
        result = numba.njit(**options)(function)
    kept: Any = result._cache  # type: ignore[attr-defined]
    if kept.cache_path is not None:
        kept._cache_file._source_stamp = sources_beside(Path(function.__code__.co_filename))
    load, save = kept.load_overload, kept.save_overload

    def load_or_tell(*arguments: Any) -> Any:
        found = load(*arguments)
        if found is None:
            tell_that_it_compiles(is_kept=kept.cache_path is not None)
        return found

    def save_if_possible(*arguments: Any) -> None:
        with suppress(OSError):  # with a full disk, the next process just has to compile again
            save(*arguments)

    kept.load_overload, kept.save_overload = load_or_tell, save_if_possible
    return result


@cache
def sources_beside(source: Path) -> str:
    """A hash of a file and all beside it: loops call loops of other files.

    Numba looks at a loop's own file only, and would go on with old versions of those it calls.
    """
    found = hashlib.sha256()
    for one in sorted(source.parent.glob("*.py")):
        found.update(one.read_bytes())
    return found.hexdigest()


@cache
def tell_that_it_compiles(is_kept: bool) -> None:
    """Log, once per process, why the first loop takes so long."""
    why = "first use" if is_kept else "no folder for compiled code can be written"
    logger.warning("%s: compiling (10 to 15 s) ...", why)


@contextmanager
def compiling_meanwhile(module: str, loop: Loop) -> Iterator[None]:
    """If `loop` was never compiled: let another process compile what `module` uses meanwhile.

    Numba compiles one loop at a time, and whoever comes later finds what others have compiled.
    The process ends with the block at the latest.
    """
    child = _start(f"from {module} import use_all; use_all()") if _is_first_use(loop) else None
    try:
        yield
    finally:
        if child is not None:
            child.kill()
            child.communicate()


def _is_first_use(loop: Loop) -> bool:
    """Whether a loop must be compiled, there is a core to spare, and the result can be kept."""
    kept: Any = loop._cache  # type: ignore[attr-defined]
    if kept.cache_path is None or _cores() == 1 or not sys.executable:
        return False
    return not Path(kept._cache_file._index_path).exists()


def _start(code: str) -> subprocess.Popen[bytes] | None:
    """Run code in a process that finds modules where this one does, and prints nothing.

    It ends with this one, even if this one is killed: then nobody holds its input open any more.
    """
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {FOLLOW}; {code}"]
    nowhere = subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere)
    except OSError:  # then everything is compiled here
        return None


def run_in_threads(loop: Loop, calls: Iterable[tuple[Any, ...]]) -> None:
    """Call a compiled loop with each set of arguments, on all cores.

    We use our own threads: numba's parallel loops take twice as long to compile, and their threads
    do not survive a fork. The very first call runs alone, because it has to compile.
    """
    calls = list(calls)
    if calls and not loop.signatures:  # type: ignore[attr-defined]
        loop(*calls.pop(0))
    if len(calls) == 1 or _cores() == 1:
        for arguments in calls:
            loop(*arguments)
        return
    under_way = [_pool(os.getpid()).submit(loop, *arguments) for arguments in calls]
    try:
        for done in under_way:
            done.result()
    finally:
        for one in under_way:
            one.cancel()  # Ctrl-C waits for the running calls only


def run_by_rows(loop: Loop, count: int, *arguments: Any, parts: int = PARTS) -> None:
    """Call a loop over rows, `loop(first, last, *arguments)`, for all rows, on all cores.

    The rows are split into `parts` parts per core: 1 if all rows take the same short time.
    """
    run_in_threads(loop, [(*rows, *arguments) for rows in split_rows(count, parts)])


def split_rows(count: int, parts: int = PARTS) -> list[tuple[int, int]]:
    """The first and the last (not included) row of as many parts per core."""
    parts = max(1, min(count, parts * _cores()))
    return list(pairwise(count * part // parts for part in range(parts + 1)))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Threads of this process; a forked process does not inherit those of its parent."""
    return ThreadPoolExecutor(_cores())


@cache
def _cores() -> int:
    """Cores that this process may use; NUMBA_NUM_THREADS sets another number."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return int(os.environ.get("NUMBA_NUM_THREADS", there or 1))
