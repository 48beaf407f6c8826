"""MATLAB files: LFToolbox's *__Decoded.mat, EPFL, INRIA, BasicLFSR, matlab-tools' LF.mat, others.

Version 7.3 is HDF5 with the axes reversed; older versions have a format of their own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from oaccdepth.errors import UnreadableFile
from oaccdepth.lightfield import Array
from oaccdepth.options import ReadOptions
from oaccdepth.readers import matlab5
from oaccdepth.readers.axes import array_grid, choose_axes, loaded_once
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
EXTRA = ""


def detect(path: Path) -> bool:
    """A file that ends as MATLAB's do."""
    return path.is_file() and path.suffix.lower() in EXTENSIONS


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the array that holds the views."""
    if is_hdf5(path):
        version = "7.3"
        with open_file(path) as file:
            dataset = choose_dataset(path, list_datasets(file), options, is_reversed=True)
        check_storage(path, dataset)
        opened = dataset_opener(path, dataset.name)
    else:
        version = "5"
        dataset = choose_dataset(path, matlab5.list_arrays(path), options, is_reversed=True)
        opened = loaded_once(lambda: matlab5.load_array(path, dataset.name))
    axes = choose_axes(dataset.shape, f"{path}, {dataset.name}", options.axes, matlab=True)
    shown = axes[::-1]
    reason = f"MATLAB {version} file with {dataset.name} ({shown})"
    grid = array_grid(opened, dataset.shape, axes, options, str(path), reason)
    return replace(
        grid,
        orientation="presumed" if shown == "uvhwc" else "unknown",
        may_be_linear=True,
        # Lytro cameras give about 11 to 15 views per axis, of which the outer ones are dark.
        vignetted=all(10 <= size <= 15 for size in grid.shape),
    )


def read_map(path: Path) -> Array:
    """Read the only map, or the one named disparity, of a MATLAB file, (h, w)."""
    if is_hdf5(path):
        with open_file(path) as file:
            name = _choose_map(path, list_datasets(file))
            return np.asarray(file[name][()]).T
    return matlab5.load_array(path, _choose_map(path, matlab5.list_arrays(path))).T


def _choose_map(path: Path, datasets: list[Dataset]) -> str:
    maps = [d for d in datasets if d.is_numeric and len(d.shape) == 2 and min(d.shape) > 1]
    named = [d for d in maps if "disp" in d.name.lower()]
    if len(named or maps) != 1:
        raise UnreadableFile(
            f"{path}: holds {len(maps)} maps, expected one disparity map (height, width)."
        )
    return (named or maps)[0].name
