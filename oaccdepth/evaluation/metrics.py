"""Two disparity maps and a mask -> one number: the scores of the HCI benchmark. No files.

All maps are (h, w) float32 [px]. A prediction that is not finite has an infinite error: it counts
as bad, comes last in the quantile and makes the mean squared error infinite. (The benchmark's own
toolkit counts it as good.) So no score can be improved by leaving pixels out. If there is
nothing to score, the result is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oaccdepth.lightfield import BoolArray, Camera, FloatArray

BORDER = 15  # px left out on each side, as the benchmark does
BAD = 0.07  # px: the usual threshold of a bad pixel


def scored_pixels(truth: FloatArray, border: int = BORDER) -> BoolArray:
    """Where a prediction is scored: inside the border, where the ground truth is finite."""
    inside = np.zeros(truth.shape, dtype=np.bool_)
    h, w = truth.shape
    inside[border : h - border, border : w - border] = True
    return inside & np.isfinite(truth)


def signed_error(prediction: FloatArray, truth: FloatArray) -> FloatArray:
    """Prediction minus truth [px]; infinite where the prediction is not finite."""
    prediction = prediction.astype(np.float32, copy=False)
    present = np.isfinite(prediction)
    error = np.full(truth.shape, np.inf, dtype=np.float32)
    np.subtract(prediction, truth, out=error, where=present)
    return error


def mse_100(prediction: FloatArray, truth: FloatArray, mask: BoolArray) -> float:
    """Mean squared error, times 100."""
    error = signed_error(prediction, truth)[mask]
    return 100 * _mean(np.square(error))


def bad_pix(
    prediction: FloatArray, truth: FloatArray, mask: BoolArray, threshold: float = BAD
) -> float:
    """Percentage of pixels whose error is strictly greater than the threshold [px]."""
    error = np.abs(signed_error(prediction, truth)[mask])
    return 100 * _mean(error > np.float32(threshold))


def main_scores(prediction: FloatArray, truth: FloatArray) -> dict[str, float]:
    """The two scores that methods are compared by, under the toolkit's names, inside the border."""
    mask = scored_pixels(truth)
    return {
        "mse_100": mse_100(prediction, truth, mask),
        "badpix_0070": bad_pix(prediction, truth, mask),
    }


def q25_100(prediction: FloatArray, truth: FloatArray, mask: BoolArray) -> float:
    """Error that the best quarter of the pixels stays below [px], times 100."""
    error = np.abs(signed_error(prediction, truth)[mask])
    if error.size == 0:
        return float("nan")
    position = int(0.25 * error.size)
    return 100 * float(np.partition(error, position)[position])


def fattening(
    prediction: FloatArray, truth: FloatArray, mask: BoolArray, threshold: float = 0.15
) -> float:
    """Percentage of pixels that are too near by more than the threshold [px], or not finite."""
    return 100 * _mean(signed_error(prediction, truth)[mask] > np.float32(threshold))


def thinning(
    prediction: FloatArray, truth: FloatArray, mask: BoolArray, threshold: float = 0.15
) -> float:
    """Percentage of pixels that are too far by more than the threshold [px], or not finite."""
    error = signed_error(prediction, truth)[mask]
    return 100 * _mean((error < -np.float32(threshold)) | np.isposinf(error))


def fattening_between(
    prediction: FloatArray, truth: FloatArray, mask: BoolArray, foreground: FloatArray
) -> float:
    """Percentage of background pixels that are nearer to the foreground's disparity, or unknown."""
    halfway = (foreground.astype(np.float64) + truth) / 2
    is_fat = (prediction > halfway) | ~np.isfinite(prediction)
    return 100 * _mean(is_fat[mask])


def thinning_between(
    prediction: FloatArray, truth: FloatArray, mask: BoolArray, background: FloatArray
) -> float:
    """Percentage of foreground pixels that are nearer to the background's disparity, or unknown."""
    halfway = (background.astype(np.float64) + truth) / 2
    is_thin = (prediction < halfway) | ~np.isfinite(prediction)
    return 100 * _mean(is_thin[mask])


def missed(
    prediction: FloatArray, truth: FloatArray, labels: NDArray[np.int64], threshold: float = 0.4
) -> float:
    """Percentage of objects of which half the pixels or more are off by more than the threshold.

    `labels` (h, w) has a number for each object, and 0 where there is none.
    """
    is_bad = np.abs(signed_error(prediction, truth)) > np.float32(threshold)
    sizes = np.bincount(labels.ravel())[1:]
    bad = np.bincount(labels.ravel(), weights=is_bad.ravel())[1:]
    there = sizes > 0
    return 100 * _mean(2 * bad[there] >= sizes[there])


def median_angle(
    prediction: FloatArray, truth: FloatArray, mask: BoolArray, camera: Camera
) -> float:
    """Median angle between the surface normals of prediction and truth [degrees].

    A pixel without a finite prediction around it counts as 180 degrees. The place of a pixel in
    space is that of the benchmark's toolkit: from the upper left corner, over half the sensor.
    """
    normals, true_normals = (_normals(values, camera) for values in (prediction, truth))
    with np.errstate(invalid="ignore"):
        cosine = np.clip((normals * true_normals).sum(axis=2), -1, 1)
    angle = np.degrees(np.arccos(cosine))
    angle[~np.isfinite(angle)] = 180
    angle = angle[mask & np.isfinite(true_normals).all(axis=2)]
    return float(np.median(angle)) if angle.size else float("nan")


def _normals(disparity: FloatArray, camera: Camera) -> NDArray[np.float64]:
    """Unit normals of the surface, (h, w, 3); NaN where it has none."""
    height, width = disparity.shape
    depth = camera.depth_mm(disparity, max(height, width)).astype(np.float64)
    reach = 0.5 * camera.sensor_mm / camera.focal_mm
    x = np.linspace(0, reach, width)[None, :]
    y = np.linspace(0, reach, height)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):  # where a depth is not finite; the edge
        places = (x * depth, y * depth, depth)
        down, across = (np.stack([_scharr(p, axis) for p in places], 2) for axis in (0, 1))
        normals = np.cross(down, across)
        unit: NDArray[np.float64] = normals / np.linalg.norm(normals, axis=2, keepdims=True)
    return unit


def bumpiness_100(
    prediction: FloatArray, truth: FloatArray, mask: BoolArray, largest: float = 0.05
) -> float:
    """Mean norm of the error's second derivatives, times 100; each pixel counts up to `largest`.

    The derivatives are Scharr's filters applied twice; pixels at the very edge have none and count
    as smooth, as in the benchmark's toolkit.
    """
    error = signed_error(prediction, truth).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinite minus infinite, beside a missing prediction
        down, across = _scharr(error, 0), _scharr(error, 1)
        second = (_scharr(first, axis) for first in (down, across) for axis in (0, 1))
        norm = np.sqrt(sum(np.square(values) for values in second))
    norm[~np.isfinite(norm)] = largest
    return 100 * _mean(np.minimum(norm, largest)[mask])


def _scharr(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Difference over two pixels along the axis, smoothed by 3, 10, 3 across it; 0 at the edge."""
    along = np.moveaxis(values, axis, 0)
    difference = along[2:] - along[:-2]
    smooth = 3 * difference[:, :-2] + 10 * difference[:, 1:-1] + 3 * difference[:, 2:]
    result = np.zeros_like(values)
    np.moveaxis(result, axis, 0)[1:-1, 1:-1] = smooth / 16
    return result


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
