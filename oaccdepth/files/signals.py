"""Ctrl-C, SIGTERM and SIGHUP: end the program cleanly, and never in the middle of a write."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
RETRY_SECONDS = 0.02
PATIENCE_SECONDS = 10.0


class Terminated(KeyboardInterrupt):
    """A signal that ends the program has arrived; unfinished files are removed."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Stop:
    """Signal handler that raises Terminated once, at a point where the program can end cleanly.

    It waits during imports: an exception there may abort the program (torch) or get lost. Other
    code, too, may swallow the exception or replace it with another error; if it is swallowed, we
    raise it again. Further signals must not disturb the cleanup that the first one started.
    """

    def __init__(self) -> None:
        self.number = 0  # of the signal that was raised
        self.is_heeded = False
        self._raised: weakref.ref[Terminated] | None = None
        self._when = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise Terminated, or try again later."""
        if self.is_heeded or self._takes_effect():
            return
        if _is_importing(frame):
            self._try_again(number)
            return
        self.number, self._when = number, time.monotonic()
        raise self._watched(number)

    def _takes_effect(self) -> bool:
        """Whether the exception is still propagating; after a while we assume that it is stuck."""
        is_recent = time.monotonic() - self._when < PATIENCE_SECONDS
        return self._raised is not None and self._raised() is not None and is_recent

    def _watched(self, number: int) -> Terminated:
        """Make the exception; if it is deleted before `heed` was called, it was lost."""
        error = Terminated(number)
        self._raised = weakref.ref(error, lambda gone: self._try_again(number))
        return error

    def _try_again(self, number: int) -> None:
        def send() -> None:
            if not self.is_heeded:
                signal.raise_signal(number)

        again = threading.Timer(RETRY_SECONDS, send)
        again.daemon = True
        if not self.is_heeded:
            again.start()

    def forgive(self, lost: sys.UnraisableHookArgs) -> None:
        """Hide Python's message about a Terminated that could not be raised: it is raised again."""
        if not isinstance(lost.exc_value, Terminated):
            sys.__unraisablehook__(lost)


_stop = _Stop()


def stop_cleanly() -> None:
    """Let SIGTERM and SIGHUP end this program like Ctrl-C: unfinished files are removed."""
    global _stop
    _stop = _Stop()
    sys.unraisablehook = _stop.forgive
    _install(_stop)


def heed(error: BaseException) -> int | None:
    """Return the shell's exit code if a signal caused this error; otherwise None.

    From now on, other signals are ignored: the program is ending.
    """
    if _stop.is_heeded:
        return None
    if _stop.number:
        _stop.is_heeded = True
        return 128 + _stop.number
    if isinstance(error, KeyboardInterrupt):  # if `stop_cleanly` was not called
        return 128 + getattr(error, "number", int(signal.SIGINT))
    return None


def leave_at_once() -> None:
    """Let signals end this program immediately, while there is nothing to clean up."""

    def leave(number: int, frame: FrameType | None) -> None:
        if not _stop.is_heeded:
            with suppress(OSError):
                os.write(2, b"stopped.\n")
        os._exit(128 + (_stop.number or number))

    _install(leave)


def leave_if_stopped(code: object) -> None:
    """After a signal, exit without Python's own cleanup.

    That cleanup crashes in libraries that were interrupted, such as LLVM (a double free).
    """
    if not _stop.is_heeded:
        return
    from multiprocessing import active_children

    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch would complain about its loader
    for child in active_children():  # only the loader's are still running
        child.kill()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else 1)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _install(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # keep ignoring it, as under nohup
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay signals that end the program until the block is done."""
    came: list[int] = []
    try:
        with _handled(lambda number, frame: came.append(number)):
            yield
    finally:
        for number in came[:1]:
            signal.raise_signal(number)


def ignore(*_: object) -> None:
    """Ignore signals that end the program; the parent process handles them."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def undisturbed() -> AbstractContextManager[None]:
    """Ignore signals that end the program during the block."""
    return _handled(signal.SIG_IGN)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # they arrive only there
        yield
        return
    previous = {number: signal.signal(number, handler) for number in ENDING}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
