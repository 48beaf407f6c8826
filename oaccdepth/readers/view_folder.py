"""Any folder of pictures whose names give the row and column, or the number, of each view."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oaccdepth.errors import InvalidLightField, UnknownFormat, UnreadableFile
from oaccdepth.lightfield import Array, FloatArray
from oaccdepth.options import ReadOptions
from oaccdepth.readers.decoding import decode, read_header
from oaccdepth.readers.grid import FEWEST_VIEWS, ViewGrid
from oaccdepth.readers.ground_truth import find_beside_views
from oaccdepth.readers.listing import list_files, list_folders
from oaccdepth.readers.names import FEWEST_FILES, Naming, parse_names, view_names

NAME = "view-folder"
EXTENSIONS: tuple[str, ...] = ()  # a folder
SIGN = (
    "folder of pictures named by row and column (1_1, view_R_C, lf_R_C, SAI_RR_CC, name_RR_CC, "
    "out_RR_CC_y_x_, viewpoints_15px/JJ_II) or numbered (name-NN)"
)


def detect(path: Path) -> bool:
    """Accept a folder with enough pictures that are not obviously something else."""
    if not path.is_dir():
        return False
    return len(view_names(list_files(_with_viewpoints(path)))) >= FEWEST_FILES


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the grid that the names describe."""
    folder = _with_viewpoints(path)
    names = list_files(folder)
    naming = parse_names(names, options)
    if naming is None:
        raise no_grid(path, options)
    if not naming.names_give_grid:
        _check_single_views(folder, naming)

    def load(u: int, v: int) -> Array | None:
        name = naming.names.get((u, v))
        return None if name is None else decode(folder / name)

    ignored = len(view_names(names)) - len(naming.names)
    centre = naming.names.get((naming.shape[0] // 2, naming.shape[1] // 2))
    return ViewGrid(
        naming.shape,
        load,
        naming.reason,
        name_of=lambda u, v: naming.names.get((u, v)) or naming.name_of(u, v),
        absent=naming.absent,
        names_give_grid=naming.names_give_grid,
        arrangement=naming.arrangement,
        orientation=naming.orientation,
        suspect=naming.suspect,
        order_is_known=naming.order_is_known,
        vignetted=naming.vignetted or folder != path,
        places=_camera_places(naming),
        ground_truth=find_beside_views(folder, centre) if centre else None,
        notes=_left_out(ignored),
    )


def _camera_places(naming: Naming) -> FloatArray | None:
    """Camera positions (u, v, 2) from the names, if given; missing ones from their row."""
    if naming.coordinates is None:
        return None
    places = np.full((*naming.shape, 2), np.nan)
    for place, coordinates in naming.coordinates.items():
        places[place] = coordinates
    for axis in (0, 1):  # y from the row, x from the column
        usual = np.nanmean(places[..., axis], axis=1 - axis, keepdims=True)
        places[..., axis] = np.where(np.isnan(places[..., axis]), usual, places[..., axis])
    return places.astype(np.float32)


def _left_out(count: int) -> tuple[str, ...]:
    if count <= 0:
        return ()
    if count == 1:
        return ("1 other picture in the folder is left out.",)
    return (f"{count} other pictures in the folder are left out.",)


def _with_viewpoints(path: Path) -> Path:
    """Return the subfolder of views, such as viewpoints_15px, if PlenoptiCam wrote this folder."""
    inside = [name for name in list_folders(path) if name.startswith("viewpoints_")]
    return path / inside[0] if len(inside) == 1 else path


def _check_single_views(folder: Path, naming: Naming) -> None:
    """Refuse numbered pictures that we wrote and that each hold a whole light field."""
    first = naming.names[min(naming.names)]
    try:
        header = read_header(folder / first)
    except UnreadableFile:
        return  # decoding will report it, if the view is used
    if header.description:
        raise UnknownFormat(f"{folder}: each picture holds a light field. Give one of them.")


def no_grid(path: Path, options: ReadOptions) -> InvalidLightField:
    """Say that the pictures in a folder do not form a grid of views, and what to do."""
    names = list_files(path)
    pictures = view_names(names)
    if len(pictures) == 1:
        return InvalidLightField(
            f"{path}: a single picture, {pictures[0]}. "
            f"Disparity needs {FEWEST_VIEWS} views or more of the same scene."
        )
    if len(pictures) == 2:
        return InvalidLightField(
            f"{path}: two pictures, {pictures[0]} and {pictures[1]}. "
            f"Disparity needs {FEWEST_VIEWS} views or more of the same scene."
        )
    if options.pattern is not None:
        return InvalidLightField(
            f"{path}: --pattern {options.pattern} matches no grid of views "
            f"({len(pictures)} pictures{f', such as {(pictures or names)[0]}' if names else ''})."
        )
    if options.views is not None:
        rows, columns = options.views
        return InvalidLightField(
            f"{path}: {len(pictures)} pictures, such as {pictures[0]}, do not fill a grid of "
            f"{rows} x {columns}. Correct --views, or describe the names with --pattern REGEX."
        )
    return InvalidLightField(
        f"{path}: the grid cannot be inferred from {len(pictures)} pictures, "
        f"such as {pictures[0]}. "
        "Pass --views UxV if they are numbered, or describe their names with --pattern REGEX."
    )
