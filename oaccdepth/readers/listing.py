"""Sorted names of the files or subfolders in a folder."""

from __future__ import annotations

import os
from pathlib import Path

from oaccdepth.errors import UnreadableFile


def list_files(folder: Path) -> list[str]:
    """List the names of the regular files in a folder, sorted, including links to files."""
    return _list(folder, folders=False)


def list_folders(folder: Path) -> list[str]:
    """List the names of the subfolders of a folder, sorted, without hidden ones."""
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
        return False  # a loop of links, or no permission
