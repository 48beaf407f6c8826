"""Two disparity maps and a mask -> one number: the scores of the HCI benchmark. No files.

All maps are (h, w) float32 [px]. A prediction that is not finite has an infinite error: it counts
as bad, comes last in the quantile and makes the mean squared error infinite. (The benchmark's own
toolkit counts it as good.) So no score can be improved by leaving pixels out. Nothing to score
gives NaN.
"""

from __future__ import annotations

import numpy as np

from oaccdepth.lightfield import BoolArray, FloatArray

BORDER = 15  # px left out on each side, as the benchmark does


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


def bad_pix(prediction: FloatArray, truth: FloatArray, mask: BoolArray, threshold: float) -> float:
    """Percentage of pixels whose error is strictly greater than the threshold [px]."""
    error = np.abs(signed_error(prediction, truth)[mask])
    return 100 * _mean(error > np.float32(threshold))


def q25_100(prediction: FloatArray, truth: FloatArray, mask: BoolArray) -> float:
    """Error that the best quarter of the pixels stays below [px], times 100."""
    error = np.abs(signed_error(prediction, truth)[mask])
    if error.size == 0:
        return float("nan")
    position = int(0.25 * error.size)
    return 100 * float(np.partition(error, position)[position])


def _mean(values: FloatArray | BoolArray) -> float:
    return float(values.mean()) if values.size else float("nan")
