"""MATLAB files: LFToolbox's *__Decoded.mat, EPFL, INRIA, BasicLFSR, matlab-tools' LF.mat, others.

Version 7.3 is HDF5 with the axes reversed, and is read piece by piece; older versions need SciPy
and are read whole.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oaccdepth.errors import InvalidLightField, MissingDependency, UnreadableFile
from oaccdepth.lightfield import Array
from oaccdepth.options import ReadOptions
from oaccdepth.readers.axes import Open, array_grid, choose_axes, loaded_once
from oaccdepth.readers.grid import ViewGrid
from oaccdepth.readers.hdf5 import choose_dataset
from oaccdepth.readers.hdf5_file import (
    Dataset,
    check_storage,
    dataset_opener,
    is_hdf5,
    list_datasets,
    open_file,
)

NAME = "matlab"
EXTENSIONS: tuple[str, ...] = (".mat",)
SIGN = "MATLAB file with an array of views: LFToolbox *__Decoded.mat, EPFL, INRIA, LF, lightField"
EXTRA = "mat"  # for versions before 7.3

MOST_BYTES = 8 << 30  # of an array that can only be read whole
# What SciPy raises on damaged files.
DAMAGED = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    MemoryError,
    EOFError,
    RuntimeError,
    struct.error,
    zlib.error,
)


def detect(path: Path) -> bool:
    """A file that ends as MATLAB's do."""
    return path.is_file() and path.suffix.lower() in EXTENSIONS


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the array that holds the views."""
    if is_hdf5(path):
        with open_file(path) as file:
            dataset = choose_dataset(path, list_datasets(file), options)
        check_storage(path, dataset)
        grid = _array_grid(
            path, dataset, options, dataset_opener(path, dataset.name), reversed_=True
        )
        return replace(grid, may_be_linear=True, vignetted=_is_lytro(grid.shape))
    dataset = choose_dataset(path, _list_variables(path), options)
    if dataset.bytes_claimed > MOST_BYTES:
        raise InvalidLightField(
            f"{path}: {dataset.name} needs {dataset.bytes_claimed / (1 << 30):.1f} GiB at once. "
            "Save it with -v7.3, which is read piece by piece."
        )
    opened = loaded_once(lambda: _load_variable(path, dataset.name))
    grid = _array_grid(path, dataset, options, opened, reversed_=False)
    return replace(grid, may_be_linear=True, vignetted=_is_lytro(grid.shape))


def _array_grid(
    path: Path, dataset: Dataset, options: ReadOptions, opened: Open, reversed_: bool
) -> ViewGrid:
    axes = choose_axes(dataset.shape, f"{path}, {dataset.name}", options.axes, matlab=reversed_)
    shown = axes[::-1] if reversed_ else axes
    version = "7.3" if reversed_ else "5"
    reason = f"MATLAB {version} file with {dataset.name} ({shown})"
    grid = array_grid(opened, dataset.shape, axes, options, str(path), reason)
    return replace(grid, orientation="presumed" if shown == "uvhwc" else "unknown")


def _is_lytro(shape: tuple[int, int]) -> bool:
    """Lytro cameras give about 11 to 15 views per axis, of which the outer ones are dark."""
    return all(10 <= size <= 15 for size in shape)


def read_map(path: Path) -> Array:
    """Read the only map, or the one named disparity, of a MATLAB file, (h, w)."""
    if is_hdf5(path):
        with open_file(path) as file:
            name = _choose_map(path, list_datasets(file))
            return np.asarray(file[name][()]).T
    return _load_variable(path, _choose_map(path, _list_variables(path)))


def _choose_map(path: Path, datasets: list[Dataset]) -> str:
    maps = [d for d in datasets if d.is_numeric and len(d.shape) == 2 and min(d.shape) > 1]
    named = [d for d in maps if "disp" in d.name.lower()]
    if len(named or maps) != 1:
        raise UnreadableFile(
            f"{path}: holds {len(maps)} maps, expected one disparity map (height, width)."
        )
    return (named or maps)[0].name


def _list_variables(path: Path) -> list[Dataset]:
    """Names and shapes in an older file, without loading it."""
    scipy_io = _import_scipy(path)
    try:
        found = scipy_io.whosmat(path)
    except (*DAMAGED, scipy_io.matlab.MatReadError) as error:
        raise _damaged(path) from error
    return [
        Dataset(
            name,
            tuple(int(size) for size in shape),
            kind in SIZES,
            _product(shape) * SIZES.get(kind, 1),
            0,
        )
        for name, shape, kind in found
    ] + _list_struct(path, found)


SIZES = {
    "double": 8, "single": 4, "logical": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2,
    "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
}  # fmt: skip


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for size in shape:
        result *= max(0, int(size))
    return result


def _list_struct(path: Path, found: list[Any]) -> list[Dataset]:
    """matlab-tools' struct LF holds the array LF.LF; fields are known once it is loaded."""
    if not any(name == "LF" and kind == "struct" for name, _, kind in found):
        return []
    values = _load_variable(path, "LF/LF")
    return [Dataset("LF/LF", values.shape, values.dtype.kind in "biuf", values.nbytes, 0)]


def _load_variable(path: Path, name: str) -> Array:
    outer, _, inner = name.partition("/")
    scipy_io = _import_scipy(path)
    try:
        values = scipy_io.loadmat(path, variable_names=[outer])[outer]
        if inner:
            values = values[inner].item()
        return np.asarray(values)
    except (*DAMAGED, scipy_io.matlab.MatReadError) as error:
        raise _damaged(path) from error


def _import_scipy(path: Path) -> Any:
    try:
        import scipy.io
    except ImportError as error:
        raise MissingDependency(
            f"{path}: MATLAB files before version 7.3 need SciPy. "
            'Install it with: pip install "oaccdepth[mat]".'
        ) from error
    return scipy.io


def _damaged(path: Path) -> UnreadableFile:
    return UnreadableFile(f"{path}: damaged or not a MATLAB file. Copy it again.")
