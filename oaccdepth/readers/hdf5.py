"""HDF5 light fields: HCI's old lf.h5, python-tools' scene.h5, BasicLFSR's mosaics, ours, others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.files.fields import BadField, as_number
from oaccdepth.files.limits import claimed_bytes
from oaccdepth.files.regular import is_regular
from oaccdepth.lightfield import Array, BoolArray, FloatArray
from oaccdepth.options import ReadOptions
from oaccdepth.readers.axes import array_grid, choose_axes
from oaccdepth.readers.containers import (
    OUR_AXES,
    Dataset,
    check_storage,
    choose_dataset,
    parse_extras,
    with_validity,
)
from oaccdepth.readers.grid import Arrangement, ViewGrid
from oaccdepth.readers.hdf5_file import dataset_opener, is_hdf5, list_datasets, open_file
from oaccdepth.readers.values import as_map

NAME = "hdf5"
EXTENSIONS: tuple[str, ...] = (".h5", ".hdf5")
SIGN = "HDF5 file with LF or any array of views (HCI lf.h5, scene.h5), or Hr_SAI_y (BasicLFSR)"

MOSAICS = ("Hr_SAI_y", "Lr_SAI_y")  # BasicLFSR; the larger one first
WRITTEN_BY = "written_by"  # attribute in the files that we write
TRUTH, DEPTH_MASK = "disp_lowres", "GT_DEPTH_MASK"
ATTRIBUTES = ("camera", "disparity_range", "dH", "focalLength", "shift")  # ours and HCI's
MOST_NUMBERS = 16  # in one attribute


def detect(path: Path) -> bool:
    """Accept a file with the extension or first bytes of HDF5, except MATLAB files."""
    if not is_regular(path) or path.suffix.lower() == ".mat":
        return False
    return path.suffix.lower() in EXTENSIONS or is_hdf5(path)


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the array that holds the views, and read its metadata."""
    with open_file(path) as file:
        datasets = {dataset.name: dataset for dataset in list_datasets(path, file)}
        mosaic = next((name for name in MOSAICS if name in datasets), None)
        if mosaic is not None and options.axes is None:
            check_storage(path, datasets[mosaic])
            return _mosaic_grid(path, mosaic, datasets[mosaic].shape, options)
        dataset = choose_dataset(path, list(datasets.values()), options)
        attributes = _read_attributes(file, ATTRIBUTES)
        is_ours = _is_ours(file)
    check_storage(path, dataset)
    asked = options.axes or (OUR_AXES if is_ours else None)
    axes = choose_axes(dataset.shape, f"{path}, {dataset.name}", asked)
    grid = array_grid(
        dataset_opener(path, dataset.name),
        dataset.shape,
        axes,
        options,
        str(path),
        f"HDF5 with {dataset.name} ({axes})",
    )
    if is_ours:
        return _our_grid(path, grid, datasets, attributes)
    if "dH" in attributes:
        return replace(
            grid,
            reason=f"HDF5 with {dataset.name} and attribute dH (HCI, old benchmark)",
            arrangement=Arrangement(flip_v=True),  # its columns run from right to left
            suspect="v",
            orientation="presumed",
            ground_truth=_find_depth(path, datasets, attributes),
        )
    if TRUTH in datasets:
        truth = _map_reader(path, datasets[TRUTH])
        return replace(grid, orientation="presumed", ground_truth=truth)
    return grid


def _read_attributes(file: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Read the root attributes with these names; each should be a number or a small array."""
    found = {}
    for name in names:
        if name in file.attrs:
            stored = file.attrs.get_id(name)
            if stored.dtype.kind in "iuf" and claimed_bytes(stored.shape, 1) <= MOST_NUMBERS:
                found[name] = np.asarray(file.attrs[name])
            else:
                found[name] = np.array("not numbers")
    return found


def _is_ours(file: Any) -> bool:
    """Whether we wrote the file, according to its attribute."""
    if WRITTEN_BY not in file.attrs or file.attrs.get_id(WRITTEN_BY).shape != ():
        return False
    if file.attrs.get_id(WRITTEN_BY).dtype.kind == "O":
        return True  # by version 0.1.0; HDF5 may never finish reading a text of any length
    return bytes(np.asarray(file.attrs[WRITTEN_BY])) == b"oaccdepth"


def _our_grid(
    path: Path, grid: ViewGrid, datasets: dict[str, Dataset], attributes: dict[str, Any]
) -> ViewGrid:
    camera, disparity_range = parse_extras(
        path, attributes.get("camera"), attributes.get("disparity_range")
    )
    if "valid" in datasets:
        check_storage(path, datasets["valid"])
        grid = with_validity(path, grid, _validity_reader(path))
    return replace(
        grid,
        orientation="certain",
        camera=camera,
        disparity_range=disparity_range,
        ground_truth=_map_reader(path, datasets[TRUTH]) if TRUTH in datasets else None,
    )


def _validity_reader(path: Path) -> Callable[[int, int], Any]:
    def read(u: int, v: int) -> Any:
        with open_file(path) as file:
            return file["valid"][u, v]

    return read


def _map_reader(path: Path, dataset: Dataset) -> Callable[[], FloatArray]:
    def read() -> FloatArray:
        check_storage(path, dataset)
        with open_file(path) as file:
            return as_map(file[dataset.name][()], path)

    return read


def _find_depth(
    path: Path, datasets: dict[str, Dataset], attributes: dict[str, Any]
) -> Callable[[], FloatArray] | None:
    """Convert depth of HCI's old files: disparity = dH * focalLength / depth - shift."""
    name = next((name for name in ("GT_DEPTH", "Depth") if name in datasets), None)
    if name is None or "focalLength" not in attributes:
        return None
    try:
        spacing, focal = (as_number(attributes[key].ravel()[:1]) for key in ("dH", "focalLength"))
        shift = as_number(attributes["shift"].ravel()[:1]) if "shift" in attributes else 0.0
    except BadField as error:
        raise UnreadableFile(
            f"{path}: dH, focalLength or shift is damaged ({error}). Copy it again."
        ) from error

    def read() -> FloatArray:
        with open_file(path) as file:
            check_storage(path, datasets[name])
            depth = as_map(_centre(file[name]), path).astype(np.float64)
            if DEPTH_MASK in datasets:
                check_storage(path, datasets[DEPTH_MASK])
                depth[_fitting_mask(as_map(_centre(file[DEPTH_MASK]), path), depth, path)] = np.nan
        with np.errstate(all="ignore"):
            return np.asarray(spacing * focal / depth - shift, dtype=np.float32)

    return read


def _fitting_mask(mask: FloatArray, depth: Array, path: Path) -> BoolArray:
    """Return where depth is missing; the mask must have the shape of the depth."""
    if mask.shape != depth.shape:
        raise UnreadableFile(
            f"{path}: {DEPTH_MASK} is {mask.shape}, the depth {depth.shape}. Copy it again."
        )
    return np.asarray(mask == 0, dtype=np.bool_)


def _centre(dataset: Any) -> Array:
    """Return the centre view of (v, h, y, x), or (y, x) as it is."""
    if dataset.ndim == 4:
        return np.asarray(dataset[dataset.shape[0] // 2, dataset.shape[1] // 2])
    return np.asarray(dataset[()])


def _mosaic_grid(path: Path, name: str, shape: tuple[int, ...], options: ReadOptions) -> ViewGrid:
    """Make the grid of a BasicLFSR file: luminance, all views side by side, transposed."""
    named = re.search(r"(?<!\d)(\d{1,2})x(\d{1,2})(?![\dx])", "/".join(path.resolve().parts[-4:]))
    views = options.views or (named and (int(named[1]), int(named[2])))
    if views is None:
        raise InvalidLightField(
            f"{path}: {name} has views side by side, but does not say how many. Pass --views UxV."
        )
    rows, columns = views
    if len(shape) != 2 or shape[1] % rows or shape[0] % columns or 0 in shape:
        raise InvalidLightField(
            f"{path}: {name} of {' x '.join(map(str, shape[::-1]))} is not a multiple of "
            f"{rows} x {columns} views. Pass --views UxV."
        )
    height, width = shape[1] // rows, shape[0] // columns
    open_mosaic = dataset_opener(path, name)

    def load(u: int, v: int) -> Array:
        with open_mosaic() as array:
            part = array[v * width : (v + 1) * width, u * height : (u + 1) * height]
        return np.asarray(part).T

    return ViewGrid(
        views,
        load,
        f"HDF5 with {name} (BasicLFSR)",
        names_give_grid=options.views is None,
        orientation="presumed",
    )
