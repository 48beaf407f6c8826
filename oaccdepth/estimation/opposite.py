"""A map from views one step away -> the same, halfway to what opposite views say of each other.

In a 3x3 array points move by less than a pixel, and the networks compare the reference view with
views between whose pixels they interpolate. That smooths one side of the comparison only, so some
fractions of a pixel seem to fit better than others. Opposite views are moved by equal amounts, so
they are smoothed alike: they err in other ways, and the mean of both errs less.
"""

from __future__ import annotations

import cv2
import numpy as np

from oaccdepth.lightfield import FloatArray, LightField, as_float

FARTHEST = 1.5  # steps: farther views show fractions of a pixel well enough
WINDOW = 9  # px
LEVEL = 0.25  # px: more within a window is an edge, where one of the views may be hidden
LEAST_SURE = 0.3  # confidence of a pixel that is corrected
USUAL = 0.1  # px: twice as large a difference is something else
SHARE = 0.5
FLOOR = 1e-5  # mean of the squared slopes [1/px] below which they say nothing


def correct(light_field: LightField, disparity: FloatArray, confidence: FloatArray) -> FloatArray:
    """Correct a map (h, w) [px] of the reference view; nothing changes if the array is larger."""
    pairs = _pairs(light_field)
    if not pairs:
        return disparity
    slopes = np.zeros(disparity.shape, np.float32)
    products = np.zeros(disparity.shape, np.float32)
    for views, (down, right) in pairs:
        near, far = (
            _move(view, -sign * down * disparity, -sign * right * disparity)
            for view, sign in zip(views, (1, -1), strict=True)
        )
        slope = -_slope(near + far, down, right)  # of near - far, by disparity
        slopes += (slope * slope).sum(axis=-1)
        products += (slope * (far - near)).sum(axis=-1)
    change = _mean(products) / (_mean(slopes) + FLOOR)
    square = np.ones((WINDOW, WINDOW), np.uint8)
    is_flat = cv2.dilate(disparity, square) - cv2.erode(disparity, square) < LEVEL
    inside = _mean((is_flat & (confidence > LEAST_SURE)).astype(np.float32))
    share = SHARE * np.clip(2 - np.abs(change) / USUAL, 0, 1) * np.maximum(2 * inside - 1, 0)
    return np.asarray(disparity + share * change, np.float32)


def _pairs(light_field: LightField) -> list[tuple[list[FloatArray], tuple[float, float]]]:
    """Opposite neighbours of the reference view, and the place of the first [steps].

    None of them if there are farther views, or if pixels are missing.
    """
    (row, column), (rows, columns) = light_field.reference_view, light_field.grid
    places = light_field.camera_places - light_field.camera_places[row, column]
    valid = light_field.valid
    if np.abs(places).max() > FARTHEST or (valid is not None and valid.ndim == 4):
        return []
    found = []
    for u, v in ((0, 1), (1, 0)):
        ends = [(row + u, column + v), (row - u, column - v)]
        is_inside = all(0 <= y < rows and 0 <= x < columns for y, x in ends)
        if not is_inside or set(ends) & set(light_field.missing_views):
            continue
        first, second = (places[end] for end in ends)
        if np.abs(first + second).max() < 0.05:  # they are opposite
            views = [as_float(light_field.views[end]) for end in ends]  # (h, w, c)
            found.append((views, (float(first[0]), float(first[1]))))
    return found


def _move(view: FloatArray, down: FloatArray, right: FloatArray) -> FloatArray:
    """The view (h, w, c), sampled at pixels that are moved by (h, w) [px]."""
    height, width = down.shape
    y, x = np.mgrid[:height, :width].astype(np.float32)
    border = cv2.BORDER_REPLICATE
    moved = cv2.remap(view, x + right, y + down, cv2.INTER_LINEAR, borderMode=border)
    return np.asarray(moved, np.float32).reshape(view.shape)


def _slope(view: FloatArray, down: float, right: float) -> FloatArray:
    """Slope (h, w, c) [1/px] along a direction."""
    y, x = (cv2.Sobel(view, cv2.CV_32F, dx, dy, ksize=3) / 8 for dx, dy in ((0, 1), (1, 0)))
    return np.asarray(y * down + x * right, np.float32).reshape(view.shape)


def _mean(values: FloatArray) -> FloatArray:
    return np.asarray(cv2.blur(values, (WINDOW, WINDOW)), np.float32)
