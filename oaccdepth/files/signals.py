"""Signals that end a program, held back between two renames that belong together."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
RETRY_SECONDS = 0.02


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived; everything is cleaned up as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code(error: KeyboardInterrupt) -> int:
    """Exit code of a program that was stopped, as shells give it: 130 after Ctrl-C."""
    return 128 + (error.number if isinstance(error, Terminated) else int(signal.SIGINT))


def stop_cleanly() -> None:
    """Let SIGTERM and SIGHUP end this program as Ctrl-C does: what is half done is removed.

    A signal that arrives during an import takes effect after it: an exception in there may abort
    the program (torch), be replaced by another one, or get lost.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            again = threading.Timer(RETRY_SECONDS, signal.raise_signal, (number,))
            again.daemon = True
            again.start()
            return
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    _heed(stop)


def leave_at_once() -> None:
    """Let signals end this program where it is, while there is nothing to clean up."""

    def leave(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            os.write(2, b"stopped.\n")
        os._exit(128 + number)

    _heed(leave)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _heed(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup: it stays so
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off the signals that end a program until the work inside is done."""
    came: list[int] = []
    try:
        with _handled(lambda number, frame: came.append(number)):
            yield
    finally:
        for number in came[:1]:
            signal.raise_signal(number)


def undisturbed() -> AbstractContextManager[None]:
    """Ignore the signals that end a program."""
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
