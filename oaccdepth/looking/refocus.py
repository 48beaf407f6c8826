"""Refocused photographs by shift-and-add, and a picture that is sharp everywhere.

Arrays in, arrays out. A point of disparity d at (y, x) of the centre view lies at
(y - d*(u-uc), x - d*(v-vc)) of view (u, v); averaging the views there makes it sharp and blurs the
rest. Values are averaged as stored (not in linear light) and interpolated linearly between pixels;
samples outside a picture and missing views are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import FloatArray, LightField, as_float

DoubleArray = NDArray[np.float64]


def refocus(light_field: LightField, disparity: float, aperture: float | None = None) -> FloatArray:
    """The centre view through a large lens focused on `disparity` [px], (h, w, c) in [0, 1].

    `aperture` is the radius of the lens in view steps: views farther from the centre are ignored.
    None: all views. 0: the centre view alone.
    """
    if not np.isfinite(disparity):
        raise InvalidOption(f"--disparity {disparity}: expected a finite number of pixels.")
    if aperture is not None and not aperture >= 0:
        raise InvalidOption(f"--aperture {aperture}: expected a radius of 0 or more view steps.")
    height, width = light_field.resolution
    total = np.zeros((height, width, light_field.views.shape[4]), dtype=np.float32)
    weight = np.zeros((height, width, 1), dtype=np.float32)
    for u, v, row, column in _views(light_field):
        if aperture is not None and np.hypot(row, column) > aperture + 1e-6:
            continue
        picture, seen = _picture(light_field, u, v)
        _add_shifted(total, picture, -disparity * row, -disparity * column)
        _add_shifted(weight, seen, -disparity * row, -disparity * column)
    return _mean(total, weight, light_field)


def all_in_focus(
    light_field: LightField, disparity: FloatArray, masks: FloatArray | None = None
) -> FloatArray:
    """Every pixel averaged over the views at its own disparity, (h, w, c) in [0, 1].

    Sharp everywhere and less noisy than one view. `masks`, (u, v, h, w) in [0, 1], excludes views
    where something hides the point; without masks, a little of the occluder bleeds into edges.
    """
    resolution = light_field.resolution
    if disparity.shape != resolution:
        raise InvalidOption(
            f"the disparity map has {disparity.shape[1]}x{disparity.shape[0]} pixels, "
            f"the views {resolution[1]}x{resolution[0]}: expected the same size."
        )
    total = np.zeros((*resolution, light_field.views.shape[4]), dtype=np.float32)
    weight = np.zeros((*resolution, 1), dtype=np.float32)
    y, x = np.mgrid[: resolution[0], : resolution[1]].astype(np.float64)
    shift = np.where(np.isfinite(disparity), disparity, 0).astype(np.float64)
    for u, v, row, column in _views(light_field):
        picture, seen = _picture(light_field, u, v)
        sampled, inside = sample(picture, y - shift * row, x - shift * column)
        counted, _ = sample(seen, y - shift * row, x - shift * column)
        share = inside[..., None] * (masks[u, v][..., None] if masks is not None else 1.0)
        total += sampled * share
        weight += counted * share
    return _mean(total, weight, light_field)


def sample(picture: FloatArray, y: DoubleArray, x: DoubleArray) -> tuple[FloatArray, FloatArray]:
    """Values of (h, w, c) at fractional positions, interpolated linearly, and which are inside.

    Returns (values, inside): `inside` is 1 within the outermost pixel centres and 0 elsewhere.
    """
    height, width = picture.shape[:2]
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    y = np.clip(y, 0, height - 1)
    x = np.clip(x, 0, width - 1)
    top = np.minimum(y.astype(np.intp), max(height - 2, 0))
    left = np.minimum(x.astype(np.intp), max(width - 2, 0))
    below, beside = min(1, height - 1) * width, min(1, width - 1)
    fraction_y = (y - top)[..., None].astype(np.float32)
    fraction_x = (x - left)[..., None].astype(np.float32)
    flat = picture.reshape(height * width, -1)
    corner = top * width + left
    upper = flat[corner] * (1 - fraction_x) + flat[corner + beside] * fraction_x
    lower = flat[corner + below] * (1 - fraction_x) + flat[corner + below + beside] * fraction_x
    values = upper * (1 - fraction_y) + lower * fraction_y
    return values.astype(np.float32), inside.astype(np.float32)


def _views(light_field: LightField) -> Iterator[tuple[int, int, float, float]]:
    """(u, v, steps down, steps right of the centre) of every view that has a picture."""
    missing = set(light_field.missing_views)
    places = light_field.camera_places
    for u, v in np.ndindex(*light_field.grid):
        if (u, v) not in missing:
            yield u, v, float(places[u, v, 0]), float(places[u, v, 1])


def _picture(light_field: LightField, u: int, v: int) -> tuple[FloatArray, FloatArray]:
    """A view multiplied by its validity, and the validity, (h, w, 1)."""
    picture = as_float(light_field.views[u, v])
    valid = light_field.valid
    if valid is None or valid.ndim == 2:
        return picture, np.ones((*picture.shape[:2], 1), dtype=np.float32)
    seen = valid[u, v][..., None].astype(np.float32)
    return picture * seen, seen


def _add_shifted(total: FloatArray, picture: FloatArray, down: float, right: float) -> None:
    """Add the picture sampled at (y + down, x + right) to the total, where that lies inside.

    All pixels shift alike, so slices are enough where `sample` needs a gather.
    """
    rows, part = _blended(picture, down)
    columns, part = _blended(part.swapaxes(0, 1), right)
    total[rows, columns] += part.swapaxes(0, 1)


def _blended(picture: FloatArray, distance: float) -> tuple[slice, FloatArray]:
    """Rows at position + distance, and the positions that have one."""
    size = len(picture)
    whole = math.floor(distance)
    fraction = np.float32(distance - whole)
    first = min(max(0, -whole), size)
    last = max(first, min(size, size - whole - int(fraction > 0)))  # exclusive
    upper = picture[first + whole : last + whole]
    if fraction == 0 or last == first:
        return slice(first, last), upper
    lower = picture[first + whole + 1 : last + whole + 1]
    return slice(first, last), upper + (lower - upper) * fraction


def _mean(total: FloatArray, weight: FloatArray, light_field: LightField) -> FloatArray:
    """The weighted mean; the centre view where the total weight is 0."""
    counted = weight > 1e-6
    mean = np.divide(total, weight, out=np.zeros_like(total), where=counted)
    return np.where(counted, mean, light_field.centre).astype(np.float32)
