"""Regular files only: opening a fifo, a socket or a device could hang."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from oaccdepth.errors import UnreadableFile

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def is_regular(path: Path | str) -> bool:
    """Whether a path is a regular file or a link to one. Unlike `Path.is_file`, never raises."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # missing, no permission, too long, or a loop of links
        return False


def other_kind(path: Path) -> str | None:
    """Name what is there instead of a regular file, such as "a device"; otherwise None."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    return None if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "no file")


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; refuse anything else, without ever blocking."""
    _check(path, os.stat(path).st_mode)
    # Another process may have replaced the file since: open without blocking, then check again.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    try:
        found = os.fstat(handle)
        _check(path, found.st_mode)
        if found.st_size == 0 and _is_made_up(handle):
            raise UnreadableFile(f"{path}: is a system file, expected a regular file.")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _is_made_up(handle: int) -> bool:
    """Whether an empty file is not on a disk: reading /proc/kmsg and others would block."""
    return hasattr(os, "fstatvfs") and os.fstatvfs(handle).f_blocks == 0


def _check(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "not a file")
        raise UnreadableFile(f"{path}: is {kind}, expected a regular file.")


def read_small(path: Path, most: int) -> bytes:
    """Read a whole file that should be small; refuse a larger one before it fills the memory."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise UnreadableFile(f"{path}: is larger than {most >> 20} MiB, expected a small file.")
    return data


def walk(folder: Path) -> Iterator[Path]:
    """Yield every path below a folder, at any depth; links to folders are not followed.

    `Path.rglob` raises a RecursionError if a thousand folders are nested.
    """
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield Path(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
        except OSError:
            continue  # no permission, deleted meanwhile, or its path is too long for the system
