"""Finds out which way the camera axes of a light field run, by comparing a few views.

Names say which view is where, but programs count in different ways. Three views are enough to see
whether the axes are exchanged or one of them is reversed, because in each view a point moves by its
disparity in the direction of the camera. Reversing both axes only changes the sign of all
disparities. Only occlusions show that: a surface that hides another one is nearer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.lightfield import FloatArray
from oaccdepth.readers.grid import Arrangement

WORKING_SIDE = 256  # px; views are scaled down to this
FINE_SIDE, FINE_STEP = 512, 0.25  # px; for very small disparities
VOTERS = 4  # views that vote
LEVELS = 16  # steps of disparity in each direction
WINDOW = 9  # px; costs are averaged over it
CEILING = 1.5  # limit for the absolute difference of normalised grey values
CLEARLY_BETTER = 0.88  # ratio of costs; right to wrong is below 0.77 on every real sample
# Votes by occlusion. None that passes these limits is wrong on HCI's 21 scenes, 24 rendered ones
# and 22 rendered arrays of 27x27, each also smaller and with fewer views.
FEWEST_VOTES, MAJORITY = 8, 3  # to choose which of the two axes is reversed
FEWEST_VOTES_ALONE, MAJORITY_ALONE = 16, 6  # if nothing else shows that an axis is wrong
CONFIRMED = 4  # majority to keep the axes
AGREEING, VOTES_EACH = 2, 2  # views that must say so, and how often: one may be misled by a shadow
# By how many levels the hider must be in front. One is little: along a slope, neighbours seem to
# hide each other by rounding alone. It counts if nothing else decides, and all views are clear.
DEPTHS = 2, 1
FEWEST_SHALLOW, MAJORITY_SHALLOW = 40, 8

GetGrey = Callable[[int, int], FloatArray | None]  # offset from the centre -> grey (h, w) in [0, 1]
BOTH_BACKWARDS = "both camera axes run backwards (far things hide near ones)"
LINE_BACKWARDS = "the cameras are in reverse order (far things hide near ones)"
WHICH_IS_OPEN = "Nothing in the views tells which of the two it is."
ORDERS = ("rows", "serpentine", "serpentine-columns")


@dataclass(frozen=True)
class Finding:
    """What is wrong with the camera axes, and whether the sign is certain."""

    arrangement: Arrangement
    text: str = ""
    is_sign_open: bool = False  # near and far may be exchanged; we cannot tell
    is_class_open: bool = False  # nor whether the axes are exchanged, or one of them is reversed


def find_arrangement(
    grey: GetGrey, grid: tuple[int, int], suspect: str, is_sign_known: bool
) -> Finding:
    """Find how to arrange the camera axes so that nearer points have larger disparity.

    `grey` returns the view at an offset of rows and columns from the centre, or None. `suspect`
    ("u" or "v") is the axis to reverse if one is wrong and occlusions do not show which.
    `is_sign_known`: this kind of file usually has our convention; only a clear vote overrules it.
    """
    found = _find_class(grey, grid)
    exchanged, opposed = found or (False, False)
    wrong = _describe(exchanged, opposed)
    flip_u, flip_v = opposed and suspect == "u", opposed and suspect == "v"
    verdict = _vote(grey, grid, Arrangement(exchanged, flip_u, flip_v), alone=not opposed)
    if verdict == "wrong":
        flip_u, flip_v = not flip_u, not flip_v
        backwards = LINE_BACKWARDS if 1 in grid else BOTH_BACKWARDS
        wrong = wrong if opposed else " and ".join(filter(None, (wrong, backwards)))
        if 1 in grid:  # there is only one axis to reverse
            is_row = (grid[0] == 1) != exchanged
            flip_u, flip_v = not is_row, is_row
    is_open = verdict == "open" and (opposed or not is_sign_known)
    return Finding(Arrangement(exchanged, flip_u, flip_v), wrong, is_open, found is None)


def _describe(exchanged: bool, opposed: bool) -> str:
    parts = ["camera rows and columns are exchanged"] if exchanged else []
    if opposed:
        parts.append("one camera axis runs backwards")
    return " and ".join(parts)


def say_correction(done: Arrangement, grid: tuple[int, int]) -> tuple[str, str]:
    """Say what was corrected, and which option to pass if that was wrong.

    Only occlusions show which of the two axes is wrong, so the choice may be a guess. Reversing
    the other axis gives the same disparities with near and far exchanged. A single row or column
    of views has no other axis.
    """
    if done.flip_u == done.flip_v:
        return "corrected", "If that is wrong, pass --no-check-orientation."
    axis, other = ("rows", "--flip-v") if done.flip_u else ("columns", "--flip-u")
    if 1 in grid:
        keeping = "--transpose" if done.transpose else "--no-check-orientation"
        return f"corrected by reversing the camera {axis}", f"If that is wrong, pass {keeping}."
    other = f"--transpose {other}" if done.transpose else other
    return (
        f"corrected by reversing the camera {axis}",
        f"If near and far come out exchanged, pass {other}; "
        "if nothing was wrong, --no-check-orientation.",
    )


def say_open_sign(grid: tuple[int, int], transposed: bool) -> str:
    """Say that near and far may be exchanged, and which options to pass.

    An option takes the place of the whole check, so it must repeat an exchange of the axes.
    """
    flips = "--flip-v" if grid[0] == 1 else "--flip-u" if grid[1] == 1 else "--flip-u --flip-v"
    flips, keeping = (
        (f"--transpose {flips}", "--transpose") if transposed else (flips, "--no-check-orientation")
    )
    return (
        "nothing in the views tells whether near and far are exchanged. If they come out "
        f"exchanged, pass {flips}; if not, {keeping}."
    )


def say_open_axes() -> str:
    """Say that the camera axes may be in any of eight arrangements, and how to find out."""
    return (
        "nothing in the views tells which way the camera axes run, nor whether near and far are "
        "exchanged. If the map is wrong, try --flip-u, --flip-v, both, and --transpose; if it is "
        "right, pass --no-check-orientation."
    )


def find_order(grey: GetGrey, grid: tuple[int, int]) -> str:
    """Find whether every second row or column of the grid runs backwards (one of ORDERS)."""
    farthest = min(size - 1 - size // 2 for size in grid)
    if farthest < 1:
        return "rows"
    farthest -= 1 - farthest % 2  # odd, so that the row has another parity than the centre
    for distance, side, step in _attempts(farthest):
        places = ((0, 0), (0, distance), (distance, 0), (distance, distance))
        found = _normalised(grey, places, side) if distance % 2 else None
        if found is None:
            continue
        centre, right, below, diagonal = found
        costs = _order_costs(centre, right, below, diagonal, step)
        best = min(costs, key=lambda order: costs[order])
        if all(costs[best] < CLEARLY_BETTER * costs[order] for order in costs if order != best):
            return best
    return "rows"


def _normalised(
    grey: GetGrey, places: Sequence[tuple[int, int]], side: int = WORKING_SIDE
) -> list[FloatArray] | None:
    """Load and normalise the views at these places; None if one of them is missing."""
    found = [grey(*place) for place in places]
    return (
        None
        if any(view is None for view in found)
        else [_normalise(view, side) for view in found if view is not None]
    )


def _attempts(farthest: int) -> list[tuple[int, int, float]]:
    """List what to try: distance of the views, working size and step of disparity.

    Distant views show small disparities best; closer ones are for large disparities.
    """
    near = [(distance, WORKING_SIDE, 1.0) for distance in _distances(farthest)]
    return [*near, (farthest, FINE_SIDE, FINE_STEP)]


def _distances(farthest: int) -> list[int]:
    """Distances from the outermost view to the neighbour, halved each time."""
    return [farthest >> halvings for halvings in range(farthest.bit_length())]


def _order_costs(
    centre: FloatArray, right: FloatArray, below: FloatArray, diagonal: FloatArray, step: float
) -> dict[str, float]:
    """Mean of the lowest cost for each order, over all directions of the axes."""
    costs = dict.fromkeys(ORDERS, np.inf)
    for exchange, sign in product((False, True), (1, -1)):
        way_right = (1, 0) if exchange else (0, 1)  # (y, x) motion per disparity
        way_below = (0, sign) if exchange else (sign, 0)
        least = {order: np.full(centre.shape, np.inf, np.float32) for order in ORDERS}
        for level in range(-LEVELS, LEVELS + 1):
            shift = level * step
            both = _level_cost(centre, right, way_right, shift)
            both += _level_cost(centre, below, way_below, shift)
            for order, turn_right, turn_below in zip(ORDERS, (1, -1, 1), (1, 1, -1), strict=True):
                y, x = (
                    turn_right * a + turn_below * b
                    for a, b in zip(way_right, way_below, strict=True)
                )
                total = both + _level_cost(centre, diagonal, (y, x), shift)
                np.minimum(least[order], total, out=least[order])
        for order in ORDERS:
            costs[order] = min(costs[order], float(least[order].mean()))
    return costs


def _find_class(grey: GetGrey, grid: tuple[int, int]) -> tuple[bool, bool] | None:
    """Whether the camera axes are exchanged, and run in opposite directions; None if not clear."""
    if 1 in grid:
        return _find_line(grey, grid), False
    farthest = min(size - 1 - size // 2 for size in grid)
    back = -1 if farthest == 0 else 1  # with two rows or columns, no view is beyond the centre
    for distance, side, step in _attempts(max(farthest, 1)):
        places = ((0, 0), (0, back * distance), (back * distance, 0))
        found = _normalised(grey, places, side)
        if found is None:
            continue
        centre, right, below = found
        costs = _class_costs(centre, right, below, step)
        best = min(costs, key=lambda case: costs[case])
        if all(costs[best] < CLEARLY_BETTER * costs[case] for case in costs if case != best):
            return best
    return None


def _find_line(grey: GetGrey, grid: tuple[int, int]) -> bool:
    """Whether a single row of views is really a column, or the other way round."""
    along = (0, 1) if grid[0] == 1 else (1, 0)
    for distance, side, step in _attempts(max(grid) - 1 - max(grid) // 2):
        found = _normalised(grey, ((0, 0), (along[0] * distance, along[1] * distance)), side)
        if found is None:
            continue
        centre, view = found
        least = {}
        for way in ((0, 1), (1, 0)):
            costs = [_level_cost(centre, view, way, n * step) for n in range(-LEVELS, LEVELS + 1)]
            least[way] = float(np.min(costs, axis=0).mean())
        as_is, turned = least[along], least[along[::-1]]
        if min(as_is, turned) < CLEARLY_BETTER * max(as_is, turned):
            return turned < as_is
    return False


def _class_costs(
    centre: FloatArray, right: FloatArray, below: FloatArray, step: float
) -> dict[tuple[bool, bool], float]:
    """Mean of the lowest cost for each case (exchanged, opposed), by level to save memory."""
    least = {
        (exchanged, opposed): np.full(centre.shape, np.inf, np.float32)
        for exchanged, opposed in product((False, True), repeat=2)
    }
    for level in range(-LEVELS, LEVELS + 1):
        shift = level * step
        for exchanged in (False, True):
            way_right, way_below = ((1, 0), (0, 1)) if exchanged else ((0, 1), (1, 0))
            moved_right = _level_cost(centre, right, way_right, shift)
            for opposed in (False, True):
                total = moved_right + _level_cost(
                    centre, below, way_below, -shift if opposed else shift
                )
                np.minimum(least[exchanged, opposed], total, out=least[exchanged, opposed])
    return {case: float(cost.mean()) for case, cost in least.items()}


def _vote(grey: GetGrey, grid: tuple[int, int], arrangement: Arrangement, alone: bool) -> str:
    """Check whether near surfaces hide far ones in this arrangement: "right", "wrong" or "open".

    The outermost views vote first, because they have the largest occlusions. If they do not
    decide, closer views vote, then larger pictures. `alone`: nothing else shows that an axis runs
    backwards.
    """
    reaches = [size - 1 - size // 2 for size in grid if size > 1]
    middle = grey(0, 0)
    is_fine = middle is not None and max(middle.shape) > WORKING_SIDE
    sides = (WORKING_SIDE, FINE_SIDE) if is_fine else (WORKING_SIDE,)
    for side, distance in product(sides, _distances(min(reaches))):
        verdict = _decide(_count_occlusions(grey, grid, arrangement, distance, side), alone)
        if verdict != "open":
            return verdict
    return "open"


def _decide(votes: NDArray[np.intp], alone: bool) -> str:
    """What votes (depth, view, 2) say: "right", "wrong" or "open"."""
    fewest, majority = (FEWEST_VOTES_ALONE, MAJORITY_ALONE) if alone else (FEWEST_VOTES, MAJORITY)
    clear = CONFIRMED if alone else MAJORITY
    shallow = FEWEST_SHALLOW, MAJORITY_SHALLOW, MAJORITY_SHALLOW, VOTERS
    limits = ((fewest, majority, clear, AGREEING), shallow)
    for counted, (fewest, to_turn, to_keep, agreeing) in zip(votes, limits, strict=True):
        right, wrong = counted.T
        if counted.sum() < fewest:
            continue
        if _win(wrong, right, to_turn, agreeing):
            return "wrong"
        if _win(right, wrong, to_keep, agreeing):
            return "right"
    return "open"


def _win(votes: NDArray[np.intp], others: NDArray[np.intp], majority: int, agreeing: int) -> bool:
    """Whether votes (view) outnumber others: in so many views, and in both opposite pairs.

    Horizontal edges and shadows can mislead both views of the vertical pair, but not the others.
    """
    agree = (votes >= VOTES_EACH) & (votes >= majority * others)
    in_pairs, against = (counted.reshape(-1, 2).sum(axis=1) for counted in (votes, others))
    return bool(agree.sum() >= agreeing and (in_pairs >= majority * against).all())


def _count_occlusions(
    grey: GetGrey, grid: tuple[int, int], arrangement: Arrangement, distance: int, side: int
) -> NDArray[np.intp]:
    """Count the pixels (depth, view, 2) that something nearer hides, and something farther."""
    steps = [
        _as_arranged(step, arrangement)  # (u, v) of the file
        for step in _voters(grid, arrangement.transpose, distance)
    ]
    stored = [step for step, _ in steps]
    found = _normalised(grey, [(0, 0), *stored], side)
    if found is None or len(stored) < VOTERS:
        return np.zeros((len(DEPTHS), VOTERS, 2), np.intp)
    ways = [(du / distance, dv / distance) for _, (du, dv) in steps]
    volume = np.stack(
        [_cost(found[0], view, way, window=5) for view, way in zip(found[1:], ways, strict=True)]
    )  # (view, d, h, w)
    level, is_clear = _choose_levels(volume)
    at_level = np.take_along_axis(volume, level[None, None], axis=1)[:, 0]  # (view, h, w)
    differences = [
        _hider_minus_hidden(way, cost, level - LEVELS, is_clear)
        for way, cost in zip(ways, at_level, strict=True)
    ]
    return np.array(
        [
            [[(seen >= depth).sum(), (seen <= -depth).sum()] for seen in differences]
            for depth in DEPTHS
        ]
    )


def _voters(grid: tuple[int, int], transpose: bool, distance: int) -> list[tuple[int, int]]:
    """Offsets (u, v), after arranging, from the centre to four views (fewer in a short row)."""
    if 1 not in grid:
        return [(0, distance), (0, -distance), (distance, 0), (-distance, 0)]
    half = distance // 2
    along = [step for step in (distance, -distance, half, -half) if step]
    is_row = (grid[0] == 1) != transpose
    return [(0, step) if is_row else (step, 0) for step in along]


def _as_arranged(
    step: tuple[int, int], arrangement: Arrangement
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return an offset as counted in the file, and as counted after arranging."""
    du, dv = step
    stored = (-du if arrangement.flip_u else du, -dv if arrangement.flip_v else dv)
    return (stored[1], stored[0]) if arrangement.transpose else stored, step


def _choose_levels(volume: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Find each pixel's disparity level from its two best views, and where it is unambiguous."""
    first, second = np.minimum(volume[:2], volume[2:]), np.maximum(volume[:2], volume[2:])
    best = np.minimum(first[0], first[1])
    next_best = np.minimum(np.maximum(first[0], first[1]), np.minimum(second[0], second[1]))
    total = best + next_best  # (d, h, w)
    level = total.argmin(axis=0)
    least = total.min(axis=0)
    elsewhere = np.abs(np.arange(len(total))[:, None, None] - level) > 2
    runner_up = np.where(elsewhere, total, np.inf).min(axis=0)
    # A repeating pattern has a second minimum and would vote at random.
    is_clear = (runner_up > 1.5 * least + 0.1) & (next_best.min(axis=0) < 0.25)
    return level, np.asarray(is_clear, dtype=np.bool_)


def _hider_minus_hidden(
    way: tuple[float, float],
    cost: FloatArray,
    disparity: NDArray[np.intp],
    is_clear: NDArray[np.bool_],
) -> FloatArray:
    """Disparity of the occluder minus that of each occluded pixel; NaN if unknown."""
    height, width = cost.shape
    y, x = np.mgrid[:height, :width]
    # position of the pixel in the view
    y, x = (
        np.rint(at - disparity * part).astype(np.intp) for at, part in ((y, way[0]), (x, way[1]))
    )
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & is_clear
    seen, hidden = inside & (cost < 0.25), inside & (cost > 0.6)
    shown = np.full((height, width), np.nan, dtype=np.float32)  # disparity seen by the view
    shown[y[seen], x[seen]] = disparity[seen]
    return np.asarray(shown[y[hidden], x[hidden]] - disparity[hidden], dtype=np.float32)


def _normalise(grey: FloatArray, side: int = WORKING_SIDE) -> FloatArray:
    """Scale down, and remove brightness and contrast, which differ between views."""
    scale = min(1.0, side / max(grey.shape))
    if scale < 1:
        size = max(1, round(grey.shape[1] * scale)), max(1, round(grey.shape[0] * scale))
        grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), dtype=np.float32)
    grey = np.ascontiguousarray(grey, dtype=np.float32)
    detail = grey - cv2.blur(grey, (WINDOW, WINDOW))
    contrast = np.sqrt(np.maximum(cv2.blur(detail * detail, (WINDOW, WINDOW)), 0))
    return np.asarray(detail / (contrast + 0.02), dtype=np.float32)


def _cost(
    centre: FloatArray, view: FloatArray, way: tuple[float, float], window: int = WINDOW
) -> FloatArray:
    """Matching cost (d, h, w) for d from -LEVELS to LEVELS."""
    levels = range(-LEVELS, LEVELS + 1)
    return np.stack([_level_cost(centre, view, way, level, window) for level in levels])


def _level_cost(
    centre: FloatArray,
    view: FloatArray,
    way: tuple[float, float],
    disparity: float,
    window: int = WINDOW,
) -> FloatArray:
    """Matching cost (h, w) for one disparity: the view moves by -disparity * `way` (y, x)."""
    y, x = (-disparity * part for part in way)
    moved = cv2.warpAffine(
        view,
        np.array([[1, 0, x], [0, 1, y]], dtype=np.float32),
        centre.shape[::-1],
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )
    difference = np.minimum(np.abs(moved - centre), CEILING)
    return np.asarray(cv2.blur(difference, (window, window)), dtype=np.float32)
