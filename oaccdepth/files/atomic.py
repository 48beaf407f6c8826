"""Atomic output: files and folders are written under a temporary name, then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from oaccdepth.errors import OaccDepthError, OutputExists, UnwritableOutput
from oaccdepth.files.regular import other_kind, walk
from oaccdepth.files.signals import uninterrupted

TEMPORARY = ".part"  # in every temporary name, so that we recognise leftovers of a killed run
ATTEMPTS = 10
LONGEST_NAME = 255  # bytes, on all common file systems
LEFTOVER = re.compile(rf"\..+{re.escape(TEMPORARY)}\d+(\.\w+)?")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same extension; rename it to `path` on success."""
    _check_kind(path)
    temporary = _beside(path, path.suffix)
    new = _not_there(path.parent)
    try:
        with told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch()
            mode = temporary.stat().st_mode  # as set by the user's umask
            yield temporary
            os.chmod(temporary, mode)  # some libraries create files that only the owner may read
            os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        _remove_empty(new)
        raise


def _beside(path: Path, suffix: str = "") -> Path:
    """Choose a temporary name in the same folder, shortened if it would be too long."""
    stem, tail = path.name.removesuffix(suffix), f"{TEMPORARY}{os.getpid()}{suffix}"
    if len(os.fsencode(f".{stem}{tail}")) > LONGEST_NAME:
        stem = hashlib.sha256(os.fsencode(stem)).hexdigest()[:16]
    return path.with_name(f".{stem}{tail}")


def _check_kind(path: Path) -> None:
    """Refuse folders and devices: if root runs this, a rename would replace /dev/null."""
    kind = other_kind(path)
    if kind is not None:
        raise UnwritableOutput(f"{path}: is {kind}, expected a file. Choose another name.")


@contextmanager
def staged(folder: Path, last: str, clear: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """Yield an empty folder to write to; on success, move its files to `folder`.

    A new folder appears with all its files in one step. If the folder exists, `clear()` removes
    the old files, then the new ones are moved into it, `last` at the end. Moving needs no disk
    space, and signals wait until it is done.
    """
    new = _not_there(folder)
    stage = _beside(folder) if new else _beside(folder / "result")
    try:
        with told(folder):
            _remove(stage)  # left by a killed process with the same process id
            _make(stage)
        yield stage
        with told(folder), uninterrupted():
            clear()
            _move(stage, folder, last)
    except BaseException as error:
        _remove(stage)
        _remove_empty(new)
        if isinstance(error, UnwritableOutput):
            raise UnwritableOutput(str(error).replace(str(stage), str(folder))) from error
        raise
    _remove(stage)


def _move(stage: Path, folder: Path, last: str) -> None:
    if not os.path.isdir(folder):
        os.replace(stage, folder)
        return
    files = [path for path in walk(stage) if not path.is_dir()]
    for path in sorted(files, key=lambda path: path == stage / last):
        target = folder / path.relative_to(stage)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)


def _make(folder: Path) -> None:
    """Make a folder and its parents; try again if another process removes an empty parent."""
    for _ in range(ATTEMPTS):
        with suppress(FileNotFoundError):
            folder.mkdir(parents=True)
            return
    folder.mkdir(parents=True)


def _not_there(folder: Path) -> list[Path]:
    """List the folder and its parents that do not exist yet, innermost first."""
    return [place for place in (folder, *folder.parents) if not os.path.lexists(place)]


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # does not exist, or is not empty
            folder.rmdir()


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn operating-system errors about an output into our own error."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OaccDepthError):
            raise
        raise UnwritableOutput(
            f"{path}: cannot be written ({error.strerror or error}). Choose another place."
        ) from error


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of a killed run, in the folder and its subfolders."""
    for path in list(walk(folder)):
        if LEFTOVER.fullmatch(path.name):
            _remove(path)


def _remove(path: Path) -> None:
    if os.path.isdir(path) and not os.path.islink(path):  # Path.is_dir raises for long names
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON atomically; keys keep their order."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # escapes lone surrogates


def check_file(path: Path, overwrite: bool) -> None:
    """Refuse to replace a folder or device, and also a file unless `overwrite` is set."""
    _check_kind(path)
    if os.path.exists(path) and not overwrite:
        raise OutputExists(f"{path}: already exists. Pass --overwrite to replace it.")


def prepare_folder(folder: Path, names: Iterable[str], overwrite: bool) -> None:
    """Check that files with these names can be written to a folder, without creating anything.

    Refuse if one of them exists, unless `overwrite` is set.
    """
    # os.path, because Path.exists() raises if we have no permission to look.
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UnwritableOutput(f"{folder}: is a file, expected a folder. Choose another --output.")
    existing = sorted(name for name in names if os.path.exists(folder / name))
    if existing and not overwrite:
        raise OutputExists(
            f"{folder}: already holds {existing[0]}"
            + (f" and {len(existing) - 1} more" if len(existing) > 1 else "")
            + ". Pass --overwrite to replace, or choose another --output."
        )
    try:
        is_there = _exists(folder)
        above = next(place for place in (folder, *folder.parents) if _exists(place))
    except OSError as error:
        raise _not_created(folder, error.strerror) from error
    if not os.path.isdir(above):
        raise _not_created(folder, os.strerror(errno.ENOTDIR))
    if not os.access(above, os.W_OK | os.X_OK):
        if is_there:
            raise UnwritableOutput(f"{folder}: cannot be written to. Choose another --output.")
        raise _not_created(folder, os.strerror(errno.EACCES))


def _exists(path: Path) -> bool:
    """Whether a path exists; raises on other errors, such as a missing permission."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _not_created(folder: Path, reason: str | None) -> UnwritableOutput:
    return UnwritableOutput(f"{folder}: cannot be created ({reason}). Choose another --output.")
