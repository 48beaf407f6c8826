"""Output that appears whole or not at all, files and folders: written beside it, then renamed."""

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

TEMPORARY = ".part"  # part of every temporary name, so that leftovers of a killed run are known
ATTEMPTS = 10
LONGEST_NAME = 255  # bytes, on every usual disk
LEFTOVER = re.compile(rf"\..+{re.escape(TEMPORARY)}\d+(\.\w+)?")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same ending; rename it to `path` if all went well."""
    _check_kind(path)
    temporary = _beside(path, path.suffix)
    try:
        with told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch()
            mode = temporary.stat().st_mode  # what the user's umask gives
            yield temporary
            os.chmod(temporary, mode)  # some libraries make files that only their owner may read
            os.replace(temporary, path)
    finally:
        with suppress(OSError):  # mostly: it has been renamed
            temporary.unlink()


def _beside(path: Path, suffix: str = "") -> Path:
    """Choose a temporary name in the same folder; a name that is long already gets no longer."""
    stem, tail = path.name.removesuffix(suffix), f"{TEMPORARY}{os.getpid()}{suffix}"
    if len(os.fsencode(f".{stem}{tail}")) > LONGEST_NAME:
        stem = hashlib.sha256(os.fsencode(stem)).hexdigest()[:16]
    return path.with_name(f".{stem}{tail}")


def _check_kind(path: Path) -> None:
    """Refuse a folder, and above all a device: for root, a rename would replace /dev/null."""
    kind = other_kind(path)
    if kind is not None:
        raise UnwritableOutput(f"{path}: is {kind}, expected a file. Choose another name.")


@contextmanager
def staged(folder: Path, last: str, clear: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """Yield an empty folder to write to; if all went well, its files become those of `folder`.

    A new folder appears with all its files in one step. If it exists, they are moved into it,
    `last` at the end, after `clear()` has removed what they replace. Moving takes no room on the
    disk, and signals wait until it is done.
    """
    new = _not_there(folder)
    stage = _beside(folder) if new else _beside(folder / "result")
    try:
        with told(folder):
            _remove(stage)  # of a killed process that had our number
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
    """Make a folder and those above it, even while another process removes one that is empty."""
    for _ in range(ATTEMPTS):
        with suppress(FileNotFoundError):
            folder.mkdir(parents=True)
            return
    folder.mkdir(parents=True)


def _not_there(folder: Path) -> list[Path]:
    """The folder and those above it that do not exist yet, the innermost first."""
    return [place for place in (folder, *folder.parents) if not os.path.lexists(place)]


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # never made, or it holds something
            folder.rmdir()


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what the system says about an output into our error."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OaccDepthError):
            raise
        raise UnwritableOutput(
            f"{path}: cannot be written ({error.strerror or error}). Choose another place."
        ) from error


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed run was writing, at any depth of its folder."""
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
    """Write a whole file, or nothing."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: Path, content: Any) -> None:
    """Write JSON, indented, keys in the order given."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_bytes(
        path, text.encode("utf-8", "backslashreplace")
    )  # halves of characters, as JSON has it


def check_file(path: Path, overwrite: bool) -> None:
    """Refuse to write a file over anything else, or over a file unless that is wanted."""
    _check_kind(path)
    if os.path.exists(path) and not overwrite:
        raise OutputExists(f"{path}: already exists. Pass --overwrite to replace it.")


def prepare_folder(folder: Path, names: Iterable[str], overwrite: bool) -> None:
    """Check that files of these names can be written there; create nothing.

    Refuses if one of them exists and must not be replaced.
    """
    # os.path, because Path.exists() raises for a place that may not even be looked at.
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
    """Whether something is there; raises if the system does not allow such a path."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _not_created(folder: Path, reason: str | None) -> UnwritableOutput:
    return UnwritableOutput(f"{folder}: cannot be created ({reason}). Choose another --output.")
