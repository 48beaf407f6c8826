"""Stored numbers -> uint8, uint16 or float32 in [0, 1]; alpha and weight -> validity; gamma."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.lightfield import LARGEST_VALUE, Array, BoolArray, FloatArray, as_grey

LINEAR_MEAN = 0.18  # a linear decode is darker than this on average
DISPLAY_GAMMA = 2.2
DARK = 0.1  # a pixel this much darker than the centre view's was not exposed
CELL = 16  # pixels; exposure is compared in cells that are larger than any shift between views


@dataclass(frozen=True)
class Conversion:
    """How stored numbers become the values of a light field; chosen once, from the centre view."""

    source: str  # for messages
    dtype: np.dtype[np.generic]  # of the light field
    factor: float  # stored -> light field
    channels: int  # of the light field, 1 or 3
    ignores_alpha: bool  # an alpha channel of zeros in the centre view says nothing

    def convert(self, stored: Array, name: str = "a view") -> tuple[Array, BoolArray | None]:
        """Turn (..., h, w, 1 to 4 channels) into (..., h, w, c) and its validity (None: all)."""
        colour, alpha = split_alpha(stored)
        if self.channels == 3 and colour.shape[-1] == 1:
            colour = np.broadcast_to(colour, (*colour.shape[:-1], 3))  # a grey view among RGB
        if colour.shape[-1] != self.channels:
            raise InvalidLightField(
                f"{self.source}: {name} is RGB, the centre view grey. Export all views alike."
            )
        valid = None if alpha is None or self.ignores_alpha else _is_positive(alpha)
        if colour.dtype.kind == "f" and self.dtype == np.float32:
            return self._convert_floats(colour, valid)
        return self._convert_integers(colour, name), _unless_all(valid)

    def _convert_integers(self, colour: Array, name: str) -> Array:
        if colour.dtype == self.dtype:
            return colour
        if colour.dtype.kind not in "biu" or self.dtype == np.float32:
            raise InvalidLightField(
                f"{self.source}: {name} is {colour.dtype}, the centre view {self.dtype}. "
                "Export all views alike."
            )
        if colour.dtype.kind == "b":
            return np.multiply(colour, 255, dtype=np.uint8)
        low, high = int(colour.min()), int(colour.max())
        if low < 0 or high > LARGEST_VALUE[self.dtype]:
            raise InvalidLightField(
                f"{self.source}: {name} has values from {low} to {high}, "
                f"expected 0 to {LARGEST_VALUE[self.dtype]:.0f} as in the centre view."
            )
        return colour.astype(self.dtype)

    def _convert_floats(
        self, colour: Array, valid: BoolArray | None
    ) -> tuple[FloatArray, BoolArray | None]:
        result = colour.astype(np.float32)
        finite: BoolArray = np.asarray(np.isfinite(result).all(axis=-1), dtype=np.bool_)
        if not finite.all():
            valid = finite if valid is None else valid & finite
            np.nan_to_num(result, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        if self.factor != 1:
            result *= np.float32(self.factor)
        np.clip(result, 0, 1, out=result)  # interpolated views overshoot a little
        return result, _unless_all(valid)


def with_channels(view: Array) -> Array:
    """Give a view (h, w) its channel axis."""
    return view[..., None] if view.ndim == 2 else view


def split_alpha(stored: Array) -> tuple[Array, Array | None]:
    """Part (..., 1 to 4 channels) into colour (..., 1 or 3) and alpha or weight, if any."""
    channels = stored.shape[-1]
    colour = stored[..., : 1 if channels < 3 else 3]
    return colour, stored[..., -1] if channels in (2, 4) else None


def choose_conversion(centre: Array, source: str) -> Conversion:
    """Choose from the centre view, (h, w) or (h, w, c), how the stored numbers are to be read."""
    centre = with_channels(centre)
    if centre.ndim != 3 or centre.shape[-1] not in (1, 2, 3, 4) or 0 in centre.shape:
        raise InvalidLightField(
            f"{source}: a view has shape {centre.shape}, "
            "expected (height, width) with 1 to 4 channels."
        )
    colour, alpha = split_alpha(centre)
    dtype, factor = _choose_scale(colour, source)
    ignores_alpha = alpha is not None and not alpha.any()
    return Conversion(source, dtype, factor, colour.shape[-1], ignores_alpha)


def _choose_scale(colour: Array, source: str) -> tuple[np.dtype[np.generic], float]:
    kind = colour.dtype.kind
    if kind == "b" or colour.dtype == np.uint8:
        return np.dtype(np.uint8), 1.0
    if kind == "u" and colour.dtype.itemsize == 2:
        return np.dtype(np.uint16), 1.0
    if kind not in "iuf":
        raise InvalidLightField(f"{source}: values are {colour.dtype}, expected numbers.")
    finite = colour[np.isfinite(colour)] if kind == "f" else colour
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if kind == "f":
        # A little above 1 is overshoot; a picture in 0..255 is never that dark.
        largest = 1.0 if high <= 2 else 255.0 if high <= 256 else 65535.0
    else:
        largest = 255.0 if high <= 255 else 65535.0
    lowest = -0.1 * largest if kind == "f" else 0
    if low < lowest or high > 2 * largest:
        raise InvalidLightField(
            f"{source}: values from {low:g} to {high:g}, expected 0 to 1, 255 or 65535."
        )
    if kind == "f":
        return np.dtype(np.float32), 1 / largest
    return np.dtype(np.uint8 if largest == 255 else np.uint16), 1.0


def _is_positive(values: Array) -> BoolArray:
    return np.asarray(np.not_equal(values, 0), dtype=np.bool_)


def _unless_all(valid: BoolArray | None) -> BoolArray | None:
    return None if valid is None or valid.all() else valid


def brightness(stored: Array) -> FloatArray:
    """Mean of every view of (u, v, h, w, 1 to 4 channels), in any unit; weight 0 is black."""
    colour, alpha = split_alpha(stored)
    grey = colour.astype(np.float32).mean(axis=-1)
    if alpha is not None and alpha.any():
        grey *= _is_positive(alpha)
    return np.asarray(np.nan_to_num(grey).mean(axis=(2, 3)), dtype=np.float32)


def choose_gamma(centre: Array) -> float:
    """Display gamma for a centre view (h, w, c) that may be linear; 1 if it is not dark."""
    return DISPLAY_GAMMA if float(as_grey(centre).mean()) < LINEAR_MEAN else 1.0


def apply_gamma(views: Array, gamma: float) -> None:
    """Raise the values to 1/gamma, in place, view by view."""
    for row in views:
        for view in row:
            if view.dtype == np.float32:
                np.power(view, np.float32(1 / gamma), out=view)
            else:
                largest = LARGEST_VALUE[view.dtype]
                table = (np.arange(largest + 1) / largest) ** (1 / gamma) * largest
                view[...] = np.rint(table).astype(view.dtype)[view]


def exposed_pixels(view: Array, centre: Array) -> BoolArray:
    """Where a view (h, w, c) is exposed: not in corners that are dark but for the centre view.

    Brightness is compared in cells of a few pixels.
    """
    height, width = view.shape[:2]
    cells = max(1, round(width / CELL)), max(1, round(height / CELL))
    mine, theirs = (
        cv2.resize(as_grey(picture), cells, interpolation=cv2.INTER_AREA)
        for picture in (view, centre)
    )
    dark = _touching_corners((mine < DARK * theirs).astype(np.uint8))
    return np.asarray(
        cv2.resize(dark, (width, height), interpolation=cv2.INTER_NEAREST) == 0, dtype=np.bool_
    )


def _touching_corners(dark: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Keep the dark regions that reach a corner; others belong to the scene."""
    _, labels = cv2.connectedComponents(dark)
    corners = set(labels[[0, 0, -1, -1], [0, -1, 0, -1]].tolist()) - {0}
    return np.isin(labels, list(corners)).astype(np.uint8)


def as_map(values: Array, path: Path) -> FloatArray:
    """Check that an array is one map of numbers, and make it float32."""
    values = np.squeeze(np.asarray(values))
    if values.ndim != 2 or values.dtype.kind not in "iuf":
        raise UnreadableFile(
            f"{path}: holds {values.dtype} of shape {values.shape}, "
            "expected one disparity map (height, width)."
        )
    return np.ascontiguousarray(values, dtype=np.float32)
