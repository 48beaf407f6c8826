"""A disparity map and its ground truth -> pictures of where it is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oaccdepth.evaluation import metrics
from oaccdepth.files.atomic import staged
from oaccdepth.lightfield import FloatArray
from oaccdepth.writers.pictures import NOT_KNOWN, Picture, colour_difference, write_png

LARGEST = 0.2  # px: error of the full colour, as in the benchmark's own pictures

BAD = (178, 24, 43)  # red that colour-blind readers can tell from grey
GOOD = (229, 229, 229)


def write_error_maps(folder: Path, prediction: FloatArray, truth: FloatArray) -> list[Path]:
    """Write `error.png` (red: too near, blue: too far) and `badpix.png` (red: bad)."""
    pictures = {
        "error.png": draw_error(prediction, truth),
        "badpix.png": draw_bad_pixels(prediction, truth),
    }
    with staged(folder, last="badpix.png") as stage:
        for name, picture in pictures.items():
            write_png(stage / name, picture)
    return [folder / name for name in pictures]


def draw_error(prediction: FloatArray, truth: FloatArray) -> Picture:
    """Signed error from white (none) to red (0.2 px too near) or blue (0.2 px too far).

    (h, w, 3) RGB; grey where the ground truth is not known, black where the prediction is not.
    """
    picture = colour_difference(metrics.signed_error(prediction, truth), LARGEST)
    picture[np.isfinite(truth) & ~np.isfinite(prediction)] = 0
    return picture


def draw_bad_pixels(prediction: FloatArray, truth: FloatArray) -> Picture:
    """Red where the error is greater than 0.07 px; grey where there is no truth."""
    bad = np.abs(metrics.signed_error(prediction, truth)) > np.float32(metrics.BAD)
    picture = np.where(bad[:, :, None], BAD, GOOD).astype(np.uint8)
    picture[~np.isfinite(truth)] = NOT_KNOWN
    return picture
