"""HDF5 light fields: HCI's old lf.h5, python-tools' scene.h5, BasicLFSR's mosaics, ours, others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.lightfield import Array, Camera, FloatArray
from oaccdepth.options import Range, ReadOptions
from oaccdepth.readers.axes import array_grid, choose_axes
from oaccdepth.readers.grid import Arrangement, ViewGrid
from oaccdepth.readers.hdf5_file import (
    Dataset,
    check_storage,
    dataset_opener,
    is_hdf5,
    list_datasets,
    open_file,
)
from oaccdepth.readers.values import as_map

NAME = "hdf5"
EXTENSIONS: tuple[str, ...] = (".h5", ".hdf5")
SIGN = "HDF5 file with LF or any array of views (HCI lf.h5, scene.h5), or Hr_SAI_y (BasicLFSR)"
EXTRA = ""

PREFERRED = ("LF", "LF/LF", "lightField", "lightfield", "lf", "image", "views")
MOSAICS = ("Hr_SAI_y", "Lr_SAI_y")  # BasicLFSR; the larger one first
OUR_AXES = "uvhwc"
WRITTEN_BY = "written_by"  # attribute of the files that we write


def detect(path: Path) -> bool:
    """A file that ends or starts as HDF5 does, except MATLAB's."""
    if not path.is_file() or path.suffix.lower() == ".mat":
        return False
    return path.suffix.lower() in EXTENSIONS or is_hdf5(path)


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the array that holds the views, and what the file says about it."""
    with open_file(path) as file:
        datasets = list_datasets(file)
        names = {dataset.name for dataset in datasets}
        mosaic = next((name for name in MOSAICS if name in names), None)
        if mosaic is not None and options.axes is None:
            return _mosaic_grid(path, mosaic, file[mosaic].shape, options)
        dataset = choose_dataset(path, datasets, options)
        attributes = _numbers(file.attrs)
        is_ours = str(file.attrs.get(WRITTEN_BY, "")) == "oaccdepth"
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
        return _our_grid(path, grid, names, attributes)
    if "dH" in attributes:
        return replace(
            grid,
            reason=f"HDF5 with {dataset.name} and attribute dH (HCI, old benchmark)",
            arrangement=Arrangement(flip_v=True),  # its columns run from right to left
            suspect="v",
            orientation="presumed",
            ground_truth=_find_depth(path, names, attributes),
        )
    if "disp_lowres" in names:
        return replace(grid, orientation="presumed", ground_truth=_map_reader(path, "disp_lowres"))
    return grid


def choose_dataset(
    path: Path, datasets: list[Dataset], options: ReadOptions, is_reversed: bool = False
) -> Dataset:
    """Choose the array that holds the views: by its name, or the largest one of enough axes.

    `is_reversed`: a message shows the axes in MATLAB's order, the reverse of ours.
    """
    numeric = [dataset for dataset in datasets if dataset.is_numeric]
    fewest_axes = 3 if options.axes else 4
    arrays = [dataset for dataset in numeric if len(dataset.shape) >= fewest_axes]
    for name in PREFERRED:
        for dataset in arrays:
            if dataset.name == name:
                return dataset
    fives = [dataset for dataset in arrays if len(dataset.shape) == 5]
    if fives or arrays:
        return max(fives or arrays, key=lambda dataset: dataset.bytes_claimed)
    held = ", ".join(
        f"{dataset.name} "
        + (" x ".join(map(str, dataset.shape[:: -1 if is_reversed else 1])) or "scalar")
        for dataset in numeric[:3]
    )
    raise InvalidLightField(
        f"{path}: holds no light field ({held or 'no arrays of numbers'}). "
        "Expected an array of views, such as LF of 9 x 9 x 512 x 512 x 3."
    )


def _numbers(attributes: Any) -> dict[str, list[float]]:
    """Root attributes that are numbers; often arrays of one element."""
    result = {}
    for name in attributes:
        try:
            result[name] = np.asarray(attributes[name], dtype=np.float64).ravel().tolist()
        except (OSError, ValueError, TypeError):
            continue  # text, or of a type that numpy does not know
    return result


def _our_grid(
    path: Path, grid: ViewGrid, names: set[str], attributes: dict[str, list[float]]
) -> ViewGrid:
    camera, disparity_range = parse_extras(
        path, attributes.get("camera"), attributes.get("disparity_range")
    )
    masked = _with_validity(path, grid) if "valid" in names else grid
    return replace(
        masked,
        orientation="certain",
        camera=camera,
        disparity_range=disparity_range,
        ground_truth=_map_reader(path, "disp_lowres") if "disp_lowres" in names else None,
    )


def parse_extras(
    path: Path, camera: list[float] | None, disparity_range: list[float] | None
) -> tuple[Camera | None, Range | None]:
    """Camera and disparity range as our .h5 and .npz files hold them: lists of numbers."""
    if (camera is not None and len(camera) not in (4, 6)) or (
        disparity_range is not None and len(disparity_range) != 2
    ):
        raise UnreadableFile(f"{path}: camera or disparity range is damaged. Export it again.")
    return (
        Camera(*camera) if camera is not None else None,
        (disparity_range[0], disparity_range[1]) if disparity_range is not None else None,
    )


def _with_validity(path: Path, grid: ViewGrid) -> ViewGrid:
    """Add the stored validity (u, v) or (u, v, h, w) to each view as its alpha."""
    open_valid = dataset_opener(path, "valid")

    def load(u: int, v: int) -> Array | None:
        view = grid.load(u, v)
        with open_valid() as array:
            return None if view is None else add_alpha(view, np.asarray(array[u, v]))

    return replace(grid, load=load, pieces=None, sample=None, has_validity=True)


def add_alpha(view: Array, valid: Array) -> Array:
    """Append a validity, one value or (h, w), to a view (h, w, c) as alpha: 1 or 0."""
    alpha = np.empty((*view.shape[:2], 1), dtype=view.dtype)
    try:
        alpha[...] = valid[..., None] if valid.ndim else valid
    except ValueError as error:
        raise InvalidLightField(
            f"the mask has shape {valid.shape}, the views {view.shape[:2]}. Export them again."
        ) from error
    return np.concatenate([view, alpha], axis=2)


def _map_reader(path: Path, name: str) -> Callable[[], FloatArray]:
    def read() -> FloatArray:
        with open_file(path) as file:
            return as_map(file[name][()], path)

    return read


def _find_depth(
    path: Path, names: set[str], attributes: dict[str, list[float]]
) -> Callable[[], FloatArray] | None:
    """HCI's old files give depth: disparity = dH * focalLength / depth - shift."""
    name = next((name for name in ("GT_DEPTH", "Depth") if name in names), None)
    if name is None or not all(attributes.get(key) for key in ("dH", "focalLength")):
        return None
    shift = (attributes.get("shift") or [0.0])[0]
    scale = attributes["dH"][0] * attributes["focalLength"][0]

    def read() -> FloatArray:
        with open_file(path) as file:
            depth = as_map(_centre(file[name]), path).astype(np.float64)
            if "GT_DEPTH_MASK" in names:
                depth[as_map(_centre(file["GT_DEPTH_MASK"]), path) == 0] = np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(scale / depth - shift, dtype=np.float32)

    return read


def _centre(dataset: Any) -> Array:
    """Centre view of (v, h, y, x), or the only one of (y, x)."""
    if dataset.ndim == 4:
        return np.asarray(dataset[dataset.shape[0] // 2, dataset.shape[1] // 2])
    return np.asarray(dataset[()])


def _mosaic_grid(path: Path, name: str, shape: tuple[int, ...], options: ReadOptions) -> ViewGrid:
    """BasicLFSR: luminance, all views side by side, stored transposed."""
    named = re.search(r"(?<!\d)(\d{1,2})x(\d{1,2})(?![\dx])", "/".join(path.resolve().parts[-4:]))
    views = options.views or (named and (int(named[1]), int(named[2])))
    if views is None:
        raise InvalidLightField(
            f"{path}: {name} holds views side by side and does not say how many. Pass --views UxV."
        )
    rows, columns = views
    if len(shape) != 2 or shape[1] % rows or shape[0] % columns or 0 in shape:
        raise InvalidLightField(
            f"{path}: {name} of {' x '.join(map(str, shape[::-1]))} is no multiple of "
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
