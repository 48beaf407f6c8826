"""The files and folders in a folder, as names, in order."""

from __future__ import annotations

import os
from pathlib import Path

from oaccdepth.errors import UnreadableFile


def list_files(folder: Path) -> list[str]:
    """Names of the regular files in a folder, sorted; links to such files are among them."""
    return _list(folder, folders=False)


def list_folders(folder: Path) -> list[str]:
    """Names of the folders in a folder, sorted; hidden ones are left out."""
    return [name for name in _list(folder, folders=True) if not name.startswith(".")]


def _list(folder: Path, folders: bool) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if _is(entry, folders))
    except OSError as error:
        raise UnreadableFile(f"{folder}: cannot be listed ({error.strerror}).") from error


def _is(entry: os.DirEntry[str], folder: bool) -> bool:
    try:
        return entry.is_dir() if folder else entry.is_file()
    except OSError:
        return False  # a loop of links, or not ours to look at
