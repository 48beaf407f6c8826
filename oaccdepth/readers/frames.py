"""Light-field videos: a folder per view, RR_CC, each with the same frames (Sintel light fields)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.files.regular import is_regular
from oaccdepth.lightfield import Array
from oaccdepth.options import ReadOptions
from oaccdepth.readers.decoding import decode
from oaccdepth.readers.grid import LARGEST_GRID, Position, ViewGrid
from oaccdepth.readers.ground_truth import find_beside_views
from oaccdepth.readers.listing import list_files, list_folders
from oaccdepth.readers.names import view_names

NAME = "frames"
EXTENSIONS: tuple[str, ...] = ()  # a folder
SIGN = "folder with a folder per view, RR_CC, that holds its frames (Sintel); --pattern picks one"

VIEW_FOLDER = re.compile(r"(\d{1,2})_(\d{1,2})")
FEWEST_FOLDERS = 9


def detect(path: Path) -> bool:
    """Accept a folder with enough subfolders named by row and column."""
    return os.path.isdir(path) and len(_view_folders(path)) >= FEWEST_FOLDERS


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Use the first frame in every view's folder, or the first one that matches --pattern."""
    folders = _view_folders(path)
    rows, columns = (sorted({place[axis] for place in folders}) for axis in (0, 1))
    if max(len(rows), len(columns)) > LARGEST_GRID:
        raise InvalidLightField(f"{path}: {len(rows)} x {len(columns)} views are not possible.")
    grid = {(rows.index(u), columns.index(v)): name for (u, v), name in folders.items()}
    shape = len(rows), len(columns)
    centre = grid.get((shape[0] // 2, shape[1] // 2))
    if centre is None:
        raise InvalidLightField(
            f"{path}: the centre view is missing. Expected the folder "
            f"{rows[len(rows) // 2]:02d}_{columns[len(columns) // 2]:02d}."
        )
    frame, count = _choose_frame(path / centre, options)
    there = {place for place, name in grid.items() if is_regular(path / name / frame)}

    def load(u: int, v: int) -> Array | None:
        return decode(path / grid[u, v] / frame) if (u, v) in there else None

    return ViewGrid(
        shape,
        load,
        f"a folder per view ({min(grid.values())} ...), frame {frame}",
        name_of=lambda u, v: f"{grid.get((u, v), f'{rows[u]:02d}_{columns[v]:02d}')}/{frame}",
        absent=frozenset({(u, v) for u in range(shape[0]) for v in range(shape[1])} - there),
        orientation="presumed",
        ground_truth=find_beside_views(path / centre, frame),
        notes=(f"Frame {frame} of {count}; choose another with --pattern.",) if count > 1 else (),
    )


def _view_folders(path: Path) -> dict[Position, str]:
    return {
        (int(match[1]), int(match[2])): name
        for name in list_folders(path)
        if (match := VIEW_FOLDER.fullmatch(name))
    }


def _choose_frame(folder: Path, options: ReadOptions) -> tuple[str, int]:
    frames = view_names(list_files(folder))
    if not frames:
        raise InvalidLightField(f"{folder}: holds no pictures, expected the frames of a view.")
    if options.pattern is None:
        return frames[0], len(frames)
    try:
        chosen = [name for name in frames if re.search(options.pattern, name)]
    except re.error as error:
        raise InvalidOption(
            f"--pattern {options.pattern}: not a regular expression ({error})."
        ) from error
    if not chosen:
        raise InvalidLightField(
            f"{folder}: no frame matches --pattern {options.pattern}, "
            f"expected one of {len(frames)} such as {frames[0]}."
        )
    return chosen[0], len(frames)
