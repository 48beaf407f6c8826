"""Finds files and folders that look like light fields but are not read, and says why."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from oaccdepth.errors import OaccDepthError, UnreadableFile
from oaccdepth.files.regular import is_regular
from oaccdepth.options import ReadOptions
from oaccdepth.readers import decoding, frames, mosaic
from oaccdepth.readers.grid import FEWEST_VIEWS
from oaccdepth.readers.listing import list_files, list_folders
from oaccdepth.readers.names import FEWEST_FILES, NOT_A_VIEW, few_views, view_names
from oaccdepth.readers.search import ARRAY_EXTENSIONS, find_in
from oaccdepth.readers.window import too_few

RESULT_FILE = "run.json"  # marks a folder that holds our results, not views
MOST_PICTURES = 50  # single pictures to check; each must be decoded
FEWEST_PIXELS = 96 * 96  # in a picture that may hold several views
NO_SIZE = (0, 0)  # px
ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst")
VIDEOS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v")
RAW_PICTURES = (".dng", ".raw", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".raf", ".rw2")
OTHER_FILES = {  # what one is called, what several are called, and what to do
    ARCHIVES: ("an archive", "archives", "Unpack archives first."),
    VIDEOS: ("a video", "videos", "If frames are views, save them as view_RR_CC.png."),
    RAW_PICTURES: ("a raw picture", "raw pictures", "Convert raw pictures to PNG or TIFF first."),
}


class Unread(NamedTuple):
    """A path that looks like a light field, and why it was not read."""

    path: Path
    reason: str


def find_unread(
    root: Path,
    found: Iterable[Path],
    readers: Sequence[ModuleType],
    refused: Sequence[ModuleType],
) -> list[Unread]:
    """Search the tree again, without the light fields that were found."""
    known = set(found)
    result: list[Unread] = []
    pictures: list[Path] = []
    for folder, names in _walk(root, known):
        views = set(view_names(names))
        if len(views) >= FEWEST_FILES:
            result.append(Unread(folder, _why_not(folder, readers)))
        elif grid := few_views(names):
            result.append(Unread(folder, _too_few(grid)))
        else:
            pictures += [folder / name for name in sorted(views) if folder / name not in known]
        rest: list[str] = []
        for name in sorted(set(names) - views):
            path = folder / name
            if path in known:
                continue
            if reason := _why_not_file(path, readers, refused):
                result.append(Unread(path, reason))
            else:
                rest.append(name)
        result += _other_files(folder, rest)
    result += _inside_found(known, readers)
    return sorted(result + _explain_pictures(root, pictures, refused))


def _other_files(folder: Path, names: Sequence[str]) -> Iterator[Unread]:
    """Find archives, videos and raw pictures; several of a kind in a folder are one entry."""
    for extensions, (one, several, advice) in OTHER_FILES.items():
        alike = [name for name in names if name.lower().endswith(extensions)]
        packed = [name for name in alike if not _is_unpacked(folder / name)]
        if len(packed) == 1:
            yield Unread(folder / packed[0], f"{one}. {advice}")
        elif packed:
            yield Unread(folder, f"{len(packed)} {several}, such as {packed[0]}. {advice}")


def _inside_found(known: set[Path], readers: Sequence[ModuleType]) -> Iterator[Unread]:
    """Light fields in folders inside those that were found: a batch does not search there."""
    for folder in known:
        if not os.path.isdir(folder) or frames.detect(folder):  # whose folders are its views
            continue
        try:
            places = [folder / name for name in list_folders(folder)]
        except UnreadableFile:  # no permission
            continue
        for place in places:
            for inside in () if os.path.islink(place) else find_in(place, readers):
                yield Unread(inside, _inside(folder))


def _is_unpacked(path: Path) -> bool:
    """Whether there is a folder of the same name beside a file: scenes.zip and scenes."""
    return os.path.isdir(path.with_name(path.stem.removesuffix(".tar")))


def _explain_pictures(
    root: Path, pictures: Sequence[Path], refused: Sequence[ModuleType]
) -> list[Unread]:
    """Find pictures that hold several views, and folders with a few pictures that may be views."""
    large = [path for path in pictures if _is_large(path)]
    result = [
        Unread(path, reason)
        for path in large[:MOST_PICTURES]
        if (reason := _why_not_picture(path, refused))
    ]
    explained = {unread.path.parent for unread in result}
    if (more := len(large) - MOST_PICTURES) > 0:
        result.append(Unread(root, _not_opened(more)))
    for folder, group in groupby(pictures, key=lambda path: path.parent):
        sizes = [_size(path) for path in group]
        are_alike = len(set(sizes)) == 1 and sizes[0] != NO_SIZE  # as views of one scene are
        if are_alike and len(sizes) > 1 and folder not in explained:
            result.append(Unread(folder, _few(len(sizes))))
    return result


def _inside(folder: Path) -> str:
    return (
        f"a light field inside another, {folder.name}. "
        "If it is not a part of that, run oaccdepth estimate on it."
    )


def _few(count: int) -> str:
    start = f"{count} pictures of the same size"
    if count < FEWEST_VIEWS:
        return f"{start}. If they are views: at least {FEWEST_VIEWS} are needed."
    return (
        f"{start}, too few to be sure. "
        "If they are numbered views, run oaccdepth estimate on it with --views UxV."
    )


def _too_few(grid: tuple[int, int]) -> str:
    rows, columns = grid
    return (
        f"names of {rows} x {columns} views, too few to be sure. "
        f"If they are views, run oaccdepth estimate on it with --views {rows}x{columns}."
    )


def _not_opened(count: int) -> str:
    pictures = "1 more single picture was" if count == 1 else f"{count} more single pictures were"
    return f"{pictures} not opened. If they hold views, run oaccdepth estimate on each."


def _walk(root: Path, known: set[Path]) -> Iterator[tuple[Path, list[str]]]:
    """Yield folders and the files in them, except known and hidden folders, links and results.

    `os.walk` raises a RecursionError if a thousand folders are nested.
    """
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            names, inside = list_files(folder), list_folders(folder)
        except UnreadableFile:  # no permission, or not a folder
            continue
        if folder in known or RESULT_FILE in names:
            continue
        yield folder, names
        places = [folder / name for name in reversed(inside)]
        # os.path, because Path.is_symlink() raises if the path is too long.
        waiting += [place for place in places if not os.path.islink(place)]


def _why_not(path: Path, readers: Sequence[ModuleType]) -> str:
    """Why the reader that recognises a path does not read it."""
    try:
        reader = next(reader for reader in readers if reader.detect(path))
        grid = reader.open_grid(path, ReadOptions())
    except StopIteration:
        return "format not recognised. `oaccdepth formats` lists what can be read."
    except OaccDepthError as error:
        return _without_path(error, path)
    if grid.shape[0] * grid.shape[1] < FEWEST_VIEWS:
        return too_few(str(path), grid.shape).removeprefix(f"{path}: ")
    if grid.absent:
        return (
            f"{grid.shape[0]} x {grid.shape[1]} numbered pictures, {len(grid.absent)} missing. "
            "If they are views, run oaccdepth estimate on it with --views UxV or --allow-missing."
        )
    return (
        "numbered pictures, which may not be views. "
        "If they are, run oaccdepth estimate on it with --views UxV."
    )


def _why_not_file(path: Path, readers: Sequence[ModuleType], refused: Sequence[ModuleType]) -> str:
    """Why an array or raw file was not read; empty if it does not look like a light field."""
    if not is_regular(path):
        return ""
    for module in refused:
        if module.detect(path):
            return _without_path(module.refuse(path), path)
    if path.suffix.lower() not in ARRAY_EXTENSIONS or NOT_A_VIEW.search(path.stem):
        return ""
    return _why_not(path, readers)


def _why_not_picture(path: Path, refused: Sequence[ModuleType]) -> str:
    """Why a single picture was not read; empty if it does not hold several views."""
    for module in refused:
        if module.detect(path):
            return _without_path(module.refuse(path), path)
    try:
        rows, columns = mosaic.open_grid(path, ReadOptions()).shape
    except OaccDepthError:
        return ""
    return f"one picture that seems to hold {rows} x {columns} views. Run oaccdepth estimate on it."


def _is_large(path: Path) -> bool:
    width, height = _size(path)
    return width * height >= FEWEST_PIXELS


def _size(path: Path) -> tuple[int, int]:
    """Width and height of a picture; `NO_SIZE` if it cannot be read."""
    try:
        header = decoding.read_header(path)
    except OaccDepthError:
        return NO_SIZE
    return header.width, header.height


def _without_path(error: OaccDepthError, path: Path) -> str:
    return str(error).removeprefix(f"{path}: ")
