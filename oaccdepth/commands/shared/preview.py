"""A light field and its disparity as a small picture in the terminal, made of half blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from oaccdepth.commands.shared import messages
from oaccdepth.writers.pictures import Picture, as_bytes, colourise

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap
    from oaccdepth.lightfield import LightField
    from oaccdepth.options import WriteOptions

HALF = "▀"  # upper half in the foreground colour, lower half in the background colour
MOST_COLUMNS, MOST_LINES = 40, 16  # of each picture


def show_preview(light_field: LightField, result: DisparityMap, writing: WriteOptions) -> None:
    """Show view and disparity side by side on stderr, if it is a terminal with colours."""
    console = messages()
    has_colours = not console.no_color and console.color_system not in (None, "standard")
    if not (console.is_terminal and has_colours):
        return
    view = as_bytes(np.broadcast_to(light_field.centre, (*light_field.resolution, 3)))
    disparity = colourise(result.disparity, writing.value_range, writing.colormap)
    columns = min(MOST_COLUMNS, (console.width - 2) // 2)
    print_pictures([view, disparity], console, columns)


def print_pictures(pictures: list[Picture], console: Console, columns: int) -> None:
    """Print pictures (h, w, 3) of the same size side by side, each at most so many columns wide."""
    height, width = pictures[0].shape[:2]
    scale = min(columns / width, 2 * MOST_LINES / height)
    size = max(1, round(width * scale)), 2 * max(1, round(height * scale / 2))
    small = [cv2.resize(picture, size, interpolation=cv2.INTER_AREA) for picture in pictures]
    for line in range(0, size[1], 2):
        text = Text(no_wrap=True)
        for number, picture in enumerate(small):
            text.append("  " if number else "")
            for upper, lower in zip(picture[line], picture[line + 1], strict=True):
                text.append(HALF, Style(color=_colour(upper), bgcolor=_colour(lower)))
        console.print(text)


def _colour(rgb: Picture) -> Color:
    return Color.from_rgb(*(int(value) for value in rgb))
