"""Disparities in noise, from many views at once: what two halves of the aperture have in common.

Views moved to a disparity are averaged: those on the left, those on the right, those above, those
below. At a point's own disparity opposite means show the same detail. Noise is different in them,
because they share no view: the product of their detail is zero on average, at every disparity.
"""

from __future__ import annotations

import cv2
import numpy as np

from oaccdepth.estimation.matching import FAR, Matcher
from oaccdepth.lightfield import FloatArray
from oaccdepth.options import Range

FEWEST_VIEWS = 20  # fewer do not average enough
SIDE = 128  # px on the longer side
SPACING = 0.5  # px of the reduced farthest view, between levels
MOST_LEVELS = 200
WINDOW = 11  # px


def compare_halves(matcher: Matcher, around: Range) -> tuple[FloatArray, FloatArray]:
    """Levels, and what the halves have in common at each: (n), (n, h, w) of a reduced centre view.

    No levels if there are too few views, or if it would take too long.
    """
    views = _views_within(matcher, FAR * matcher.nearest)
    factor = max(1.0, max(matcher.light_field.resolution) / SIDE)
    reach = max((float(np.abs(place).max()) for place in views.values()), default=1.0)
    spacing = SPACING * factor / reach
    levels = np.arange(around[0], around[1] + spacing, spacing).astype(np.float32)
    if len(views) < FEWEST_VIEWS or len(levels) > MOST_LEVELS:
        return np.zeros(0, np.float32), np.zeros((0, 1, 1), np.float32)
    details = [(matcher.detail(view, factor)[0], place) for view, place in views.items()]
    return levels, np.stack([_common(details, float(level) / factor) for level in levels])


def _views_within(matcher: Matcher, limit: float) -> dict[tuple[int, int], FloatArray]:
    """Grid position and place [steps] of the views that are not too far away, but the centre."""
    places = matcher.light_field.camera_places
    missing = set(matcher.light_field.missing_views)
    return {
        (u, v): places[u, v]
        for u, v in np.ndindex(*matcher.light_field.grid)
        if (u, v) not in missing and 0 < np.abs(places[u, v]).max() <= limit + 1e-3
    }


def _common(details: list[tuple[FloatArray, FloatArray]], disparity: float) -> FloatArray:
    """Mean product (h, w) of opposite means of details that are moved to a disparity."""
    size = details[0][0].shape
    sums = np.zeros((2, 2, *size), np.float32)  # axis, side
    counts = np.zeros((2, 2))
    for detail, place in details:
        matrix = np.array([[1, 0, -disparity * place[1]], [0, 1, -disparity * place[0]]])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        moved = cv2.warpAffine(detail, matrix, size[::-1], flags=flags)
        for axis, part in enumerate(place):
            if part != 0:
                sums[axis, int(part > 0)] += moved
                counts[axis, int(part > 0)] += 1
    means = sums / np.maximum(counts, 1)[..., None, None]
    product = (means[:, 0] * means[:, 1]).sum(axis=0)
    return np.asarray(cv2.blur(product, (WINDOW, WINDOW)), np.float32)
