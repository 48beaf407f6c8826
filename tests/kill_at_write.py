"""End this process with SIGKILL at its n-th access to a file that is being written."""

from __future__ import annotations

import itertools
import os
import signal
import sys

from oaccdepth.files.atomic import TEMPORARY


def kill_at_write(number: int, with_signal: int = signal.SIGKILL) -> None:
    """Opening a temporary file counts, and so does renaming it: files are written no other way."""
    counted = itertools.count(1)

    def watch(event: str, arguments: tuple) -> None:
        if event not in ("open", "os.rename") or not isinstance(arguments[0], str | os.PathLike):
            return
        name = os.path.basename(os.fspath(arguments[0]))
        if name.startswith(".") and TEMPORARY in name and next(counted) == number:
            os.kill(os.getpid(), with_signal)

    sys.addaudithook(watch)
