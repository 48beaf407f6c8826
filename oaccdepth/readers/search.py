"""Finds the light fields in a tree of folders by names and headers, without decoding."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from oaccdepth.errors import OaccDepthError, UnreadableFile
from oaccdepth.files.regular import is_regular
from oaccdepth.options import ReadOptions
from oaccdepth.readers import decoding, hci, lenslet
from oaccdepth.readers.axes import MOST_GUESSED_VIEWS
from oaccdepth.readers.grid import FEWEST_VIEWS
from oaccdepth.readers.names import NOT_A_VIEW
from oaccdepth.readers.parameters import FILE_NAME

ARRAY_EXTENSIONS = (".h5", ".hdf5", ".mat", ".npy", ".npz")


def find_in(root: Path, readers: Iterable[ModuleType], most: int | None = None) -> list[Path]:
    """Find the light fields at and under `root`, sorted; at most `most` of them."""
    readers = tuple(readers)
    found: list[Path] = []
    empty: list[Path] = []  # folders with a parameters.cfg and no views
    waiting, seen = [root], set[object]()
    while waiting and (most is None or len(found) < most):
        path = waiting.pop()
        if not os.path.isdir(path):
            if not is_regular(path):
                continue
            if path.name == FILE_NAME:
                empty.append(path.parent)
            elif _is_light_field_file(path, readers):
                found.append(path)
            continue
        identity = _identity(path)
        if identity in seen:
            continue  # a link to a folder that we have already searched
        seen.add(identity)
        if _is_light_field_folder(path, readers):
            found.append(path)
        else:
            waiting += sorted(_inside(path), reverse=True)
    if most is None:  # a full search also reports scenes without views
        places = {place for path in found for place in path.parents}
        found += [folder for folder in empty if folder not in places]
    return sorted(found)[:most]


def _identity(folder: Path) -> tuple[int, int] | str:
    """Identify a folder, independent of the path that led to it."""
    try:
        found = os.stat(folder)
    except OSError:  # deleted meanwhile
        return str(folder)
    return found.st_dev, found.st_ino


def _inside(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        return []  # no permission to read it


def _is_light_field_folder(path: Path, readers: tuple[ModuleType, ...]) -> bool:
    for reader in readers:
        if not reader.EXTENSIONS and _detects(reader, path):
            # Views with HCI's names are always HCI's: if they form no grid, the scene is damaged.
            return reader is hci or _opens(reader, path, needs_names=False)
    return False


def _is_light_field_file(path: Path, readers: tuple[ModuleType, ...]) -> bool:
    """Whether a file holds a light field: an array of views, or a picture marked as such."""
    if decoding.is_picture(path.name):
        return lenslet.detect(path) or _describes_itself(path)
    if path.suffix.lower() not in ARRAY_EXTENSIONS or NOT_A_VIEW.search(path.stem):
        return False  # masks.npz and disparity.npy have the shape of views but are not views
    for reader in readers:
        if _detects(reader, path):
            return _opens(reader, path, needs_names=True)
    return False


def _describes_itself(path: Path) -> bool:
    if path.suffix.lower() != ".png":
        return False
    try:
        return bool(decoding.read_header(path).description)
    except OaccDepthError:
        return False


def _detects(reader: ModuleType, path: Path) -> bool:
    try:
        return bool(reader.detect(path))
    except OaccDepthError:
        return False


def _opens(reader: ModuleType, path: Path, needs_names: bool) -> bool:
    """Whether there is a light field. A damaged one counts, so that a batch reports it."""
    try:
        grid = reader.open_grid(path, ReadOptions())
    except UnreadableFile:
        return True
    except OaccDepthError:
        return False
    if grid.shape[0] * grid.shape[1] < FEWEST_VIEWS:
        return False
    if grid.names_give_grid:
        return True
    # Numbered pictures may be anything, but a complete square of them is probably views.
    return not needs_names and not grid.absent and max(grid.shape) <= MOST_GUESSED_VIEWS
