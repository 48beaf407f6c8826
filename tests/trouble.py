"""What may happen to a program while it writes: a kill at any write, a signal, a full disk."""

import itertools
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable

from oaccdepth.files.atomic import TEMPORARY


def run_child(act: Callable[..., object], *arguments: object) -> int:
    """Run in a forked process; return how it ended: 0, an exit code, or minus the signal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads and fork
        child = os.fork()
    if child == 0:
        code = 99
        try:
            heed_signals()
            act(*arguments)
            code = 0
        except SystemExit as error:
            code = int(error.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)  # even if the disk is too full for the traceback
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def heed_signals() -> None:
    """Let signals end this process, even if the tests run in the background or under nohup."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def send(*numbers: int) -> None:
    """Send signals to this process, all of them before Python handles the first."""
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for number in numbers:
        os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def kill_at_write(number: int, *with_signals: int) -> None:
    """End this process, by default with SIGKILL, at its n-th access to a file being written.

    Opening a temporary file counts, and so does renaming it: files are written no other way.
    """
    counted = itertools.count(1)

    def watch(event: str, arguments: tuple) -> None:
        if event not in ("open", "os.rename") or not isinstance(arguments[0], str | os.PathLike):
            return
        if f"{TEMPORARY}{os.getpid()}" in os.fspath(arguments[0]) and next(counted) == number:
            send(*(with_signals or (signal.SIGKILL,)))

    sys.addaudithook(watch)


def fill_disk_at(size: int) -> None:
    """Let every write beyond `size` bytes of a file fail, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
