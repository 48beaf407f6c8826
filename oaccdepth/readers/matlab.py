"""MATLAB files: LFToolbox's *__Decoded.mat, EPFL, INRIA, BasicLFSR, matlab-tools' LF.mat, others.

Version 7.3 is HDF5 with reversed axes; older versions have their own format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from oaccdepth.errors import UnreadableFile
from oaccdepth.files.regular import is_regular
from oaccdepth.lightfield import Array, FloatArray
from oaccdepth.options import ReadOptions
from oaccdepth.readers import matlab5
from oaccdepth.readers.axes import array_grid, choose_axes, loaded_once
from oaccdepth.readers.containers import Dataset, check_storage, choose_dataset
from oaccdepth.readers.grid import ViewGrid
from oaccdepth.readers.hdf5_file import dataset_opener, is_hdf5, list_datasets, open_file
from oaccdepth.readers.values import as_map

NAME = "matlab"
EXTENSIONS: tuple[str, ...] = (".mat",)
SIGN = "MATLAB file with an array of views: LFToolbox *__Decoded.mat, EPFL, INRIA, LF, lightField"
TRUTH = "disp_lowres"


def detect(path: Path) -> bool:
    """Accept a file with MATLAB's extension."""
    return is_regular(path) and path.suffix.lower() in EXTENSIONS


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the array that holds the views."""
    datasets = _list_datasets(path)
    dataset = choose_dataset(path, datasets, options, is_reversed=True)
    check_storage(path, dataset)
    if is_hdf5(path):
        version, opened = "7.3", dataset_opener(path, dataset.name)
    else:
        version, opened = "5", loaded_once(lambda: matlab5.load_array(path, dataset.name))
    axes = choose_axes(dataset.shape, f"{path}, {dataset.name}", options.axes, matlab=True)
    shown = axes[::-1]
    reason = f"MATLAB {version} file with {dataset.name} ({shown})"
    grid = array_grid(opened, dataset.shape, axes, options, str(path), reason)
    has_weight = "c" in axes and dataset.shape[axes.index("c")] == 4  # from LFToolbox
    return replace(
        grid,
        orientation="presumed" if shown == "uvhwc" else "unknown",
        may_be_linear=True,
        # Lytro cameras have about 9 to 15 views per axis, and the outer ones are dark.
        vignetted=all((7 if has_weight else 10) <= size <= 15 for size in grid.shape),
        ground_truth=_find_truth(path, dataset.name, datasets),
    )


def _list_datasets(path: Path) -> list[Dataset]:
    if not is_hdf5(path):
        return matlab5.list_arrays(path)
    with open_file(path) as file:
        return list_datasets(path, file)


def _find_truth(path: Path, views: str, datasets: list[Dataset]) -> Callable[[], FloatArray] | None:
    """Find matlab-tools' LF.disp_lowres beside LF.LF, or a variable named disp_lowres."""
    group = views.rpartition("/")[0]
    name = f"{group}/{TRUTH}" if group else TRUTH
    for dataset in datasets:
        if dataset.name == name:
            return lambda: as_map(_load(path, dataset).T, path)
    return None


def read_map(path: Path) -> Array:
    """Read a disparity map (h, w) from a MATLAB file: the one named "disp", or the only map."""
    return _load(path, _choose_map(path, _list_datasets(path))).T


def _load(path: Path, dataset: Dataset) -> Array:
    """Load a whole array, with its axes reversed."""
    check_storage(path, dataset)
    if not is_hdf5(path):
        return matlab5.load_array(path, dataset.name)
    with open_file(path) as file:
        return np.asarray(file[dataset.name][()])


def _choose_map(path: Path, datasets: list[Dataset]) -> Dataset:
    maps = [d for d in datasets if d.is_numeric and len(d.shape) == 2 and min(d.shape) > 1]
    named = [d for d in maps if "disp" in d.name.lower()]
    if len(named or maps) != 1:
        raise UnreadableFile(
            f"{path}: holds {len(maps)} maps, expected one disparity map (height, width)."
        )
    return (named or maps)[0]
