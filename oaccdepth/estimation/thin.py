"""A range of disparities -> the same with what thin and plain things need.

The range is found by windows, which hold more of the surroundings than of a wire, a bar or what a
fence shows. Here every pixel counts nearly on its own, and many views make up for that: what none
of the range's disparities explains, and one beyond it explains well, needs that one.

A plain thing shows by its rim alone. Of two opposite views one always agrees with what is behind
it; the other one does not, because the thing is in front. Where nothing in the range can be in
front, something beyond it is: there both views must agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.estimation.matching import FAR, OPPOSITE, Bytes, Matcher, Moving
from oaccdepth.lightfield import BoolArray, FloatArray, as_grey
from oaccdepth.options import Range

WINDOW = 3  # px
SPACING = 0.5  # px of the farthest view, between levels
BEYOND = 6.0  # px beyond the range that are looked at
MOST_LEVELS = 400
MOST_MARGIN = 0.3  # of the shorter side
LEAST = 4.0  # grey levels of 255 that are more than the usual misfit
UNUSUAL = 1.5  # times the usual misfit
BETTER = 0.6  # of the least cost in the range: what a disparity beyond it must reach
NEIGHBOURS, COMPANY = 7, 7  # px on a side, and how many of them must need nearly the same
ENOUGH = 0.001  # share of the picture that must need it
TAIL = 0.02  # share of those on either side of the range that are not believed


@dataclass(frozen=True)
class Look:
    """A way to look beyond the range."""

    side: int  # px on the longer side, at the most
    below: float  # px below the range that are looked at
    above: float
    of_two: np.ufunc  # which cost of two opposite views counts


THIN = Look(512, BEYOND, BEYOND, np.minimum)  # that of the one that sees it
IN_FRONT = Look(256, 0.0, BEYOND, np.maximum)  # what is in front of all is seen by both


def extend(matcher: Matcher, found: Range, safety: float) -> Range:
    """The range, and what enough pixels need beyond it."""
    for look in (THIN, IN_FRONT):
        found = _extend(matcher, found, safety, look)
    return found


def _extend(matcher: Matcher, found: Range, safety: float, look: Look) -> Range:
    side = max(matcher.light_field.resolution)
    factor = max(1.0, side / look.side)
    axes = _moving(matcher, factor)
    reach = matcher.farthest(FAR * matcher.nearest)
    spacing = SPACING * factor / reach
    low, high = found
    count = int((high - low + look.below + look.above) / spacing) + 1
    centre = _small(matcher, _middle(matcher), factor)
    # Near the border some views do not show what the centre view shows.
    margin = math.ceil(max(abs(low), abs(high)) * reach / factor)
    if count > MOST_LEVELS or margin > MOST_MARGIN * min(centre.shape):
        return found
    inner = tuple(slice(margin, length - margin) for length in centre.shape)
    levels = low - look.below + np.arange(count) * spacing
    is_inside = (levels >= low - spacing) & (levels <= high + spacing)
    inside, _ = _least(centre, axes, levels[is_inside] / factor, look)
    inside = inside[inner]
    needs = inside > LEAST + UNUSUAL * float(np.median(inside))
    if needs.mean() < ENOUGH:
        return found
    outside, where = _least(centre, axes, levels[~is_inside] / factor, look)
    needs &= outside[inner] < BETTER * inside
    disparity = levels[~is_inside].astype(np.float32)[where[inner]]
    needs &= _has_company(disparity, needs, 2 * spacing)
    return _reach_out(found, disparity[needs], needs.size, safety + spacing / 2)


def _reach_out(found: Range, needed: FloatArray, pixels: int, safety: float) -> Range:
    low, high = found
    below, above = needed[needed < low], needed[needed > high]
    if len(below) >= ENOUGH * pixels:
        low = float(np.quantile(below, TAIL)) - safety
    if len(above) >= ENOUGH * pixels:
        high = float(np.quantile(above, 1 - TAIL)) + safety
    return low, high


def _middle(matcher: Matcher) -> tuple[int, int]:
    rows, columns = matcher.light_field.grid
    return rows // 2, columns // 2


def _moving(matcher: Matcher, factor: float) -> list[list[list[Moving]]]:
    """The views beside the centre, above and below it, but those too far away: in opposite pairs.

    All of them: what repeats every second step of the cameras would match every second view.
    """
    places = matcher.light_field.camera_places
    limit = FAR * matcher.nearest + 1e-3
    axes = []
    for names in OPPOSITE:
        within = [
            [view for distance, view in matcher.sides[name] if distance <= limit] for name in names
        ]
        sides = [
            [Moving(_small(matcher, view, factor), places[view]) for view in views]
            for views in within
        ]
        pairs = [[view for view in pair if view] for pair in zip_longest(*sides)]
        axes += [pairs] if pairs else []
    return axes


def _small(matcher: Matcher, view: tuple[int, int], factor: float) -> Bytes:
    grey = as_grey(matcher.light_field.views[view])
    if factor > 1:
        size = round(grey.shape[1] / factor), round(grey.shape[0] / factor)
        grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.float32)
    return np.asarray(np.clip(np.rint(grey * 255), 0, 255), np.uint8)


def _least(
    centre: Bytes, axes: list[list[list[Moving]]], levels: FloatArray, look: Look
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Least difference (h, w) to the views over the levels, and at which it is.

    Of the two axes the one that contradicts more: along a wire everything fits.
    """
    least = np.full(centre.shape, np.inf, np.float32)
    where = np.zeros(centre.shape, np.intp)
    for number, level in enumerate(levels):
        cost = reduce(np.maximum, (_cost(centre, pairs, float(level), look) for pairs in axes))
        np.copyto(where, number, where=cost < least)
        np.minimum(least, cost, out=least)
    return least, where


def _cost(centre: Bytes, pairs: list[list[Moving]], level: float, look: Look) -> FloatArray:
    """Mean difference (h, w) to the views of an axis; of opposite ones to that which counts."""
    total = np.zeros(centre.shape, np.float32)
    for pair in pairs:
        first, *others = (view.cost(centre, level, 1) for view in pair)
        cv2.accumulate(look.of_two(first, others[0]) if others else first, total)
    return np.asarray(cv2.blur(total, (WINDOW, WINDOW)) * np.float32(1 / len(pairs)), np.float32)


def _has_company(disparity: FloatArray, needs: BoolArray, tolerance: float) -> BoolArray:
    """Where enough pixels around need nearly the same."""
    near = np.zeros(disparity.shape, np.uint8)
    half = NEIGHBOURS // 2
    padded = np.pad(np.where(needs, disparity, np.inf), half, constant_values=np.inf)
    height, width = disparity.shape
    for y, x in np.ndindex(NEIGHBOURS, NEIGHBOURS):
        near += np.abs(padded[y : y + height, x : x + width] - disparity) <= tolerance
    return np.asarray(near > COMPANY, np.bool_)  # itself is one of them
