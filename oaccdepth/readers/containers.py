"""Shared by array files (NumPy, HDF5, MATLAB): finds the array of views and the data beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.files.fields import BadField, as_camera, as_range
from oaccdepth.files.limits import check_array
from oaccdepth.lightfield import Array, Camera
from oaccdepth.options import Range, ReadOptions
from oaccdepth.readers.grid import ViewGrid

PREFERRED = ("LF", "LF/LF", "lightField", "lightfield", "lf", "image", "views")
OUR_AXES = "uvhwc"  # in the files that we write


@dataclass(frozen=True)
class Dataset:
    """An array in a file."""

    name: str  # with its group, such as LF/LF
    shape: tuple[int, ...]
    is_numeric: bool
    bytes_claimed: int
    bytes_stored: int


def choose_dataset(
    path: Path, datasets: list[Dataset], options: ReadOptions, is_reversed: bool = False
) -> Dataset:
    """Choose the array that holds the views: by name, or the largest one with enough axes.

    `is_reversed`: error messages show the axes in MATLAB's order, the reverse of ours.
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


def check_storage(path: Path, dataset: Dataset) -> None:
    """Refuse an array that claims far more than the file holds, before reading any of it."""
    check_array(path, dataset.name, dataset.bytes_claimed, dataset.bytes_stored)


def parse_extras(
    path: Path, camera: Any | None, disparity_range: Any | None
) -> tuple[Camera | None, Range | None]:
    """Parse the camera (four or six numbers) and disparity range (two) of our own files."""
    try:
        return (
            None if camera is None else as_camera(camera),
            None if disparity_range is None else as_range(disparity_range),
        )
    except BadField as error:
        raise UnreadableFile(
            f"{path}: camera or disparity range is damaged ({error}). Export it again."
        ) from error


def bad_mask(path: Path, stored: tuple[int, ...], grid: tuple[int, ...]) -> InvalidLightField:
    """Say that a mask of this shape does not belong to the views."""
    shape = " x ".join(map(str, stored)) or "a single value"
    return InvalidLightField(
        f"{path}: its mask is {shape}, expected one value per view ({grid[0]} x {grid[1]}) "
        f"or per pixel of every view ({grid[0]} x {grid[1]} x height x width). Correct its mask, "
        "or export it without one."
    )


def with_validity(path: Path, grid: ViewGrid, valid_of: Callable[[int, int], Any]) -> ViewGrid:
    """Add a stored validity mask to each view as its alpha channel."""

    def load(u: int, v: int) -> Array | None:
        view = grid.load(u, v)
        if view is None:
            return None
        valid = np.asarray(valid_of(u, v))
        with_alpha = _add_alpha(view, valid)
        if with_alpha is None:
            raise bad_mask(path, (*grid.shape, *valid.shape), grid.shape)
        return with_alpha

    return replace(grid, load=load, pieces=None, sample=None, has_validity=True)


def _add_alpha(view: Array, valid: Array) -> Array | None:
    """Append a mask, one value or (h, w), to a view (h, w, c) as alpha, 1 or 0; None if unfit."""
    alpha = np.empty((*view.shape[:2], 1), dtype=view.dtype)
    try:
        seen = np.greater(valid, 0)  # not cast: a number may be too large for the type of the views
        alpha[...] = seen[..., None] if valid.ndim else seen
    except (ValueError, TypeError):
        return None
    return np.concatenate([view, alpha], axis=2)
