"""NumPy files: .npy and .npz with an array of views in any documented axis order."""

from __future__ import annotations

import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.lightfield import Array, FloatArray
from oaccdepth.options import ReadOptions
from oaccdepth.readers.axes import array_grid, choose_axes, loaded_once
from oaccdepth.readers.grid import ViewGrid
from oaccdepth.readers.hdf5 import OUR_AXES, add_alpha, choose_dataset, parse_extras
from oaccdepth.readers.hdf5_file import Dataset, check_storage
from oaccdepth.readers.values import as_map

NAME = "numpy"
EXTENSIONS: tuple[str, ...] = (".npy", ".npz")
SIGN = "NumPy file with an array of views; its axes by shape, or by --axes uvhwc"
EXTRA = ""

MOST_BYTES = 16 << 30
DAMAGED = (
    OSError,
    ValueError,
    TypeError,
    SyntaxError,
    EOFError,
    LookupError,
    ArithmeticError,
    MemoryError,
    RuntimeError,  # an encrypted archive
    NotImplementedError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def detect(path: Path) -> bool:
    """A file that ends as NumPy's do."""
    return path.is_file() and path.suffix.lower() in EXTENSIONS


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the array that holds the views."""
    if path.suffix.lower() == ".npz":
        return _open_archive(path, options)
    with _mapped(path) as array:
        shape, is_numeric = array.shape, array.dtype.kind in "biuf"
    if not is_numeric or len(shape) < 3:
        raise InvalidLightField(
            f"{path}: holds no light field (shape {' x '.join(map(str, shape)) or 'scalar'}). "
            "Expected an array of views, such as 9 x 9 x 512 x 512 x 3."
        )
    axes = choose_axes(shape, str(path), options.axes)
    return array_grid(
        lambda: _mapped(path), shape, axes, options, str(path), f"NumPy array ({axes})"
    )


@contextmanager
def _mapped(path: Path) -> Iterator[Any]:
    yield map_array(path)


def map_array(path: Path) -> Array:
    """Map the array of an .npy file into memory, without reading it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files of Python 2
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except DAMAGED as error:
        raise _damaged(path) from error


def _open_archive(path: Path, options: ReadOptions) -> ViewGrid:
    members = _list_members(path)
    dataset = choose_dataset(path, members, options)
    check_storage(path, dataset)
    names = {member.name for member in members}
    is_ours = "written_by_oaccdepth" in names
    asked = options.axes or (OUR_AXES if is_ours else None)
    axes = choose_axes(dataset.shape, f"{path}, {dataset.name}", asked)
    opened = loaded_once(lambda: _load_member(path, dataset.name))
    reason = f"NumPy archive with {dataset.name} ({axes})"
    grid = array_grid(opened, dataset.shape, axes, options, str(path), reason)
    if "valid" in names:
        grid = _with_validity(grid, _load_member(path, "valid"))
    if not is_ours:
        return grid
    camera, disparity_range = parse_extras(
        path,
        _load_member(path, "camera").tolist() if "camera" in names else None,
        _load_member(path, "disparity_range").tolist() if "disparity_range" in names else None,
    )
    return replace(
        grid,
        orientation="certain",
        camera=camera,
        disparity_range=disparity_range,
        ground_truth=_map_reader(path, "disparity") if "disparity" in names else None,
    )


def _with_validity(grid: ViewGrid, valid: Array) -> ViewGrid:
    if valid.ndim not in (2, 4) or valid.shape[:2] != grid.shape:
        raise InvalidLightField(
            f"the mask has shape {valid.shape}, the grid {grid.shape}. Export them again."
        )

    def load(u: int, v: int) -> Array | None:
        view = grid.load(u, v)
        return None if view is None else add_alpha(view, np.asarray(valid[u, v]))

    return replace(grid, load=load, pieces=None, sample=None, has_validity=True)


def _map_reader(path: Path, name: str) -> Callable[[], FloatArray]:
    return lambda: as_map(_load_member(path, name), path)


def _list_members(path: Path) -> list[Dataset]:
    """Names and shapes in an archive, from the headers of its members."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [_read_header(archive, info) for info in archive.infolist()]
    except DAMAGED as error:
        raise _damaged(path) from error


def _read_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Dataset:
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(member)
    claimed = int(np.prod([int(size) for size in shape], dtype=object)) * dtype.itemsize
    if claimed > info.file_size or claimed > MOST_BYTES:
        raise ValueError(f"{info.filename} claims {claimed} bytes and holds {info.file_size}")
    name = info.filename.removesuffix(".npy")
    return Dataset(name, tuple(shape), dtype.kind in "biuf", claimed, info.compress_size)


def _load_member(path: Path, name: str) -> Array:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return np.asarray(archive[name])
    except DAMAGED as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> UnreadableFile:
    return UnreadableFile(f"{path}: damaged or not a NumPy file. Copy or export it again.")
