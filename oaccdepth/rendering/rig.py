"""Where the cameras stand: points in space <-> pictures and disparities. Arrays only.

Points are (..., 3): right, down, away from the reference camera. A pixel's centre has whole
coordinates. The disparity of a point is `beta` / depth - `offset` [px per camera step].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oaccdepth.lightfield import Camera, FloatArray
from oaccdepth.options import Range

Numbers = NDArray[np.floating[Any]]  # places in space and in pictures, of either precision

SENSOR_MM = 36.0
UNIT_MM = 100.0  # of a scene's lengths


@dataclass(frozen=True)
class Rig:
    """A plane of parallel cameras with shifted sensors."""

    size: tuple[int, int]  # height, width of a view [px]
    focal: float  # [px]
    beta: float = 1.0  # disparity [px per step] times depth
    offset: float = 0.0  # disparity of what is infinitely far, negated [px per step]

    @property
    def middle(self) -> tuple[float, float]:
        """Where the optical axis meets the reference view, (y, x) [px]."""
        return (self.size[0] - 1) / 2, (self.size[1] - 1) / 2

    @property
    def baseline(self) -> float:
        """Distance of neighbouring cameras, in units of the scene."""
        return self.beta / self.focal

    def project(self, points: Numbers) -> Numbers:
        """Points in space -> (..., 3): x, y [px] of the reference view and disparity [px]."""
        y, x = self.middle
        nearness = 1 / points[..., 2].astype(np.float64)
        picture_x = x + self.focal * points[..., 0] * nearness
        picture_y = y + self.focal * points[..., 1] * nearness
        disparity = self.beta * nearness - self.offset
        return np.stack([picture_x, picture_y, disparity], axis=-1).astype(np.float32)

    def place(self, x: Numbers, y: Numbers, nearness: Numbers | float) -> Numbers:
        """(x, y) [px] of the reference view and 1 / depth -> points in space, (..., 3)."""
        depth = 1 / np.broadcast_to(np.asarray(nearness, np.float64), np.shape(x))
        middle_y, middle_x = self.middle
        right, down = (x - middle_x) * depth / self.focal, (y - middle_y) * depth / self.focal
        return np.stack([right, down, depth], axis=-1).astype(np.float32)

    def with_disparities(self, nearness: Range, disparity: Range) -> Rig:
        """Move the cameras: 1 / depth from `nearness` gets the disparities of `disparity`."""
        beta = (disparity[1] - disparity[0]) / max(nearness[1] - nearness[0], 1e-9)
        return replace(self, beta=beta, offset=beta * nearness[0] - disparity[0])

    def camera(self) -> Camera | None:
        """The camera for parameters.cfg; None if its numbers cannot express it."""
        if self.offset < 0:
            return None
        focal_mm = self.focal * SENSOR_MM / max(self.size)
        focus_mm = UNIT_MM * self.beta / self.offset if self.offset > 0 else 0.0
        return Camera(self.baseline * UNIT_MM, focal_mm, SENSOR_MM, focus_mm)


def camera_places(grid: tuple[int, int]) -> FloatArray:
    """Places of a regular array around its reference view, (u, v, 2) [steps]."""
    u, v = np.arange(grid[0]) - grid[0] // 2, np.arange(grid[1]) - grid[1] // 2
    return np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).astype(np.float32)
