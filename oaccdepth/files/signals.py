"""Signals that end a program, held back between two renames that belong together."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived; everything is cleaned up as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code(error: KeyboardInterrupt) -> int:
    """Exit code of a program that was stopped, as shells give it: 130 after Ctrl-C."""
    return 128 + (error.number if isinstance(error, Terminated) else int(signal.SIGINT))


def stop_cleanly() -> None:
    """Let SIGTERM and SIGHUP end this program as Ctrl-C does: what is half done is removed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated(number)

    for number in ENDING:
        # SIGHUP is ignored under nohup, and stays so; Ctrl-C has a handler of its own.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, stop)


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
