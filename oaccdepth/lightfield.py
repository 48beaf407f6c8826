"""LightField: a grid of views of one scene, checked on construction. Arrays only, no files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from oaccdepth.errors import InvalidLightField
from oaccdepth.options import Range

Array = NDArray[np.generic]
FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]

LARGEST_VALUE = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0, np.dtype(np.float32): 1.0}
UNEVEN = 0.05  # steps: tolerance, because a gantry does not move exactly evenly


@dataclass(frozen=True)
class Camera:
    """The cameras of a scene, as in its configuration; converts disparity to depth."""

    baseline_mm: float  # between neighbouring cameras
    focal_mm: float
    sensor_mm: float  # size of the larger side of the picture
    focus_mm: float  # distance of zero disparity; 0: parallel cameras, zero disparity at infinity
    right_mm: float = 0.0  # offset of the picture's centre from the optical axis, on the sensor
    down_mm: float = 0.0  # not 0 if the picture was cropped

    def depth_mm(self, disparity: FloatArray, larger_side_px: int) -> FloatArray:
        """Depth along the axis [mm]; infinite if the disparity is that of infinity or less."""
        beta = self.baseline_mm * self.focal_mm * larger_side_px
        offset = 0.0 if self.focus_mm == 0 else beta / self.focus_mm  # disparity 0 at the focus
        denominator = disparity.astype(np.float64) * self.sensor_mm + offset
        depth = np.full(disparity.shape, np.inf)
        np.divide(beta, denominator, out=depth, where=denominator > 0)
        return depth.astype(np.float32)

    def disparity_px(self, depth_mm: FloatArray, larger_side_px: int) -> FloatArray:
        """Disparity [px per view step] of a depth [mm]; the inverse of `depth_mm`."""
        beta = self.baseline_mm * self.focal_mm * larger_side_px
        offset = 0.0 if self.focus_mm == 0 else beta / self.focus_mm
        result = (beta / depth_mm.astype(np.float64) - offset) / self.sensor_mm
        return np.asarray(result, dtype=np.float32)


@dataclass(frozen=True, eq=False)  # eq=False: comparing arrays has no single truth value
class LightField:
    """A grid of views of one scene, seen from a plane of camera positions.

    u runs down the camera rows, v across the columns; the centre view is (u // 2, v // 2). A point
    at (y, x) of the centre view with disparity d is at (y - d*(u-uc), x - d*(v-vc)) of view (u, v):
    the sign of the HCI ground truth; nearer is larger.

    Where `places` is given, the cameras stand there instead of at (u-uc, v-vc): every n-th view
    of a large capture, or a gantry that does not move evenly. Disparity is per unit of place.
    """

    views: Array  # (u, v, h, w, c) uint8, uint16 or float32 in [0, 1]; c is 1 (grey) or 3 (RGB)
    valid: BoolArray | None = None  # (u, v) or (u, v, h, w): False where there is no picture
    source: str = ""  # name of the source for messages, never a full path
    format: str = ""  # name of the reader
    reason: str = ""  # how it was recognised
    camera: Camera | None = None
    disparity_range: Range | None = None  # [px], if the files state it
    notes: tuple[str, ...] = field(default=())  # what was left out, corrected or assumed
    places: FloatArray | None = None  # (u, v, 2) down and right of the centre view [steps]
    reference: tuple[int, int] | None = None  # (u, v) of the view to describe; None: the centre

    def __post_init__(self) -> None:
        views = self.views
        if views.ndim != 5 or views.shape[-1] not in (1, 3):
            raise InvalidLightField(
                f"{self.source or 'light field'}: views have shape {views.shape}, "
                "expected (u, v, h, w, c) with c = 1 or 3."
            )
        if views.dtype not in LARGEST_VALUE:
            raise InvalidLightField(
                f"{self.source or 'light field'}: views are {views.dtype}, "
                "expected uint8, uint16 or float32 in [0, 1]."
            )
        if self.valid is not None and self.valid.shape not in (views.shape[:2], views.shape[:4]):
            raise InvalidLightField(
                f"{self.source or 'light field'}: the validity mask has shape {self.valid.shape}, "
                f"expected {views.shape[:2]} or {views.shape[:4]}."
            )
        if self.valid is not None and not self.valid.any():
            raise InvalidLightField(
                f"{self.source or 'light field'}: the validity mask is False everywhere, "
                "so there is no picture. Correct it, or leave it out."
            )
        if self.places is not None:
            self._check_places(self.places)
        if self.reference is not None:
            self._check_reference(self.reference)

    def _check_reference(self, reference: tuple[int, int]) -> None:
        (u, v), (rows, columns) = reference, self.grid
        name = self.source or "light field"
        if not (0 <= u < rows and 0 <= v < columns):
            raise InvalidLightField(
                f"{name}: has no view {u},{v}. Its views go from 0,0 to {rows - 1},{columns - 1}."
            )
        if reference in self.missing_views:
            raise InvalidLightField(f"{name}: view {u},{v} is missing. Choose another one.")

    def _check_places(self, places: FloatArray) -> None:
        rows, columns = self.grid
        name = self.source or "light field"
        if places.shape != (rows, columns, 2) or not np.isfinite(places).all():
            raise InvalidLightField(
                f"{name}: the camera places have shape {places.shape}, "
                f"expected finite numbers of shape {(rows, columns, 2)}."
            )
        if places[rows // 2, columns // 2].any():
            raise InvalidLightField(
                f"{name}: the centre view's camera is at {places[rows // 2, columns // 2]}, "
                "expected (0, 0): places are relative to it."
            )

    @property
    def camera_places(self) -> FloatArray:
        """Places (u, v, 2) of the cameras, down and right of the centre view [steps]."""
        if self.places is not None:
            return self.places
        rows, columns = self.grid
        down, right = np.mgrid[:rows, :columns]
        regular = np.stack([down - rows // 2, right - columns // 2], axis=-1)
        return regular.astype(np.float32)

    @property
    def step(self) -> float:
        """Distance between neighbouring views [capture steps]: 2 if every other one is used."""
        if self.places is None or self.views.shape[0] * self.views.shape[1] < 2:
            return 1.0
        along = np.diff(self.places, axis=1 if self.grid[1] > 1 else 0)
        step = float(np.median(np.linalg.norm(along, axis=-1)))
        return 1.0 if abs(step - 1) < UNEVEN or step == 0 else step

    def in_own_steps(self) -> LightField:
        """The same, but with disparities per step between the views used, not per capture step.

        Its disparities are those of the capture [px per capture step] times `step`.
        """
        if self.step == 1:
            return self
        scaled = (self.camera_places / np.float32(self.step)).astype(np.float32)
        regular = replace(self, places=None).camera_places
        ends = self.disparity_range
        return replace(
            self,
            places=None if np.allclose(scaled, regular, atol=1e-3) else scaled,
            disparity_range=None if ends is None else (ends[0] * self.step, ends[1] * self.step),
            camera=None
            if self.camera is None
            else replace(self.camera, baseline_mm=self.camera.baseline_mm * self.step),
        )

    @property
    def grid(self) -> tuple[int, int]:
        """Number of camera rows and columns."""
        return self.views.shape[0], self.views.shape[1]

    @property
    def resolution(self) -> tuple[int, int]:
        """Height and width of each view [px]."""
        return self.views.shape[2], self.views.shape[3]

    @property
    def reference_view(self) -> tuple[int, int]:
        """Grid position (u, v) of the view to describe: the centre view, unless another is set."""
        rows, columns = self.grid
        return self.reference or (rows // 2, columns // 2)

    @property
    def centre(self) -> FloatArray:
        """The reference view, (h, w, c) float32 in [0, 1]."""
        return as_float(self.views[self.reference_view])

    @property
    def missing_views(self) -> list[tuple[int, int]]:
        """Grid positions (u, v) without a picture."""
        if self.valid is None:
            return []
        present = self.valid if self.valid.ndim == 2 else self.valid.any(axis=(2, 3))
        return [(int(u), int(v)) for u, v in np.argwhere(~present)]


def as_float(values: Array, out: FloatArray | None = None) -> FloatArray:
    """Stored values as float32 in [0, 1]; written straight into `out`, if given."""
    scale = np.float32(1 / LARGEST_VALUE[values.dtype])
    return np.multiply(values, scale, out=out, dtype=np.float32)


def as_grey(values: Array) -> FloatArray:
    """Grey in [0, 1], the plain mean of the channels on the last axis (as in the paper's code)."""
    if values.shape[-1] == 1:
        return as_float(values[..., 0])
    total = values[..., 0].astype(np.float32)
    for channel in range(1, values.shape[-1]):
        total += values[..., channel].astype(np.float32)
    total *= np.float32(1 / (values.shape[-1] * LARGEST_VALUE[values.dtype]))
    return total
