"""--crop and --scale: cut out and shrink a part of each view. Arrays only, no files."""

from __future__ import annotations

import re
from dataclasses import dataclass

import cv2
import numpy as np

from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import Array, BoolArray, FloatArray
from oaccdepth.options import ReadOptions

CROP = re.compile(r"(?P<width>\d{1,6})x(?P<height>\d{1,6})(\+(?P<x>\d{1,6})\+(?P<y>\d{1,6}))?")
FEWEST_PIXELS = 16  # per side; smaller views show nothing useful


@dataclass(frozen=True)
class Cut:
    """Which part of a stored view is used, and at what size."""

    stored: tuple[int, int]  # height, width of the stored view [px]
    corner: tuple[int, int]  # row, column of the part's first pixel
    part: tuple[int, int]  # height, width of the part [stored px]
    size: tuple[int, int]  # height, width after scaling [px]
    scale: float

    @property
    def window(self) -> tuple[slice, slice]:
        """The part as rows and columns of the stored view."""
        (top, left), (height, width) = self.corner, self.part
        return slice(top, top + height), slice(left, left + width)

    def apply(self, view: Array) -> Array:
        """Crop a stored view (h, w, c) and scale it; each pixel is the mean over its area."""
        return self.shrink(view[self.window])

    def shrink(self, part: Array) -> Array:
        """Scale a cropped view (h, w, c)."""
        if part.shape[:2] == self.size:
            return part
        small = cv2.resize(
            np.ascontiguousarray(part), self.size[::-1], interpolation=cv2.INTER_AREA
        )
        return np.asarray(small.reshape(*self.size, part.shape[-1]))

    def shrink_validity(self, valid: BoolArray) -> BoolArray:
        """Scale a cropped mask (h, w): a pixel is valid if all pixels that it covers are valid."""
        if valid.shape == self.size:
            return valid
        share = cv2.resize(valid.astype(np.float32), self.size[::-1], interpolation=cv2.INTER_AREA)
        return np.asarray(share > 1 - 1e-4, dtype=np.bool_)

    def apply_to_disparity(self, disparity: FloatArray) -> FloatArray:
        """Crop and scale a disparity map (h, w) and its values; do not average across edges."""
        part = np.ascontiguousarray(disparity[self.window])
        small = cv2.resize(part, self.size[::-1], interpolation=cv2.INTER_NEAREST_EXACT)
        return np.asarray(small * np.float32(self.scale), dtype=np.float32)


def choose_cut(resolution: tuple[int, int], options: ReadOptions, source: str) -> Cut | None:
    """Apply --crop and --scale to views of this (height, width); None if neither is used."""
    if not 0 < options.scale <= 1:
        raise InvalidOption(
            f"--scale {options.scale:g}: expected more than 0 and at most 1, such as 0.5."
        )
    if options.crop is None and options.scale == 1:
        return None
    corner, part = _parse_crop(resolution, options.crop, source)
    height, width = (int(length * options.scale + 1e-6) for length in part)
    if min(height, width) < FEWEST_PIXELS:
        text = f"--crop {options.crop}" if options.scale == 1 else f"--scale {options.scale:g}"
        raise InvalidOption(
            f"{text}: leaves {width} x {height} pixels, expected {FEWEST_PIXELS} or more each way."
        )
    # Use a whole number of small pixels, so that the scale is the same in both directions.
    used = (
        min(part[0], round(height / options.scale)),
        min(part[1], round(width / options.scale)),
    )
    return Cut(resolution, corner, used, (height, width), options.scale)


def _parse_crop(
    resolution: tuple[int, int], text: str | None, source: str
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Parse --crop; return the corner (row, column) and size (height, width)."""
    if text is None:
        return (0, 0), resolution
    match = CROP.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidOption(
            f"--crop {text}: expected WxH+X+Y in pixels, such as 640x480+100+50, or WxH."
        )
    height, width = int(match["height"]), int(match["width"])
    if match["x"] is None:
        top, left = (resolution[0] - height) // 2, (resolution[1] - width) // 2
    else:
        top, left = int(match["y"]), int(match["x"])
    if top < 0 or left < 0 or top + height > resolution[0] or left + width > resolution[1]:
        raise InvalidOption(
            f"--crop {text}: does not lie within the views of {source}, "
            f"which have {resolution[1]} x {resolution[0]} pixels."
        )
    return (top, left), (height, width)
