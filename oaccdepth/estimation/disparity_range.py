"""Which disparities a light field holds, and the sweeps that cover them. NumPy and OpenCV only.

The range is the smallest one that explains the pictures. Every textured pixel of the centre view
has disparities with which both the near and the far views agree; a repeating pattern has several.
Of all intervals in which (nearly) every pixel finds one, the shortest is taken.

Plain areas are asked as well, by what little detail they have: it counts where near and far views
find it at the same disparity, if that is enough of the picture. In noise, means of many views are.
Phase correlation of the whole pictures says where else to look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.estimation.halves import compare_halves
from oaccdepth.estimation.matching import (
    CEILING,
    FAR,
    Bytes,
    Costs,
    Matcher,
    between_levels,
    descend,
)
from oaccdepth.estimation.spectra import agree_at
from oaccdepth.estimation.thin import BEYOND, extend
from oaccdepth.lightfield import BoolArray, FloatArray, LightField
from oaccdepth.options import Range

USUAL = (-4.0, 4.0)  # px: where to look closer if nothing is clear
NOTHING = (-0.5, 0.5)  # px: what is searched if nothing can be seen

COARSE_SIDE, MIDDLE_SIDE, FINE_SIDE = 128, 256, 512  # px on the longer side
SIDES_IN_NOISE = 96, 64, 48  # px, if nothing is found otherwise
KNOWN = 0.3  # share of a coarse pixel that finer ones know: it need not be asked
FURTHEST = 0.6  # of the picture's size: a point that moves further is seen in no other view
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
FEWEST = 40  # pixels that must match, or nothing can be said
FEWEST_NOISY = 0.15  # share of the textured pixels that must match over a large window
FEWEST_IN_NOISE = 0.05  # the same, for pictures that are small enough to average it out
PLAIN_RADIUS = 2  # asked pixels around a plain one that are plain as well
FAINT_DEPTH = 0.4  # of faint texture: what must vanish, in near and far views; noise: up to 0.3
FAINT_DEPTH_ALONE = 0.6  # where there are no far views to confirm it
ENOUGH = 0.01  # share of the picture that must be plain, and agree, for faint texture to count
CLEARLY = 8.0  # times what halves of the views usually have in common: chance in 4 % of a picture
FEWEST_TOGETHER = 0.2  # share of the picture that must stand out so clearly
CLEAR = 0.4  # share of the textured pixels: so many do not match by chance
BEYOND_CHANCE = 2.0  # times as many must match as in strange pictures: noise 1.5, scenes 4
UNEXPLAINED = 0.004  # share of the pixels that may find nothing in the range
TAIL_TOGETHER = 0.005  # the same, of matches by means of many views
TAIL = 0.0015  # share of the pixels at either end of the range that is not believed
COMPANY = 0.5  # share of the neighbours that must agree
LEVEL = 0.25  # px: step of the networks' levels; half of it is added for safety


@dataclass(frozen=True)
class Coverage:
    """What to search, and who said so."""

    disparity_range: Range  # [px]
    source: str  # "option", "file", "estimated" or "none": the views tell nothing


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

    def without_ends(self, share: float) -> Matches:
        """The same, without the smallest and the largest."""
        low, high = np.quantile(self.disparity[self.sure], (share, 1 - share))
        inner = (self.disparity >= low) & (self.disparity <= high)
        return replace(self, sure=self.sure & inner)


def choose_coverage(light_field: LightField, wanted: Range | None) -> Coverage:
    """The range that the user gives, or the files, or the pictures."""
    side = max(light_field.resolution)
    if wanted is not None:
        if max(map(abs, wanted)) > side:
            raise InvalidOption(
                f"--disparity-range {wanted[0]:g}:{wanted[1]:g}: the views are only {side} px "
                "long, and no point moves further between neighbours. Use a smaller range."
            )
        return Coverage(wanted, "option")
    if light_field.disparity_range is not None:
        given = light_field.disparity_range
        if max(map(abs, given)) > side:
            raise InvalidLightField(
                f"{light_field.source or 'light field'}: its files give disparities from "
                f"{given[0]:g} to {given[1]:g} px, but the views are only {side} px long. "
                "Correct disp_min and disp_max, or pass --disparity-range MIN:MAX."
            )
        return Coverage(given, "file")
    found = estimate_range(light_field)
    if found is None:
        return Coverage(NOTHING, "none")
    return Coverage(found, "estimated")


def estimate_range(light_field: LightField) -> Range | None:
    """Disparities of the scene [px]; None if the views tell nothing about them.

    A coarse search over the whole width of the picture, with the nearest views, is followed by
    finer ones around what it found, with near and far views. Where a fine picture has no texture,
    a coarser one may have some.
    """
    matcher = Matcher(light_field)
    if matcher.nearest == 0:
        return None
    everywhere, faint_areas = _search_everywhere(matcher)
    around = everywhere
    volumes = [_compare_around(matcher, around, size) for size in (MIDDLE_SIDE, COARSE_SIDE)]
    known = _explain_all(volumes)
    if faint_areas.mean() >= ENOUGH:
        faint = matcher.compare_faint(volumes[-1])
        known += _only_found([_explain_faint(volumes[-1], faint, faint_areas)])
    if known:
        low = min(matches.ends[0] - 4 * matches.spacing for matches in known)
        high = max(matches.ends[1] + 4 * matches.spacing for matches in known)
        around = max(around[0], low), min(around[1], high)
    fine = _compare_around(matcher, around, FINE_SIDE)
    known = _only_found([_explain(fine)]) + known
    if not _is_clear(fine):
        if not _beats_chance(matcher, [fine, *volumes], known):
            return _range_in_noise(matcher, everywhere, around) or agree_at(matcher)
        low, high = _common_range(known)
        nearby = max(everywhere[0], low - BEYOND), min(everywhere[1], high + BEYOND)
        known += _only_found([_explain_together(matcher, nearby)])
    return extend(matcher, _common_range(known), LEVEL / 2)


def _is_clear(costs: Costs) -> bool:
    """Whether most of the texture is matched, pixel by pixel."""
    clear = _explain(costs)
    is_textured = costs.texture[::THINNING, ::THINNING] > TEXTURE
    return clear is not None and bool(clear.sure.sum() > CLEAR * is_textured.sum())


def _explain_together(matcher: Matcher, around: Range) -> Matches | None:
    """Match by means of many views, in which noise averages out; None if too little stands out."""
    levels, common = compare_halves(matcher, around)
    if len(levels) < 3:
        return None
    best, most = common.argmax(axis=0), common.max(axis=0)
    is_peak = (best > 0) & (best < len(levels) - 1)
    sure = is_peak & (most > CLEARLY * np.median(np.abs(common), axis=0))
    if sure.mean() < FEWEST_TOGETHER:
        return None
    share = common / np.where(most > 0, most, 1)
    total = (CEILING * np.clip(1 - share, 0, 2)).astype(np.uint16)
    found = _match(levels, total, sure, total[:, sure] <= DEPTH * CEILING)
    return None if found is None else found.without_ends(TAIL_TOGETHER)


def _range_in_noise(matcher: Matcher, everywhere: Range, around: Range) -> Range | None:
    """What many views show, or else pictures so small that noise averages out; None if nothing."""
    known = _only_found([_explain_together(matcher, everywhere)])
    if not known:
        volumes = [_compare_around(matcher, around, size) for size in SIDES_IN_NOISE]
        known = _explain_all(volumes, FEWEST_IN_NOISE)
        if not _is_clear(volumes[0]) and not _beats_chance(matcher, volumes, known):
            return None
    low, high = _common_range(known)
    more = 2 * max(matches.spacing for matches in known)  # only some of the scene can be seen
    return low - more, high + more


def _explain_all(volumes: list[Costs], fewest_noisy: float = FEWEST_NOISY) -> list[Matches]:
    """Clear matches in every volume, then those that are clear over large windows only."""
    clear = [_explain(costs) for costs in volumes]
    return _only_found(clear + [_explain_noisy(costs, fewest_noisy) for costs in volumes])


def _only_found(found: list[Matches | None]) -> list[Matches]:
    return [matches for matches in found if matches is not None]


def _beats_chance(matcher: Matcher, volumes: list[Costs], known: list[Matches]) -> bool:
    """Whether more matches were found than among pictures that have nothing to do with each other.

    Smooth noise resembles other smooth noise somewhere. How often is found out by the same
    comparison with strange pictures.
    """
    if not known:
        return False
    strange = matcher.strange()
    compared = [strange.compare(costs.side, costs.levels, costs.reach) for costs in volumes]
    chance = max((matches.sure.mean() for matches in _explain_all(compared, 0.0)), default=0.0)
    return bool(max(matches.sure.mean() for matches in known) > BEYOND_CHANCE * chance)


def _search_everywhere(matcher: Matcher) -> tuple[Range, BoolArray]:
    """A range that surely holds the scene, by the nearest views and the next, much reduced.

    And the plain areas that have some faint texture nevertheless, (h, w) of the pixels asked.
    """
    side = max(matcher.light_field.resolution)
    factor = max(1.0, side / COARSE_SIDE)
    spacing = SPACING * factor / matcher.nearest
    count = int(FURTHEST * side / matcher.nearest / spacing)
    levels = (np.arange(-count, count + 1) * spacing).astype(np.float32)
    costs = matcher.compare(COARSE_SIDE, levels, 2 * matcher.nearest)
    found = [_explain(costs)]
    faint_areas = _plain_areas(costs)
    if faint_areas.mean() >= ENOUGH:
        faint = matcher.compare_faint(costs)
        faint_areas = _keep_matching(faint, faint_areas, matcher.has_more_than(0.0, costs.reach))
        found.append(_explain_faint(costs, faint, faint_areas))
    ends = [matches.ends for matches in found if matches is not None]
    has_matches = bool(ends)
    if agreed := agree_at(matcher):  # also what shows in narrow gaps of something clear
        ends.append(agreed)
    margin = 2.25 * spacing
    ends = [(low - margin, high + margin) for low, high in ends]
    if not has_matches:  # only the finest detail, if anything: it may show in a closer look
        ends.append(USUAL)
    return (min(low for low, _ in ends), max(high for _, high in ends)), faint_areas


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
    total, sure, fits = _levels_that_fit(costs)
    return _match(costs.levels, total, sure, fits)


def _levels_that_fit(costs: Costs) -> tuple[NDArray[np.uint16], BoolArray, BoolArray]:
    """Costs of near and far views together, pixels that match, levels that each can live with."""
    near, far, total, texture = _thinned(costs)
    least = total.min(axis=0)
    sure = (texture > TEXTURE) & (least < 2 * BELIEVED * texture)
    scale = texture[sure]
    most = np.maximum(least[sure] + 2 * TOLERANCE * scale, 2 * GOOD * scale)
    fits = (total[:, sure] <= most) & (cv2.max(near[:, sure], far[:, sure]) <= EACH * scale)
    return total, sure, fits


def _keep_matching(faint: Costs, is_plain: BoolArray, has_far_views: bool) -> BoolArray:
    """Plain areas whose faint texture near and far views find again.

    Noise has minima as well, but not as deep; and near and far views have them at other levels.
    """
    near, far, _, texture = _thinned(faint)
    depth = np.minimum(_depth(near), _depth(far))
    least = FAINT_DEPTH if has_far_views else FAINT_DEPTH_ALONE
    sure = is_plain & (texture > TEXTURE) & (depth > least * texture)
    sure[sure] = _common_minima(near[:, sure], far[:, sure]).any(axis=0)
    return sure


def _explain_faint(costs: Costs, faint: Costs, faint_areas: BoolArray) -> Matches | None:
    """Match faint areas, if they are large enough, together with the rest of the picture."""
    if faint_areas.mean() < ENOUGH:
        return None
    near, far, total, _ = _thinned(faint)
    fits = _common_minima(near[:, faint_areas], far[:, faint_areas])
    sure = faint_areas.copy()
    sure[sure] = fits.any(axis=0)
    rest = _levels_that_fit(costs)[2]
    return _match(costs.levels, total, sure, fits, rest[:, rest.any(axis=0)])


def _plain_areas(costs: Costs) -> BoolArray:
    """Pixels that are asked and have no texture, nor have those around them."""
    has_texture = (costs.texture[::THINNING, ::THINNING] > TEXTURE).astype(np.uint8)
    side = 2 * PLAIN_RADIUS + 1
    return np.asarray(cv2.dilate(has_texture, np.ones((side, side), np.uint8)) == 0, np.bool_)


def _depth(costs: Bytes) -> FloatArray:
    """Depth of the best level (h, w) below the usual cost, that of levels outside left out."""
    inside = np.count_nonzero(costs < CEILING, axis=0)[None]
    usual = np.take_along_axis(np.sort(costs, axis=0), np.minimum(inside // 2, len(costs) - 1), 0)
    return np.asarray(usual[0].astype(np.float32) - costs.min(axis=0))


def _common_minima(near: Bytes, far: Bytes) -> BoolArray:
    """Levels (levels, pixels) at which both have their minimum, or nearly."""
    limits = [group.min(axis=0) + DEPTH * _depth(group) for group in (near, far)]
    return np.asarray((near <= limits[0]) & (far <= limits[1]))


def _explain_noisy(costs: Costs, fewest: float) -> Matches | None:
    """The same by means over large windows, as noise needs them; a share of them must match.

    Noise adds to the costs of all levels alike: it is the depth of a minimum that counts.
    """
    near, far, total, texture = _thinned(costs.blurred())
    least = total.min(axis=0)
    depth = np.median(total, axis=0) - least
    is_textured = texture > TEXTURE
    sure = is_textured & (depth > 2 * DEPTH * texture)
    if np.count_nonzero(sure) < fewest * np.count_nonzero(is_textured):
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
    levels: FloatArray,
    total: NDArray[np.uint16],
    sure: BoolArray,
    fits: BoolArray,
    others: BoolArray | None = None,
) -> Matches | None:
    """Give every pixel its best disparity in the smallest range that explains them all.

    `others` (levels, pixels) have to be explained by the same range.
    """
    fits = fits[:, fits.any(axis=0)]
    if fits.shape[1] < FEWEST:
        return None
    together = fits if others is None else np.concatenate([fits, others], axis=1)
    first, last = _shortest_interval(together, levels)
    level = descend(total, total[first : last + 1].argmin(axis=0) + first)
    disparity = between_levels(levels, total, level)
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


def coarse_sweep(
    light_field: LightField, around: Range | None = None
) -> tuple[FloatArray, BoolArray]:
    """Coarse disparity [px of the full size], and where it can be believed; reduced (h, w).

    Within a range, if one is known.
    """
    matcher = Matcher(light_field)
    found = None
    if matcher.nearest > 0:
        around = around or _search_everywhere(matcher)[0]
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


def _has_company(disparity: FloatArray, sure: BoolArray, tolerance: float) -> BoolArray:
    """Where enough of the neighbours agree: wrong matches are scattered, right ones are not."""
    alike = np.zeros(disparity.shape, np.float32)
    padded = np.pad(np.where(sure, disparity, np.inf), 1, constant_values=np.inf)
    height, width = disparity.shape
    for y, x in np.ndindex(3, 3):
        if (y, x) != (1, 1):
            alike += np.abs(padded[y : y + height, x : x + width] - disparity) <= tolerance
    return np.asarray(alike >= COMPANY * 8, dtype=np.bool_)
