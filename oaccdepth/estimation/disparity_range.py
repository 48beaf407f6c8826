"""Which disparities a light field holds, and the sweeps that cover them. NumPy and OpenCV only.

The networks see disparities from -4 to 4. A scene that lies elsewhere is sheared by an integer; one
that is wider is swept several times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.lightfield import BoolArray, FloatArray, LightField, as_grey
from oaccdepth.options import Range

REACH = 4.0  # px, of the networks
FURTHEST = 32  # px: how far the coarse sweep looks
COARSE_SIDE = 160  # px on the longer side, for the coarse sweep
OVERLAP = 1.0  # px, of neighbouring sweeps
SMALLEST_SHARE = 0.005  # of the believed pixels
SAFETY = 0.5  # px added on both sides of an estimated range


@dataclass(frozen=True)
class Coverage:
    """What to search, and where that was learnt."""

    disparity_range: Range  # [px]
    source: str  # "option", "file" or "estimated"
    shears: tuple[int, ...]  # one sweep each: disparities from shear - 4 to shear + 4


def choose_coverage(light_field: LightField, wanted: Range | None) -> Coverage:
    """The range the user gives, or the files, or a coarse sweep finds; and the sweeps it takes."""
    side = max(light_field.resolution)
    if wanted is not None:
        if max(map(abs, wanted)) > side:
            raise InvalidOption(
                f"--disparity-range {wanted[0]:g}:{wanted[1]:g}: the views are only {side} px "
                "long, and no point moves further between neighbours. Use a smaller range."
            )
        return Coverage(wanted, "option", plan_shears(wanted))
    if light_field.disparity_range is not None:
        given = light_field.disparity_range
        if max(map(abs, given)) > side:
            raise InvalidLightField(
                f"{light_field.source or 'light field'}: its files give disparities from "
                f"{given[0]:g} to {given[1]:g} px, but the views are only {side} px long. "
                "Correct disp_min and disp_max, or pass --disparity-range MIN:MAX."
            )
        return Coverage(given, "file", plan_shears(given))
    found = estimate_range(light_field)
    return Coverage(found, "estimated", plan_shears(found))


def plan_shears(disparity_range: Range) -> tuple[int, ...]:
    """Integer shears whose reach covers the range; none at all (0) if that is enough."""
    low, high = disparity_range
    if low >= -REACH and high <= REACH:
        return (0,)
    if high - low <= 2 * REACH - 1:  # an integer shear can be half a pixel off the middle
        return (round((low + high) / 2),)
    step = 2 * REACH - OVERLAP
    count = math.ceil((high - low - 2 * REACH) / step) + 1
    first, last = low + REACH, high - REACH
    return tuple(round(x) for x in np.linspace(first, last, count))


def estimate_range(light_field: LightField) -> Range:
    """Disparities of the scene, by a plane sweep over few views at reduced resolution."""
    disparity, sure = coarse_sweep(light_field)
    found = disparity[sure] if sure.any() else np.zeros(1, np.float32)
    # a pixel's worth of disparity that hardly any of the picture has is a chance match
    bins = np.floor(found).astype(int)
    counts = np.bincount(bins - bins.min())
    common = found[counts[bins - bins.min()] >= SMALLEST_SHARE * len(found)]
    low, high = float(common.min()) - SAFETY, float(common.max()) + SAFETY
    if max(abs(low), abs(high)) <= REACH + SAFETY:
        return max(low, -REACH), min(high, REACH)  # safety alone is not worth a second sweep
    return low, high


def coarse_sweep(light_field: LightField) -> tuple[FloatArray, BoolArray]:
    """Coarse disparity [px of the full size], and where it can be believed; reduced (h, w)."""
    grey, steps, factor = _reduced_views(light_field)
    furthest = max(float(np.abs(steps).max()), 1.0)
    # neighbouring hypotheses move the outermost view used by half a pixel
    spacing = max(0.5 / furthest, 2 * FURTHEST / factor / 400)
    count = math.ceil(FURTHEST / factor / spacing)
    levels = np.arange(-count, count + 1) * spacing
    costs = np.stack([_matching_cost(grey, steps, float(d)) for d in levels])
    best = costs.argmin(0)
    lowest, typical = costs.min(0), np.median(costs, axis=0)
    sure = (typical - lowest > 0.01) & (lowest < 0.35 * typical)
    sure &= (best > 0) & (best < len(levels) - 1)
    disparity = (levels[best] * factor).astype(np.float32)
    return disparity, sure & _has_company(disparity, 2 * spacing * factor)


def _has_company(disparity: FloatArray, tolerance: float) -> BoolArray:
    """Where most of the 5x5 neighbours agree: wrong matches are scattered, right ones are not."""
    alike = np.zeros(disparity.shape, np.float32)
    padded = np.pad(disparity, 2, constant_values=np.inf)
    height, width = disparity.shape
    for y, x in np.ndindex(5, 5):
        alike += np.abs(padded[y : y + height, x : x + width] - disparity) <= tolerance
    return alike >= 15


def _reduced_views(light_field: LightField) -> tuple[FloatArray, np.ndarray, float]:
    """The centre view and up to eight around it, grey and small; their steps (n, 2); the factor."""
    rows, columns = light_field.grid
    height, width = light_field.resolution
    factor = max(1.0, max(height, width) / COARSE_SIDE)
    size = (max(8, round(width / factor)), max(8, round(height / factor)))
    missing = set(light_field.missing_views)
    reach_u, reach_v = (min(2, side // 2) for side in (rows, columns))
    steps = [
        (u, v)
        for u in sorted({-reach_u, 0, reach_u})
        for v in sorted({-reach_v, 0, reach_v})
        if (u, v) == (0, 0) or (rows // 2 + u, columns // 2 + v) not in missing
    ]
    steps.sort(key=lambda step: step != (0, 0))  # the centre first
    grey = [
        cv2.resize(
            as_grey(light_field.views[rows // 2 + u, columns // 2 + v]),
            size,
            interpolation=cv2.INTER_AREA,
        )
        for u, v in steps
    ]
    return np.stack(grey), np.array(steps, dtype=np.float64), factor


def _matching_cost(grey: FloatArray, steps: np.ndarray, d: float) -> FloatArray:
    """Truncated difference of the views, shifted by disparity d, to the centre view: (h, w)."""
    height, width = grey.shape[1:]
    total = np.zeros((height, width), np.float32)
    count = np.zeros((height, width), np.float32)
    for view, (u, v) in zip(grey[1:], steps[1:], strict=True):
        # sample at (y - d*u, x - d*v); outside the frame a sample does not count
        matrix = np.array([[1, 0, -d * v], [0, 1, -d * u]])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        moved = cv2.warpAffine(view, matrix, (width, height), flags=flags, borderValue=-9.0)
        inside = moved >= 0
        total += np.where(inside, np.minimum(np.abs(moved - grey[0]), 0.1), 0)
        count += inside
    cost = cv2.boxFilter(total, -1, (5, 5)) / np.maximum(cv2.boxFilter(count, -1, (5, 5)), 1e-3)
    # where most samples lie outside the frame nothing can be said
    return np.where(cv2.boxFilter(count, -1, (5, 5)) < 0.4 * (len(grey) - 1), 1.0, cost)
