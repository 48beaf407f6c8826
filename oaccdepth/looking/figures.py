"""Pictures for papers and talks: panels with titles and colour bars, as PNG or PDF.

Arrays -> a drawing in memory; `write_figure` stores it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidOption, one_of
from oaccdepth.files.atomic import replacing, write_bytes
from oaccdepth.lightfield import FloatArray, LightField, as_float
from oaccdepth.options import COLORMAPS, Range
from oaccdepth.writers.drawing import DPI, Drawing, Photo, Text, as_pdf, draw_bar, rasterise
from oaccdepth.writers.pictures import (
    Picture,
    as_bytes,
    as_rgb,
    choose_range,
    colour_difference,
    colourise,
    colours_of,
    difference_colours,
)

FIGURE_ENDINGS = (".png", ".pdf")
ERROR_RANGE = 0.2  # px: range of the error's colours, as in the benchmark's own figures
HIDDEN = np.array([[1.0, 0.5, 0.0], [0.0, 0.45, 1.0]], dtype=np.float32)  # from the two views


@dataclass(frozen=True)
class Panel:
    """One picture of a figure, with its title and, for values, the range of its colour bar."""

    title: str
    picture: Picture  # (h, w, 3)
    value_range: Range | None = None
    colours: Picture | None = None  # of the colour bar, (n, 3), from low to high
    unit: str = ""


@dataclass(frozen=True)
class Material:
    """The data that the panels show."""

    light_field: LightField | None
    result: DisparityMap
    truth: FloatArray | None = None
    colormap: str = COLORMAPS[0]
    value_range: Range | None = None  # disparities at the ends of the colour bar [px]
    error_range: float = ERROR_RANGE

    def mapped(self, title: str, values: FloatArray) -> Panel:
        """A panel of disparities, in the colours that all panels of a figure share."""
        limits = self.value_range or choose_range(self.result.disparity)
        return _values_panel(title, values, limits, self.colormap, "px")


def _values_panel(title: str, values: FloatArray, limits: Range, colormap: str, unit: str) -> Panel:
    return Panel(title, colourise(values, limits, colormap), limits, colours_of(colormap), unit)


def _view(material: Material) -> list[Panel]:
    light_field = material.light_field
    return [] if light_field is None else [Panel("Centre view", as_rgb(light_field.centre))]


def _disparity(material: Material) -> list[Panel]:
    return [material.mapped("Disparity", material.result.disparity)]


def _confidence(material: Material) -> list[Panel]:
    return [_values_panel("Confidence", material.result.confidence, (0.0, 1.0), "cividis", "")]


def _masks(material: Material) -> list[Panel]:
    """The parts of the centre view that two outer views cannot see, one colour for each view."""
    masks = material.result.masks
    if masks is None:
        return []
    rows, columns, height, width = masks.shape
    picture = np.ones((height, width, 1), dtype=np.float32)
    if material.light_field is not None:
        picture = 0.3 + 0.6 * as_float(material.light_field.centre).mean(axis=2, keepdims=True)
    ends = ((rows // 2, 0), (rows // 2, columns - 1)) if columns > 1 else ((0, 0), (rows - 1, 0))
    for place, colour in zip(ends, HIDDEN, strict=True):
        share = np.clip((0.7 - masks[place]) / 0.4, 0, 1)[..., None]  # never quite 0 or 1
        picture = share * colour + (1 - share) * picture
    names = "left view orange, right blue" if columns > 1 else "top view orange, bottom blue"
    return [Panel(f"Hidden: {names}", as_bytes(picture))]


def _truth(material: Material) -> list[Panel]:
    return [] if material.truth is None else [material.mapped("Ground truth", material.truth)]


def _error(material: Material) -> list[Panel]:
    if material.truth is None:
        return []
    largest = material.error_range
    picture = colour_difference(material.result.disparity - material.truth, largest)
    return [Panel("Error", picture, (-largest, largest), difference_colours(), "px")]


def _passes(material: Material) -> list[Panel]:
    passes = material.result.passes
    if len(passes) < 2:
        return []
    return [
        material.mapped(f"Pass {number}", one_pass.disparity)
        for number, one_pass in enumerate(passes, start=1)
    ]


# Name of a panel -> the function that makes it (no panels without data), and what it needs.
PANELS: dict[str, tuple[Callable[[Material], list[Panel]], str]] = {
    "view": (_view, "a light field (--input)"),
    "disparity": (_disparity, ""),
    "confidence": (_confidence, ""),
    "masks": (_masks, "a light field (--input)"),
    "truth": (_truth, "ground truth beside the light field"),
    "error": (_error, "ground truth beside the light field"),
    "passes": (_passes, "two passes or more, so give a light field instead of a result"),
}


def make_panels(material: Material, names: Sequence[str] | None = None) -> list[Panel]:
    """Make the requested panels; None makes every panel with data, except those of single passes.

    Raises
    ------
    InvalidOption
        The panel does not exist, or there is no data for it.
    """
    panels = []
    for name in names or [name for name in PANELS if name != "passes"]:
        if name not in PANELS:
            raise InvalidOption(f"--panel {name}: no such panel. Use {one_of(PANELS)}.")
        make, need = PANELS[name]
        made = make(material)
        if names and not made:
            raise InvalidOption(f"--panel {name}: needs {need}.")
        panels += made
    return panels


def compose(panels: Sequence[Panel], columns: int | None = None, side: int = 640) -> Drawing:
    """Lay out the panels in a grid on white, each with its title and colour bar.

    `side` is the width of a panel's picture [px]; `columns` None makes the grid about square.
    """
    columns = columns or min(len(panels), math.ceil(math.sqrt(len(panels) * 1.3)))
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    gap = side // 16
    letters = max(11, side // 26)
    cells = [[_cell_size(panel, side, letters) for panel in row] for row in rows]
    widths = [
        max(row[column][0] for row in cells if column < len(row)) for column in range(columns)
    ]
    heights = [max(height for _, height in row) for row in cells]
    page = Drawing(sum(widths) + gap * (columns + 1), sum(heights) + gap * (len(rows) + 1))
    for number, row in enumerate(rows):
        y = gap + sum(heights[:number]) + gap * number
        for column, panel in enumerate(row):
            x = gap + sum(widths[:column]) + gap * column
            _draw_panel(page, panel, (x, y), side, letters)
    return page


def _picture_height(panel: Panel, side: int) -> int:
    height, width = panel.picture.shape[:2]
    return max(1, round(side * int(height) / int(width)))


def _cell_size(panel: Panel, side: int, letters: int) -> tuple[int, int]:
    """Width and height of a panel with its title and colour bar."""
    bar = round(5.2 * letters) if panel.value_range else 0
    return side + bar, _picture_height(panel, side) + round(1.7 * letters)


def _draw_panel(
    page: Drawing, panel: Panel, corner: tuple[int, int], side: int, letters: int
) -> None:
    left, top = corner
    head = round(1.7 * letters)
    height = _picture_height(panel, side)
    page.parts.append(Text(left, top, letters, panel.title))
    page.parts.append(Photo(left, top + head, side, height, panel.picture))
    if panel.value_range and panel.colours is not None:
        place = left + side + letters // 2, top + head
        draw_bar(page, place, height, letters, panel.colours, panel.value_range, panel.unit)


def write_figure(path: Path, figure: Drawing) -> None:
    """Write the figure as PNG, or as a PDF page at 300 pixels per inch."""
    if path.suffix.lower() not in FIGURE_ENDINGS:
        raise InvalidOption(f"{path}: cannot make {path.suffix or 'this'}; use .png or .pdf.")
    if path.suffix.lower() == ".pdf":
        write_bytes(path, as_pdf(figure, path.stem))
        return
    with replacing(path) as temporary:
        Image.fromarray(rasterise(figure)).save(temporary, format="PNG", dpi=(DPI, DPI))
