"""HCI 4D light field benchmark: a scene folder with input_Cam000.png ... and parameters.cfg."""

from __future__ import annotations

import re
from pathlib import Path

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.files.pfm import read_pfm
from oaccdepth.lightfield import Array
from oaccdepth.options import ReadOptions
from oaccdepth.readers.decoding import decode, is_picture
from oaccdepth.readers.grid import ViewGrid
from oaccdepth.readers.listing import list_files
from oaccdepth.readers.names import square_of
from oaccdepth.readers.parameters import FILE_NAME, Parameters, read_parameters

NAME = "hci"
EXTENSIONS: tuple[str, ...] = ()  # a folder
SIGN = "folder with input_Cam000.png ... (and parameters.cfg), or its parameters.cfg"

VIEW = re.compile(r"input_Cam(\d{3,4})\.\w+", re.IGNORECASE)
GROUND_TRUTH = "gt_disp_lowres.pfm"


def scene_folder(path: Path) -> Path:
    """Return the folder of a scene, given the folder or its parameters.cfg."""
    return path.parent if path.name == FILE_NAME and path.is_file() else path


def detect(path: Path) -> bool:
    """Accept a folder with at least one view named like HCI's, or any parameters.cfg file."""
    if path.is_file():
        return path.name == FILE_NAME
    return bool(_numbered_views(path))


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the views by number, row by row; the size of the grid is in parameters.cfg."""
    folder = scene_folder(path)
    numbered = _numbered_views(folder)
    if not numbered:
        raise no_views(folder)
    parameters = _find_parameters(folder, numbered, options)
    rows, columns = parameters.shape
    if max(numbered) >= rows * columns:
        raise InvalidLightField(
            f"{folder}: found {numbered[max(numbered)]}, expected {rows * columns} views "
            f"({rows} x {columns}), the last one number {rows * columns - 1:03d}. "
            "Correct num_cams_x and num_cams_y in parameters.cfg, or pass --views UxV."
        )
    example = numbered[min(numbered)]
    ending = Path(example).suffix

    def load(u: int, v: int) -> Array | None:
        name = numbered.get(u * columns + v)
        view = None if name is None else decode(folder / name)
        return view if view is None or parameters.channels != 1 else _first_channel(view)

    has_file = (folder / FILE_NAME).is_file()
    truth = folder / GROUND_TRUTH
    return ViewGrid(
        parameters.shape,
        load,
        f"{example} ..." + (" and parameters.cfg" if has_file else ""),
        name_of=lambda u, v: numbered.get(
            u * columns + v, f"input_Cam{u * columns + v:03d}{ending}"
        ),
        absent=frozenset(
            divmod(index, columns) for index in range(rows * columns) if index not in numbered
        ),
        names_give_grid=has_file or options.views is None,
        orientation="certain" if parameters.is_ours else "presumed",
        camera=parameters.camera,
        disparity_range=parameters.disparity_range,
        ground_truth=(lambda: read_pfm(truth)) if truth.is_file() else None,
        notes=()
        if has_file or options.baseline_mm is not None
        else ("No parameters.cfg: the camera is not known.",),
    )


def no_views(folder: Path) -> InvalidLightField:
    """Say that a folder has parameters.cfg but no views."""
    return InvalidLightField(
        f"{folder}: has parameters.cfg but no views. Expected input_Cam000.png and so on."
    )


def _first_channel(view: Array) -> Array:
    """Convert RGBA back to grey and alpha: we write grey views with a mask as RGBA."""
    if view.ndim == 3 and view.shape[2] == 4:
        return view[:, :, [0, 3]]
    return view


def _find_parameters(folder: Path, numbered: dict[int, str], options: ReadOptions) -> Parameters:
    if (folder / FILE_NAME).is_file():
        return read_parameters(folder / FILE_NAME)
    shape = options.views or square_of(max(numbered) + 1, len(numbered))
    if shape is None:
        raise InvalidLightField(
            f"{folder}: found {_count(numbered)} and no parameters.cfg, expected a square "
            "number of views. Pass --views UxV."
        )
    return Parameters(shape)


def _count(numbered: dict[int, str]) -> str:
    return "1 view" if len(numbered) == 1 else f"{len(numbered)} views"


def _numbered_views(folder: Path) -> dict[int, str]:
    try:
        names = list_files(folder)
    except UnreadableFile:
        return {}
    return {
        int(match[1]): name
        for name in names
        if (match := VIEW.fullmatch(name)) and is_picture(name)
    }
