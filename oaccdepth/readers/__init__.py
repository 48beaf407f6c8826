"""Paths -> light fields: one small file per format, in the order in which they are tried.

A reader module has NAME, EXTENSIONS, SIGN (how the format is recognised), `detect(path)` (cheap:
looks at names and first bytes) and `open_grid(path, options)`, which finds the views but does not
load them. `assemble` then makes the light field.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from oaccdepth.errors import InvalidLightField, UnknownFormat, UnreadableFile
from oaccdepth.lightfield import FloatArray, LightField
from oaccdepth.options import ReadOptions
from oaccdepth.readers import (
    arrays,
    frames,
    hci,
    hdf5,
    lenslet,
    lytro_raw,
    matlab,
    mosaic,
    quilt,
    unread,
    view_folder,
)
from oaccdepth.readers.assembly import assemble
from oaccdepth.readers.cutting import choose_cut
from oaccdepth.readers.listing import list_files
from oaccdepth.readers.names import view_names
from oaccdepth.readers.parameters import FILE_NAME
from oaccdepth.readers.search import find_in
from oaccdepth.readers.unread import Unread

READERS: tuple[ModuleType, ...] = (
    hci,  # before view_folder, which would take its views as numbered pictures
    frames,  # before view_folder: there may be thumbnails beside the folders
    view_folder,
    matlab,  # before hdf5: MATLAB 7.3 files are HDF5, too
    hdf5,
    arrays,
    lenslet,  # before mosaic, which accepts any picture
    mosaic,
)
REFUSED: tuple[ModuleType, ...] = (lytro_raw, quilt)  # recognised only to say what to do instead

__all__ = ["READERS", "REFUSED", "find", "find_unread", "read", "read_ground_truth"]


def read(path: Path | str, options: ReadOptions = ReadOptions()) -> LightField:
    """Read a light field of any supported format; load only the views that are used.

    Raises
    ------
    UnreadableFile, UnknownFormat, InvalidLightField, InvalidOption
        The message says what is wrong, what was expected and what to do.
    """
    path = Path(path)
    reader = choose_reader(path, options)
    grid = reader.open_grid(path, options)
    return assemble(hci.scene_folder(path), grid, options, reader.NAME)


def read_ground_truth(path: Path | str, options: ReadOptions = ReadOptions()) -> FloatArray | None:
    """Read the ground-truth disparity of the centre view, (h, w) [px]; None if there is none.

    Nearer points have larger disparity. The map is cropped and scaled like the views.
    """
    path = Path(path)
    grid = choose_reader(path, options).open_grid(path, options)
    if grid.ground_truth is None:
        return None
    truth: FloatArray = grid.ground_truth()
    cut = choose_cut((truth.shape[0], truth.shape[1]), options, str(path))
    return truth if cut is None else cut.apply_to_disparity(truth)


def find(root: Path | str) -> list[Path]:
    """Find every light field under a folder, sorted; do not search inside folders of views."""
    root = Path(root)
    if not os.path.exists(root):
        raise UnreadableFile(f"{root}: no such file or folder. Check the path.")
    return find_in(root, READERS)


def find_unread(root: Path | str, found: Sequence[Path]) -> list[Unread]:
    """Find paths that look like light fields but are not in `found`, each with the reason."""
    return unread.find_unread(Path(root), found, READERS, REFUSED)


def choose_reader(path: Path, options: ReadOptions = ReadOptions()) -> ModuleType:
    """Return the first reader that recognises a path."""
    if not os.path.exists(path):  # Path.exists() raises without permission
        raise UnreadableFile(f"{path}: no such file or folder. Check the path.")
    for module in REFUSED:
        if module.detect(path):
            refusal: UnknownFormat = module.refuse(path)
            raise refusal
    if options.pattern is not None and path.is_dir() and not frames.detect(path):
        return view_folder  # the user chose which pictures are views
    for module in READERS:
        if module.detect(path):
            return module
    if options.views is not None and path.is_dir() and view_names(list_files(path)):
        return view_folder  # too few pictures to be taken as views without --views
    raise _unknown(path)


def _unknown(path: Path) -> UnknownFormat | InvalidLightField:
    if path.is_dir():
        if not any(path.iterdir()):
            return UnknownFormat(
                f"{path}: is an empty folder. Expected the views of a light field."
            )
        inside = [str(found.relative_to(path)) for found in find_in(path, READERS, most=3)]
        if inside:
            return UnknownFormat(
                f"{path}: the folder itself holds no views, but there are light fields in it: "
                f"{', '.join(inside)}. Give one of them, or use oaccdepth batch."
            )
        if (path / FILE_NAME).is_file():
            return hci.no_views(path)
        if view_names(list_files(path)):
            return view_folder.no_grid(path, ReadOptions())
        return UnknownFormat(
            f"{path}: the folder holds no light field. "
            "Expected pictures named by row and column or number; see oaccdepth formats."
        )
    return UnknownFormat(
        f"{path}: not a light field that we know. See oaccdepth formats for what is recognised."
    )
