"""Arrays -> pictures to look at: colours, a colour bar with numbers, contact sheets, PNG files."""

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
PAPER, INK = 255, 40  # grey of the colour bar's ground and of its numbers
MAX_SHEET_PX = 4096


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
    picture = _colours(colormap)[as_bytes(scaled)]
    picture[~finite] = NOT_KNOWN
    return picture


def as_bytes(values: Array) -> Picture:
    """Values in [0, 1] as 0..255; others are clipped."""
    scaled = np.asarray(values, np.float32) * np.float32(255)
    return np.asarray(np.rint(np.clip(scaled, 0, 255)), np.uint8)


def as_rgb(picture: Array) -> Picture:
    """(h, w, 1 or 3) in any form that a light field holds, as (h, w, 3) uint8."""
    values = as_bytes(as_float(picture))
    return np.repeat(values, 3, axis=2) if values.shape[2] == 1 else values


def with_colour_bar(
    picture: Picture, value_range: Range, colormap: str = COLORMAPS[0], unit: str = "px"
) -> Picture:
    """Put a colour bar with numbers to the right of an RGB picture."""
    height = max(picture.shape[0], 96)  # below that the numbers would not fit
    scale = max(0.4, height / 1200)  # of the letters
    line = round(30 * scale)  # px: a line of text and its space
    bar = _bar(height - 2 * line, line, colormap)
    panel = np.full((height, round(6.2 * line), 3), PAPER, np.uint8)
    left = line // 2
    panel[line : line + bar.shape[0], left : left + line] = bar
    for value, label in choose_ticks(value_range, min(10, bar.shape[0] // (2 * line))):
        part = (value_range[1] - value) / (value_range[1] - value_range[0])
        y = line + round(part * (bar.shape[0] - 1))
        cv2.line(panel, (left + line, y), (left + line + line // 4, y), (INK,) * 3)
        _write_text(panel, label, (left + line + line // 2, y + line // 3), scale)
    _write_text(panel, unit, (left, height - line // 4), scale)
    padded = np.full((height, picture.shape[1], 3), PAPER, np.uint8)
    padded[: picture.shape[0]] = picture
    return np.concatenate([padded, panel], axis=1)


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


def _colours(colormap: str) -> Picture:
    """Look up the 256 colours of a map, (256, 3) RGB."""
    shades = np.arange(256, dtype=np.uint8)
    if colormap == "gray":
        return np.stack([shades] * 3, axis=1)
    code = getattr(cv2, f"COLORMAP_{colormap.upper()}")
    return np.asarray(cv2.applyColorMap(shades[:, None], code)[:, 0, ::-1], np.uint8)


def _bar(height: int, width: int, colormap: str) -> Picture:
    shades = np.linspace(255, 0, height).round().astype(int)  # large values at the top
    return np.repeat(_colours(colormap)[shades][:, None], width, axis=1)


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


def _write_text(picture: Picture, text: str, place: tuple[int, int], scale: float) -> None:
    thickness = max(1, round(1.5 * scale))
    font = cv2.FONT_HERSHEY_SIMPLEX
    cv2.putText(picture, text, place, font, scale, (INK,) * 3, thickness, cv2.LINE_AA)
