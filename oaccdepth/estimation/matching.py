"""Coarse matches of the centre view with near and far views: NumPy and OpenCV, some milliseconds.

For every pixel of a reduced centre view and every disparity of a list: how badly the near views
and the far views, each on their own, contradict it. Pictures are compared by their detail over
their local contrast, so that views may differ in brightness, and as bytes, which is fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.lightfield import FloatArray, LightField, as_grey

Bytes = NDArray[np.uint8]
Sides = dict[str, list[tuple[float, tuple[int, int]]]]

WINDOW = 5  # px; costs are averaged over it
LARGE_WINDOW = 9  # px; over which they are averaged once more, where there is noise
DETAIL = 7  # px; over which contrast is measured
LEAST_FLOOR, MOST_FLOOR = 0.0015, 0.02  # contrast that counts as half, in faint and usual pictures
UNIT, MIDDLE = 80, 128  # a normalised value of 0 and 1 as bytes: 128 and 208
CEILING = UNIT  # of the difference of two pixels
PHASES = 4  # views are compared at quarters of a pixel
FAR = 4.0  # steps: how far the far views are, at most
ASIDE = 0.5  # steps; a view counts as beside the centre if it is less than that above or below


@dataclass(frozen=True, eq=False)
class Costs:
    """How badly each level fits: 0 is perfect, `CEILING` not at all."""

    levels: FloatArray  # (n,) disparity [px of the full size], evenly spaced
    near: Bytes  # (n, h, w)
    far: Bytes  # (n, h, w)
    texture: Bytes  # (h, w): mean size of the centre view's values
    side: int  # px on the longer side, as asked for
    reach: float  # steps, as asked for

    def blurred(self) -> Costs:
        """Means over large windows."""
        window = (LARGE_WINDOW, LARGE_WINDOW)
        near, far = (
            np.stack([np.asarray(cv2.blur(cost, window), np.uint8) for cost in volume])
            for volume in (self.near, self.far)
        )
        texture = np.asarray(cv2.blur(self.texture, window), np.uint8)
        return replace(self, near=near, far=far, texture=texture)


@dataclass(eq=False)
class Moving:
    """A normalised view that can be sampled anywhere at quarters of a pixel."""

    picture: Bytes
    place: FloatArray  # (2,) down and right of the centre view [steps]
    phases: dict[tuple[int, int], Bytes] = field(default_factory=dict)

    def phase(self, down: int, right: int) -> Bytes:
        """The view, moved by so many quarters of a pixel, less than one pixel."""
        if (down, right) not in self.phases:
            matrix = np.array([[1, 0, right / PHASES], [0, 1, down / PHASES]])
            self.phases[down, right] = np.asarray(
                cv2.warpAffine(
                    self.picture,
                    matrix,
                    self.picture.shape[::-1],
                    flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
                    borderMode=cv2.BORDER_REPLICATE,
                ),
                dtype=np.uint8,
            )
        return self.phases[down, right]

    def cost(self, centre: Bytes, disparity: float, window: int = WINDOW) -> Bytes:
        """Difference to the centre view (h, w), averaged; `CEILING` outside the frame."""
        height, width = centre.shape
        quarters = [round(-PHASES * disparity * float(part)) for part in self.place]
        (y, down), (x, right) = (divmod(number, PHASES) for number in quarters)
        result = np.full((height, width), CEILING, dtype=np.uint8)
        top, bottom = max(0, -y), min(height, height - y)
        left, end = max(0, -x), min(width, width - x)
        if bottom - top < WINDOW or end - left < WINDOW:
            return result
        moved = self.phase(down, right)[top + y : bottom + y, left + x : end + x]
        difference = cv2.absdiff(moved, centre[top:bottom, left:end])
        difference = np.minimum(difference, CEILING, dtype=np.uint8)
        if window > 1:
            difference = np.asarray(cv2.blur(difference, (window, window)), np.uint8)
        result[top:bottom, left:end] = difference
        return result


class Matcher:
    """Compares the centre view of a light field with views beside, above and below it."""

    def __init__(self, light_field: LightField, *, are_strange: bool = False) -> None:
        self.light_field = light_field
        self.are_strange = are_strange  # the other views: pictures of nothing that the centre shows
        self.sides = _views_on_axes(light_field)
        self._grey: dict[tuple[int, int], FloatArray] = {}

    @property
    def nearest(self) -> float:
        """Distance of the nearest views [steps]; 0 if there are none."""
        return min((views[0][0] for views in self.sides.values() if views), default=0.0)

    def farthest(self, limit: float) -> float:
        """Distance of the farthest views that are not further than `limit` [steps]."""
        chosen = self._choose(limit).values()
        places = self.light_field.camera_places
        return max((float(np.abs(places[view]).max()) for view in chosen), default=0.0)

    def compare(self, side: int, levels: FloatArray, reach: float, *, faint: bool = False) -> Costs:
        """Compare at `side` pixels on the longer side, with views up to `reach` steps away.

        `faint`: the least contrast counts as much as any other.
        """
        rows, columns = self.light_field.grid
        factor = max(1.0, max(self.light_field.resolution) / side)
        detail, contrast = self.detail((rows // 2, columns // 2), factor)
        usual = float(np.clip(np.percentile(contrast, 75) / 2, LEAST_FLOOR, MOST_FLOOR))
        floor = LEAST_FLOOR if faint else usual
        centre = _as_bytes(detail, contrast, floor)
        near, far = (
            [
                self._cost(level / factor, centre, group)
                for group in [self._group(self._choose(limit), factor, floor)]
                for level in levels
            ]
            for limit in (0.0, reach)
        )
        size = cv2.blur(cv2.absdiff(centre, np.full_like(centre, MIDDLE)), (WINDOW, WINDOW))
        texture = np.asarray(size, dtype=np.uint8)
        return Costs(levels, np.stack(near), np.stack(far), texture, side, reach)

    def compare_faint(self, like: Costs) -> Costs:
        """The same comparison over large windows, with the least contrast as good as any other."""
        faint = self.compare(like.side, like.levels, like.reach, faint=True)
        return faint.blurred()

    def strange(self) -> Matcher:
        """The same with other views that have as much texture, but not that of the centre view."""
        return Matcher(self.light_field, are_strange=True)

    def has_more_than(self, near: float, far: float) -> bool:
        """Whether the farthest views within `far` steps are others than those within `near`."""
        return self._choose(near) != self._choose(far)

    def _choose(self, limit: float) -> dict[str, tuple[int, int]]:
        """On each side the farthest view within `limit` steps, or else the nearest."""
        chosen = {}
        for side, views in self.sides.items():
            within = [view for distance, view in views if distance <= limit + 1e-3]
            if views:
                chosen[side] = within[-1] if within else views[0][1]
        return chosen

    def _group(
        self, chosen: dict[str, tuple[int, int]], factor: float, floor: float
    ) -> list[list[Moving]]:
        """The chosen views, opposite ones together."""
        places = self.light_field.camera_places
        moving = {
            side: Moving(_as_bytes(*self.detail(view, factor), floor), places[view])
            for side, view in chosen.items()
        }
        pairs = [[moving[side] for side in pair if side in moving] for pair in OPPOSITE]
        return [pair for pair in pairs if pair]

    @staticmethod
    def _cost(disparity: float, centre: Bytes, axes: Sequence[Sequence[Moving]]) -> Bytes:
        """Mean over the axes; of opposite views the better one: it sees what the other cannot."""
        costs = []
        for pair in axes:
            first, *others = (view.cost(centre, disparity) for view in pair)
            costs.append(cv2.min(first, others[0]) if others else first)
        if len(costs) == 1:
            return np.asarray(costs[0], dtype=np.uint8)
        return np.asarray(cv2.addWeighted(costs[0], 0.5, costs[1], 0.5, 0), dtype=np.uint8)

    def detail(self, view: tuple[int, int], factor: float) -> tuple[FloatArray, FloatArray]:
        """Detail of a reduced view, and its local contrast."""
        if view not in self._grey:
            self._grey[view] = as_grey(self.light_field.views[view])
        grey = self._grey[view]
        if factor > 1:
            height, width = grey.shape
            size = max(WINDOW, round(width / factor)), max(WINDOW, round(height / factor))
            grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.float32)
        detail = grey - cv2.blur(grey, (DETAIL, DETAIL))
        contrast = np.sqrt(np.maximum(cv2.blur(detail * detail, (DETAIL, DETAIL)), 0))
        rows, columns = self.light_field.grid
        if self.are_strange and view != (rows // 2, columns // 2):
            return -_turned(detail), _turned(contrast)  # the negative: lattices may be symmetric
        return detail, contrast


def _turned(picture: FloatArray) -> FloatArray:
    """Rows become columns; what is missing then is repeated. No stripe is like one of before."""
    height, width = picture.shape
    rows, columns = np.arange(height)[:, None] % width, np.arange(width) % height
    return np.asarray(picture.T[rows, columns], dtype=np.float32)


OPPOSITE = (("right", "left"), ("below", "above"))


def _views_on_axes(light_field: LightField) -> Sides:
    """Distance and grid position of the views on each side of the centre, the nearest first."""
    sides: Sides = {side: [] for pair in OPPOSITE for side in pair}
    missing = set(light_field.missing_views)
    places = light_field.camera_places
    for u, v in np.ndindex(*light_field.grid):
        down, right = (float(part) for part in places[u, v])
        if (u, v) in missing or (down, right) == (0.0, 0.0):
            continue
        if abs(down) < ASIDE:
            sides["right" if right > 0 else "left"].append((abs(right), (u, v)))
        elif abs(right) < ASIDE:
            sides["below" if down > 0 else "above"].append((abs(down), (u, v)))
    return {side: sorted(found) for side, found in sides.items()}


def _as_bytes(detail: FloatArray, contrast: FloatArray, floor: float) -> Bytes:
    scaled = detail / (contrast + np.float32(floor)) * UNIT + MIDDLE
    return np.asarray(np.clip(np.rint(scaled), 0, 255), dtype=np.uint8)


def descend(total: NDArray[np.uint16], level: NDArray[np.intp]) -> NDArray[np.intp]:
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


def between_levels(
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
