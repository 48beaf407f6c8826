"""Disparities at which whole pictures agree, by phase correlation: a few milliseconds.

Texture can be so fine that reduced pictures do not show it, and a search over the whole width of
large ones takes long. The phases of two pictures' spectra tell by how much one is moved: each
surface makes a peak, and the finest detail counts as much as any other.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.estimation.matching import OPPOSITE, Matcher
from oaccdepth.lightfield import FloatArray, as_grey
from oaccdepth.options import Range

CLEARLY = 8.0  # times the usual size of a correlation
FURTHEST = 0.5  # of the picture's size; beyond, a shift looks like one the other way


def agree_at(matcher: Matcher) -> Range | None:
    """Smallest and largest disparity [px] with a peak along both axes; None if there is none."""
    light_field = matcher.light_field
    rows, columns = light_field.grid
    centre = as_grey(light_field.views[rows // 2, columns // 2])
    nearest = {side: views[0] for side, views in matcher.sides.items() if views}
    axes = [[nearest[side] for side in pair if side in nearest] for pair in OPPOSITE]
    axes = [axis for axis in axes if axis]
    if len(axes) == 1:  # then its two sides must agree
        axes = [[view] for view in axes[0]]
    longest = FURTHEST * min(light_field.resolution) / matcher.nearest
    count = int(longest * matcher.nearest)
    levels = np.linspace(-longest, longest, 2 * count + 1)[1:-1]
    scores = [
        np.sqrt(len(axis))
        * np.mean([_correlate(matcher, centre, view, levels) for _, view in axis], axis=0)
        for axis in axes
    ]
    found = levels[np.min(scores, axis=0) > CLEARLY]
    if not len(found):
        return None
    return float(found[0]) - 1 / matcher.nearest, float(found[-1]) + 1 / matcher.nearest


def _correlate(
    matcher: Matcher, centre: FloatArray, view: tuple[int, int], levels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Phase correlation (n,) of a view with the centre view at each level, over its usual size."""
    other = as_grey(matcher.light_field.views[view])
    window = np.asarray(cv2.createHanningWindow(centre.shape[::-1], cv2.CV_32F))
    spectra = [np.fft.rfft2((grey - grey.mean()) * window) for grey in (centre, other)]
    product = spectra[0] * np.conj(spectra[1])
    size = np.abs(product)
    if not size.max() > 0:
        return np.zeros(len(levels))
    surface = np.fft.irfft2(product / np.maximum(size, 1e-12 * size.max()), centre.shape)
    down, right = (float(part) for part in matcher.light_field.camera_places[view])
    y, x = (np.rint(levels * part).astype(np.intp) for part in (down, right))
    return np.asarray(surface[y, x] / surface.std())
