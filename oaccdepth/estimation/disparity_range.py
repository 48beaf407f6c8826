"""Which disparities a light field holds, and the sweeps that cover them. NumPy and OpenCV only.

The range is the smallest one that explains the pictures. Every textured pixel of the centre view
has disparities with which both the near and the far views agree; a repeating pattern has several.
Of all intervals in which (nearly) every pixel finds one, the shortest is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.estimation.matching import Bytes, Costs, Matcher
from oaccdepth.lightfield import BoolArray, FloatArray, LightField
from oaccdepth.options import Range

REACH = 4.0  # px, of the paper's network
OVERLAP = 1.0  # px, of neighbouring sweeps
NOTHING = (-0.5, 0.5)  # px: what is searched if nothing can be seen

COARSE_SIDE, MIDDLE_SIDE, FINE_SIDE = 128, 256, 512  # px on the longer side
KNOWN = 0.3  # share of a coarse pixel that finer ones know: it need not be asked
FURTHEST = 0.6  # of the picture's size: a point that moves further is seen in no other view
FAR = 4.0  # steps: how far the far views are, at most
STAYS = 0.35  # of the picture's size: how far a point may move into the far views
SPACING = 0.5  # px of the reduced far view, between levels
MOST_WORK = 60 * 512**2  # levels x pixels of one search
THINNING = 2  # every second pixel in each direction is asked

TEXTURE = 20  # of 80: less is no texture
BELIEVED = 0.35  # of the texture: a pixel whose best cost is higher matches nowhere
TOLERANCE = 0.12  # of the texture: levels that are worse than the best by less are as good
GOOD = 0.25  # of the texture: a pixel can live with a level that fits so well
EACH = 0.5  # of the texture: the near and the far views must both be better than that
DEPTH = 0.25  # of the texture: depth of a minimum over a large window that noise does not make
LARGE_WINDOW = 9  # px
FEWEST = 40  # pixels that must match, or nothing can be said
FEWEST_NOISY = 0.15  # share of the textured pixels that must match over a large window
UNEXPLAINED = 0.004  # share of the pixels that may find nothing in the range
TAIL = 0.0015  # share of the pixels at either end of the range that is not believed
COMPANY = 0.5  # share of the neighbours that must agree
LEVEL = 0.25  # px: step of the networks' levels; half of it is added for safety


@dataclass(frozen=True)
class Coverage:
    """What to search, and where that was learnt."""

    disparity_range: Range  # [px]
    source: str  # "option", "file", "estimated" or "none": the views tell nothing
    shears: tuple[int, ...]  # one sweep each: disparities from shear - 4 to shear + 4


@dataclass(frozen=True, eq=False)
class Matches:
    """Pixels of a reduced centre view and their disparity."""

    disparity: FloatArray  # (h, w) [px of the full size]
    sure: BoolArray  # (h, w)
    spacing: float  # px, of the levels that it was found with

    @property
    def ends(self) -> Range:
        """Smallest and largest disparity, without the tails."""
        found = np.sort(self.disparity[self.sure])
        tail = int(TAIL * len(found))
        return float(found[tail]), float(found[-1 - tail])


def choose_coverage(light_field: LightField, wanted: Range | None) -> Coverage:
    """The range the user gives, or the files, or the pictures; and the sweeps it takes."""
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
    if found is None:
        return Coverage(NOTHING, "none", plan_shears(NOTHING))
    return Coverage(found, "estimated", plan_shears(found))


def plan_shears(disparity_range: Range) -> tuple[int, ...]:
    """Integer shears whose reach covers the range; none at all (0) if that is enough."""
    low, high = disparity_range
    if low >= -REACH and high <= REACH:
        return (0,)
    # The first sweep reaches down to the low end, the last one up to the high end.
    first, last = math.floor(low + REACH), math.ceil(high - REACH)
    if last <= first:
        return (round((low + high) / 2),)
    count = math.ceil((last - first) / (2 * REACH - OVERLAP)) + 1
    return tuple(round(shear) for shear in np.linspace(first, last, count))


def estimate_range(light_field: LightField) -> Range | None:
    """Disparities of the scene [px]; None if the views tell nothing about them.

    A coarse search over the whole width of the picture, with the nearest views, is followed by
    finer ones around what it found, with near and far views. Where a fine picture has no texture,
    a coarser one may have some.
    """
    matcher = Matcher(light_field)
    if matcher.nearest == 0:
        return None
    around = _search_everywhere(matcher)
    volumes = [_compare_around(matcher, around, size) for size in (MIDDLE_SIDE, COARSE_SIDE)]
    found = [explain(costs) for explain in (_explain, _explain_noisy) for costs in volumes]
    known = [matches for matches in found if matches is not None]
    if known:
        low = min(matches.ends[0] - 4 * matches.spacing for matches in known)
        high = max(matches.ends[1] + 4 * matches.spacing for matches in known)
        around = max(around[0], low), min(around[1], high)
    fine = _explain(_compare_around(matcher, around, FINE_SIDE))
    known = known if fine is None else [fine, *known]
    return _common_range(known) if known else None


def _search_everywhere(matcher: Matcher) -> Range:
    """A range that surely holds the scene, by the nearest views and the next, much reduced."""
    side = max(matcher.light_field.resolution)
    factor = max(1.0, side / COARSE_SIDE)
    spacing = SPACING * factor / matcher.nearest
    count = int(FURTHEST * side / matcher.nearest / spacing)
    levels = (np.arange(-count, count + 1) * spacing).astype(np.float32)
    found = _explain(matcher.compare(COARSE_SIDE, levels, 2 * matcher.nearest))
    if found is None:  # only the finest detail, if anything: it may show in a closer look
        return -REACH, REACH
    margin = 2.25 * spacing
    return found.ends[0] - margin, found.ends[1] + margin


def _compare_around(matcher: Matcher, around: Range, size: float) -> Costs:
    """Compare near and far views, at this size (or less, if the range is wide)."""
    side = max(matcher.light_field.resolution)
    low, high = around
    farthest = max(abs(low), abs(high))
    limit = min(FAR * matcher.nearest, STAYS * min(matcher.light_field.resolution) / farthest)
    reach = matcher.farthest(limit)
    size = min(side, size)
    while True:
        spacing = SPACING * max(1.0, side / size) / reach
        count = math.ceil((high - low) / spacing) + 1
        if count * size * size <= MOST_WORK or size <= COARSE_SIDE:
            break
        size *= 0.8
    levels = (low + np.arange(count) * spacing).astype(np.float32)
    return matcher.compare(int(size), levels, limit)


def _explain(costs: Costs) -> Matches | None:
    """Match the pixels within the smallest range that explains them; None if there are too few."""
    near, far, total, texture = _thinned(costs)
    least = total.min(axis=0)
    sure = (texture > TEXTURE) & (least < 2 * BELIEVED * texture)
    scale = texture[sure]
    most = np.maximum(least[sure] + 2 * TOLERANCE * scale, 2 * GOOD * scale)
    fits = (total[:, sure] <= most) & (cv2.max(near[:, sure], far[:, sure]) <= EACH * scale)
    return _match(costs.levels, total, sure, fits)


def _explain_noisy(costs: Costs) -> Matches | None:
    """The same by means over large windows, as noise needs them.

    Noise adds to the costs of all levels alike: it is the depth of a minimum that counts.
    """
    near, far, total, texture = _thinned(costs.blurred(LARGE_WINDOW))
    least = total.min(axis=0)
    depth = np.median(total, axis=0) - least
    is_textured = texture > TEXTURE
    sure = is_textured & (depth > 2 * DEPTH * texture)
    if np.count_nonzero(sure) < FEWEST_NOISY * np.count_nonzero(is_textured):
        return None
    fits = total[:, sure] <= least[sure] + DEPTH * depth[sure]
    for group in (near, far):  # both must have a minimum there
        fits &= group[:, sure] <= np.median(group[:, sure], axis=0) - DEPTH / 2 * texture[sure]
    return _match(costs.levels, total, sure, fits)


def _thinned(costs: Costs) -> tuple[Bytes, Bytes, NDArray[np.uint16], FloatArray]:
    """Costs of near views, far views and both, and texture, of some of the pixels."""
    near, far = (volume[:, ::THINNING, ::THINNING] for volume in (costs.near, costs.far))
    texture = costs.texture[::THINNING, ::THINNING].astype(np.float32)
    return near, far, near.astype(np.uint16) + far, texture


def _match(
    levels: FloatArray, total: NDArray[np.uint16], sure: BoolArray, fits: BoolArray
) -> Matches | None:
    """Give every pixel its best disparity in the smallest range that explains them all."""
    matched = fits.any(axis=0)
    if np.count_nonzero(matched) < FEWEST:
        return None
    first, last = _shortest_interval(fits[:, matched], levels)
    level = _descend(total, total[first : last + 1].argmin(axis=0) + first)
    disparity = _between_levels(levels, total, level)
    spacing = float(levels[1] - levels[0]) if len(levels) > 1 else 1.0
    believed = sure & _has_company(disparity, sure, 2 * spacing)
    is_enough = np.count_nonzero(believed) >= FEWEST
    return Matches(disparity, believed, spacing) if is_enough else None


def _common_range(found: list[Matches]) -> Range:
    """Smallest and largest disparity; coarser matches count where the finer ones know nothing."""
    known: FloatArray = np.zeros((1, 1), np.float32)
    values, weights, safety = [], [], []
    for matches in found:
        height, width = matches.sure.shape
        small = cv2.resize(known, (width, height), interpolation=cv2.INTER_AREA)
        known = np.maximum(small, matches.sure).astype(np.float32)
        new = matches.sure & (small < KNOWN)
        values.append(matches.disparity[new])
        weights.append(np.full(np.count_nonzero(new), 1 / matches.sure.size))
        safety.append(np.full(np.count_nonzero(new), (LEVEL + matches.spacing) / 2))
    value, weight, more = (np.concatenate(parts) for parts in (values, weights, safety))
    low, high = (_outermost(value * sign, weight, more) * sign for sign in (-1, 1))
    return low, high


def _outermost(value: FloatArray, weight: FloatArray, safety: FloatArray) -> float:
    """Largest value but for a thin tail, and some safety."""
    order = np.argsort(-value)
    tail = np.count_nonzero(np.cumsum(weight[order]) <= TAIL * weight.sum())
    return float(value[order[tail]] + safety[order[tail]])


def coarse_sweep(light_field: LightField) -> tuple[FloatArray, BoolArray]:
    """Coarse disparity [px of the full size], and where it can be believed; reduced (h, w)."""
    matcher = Matcher(light_field)
    found = None
    if matcher.nearest > 0:
        around = _search_everywhere(matcher)
        found = _explain(_compare_around(matcher, around, MIDDLE_SIDE))
    if found is None:
        return np.zeros((1, 1), np.float32), np.zeros((1, 1), np.bool_)
    return found.disparity, found.sure


def _shortest_interval(fits: BoolArray, levels: FloatArray) -> tuple[int, int]:
    """First and last level of the shortest interval in which nearly all pixels have one that fits.

    Parameters
    ----------
    fits
        (levels, pixels): disparities with which a pixel can live; each has at least one.
    """
    count, pixels = fits.shape
    beyond = np.int16(count)
    numbers = np.arange(count, dtype=np.int16)[:, None]
    next_fit = np.minimum.accumulate(np.where(fits, numbers, beyond)[::-1], axis=0)[::-1]
    needed = math.ceil((1 - UNEXPLAINED) * pixels) - 1
    ends = np.partition(next_fit, needed, axis=1)[:, needed].astype(int)  # for each first level
    lengths = np.where(ends < count, ends - np.arange(count), count + 1)
    shortest = np.flatnonzero(lengths == lengths.min())
    # Of equally short ones the one nearest to zero: cameras are aimed at what they show.
    middles = np.abs(levels[shortest] + levels[ends[shortest]])
    first = int(shortest[middles.argmin()])
    return first, int(ends[first])


def _descend(total: NDArray[np.uint16], level: NDArray[np.intp]) -> NDArray[np.intp]:
    """Walk from a level to the next minimum of each pixel, which may lie outside the interval."""
    top = len(total) - 1
    for _ in range(len(total)):
        here, above, below = (
            np.take_along_axis(total, np.clip(level + step, 0, top)[None], axis=0)[0]
            for step in (0, 1, -1)
        )
        step = np.where((above < here) & (above <= below), 1, np.where(below < here, -1, 0))
        if not step.any():
            break
        level = np.clip(level + step, 0, top)
    return level


def _between_levels(
    levels: FloatArray, total: NDArray[np.uint16], level: NDArray[np.intp]
) -> FloatArray:
    """Disparity at the minimum of the parabola through the best level and its neighbours."""
    if len(levels) < 3:
        return levels[level]
    inner = np.clip(level, 1, len(levels) - 2)
    before, here, after = (
        np.take_along_axis(total, (inner + step)[None], axis=0)[0].astype(np.float32)
        for step in (-1, 0, 1)
    )
    bend = before - 2 * here + after
    offset = np.where(bend > 0, 0.5 * (before - after) / np.maximum(bend, 1e-3), 0)
    spacing = levels[1] - levels[0]
    fine = levels[inner] + np.clip(offset, -0.5, 0.5) * spacing
    return np.asarray(np.where(inner == level, fine, levels[level]), dtype=np.float32)


def _has_company(disparity: FloatArray, sure: BoolArray, tolerance: float) -> BoolArray:
    """Where enough of the neighbours agree: wrong matches are scattered, right ones are not."""
    alike = np.zeros(disparity.shape, np.float32)
    padded = np.pad(np.where(sure, disparity, np.inf), 1, constant_values=np.inf)
    height, width = disparity.shape
    for y, x in np.ndindex(3, 3):
        if (y, x) != (1, 1):
            alike += np.abs(padded[y : y + height, x : x + width] - disparity) <= tolerance
    return np.asarray(alike >= COMPANY * 8, dtype=np.bool_)
