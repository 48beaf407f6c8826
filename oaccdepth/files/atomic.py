"""Output files that appear whole or not at all: a temporary name beside it, then a rename."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from oaccdepth.errors import OutputExists, UnwritableOutput

TEMPORARY = ".part"  # part of every temporary name, so that leftovers of a killed run are known


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same ending; rename it to `path` if all went well."""
    temporary = path.with_name(f".{path.stem}{TEMPORARY}{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        mode = temporary.stat().st_mode  # what the user's umask gives
        yield temporary
        os.chmod(temporary, mode)  # some libraries make files that only their owner may read
        os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, OutputExists | UnwritableOutput):
            raise
        raise UnwritableOutput(
            f"{path}: cannot be written ({error.strerror or error}). "
            "Choose another place with --output."
        ) from error
    finally:
        with suppress(OSError):  # mostly: it has been renamed
            temporary.unlink()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of a run that was killed, at any depth of its folder."""
    for path in folder.rglob(f".*{TEMPORARY}[0-9]*"):
        with suppress(OSError):
            path.unlink()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file, or nothing."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: Path, content: Any) -> None:
    """Write JSON, indented, keys in the order given."""
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def prepare_folder(folder: Path, names: Iterable[str], overwrite: bool) -> None:
    """Make the folder; refuse if one of the files to be written is already there."""
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
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableOutput(
            f"{folder}: cannot be created ({error.strerror}). Choose another --output."
        ) from error
    if not os.access(folder, os.W_OK):
        raise UnwritableOutput(f"{folder}: cannot be written to. Choose another --output.")
