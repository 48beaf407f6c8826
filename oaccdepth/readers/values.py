"""Stored numbers -> uint8, uint16 or float32 in [0, 1]; alpha and weight -> validity; gamma."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.lightfield import LARGEST_VALUE, Array, BoolArray, FloatArray, as_grey

LINEAR_MEAN = 0.18  # linear values are darker than this on average
DISPLAY_GAMMA = 2.2
DARK = 0.1  # a pixel below this share of the centre view's was not exposed
USUAL_VALUE = 4096  # a 16-bit picture without brighter pixels uses 12 bits or fewer
WHITES = 255, 1023, 4095, 16383, 65535  # common values of white in 16-bit files
MOST_EXPOSURE = 1.6  # ratio of brightness between views; values of white differ by 4
PICTURE_TYPES = (np.dtype(np.uint8), np.dtype(np.uint16))
CELL = 16  # px; exposure is compared in cells larger than any shift between views


class Converted(NamedTuple):
    """Stored numbers, converted to values of a light field."""

    colour: Array  # (..., h, w, c)
    valid: BoolArray | None  # (..., h, w); None: all
    unknown: int = 0  # pixels that are not finite
    rescaled: bool = False  # from another bit depth


@dataclass(frozen=True)
class Conversion:
    """How to convert stored numbers to values of a light field; chosen from the centre view."""

    source: str  # for messages
    dtype: np.dtype[np.generic]  # of the light field
    factor: float  # stored -> light field
    channels: int  # of the light field, 1 or 3
    ignores_alpha: bool  # alpha is 0 everywhere in the centre view, so it means nothing
    brightness: float  # mean of the centre view, in values of the light field
    notes: tuple[str, ...] = ()

    def convert(self, stored: Array, name: str = "a view") -> Converted:
        """Convert (..., h, w, 1 to 4 channels) to (..., h, w, c) and a validity mask (or None)."""
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
        converted, rescaled = self._convert_pictures(colour, name)
        return Converted(converted, _unless_all(valid), rescaled=rescaled)

    def _convert_pictures(self, colour: Array, name: str) -> tuple[Array, bool]:
        """Convert (..., h, w, c); also return whether a view has another bit depth."""
        if colour.ndim > 3 and self._has_other_bits(colour):  # perhaps in one view only
            parts = [self._convert_pictures(part, name) for part in colour]
            return np.stack([part for part, _ in parts]), any(scaled for _, scaled in parts)
        if self._has_other_bits(colour):
            return self._rescale(colour, name), True
        return self._convert_integers(colour, name), False

    def _has_other_bits(self, colour: Array) -> bool:
        """Whether a picture has another bit depth: another type, or larger values and mean.

        The mean counts, too, because a view of the same depth may have a few brighter pixels.
        """
        if colour.dtype != self.dtype:
            return colour.dtype in PICTURE_TYPES
        if self.factor == 1 or self.dtype != np.uint16 or colour.max() <= self._largest_stretched:
            return False
        views = colour.reshape(-1, *colour.shape[-3:])
        brightest = max(float(view.mean()) for view in views)
        return self.factor * brightest > MOST_EXPOSURE * self.brightness

    @property
    def _largest_stretched(self) -> int:
        return int(LARGEST_VALUE[self.dtype] / self.factor)

    def _rescale(self, colour: Array, name: str) -> Array:
        """Scale a picture of another bit depth to the values of the centre view.

        A 16-bit file may use 8 to 16 bits. The right scale makes both views equally bright.
        """
        if self.dtype == np.float32:
            raise self._other_type(colour, name)
        mean = float(colour.mean())
        scales = [own / white for own in _whites(self.dtype) for white in _whites(colour.dtype)]
        scale = LARGEST_VALUE[self.dtype] / LARGEST_VALUE[colour.dtype]
        if mean > 0 and self.brightness > 0:
            wanted = math.log(self.brightness / mean)
            scale = min(scales, key=lambda each: abs(math.log(each) - wanted))
            if abs(math.log(scale) - wanted) > math.log(MOST_EXPOSURE):
                raise self._unclear_scale(colour, name)
        scaled = np.rint(colour.astype(np.float32) * np.float32(scale))
        return np.asarray(np.minimum(scaled, LARGEST_VALUE[self.dtype]), dtype=self.dtype)

    def _unclear_scale(self, colour: Array, name: str) -> InvalidLightField:
        mine, theirs = f"{8 * colour.dtype.itemsize} bits", f"{8 * self.dtype.itemsize}"
        if colour.dtype == self.dtype:
            mine, theirs = f"values up to {colour.max()}", f"up to {self._largest_stretched}"
        return InvalidLightField(
            f"{self.source}: {name} has {mine}, the centre view {theirs}, and their brightness "
            "does not tell how to scale it. Export all views alike."
        )

    def _other_type(self, colour: Array, name: str) -> InvalidLightField:
        return InvalidLightField(
            f"{self.source}: {name} is {colour.dtype}, the centre view {self.dtype}. "
            "Export all views alike."
        )

    def _convert_integers(self, colour: Array, name: str) -> Array:
        if colour.dtype == self.dtype:
            return self._stretch(colour)
        if colour.dtype.kind not in "biu" or self.dtype == np.float32:
            raise self._other_type(colour, name)
        if colour.dtype.kind == "b":
            return np.multiply(colour, 255, dtype=np.uint8)
        low, high = int(colour.min()), int(colour.max())
        if low < 0 or high > LARGEST_VALUE[self.dtype]:
            raise InvalidLightField(
                f"{self.source}: {name} has values from {low} to {high}, "
                f"expected 0 to {LARGEST_VALUE[self.dtype]:.0f} as in the centre view."
            )
        return self._stretch(colour.astype(self.dtype))

    def _stretch(self, colour: Array) -> Array:
        if self.factor == 1:
            return colour
        stretched = np.minimum(colour, self._largest_stretched)
        return np.multiply(stretched, int(self.factor), dtype=self.dtype)

    def _convert_floats(self, colour: Array, valid: BoolArray | None) -> Converted:
        with np.errstate(over="ignore"):  # too large for float32: infinite, then masked
            result = colour.astype(np.float32)
        finite: BoolArray = np.asarray(np.isfinite(result).all(axis=-1), dtype=np.bool_)
        unknown = finite.size - int(np.count_nonzero(finite))
        if unknown:
            valid = finite if valid is None else valid & finite
            np.nan_to_num(result, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        if self.factor != 1:
            result *= np.float32(self.factor)
        np.clip(result, 0, 1, out=result)  # interpolated views overshoot a little
        return Converted(result, _unless_all(valid), unknown)


@dataclass
class Report:
    """Problems with the values of the views, collected while reading."""

    unknown: int = 0  # pixels that are not finite
    rescaled: list[str] = field(default_factory=list)  # names of views

    def add(self, converted: Converted, name: str) -> None:
        """Add the problems of one view, or of a piece of several views."""
        self.unknown += converted.unknown
        if converted.rescaled:
            self.rescaled.append(name)

    def notes(self) -> list[str]:
        """Describe the problems in sentences."""
        found = []
        if self.unknown:
            what = "1 pixel is" if self.unknown == 1 else f"{self.unknown} pixels are"
            found.append(f"{what} NaN or infinite: masked out.")
        if self.rescaled:
            names = ", ".join(self.rescaled[:3])
            more = f" and {len(self.rescaled) - 3} more" if len(self.rescaled) > 3 else ""
            found.append(f"Scaled to the bit depth of the centre view: {names}{more}.")
        return found


def with_channels(view: Array) -> Array:
    """Add a channel axis to a view (h, w)."""
    return view[..., None] if view.ndim == 2 else view


def split_alpha(stored: Array) -> tuple[Array, Array | None]:
    """Split (..., 1 to 4 channels) into colour (..., 1 or 3) and alpha or weight, if any."""
    channels = stored.shape[-1]
    colour = stored[..., : 1 if channels < 3 else 3]
    return colour, stored[..., -1] if channels in (2, 4) else None


def choose_conversion(
    centre: Array, source: str, *, believes_alpha: bool = False, keeps_dark: bool = False
) -> Conversion:
    """Choose how to convert stored numbers, from the centre view, (h, w) or (h, w, c).

    `believes_alpha`: an alpha of 0 everywhere means that nothing is valid; by default, ignore it.
    `keeps_dark`: do not stretch 16-bit values that use only a few of their bits.
    """
    centre = with_channels(centre)
    if centre.ndim != 3 or centre.shape[-1] not in (1, 2, 3, 4) or 0 in centre.shape:
        raise InvalidLightField(
            f"{source}: a view has shape {centre.shape}, "
            "expected (height, width) with 1 to 4 channels."
        )
    colour, alpha = split_alpha(centre)
    dtype, factor = _choose_scale(colour, source)
    ignores_alpha = alpha is not None and not believes_alpha and not alpha.any()
    notes: tuple[str, ...] = ()
    if dtype == np.uint16 and keeps_dark:
        factor = 1.0
    if dtype == np.uint16 and factor > 1:
        notes = (
            f"Values up to {int(colour.max())} of 65535 are very dark: multiplied by {factor:.0f}.",
        )
    mean = factor * float(colour.mean()) if colour.dtype in PICTURE_TYPES else 0.0
    return Conversion(source, dtype, factor, colour.shape[-1], ignores_alpha, mean, notes)


def _whites(dtype: np.dtype[np.generic]) -> tuple[int, ...]:
    return WHITES[:1] if dtype == np.uint8 else WHITES


def _choose_scale(colour: Array, source: str) -> tuple[np.dtype[np.generic], float]:
    kind = colour.dtype.kind
    if kind == "b" or colour.dtype == np.uint8:
        return np.dtype(np.uint8), 1.0
    if kind == "u" and colour.dtype.itemsize == 2:
        return np.dtype(np.uint16), _stretch_factor(int(colour.max()))
    if kind not in "iuf":
        raise InvalidLightField(f"{source}: values are {colour.dtype}, expected numbers.")
    finite = colour[np.isfinite(colour)] if kind == "f" else colour
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if kind == "f":
        # Values slightly above 1 are overshoot; a picture in 0..255 is never that dark.
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
    if largest == 255:
        return np.dtype(np.uint8), 1.0
    return np.dtype(np.uint16), _stretch_factor(int(high))


def _stretch_factor(largest: int) -> float:
    """Integer factor for 16-bit values that use only a few of their bits."""
    return float((1 << 16) >> largest.bit_length()) if 1 < largest < USUAL_VALUE else 1.0


def _is_positive(values: Array) -> BoolArray:
    return np.asarray(np.not_equal(values, 0), dtype=np.bool_)


def _unless_all(valid: BoolArray | None) -> BoolArray | None:
    return None if valid is None or valid.all() else valid


def brightness(stored: Array) -> FloatArray:
    """Mean of each view in (u, v, h, w, 1 to 4 channels), in any unit; weight 0 counts as black."""
    colour, alpha = split_alpha(stored)
    grey = colour.astype(np.float32).mean(axis=-1)
    if alpha is not None and alpha.any():
        grey *= _is_positive(alpha)
    return np.asarray(np.nan_to_num(grey).mean(axis=(2, 3)), dtype=np.float32)


def choose_gamma(centre: Array) -> float:
    """Choose the display gamma for a centre view (h, w, c) that may be linear; 1 if not dark."""
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
    """Where a view (h, w, c) is exposed: not in corners that are bright in the centre view only.

    Brightness is compared in cells of several pixels.
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
    """Keep only dark regions that touch a corner; others belong to the scene."""
    _, labels = cv2.connectedComponents(dark)
    corners = set(labels[[0, 0, -1, -1], [0, -1, 0, -1]].tolist()) - {0}
    return np.isin(labels, list(corners)).astype(np.uint8)


def as_map(values: Array, path: Path) -> FloatArray:
    """Check that an array is a single map of numbers, and convert it to float32."""
    values = np.squeeze(np.asarray(values))
    if values.ndim != 2 or values.dtype.kind not in "iuf":
        raise UnreadableFile(
            f"{path}: holds {values.dtype} of shape {values.shape}, "
            "expected one disparity map (height, width)."
        )
    with np.errstate(over="ignore"):  # too large for float32: infinite
        return np.ascontiguousarray(values, dtype=np.float32)
