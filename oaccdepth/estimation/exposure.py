"""Views of different brightness -> views as bright as the centre view. NumPy and OpenCV only.

Real cameras expose their views differently: by 3 % from the first to the last row of a Lytro Illum
picture. A network that compares brightness takes that for occlusion. The gain of a view is measured
on pixels that were matched, so that a view which shows brighter things is not made darker.
"""

from __future__ import annotations

import math
from dataclasses import replace

import cv2
import numpy as np

from oaccdepth.estimation.disparity_range import coarse_sweep
from oaccdepth.lightfield import LARGEST_VALUE, Array, FloatArray, LightField, as_grey

SIDE = 160  # px on the longer side, at which brightness is compared
WINDOW = 5  # px, over which it is averaged
DARKEST, BRIGHTEST = 0.02, 0.95  # pixels that are neither black nor saturated
FEWEST = 100  # pixels to compare
NOTICEABLE = 0.006  # gains that all differ by less from 1 are left alone
SURE = 5.0  # times its own error: noise makes the largest of eighty gains nearly four times off
LARGEST_GAIN = 2.0  # a view that differs more is not just exposed differently


def normalise_exposure(
    light_field: LightField, around: tuple[float, float] | None = None
) -> tuple[LightField, str]:
    """Make all views as bright as the centre view; and a note, empty if nothing was done.

    Disparities lie within `around`, if that is known.
    """
    gains = measure_gains(light_field, around)
    off = float(np.abs(gains - 1).max())
    if off < NOTICEABLE:
        return light_field, ""
    views = light_field.views.copy()
    for u, v in np.ndindex(*light_field.grid):
        if gains[u, v] != 1:
            views[u, v] = _brightened(views[u, v], float(gains[u, v]))
    note = f"Views differ in brightness by up to {100 * off:.1f} %: corrected for the estimate."
    return replace(light_field, views=views), note


def measure_gains(light_field: LightField, around: tuple[float, float] | None = None) -> FloatArray:
    """Factor (u, v) that makes each view as bright as the centre view; 1 where it is not known."""
    rows, columns = light_field.grid
    gains = np.ones((rows, columns), np.float32)
    disparity, sure = coarse_sweep(light_field, around)
    height, width = light_field.resolution
    factor = max(1.0, max(height, width) / SIDE)
    size = max(WINDOW, round(width / factor)), max(WINDOW, round(height / factor))
    centre = _small(light_field.views[rows // 2, columns // 2], size)
    usable = cv2.resize(sure.astype(np.float32), size, interpolation=cv2.INTER_NEAREST) > 0
    usable &= (centre > DARKEST) & (centre < BRIGHTEST)
    if np.count_nonzero(usable) < FEWEST:
        return gains
    shift = cv2.resize(disparity, size, interpolation=cv2.INTER_NEAREST) / np.float32(factor)
    y, x = np.mgrid[: size[1], : size[0]].astype(np.float32)
    missing = set(light_field.missing_views)
    for u, v in np.ndindex(rows, columns):
        place = light_field.camera_places[u, v]
        if (u, v) in missing or not place.any():
            continue
        view = _small(light_field.views[u, v], size)
        seen = cv2.remap(view, x - shift * place[1], y - shift * place[0], cv2.INTER_LINEAR)
        ratio = seen[usable] / centre[usable]  # 0 outside the frame
        ratio = ratio[(ratio > 1 / LARGEST_GAIN) & (ratio < LARGEST_GAIN)]
        if len(ratio) >= FEWEST:
            gains[u, v] = gain_of(ratio)
    return gains


def gain_of(ratio: FloatArray) -> float:
    """What the ratios of brightness say together; 1 if noise may have made it.

    The median of n values has an error of 1.25 times their spread over the root of n; values of one
    window of smoothing count as one.
    """
    middle = float(np.median(ratio))
    spread = 1.48 * float(np.median(np.abs(ratio - middle)))
    error = 1.25 * spread * WINDOW / math.sqrt(len(ratio))
    return 1 / middle if abs(middle - 1) > SURE * error else 1.0


def _small(view: Array, size: tuple[int, int]) -> FloatArray:
    """Grey, reduced and smoothed."""
    small = cv2.resize(np.ascontiguousarray(view), size, interpolation=cv2.INTER_AREA)
    grey = as_grey(small.reshape(size[1], size[0], view.shape[-1]))
    return np.asarray(cv2.blur(grey, (WINDOW, WINDOW)), dtype=np.float32)


def _brightened(view: Array, gain: float) -> Array:
    """The values times the gain, of the same type; what is too bright stays at the largest."""
    largest = LARGEST_VALUE[view.dtype]
    if view.dtype == np.float32:
        return np.clip(np.multiply(view, np.float32(gain)), 0, 1)
    table = np.minimum(np.rint(np.arange(largest + 1) * gain), largest)
    return np.asarray(table.astype(view.dtype)[view])
