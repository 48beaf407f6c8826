"""Arrays -> pictures to look at: colours, contact sheets, PNG files."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from oaccdepth.errors import UnwritableOutput
from oaccdepth.files.atomic import write_bytes
from oaccdepth.lightfield import Array, FloatArray, as_float
from oaccdepth.options import COLORMAPS, Range

Picture = NDArray[np.uint8]  # (h, w, 3) RGB, or (h, w) grey

NOT_KNOWN = (128, 128, 128)  # colour of a value that is not finite
PAPER = 255  # grey between the pictures of a contact sheet
MAX_SHEET_PX = 4096
# From too far (blue) over equal (almost white) to too near (red); darker towards the ends.
DIFFERENCE = ("#0b3c8c", "#3b7dd8", "#9ec9f2", "#f7f5f2", "#f6b394", "#d8523f", "#8a1020")


def choose_range(values: FloatArray) -> Range:
    """Range of values to colour: all but the outermost half percent at either end."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return 0.0, 1.0
    low, high = (float(value) for value in np.percentile(finite, (0.5, 99.5)))
    if high - low < 1e-3:  # a flat map: keep the bar's numbers apart
        middle = (low + high) / 2
        return middle - 0.5, middle + 0.5
    return low, high


def colourise(
    values: FloatArray, value_range: Range | None = None, colormap: str = COLORMAPS[0]
) -> Picture:
    """Colour (h, w) values as (h, w, 3) RGB; grey where a value is not finite."""
    low, high = value_range or choose_range(values)
    finite = np.isfinite(values)
    scaled = np.where(finite, (np.where(finite, values, low) - low) / (high - low), 0.0)
    picture = colours_of(colormap)[as_bytes(scaled)]
    picture[~finite] = NOT_KNOWN
    return picture


def colour_difference(values: FloatArray, largest: float) -> Picture:
    """Signed values as (h, w, 3) RGB: blue below zero, red above, the ends at -/+ `largest`."""
    shares = np.clip(np.nan_to_num(values), -largest, largest) / largest
    picture: Picture = difference_colours()[np.rint((shares + 1) * 127.5).astype(np.uint8)]
    picture[~np.isfinite(values)] = NOT_KNOWN
    return picture


def difference_colours() -> Picture:
    """The 256 colours for differences, (256, 3) RGB."""
    anchors = np.array([list(bytes.fromhex(colour[1:])) for colour in DIFFERENCE], dtype=float)
    places = np.linspace(0, len(anchors) - 1, 256)
    channels = [np.interp(places, range(len(anchors)), anchors[:, c]) for c in range(3)]
    return np.asarray(np.rint(np.stack(channels, axis=1)), dtype=np.uint8)


def as_bytes(values: Array) -> Picture:
    """Values in [0, 1] as 0..255; others are clipped."""
    scaled = np.asarray(values, np.float32) * np.float32(255)
    return np.asarray(np.rint(np.clip(scaled, 0, 255)), np.uint8)


def as_rgb(picture: Array) -> Picture:
    """(h, w, 1 or 3) in any form that a light field holds, as (h, w, 3) uint8."""
    values = as_bytes(as_float(picture))
    return np.repeat(values, 3, axis=2) if values.shape[2] == 1 else values


def contact_sheet(
    pictures: Picture, gap: int = 4, max_px: int = MAX_SHEET_PX, ground: int = PAPER
) -> Picture:
    """All views, (u, v, h, w) grey or (u, v, h, w, 3) RGB, in their grid.

    Reduced so that neither side is longer than `max_px`; `ground` is the grey between the views.
    """
    rows, columns, height, width = pictures.shape[:4]
    fit_y = (max_px - gap * (rows - 1)) / (rows * height)
    fit_x = (max_px - gap * (columns - 1)) / (columns * width)
    factor = min(1.0, fit_y, fit_x)
    size = max(1, math.floor(height * factor)), max(1, math.floor(width * factor))
    sheet_size = rows * (size[0] + gap) - gap, columns * (size[1] + gap) - gap
    sheet = np.full((*sheet_size, *pictures.shape[4:]), ground, np.uint8)
    for u, v in np.ndindex(rows, columns):
        y, x = u * (size[0] + gap), v * (size[1] + gap)
        view = pictures[u, v]
        if factor < 1:
            view = cv2.resize(view, (size[1], size[0]), interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
        sheet[y : y + size[0], x : x + size[1]] = view
    return sheet


def write_png(path: Path, picture: Array) -> None:
    """Write (h, w) grey or (h, w, 3) RGB, 8 or 16 bit, whole or not at all."""
    stored = picture[:, :, ::-1] if picture.ndim == 3 else picture  # OpenCV stores BGR
    written, data = cv2.imencode(".png", np.ascontiguousarray(stored))
    if not written:
        raise UnwritableOutput(f"{path}: the picture of shape {picture.shape} cannot be stored.")
    write_bytes(path, data.tobytes())


def colours_of(colormap: str) -> Picture:
    """Look up the 256 colours of a map, (256, 3) RGB."""
    shades = np.arange(256, dtype=np.uint8)
    if colormap == "gray":
        return np.stack([shades] * 3, axis=1)
    code = getattr(cv2, f"COLORMAP_{colormap.upper()}")
    return np.asarray(cv2.applyColorMap(shades[:, None], code)[:, 0, ::-1], np.uint8)


def choose_ticks(value_range: Range, max_number: int) -> list[tuple[float, str]]:
    """Round values inside the range, at most about `max_number`, and how to write them."""
    low, high = value_range
    rough = (high - low) / max(max_number, 2)
    power = math.floor(math.log10(rough))
    step = next(m * 10.0**power for m in (1, 2, 5, 10) if m * 10.0**power >= rough * (1 - 1e-9))
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # Adding zero turns -0.0 into 0.0.
    return [(n * step, f"{n * step + 0.0:.{decimals}f}") for n in range(first, last + 1)]
