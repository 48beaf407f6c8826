"""Pictures for papers and talks: panels with colour bars (PNG, PDF), animations (GIF, MP4).

Arrays -> pictures in memory; `write_figure` and `write_animation` store them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidOption, MissingDependency
from oaccdepth.files.atomic import replacing
from oaccdepth.lightfield import Array, FloatArray, LightField, as_float
from oaccdepth.looking.refocus import refocus
from oaccdepth.looking.viewer.colours import colour_difference
from oaccdepth.options import COLORMAPS, Range
from oaccdepth.writers.pictures import (
    Picture,
    as_bytes,
    choose_range,
    choose_ticks,
    colourise,
    contact_sheet,
)

ANIMATIONS = ("parallax", "refocus")
FIGURE_ENDINGS = (".png", ".pdf")
ANIMATION_ENDINGS = (".gif", ".mp4")
ERROR_RANGE = 0.2  # px: ends of the error's colours, as in the benchmark's own figures
PAPER, INK = (255, 255, 255), (30, 36, 42)
FRAME = 190  # grey around a mask
DPI = 300  # of a PDF page


@dataclass(frozen=True)
class Panel:
    """One picture of a figure, with its title and, for values, the range of its colour bar."""

    title: str
    picture: Picture  # (h, w, 3)
    value_range: Range | None = None
    colour: Callable[[FloatArray], Picture] | None = None  # values -> colours of the bar
    unit: str = ""


@dataclass(frozen=True)
class Material:
    """What the panels are made of."""

    light_field: LightField | None
    result: DisparityMap
    truth: FloatArray | None = None
    colormap: str = COLORMAPS[0]
    value_range: Range | None = None  # disparities at the ends of the colours [px]
    error_range: float = ERROR_RANGE

    def mapped(self, title: str, values: FloatArray) -> Panel:
        """A panel of disparities, all of a figure in the same colours."""
        limits = self.value_range or choose_range(self.result.disparity)
        return _values_panel(title, values, limits, self.colormap, "px")


def _values_panel(title: str, values: FloatArray, limits: Range, colormap: str, unit: str) -> Panel:
    def colour(part: FloatArray) -> Picture:
        return colourise(part, limits, colormap)

    return Panel(title, colour(values), limits, colour, unit)


def _view(material: Material) -> list[Panel]:
    light_field = material.light_field
    return [] if light_field is None else [Panel("Centre view", _rgb(light_field.centre))]


def _disparity(material: Material) -> list[Panel]:
    return [material.mapped("Disparity", material.result.disparity)]


def _confidence(material: Material) -> list[Panel]:
    return [_values_panel("Confidence", material.result.confidence, (0.0, 1.0), "cividis", "")]


def _masks(material: Material) -> list[Panel]:
    masks = material.result.masks
    if masks is None:
        return []
    pictures = as_bytes(masks)  # (u, v, h, w)
    frame = max(1, masks.shape[2] // 60)
    for edge in (np.s_[:frame, :], np.s_[-frame:, :], np.s_[:, :frame], np.s_[:, -frame:]):
        pictures[(..., *edge)] = FRAME  # most masks are as white as the paper
    sheet = contact_sheet(pictures, max_px=max(1024, *masks.shape[2:]))
    return [Panel("Masks of all views", np.repeat(sheet[..., None], 3, axis=2))]


def _truth(material: Material) -> list[Panel]:
    return [] if material.truth is None else [material.mapped("Ground truth", material.truth)]


def _error(material: Material) -> list[Panel]:
    if material.truth is None:
        return []
    largest = material.error_range

    def colour(part: FloatArray) -> Picture:
        return colour_difference(part, largest)

    picture = colour(material.result.disparity - material.truth)
    return [Panel("Error", picture, (-largest, largest), colour, "px")]


def _passes(material: Material) -> list[Panel]:
    passes = material.result.passes
    if len(passes) < 2:
        return []
    return [
        material.mapped(f"Pass {number}", one_pass.disparity)
        for number, one_pass in enumerate(passes, start=1)
    ]


# Name of a panel -> what makes it (nothing, without data), and what it needs.
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
    """Make the panels called for; None: all for which there is data, but not the single passes.

    Raises
    ------
    InvalidOption
        A panel that does not exist, or for which there is no data.
    """
    panels = []
    for name in names or [name for name in PANELS if name != "passes"]:
        if name not in PANELS:
            raise InvalidOption(f"--panel {name}: no such panel. Use {', '.join(PANELS)}.")
        make, need = PANELS[name]
        made = make(material)
        if names and not made:
            raise InvalidOption(f"--panel {name}: needs {need}.")
        panels += made
    return panels


def compose(panels: Sequence[Panel], columns: int | None = None, side: int = 640) -> Picture:
    """Lay the panels out in a grid on white, each with its title and colour bar.

    `side` is the width of a panel's picture [px]; `columns` None makes the grid about square.
    """
    columns = columns or min(len(panels), math.ceil(math.sqrt(len(panels) * 1.3)))
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    gap = side // 16
    drawn = [[_draw_panel(panel, side) for panel in row] for row in rows]
    widths = [
        max(row[column].width for row in drawn if column < len(row)) for column in range(columns)
    ]
    heights = [max(cell.height for cell in row) for row in drawn]
    size = sum(widths) + gap * (columns + 1), sum(heights) + gap * (len(rows) + 1)
    page = Image.new("RGB", size, PAPER)
    for number, row in enumerate(drawn):
        y = gap + sum(heights[:number]) + gap * number
        for column, cell in enumerate(row):
            page.paste(cell, (gap + sum(widths[:column]) + gap * column, y))
    return np.asarray(page)


def _draw_panel(panel: Panel, side: int) -> Image.Image:
    height, width = panel.picture.shape[:2]
    size = side, max(1, round(side * height / width))
    enlarging = side > width
    picture = cv2.resize(
        panel.picture, size, interpolation=cv2.INTER_NEAREST if enlarging else cv2.INTER_AREA
    )
    letters = max(11, side // 26)
    font = ImageFont.load_default(letters)
    head = round(1.7 * letters)
    bar = round(5.2 * letters) if panel.value_range else 0
    cell = Image.new("RGB", (side + bar, size[1] + head), PAPER)
    draw = ImageDraw.Draw(cell)
    draw.text((0, 0), panel.title, fill=INK, font=font)
    cell.paste(Image.fromarray(np.asarray(picture, dtype=np.uint8)), (0, head))
    if panel.value_range and panel.colour:
        _draw_bar(cell, panel, side + letters // 2, head, size[1], letters)
    return cell


def _draw_bar(
    cell: Image.Image, panel: Panel, left: int, top: int, height: int, letters: int
) -> None:
    assert panel.value_range and panel.colour
    low, high = panel.value_range
    ramp = np.linspace(high, low, height, dtype=np.float32)[:, None]  # large values at the top
    colours = np.repeat(panel.colour(ramp), letters, axis=1)
    cell.paste(Image.fromarray(colours), (left, top))
    draw = ImageDraw.Draw(cell)
    font = ImageFont.load_default(round(0.85 * letters))
    for value, label in choose_ticks(panel.value_range, max(2, min(8, height // (3 * letters)))):
        y = top + round((high - value) / (high - low) * (height - 1))
        y = min(max(y, top + letters // 2), top + height - letters // 2)
        draw.line([(left + letters, y), (left + letters + letters // 4, y)], fill=INK)
        draw.text((left + 1.45 * letters, y), label, fill=INK, font=font, anchor="lm")
    if panel.unit:
        draw.text((left, top - 0.3 * letters), panel.unit, fill=INK, font=font, anchor="ls")


def write_figure(path: Path, picture: Picture) -> None:
    """Write the figure as PNG, or as a PDF page of 300 dpi."""
    if path.suffix.lower() not in FIGURE_ENDINGS:
        raise InvalidOption(f"{path}: cannot make {path.suffix or 'this'}; use .png or .pdf.")
    with replacing(path) as temporary:
        page = Image.fromarray(picture)
        if path.suffix.lower() == ".pdf":
            page.save(temporary, format="PDF", resolution=DPI, quality=95, title=path.stem)
        else:
            page.save(temporary, format="PNG", dpi=(DPI, DPI))


def parallax_frames(light_field: LightField) -> list[Picture]:
    """Views on a circle around the centre, (h, w, 3) each: what a camera on a round trip sees."""
    rows, columns = light_field.grid
    missing = set(light_field.missing_views)
    steps = 4 * max(rows, columns)
    places: list[tuple[int, int]] = []
    for step in range(steps):
        angle = 2 * math.pi * step / steps
        u = round(rows // 2 + (rows - 1) / 2 * math.sin(angle))
        v = round(columns // 2 + (columns - 1) / 2 * math.cos(angle))
        place = min(u, rows - 1), min(v, columns - 1)
        if place not in missing and (not places or places[-1] != place):
            places.append(place)
    return [_rgb(light_field.views[place]) for place in places]


def refocus_frames(
    light_field: LightField,
    limits: Range,
    count: int = 24,
    progress: Callable[[str, float], None] | None = None,
) -> Iterator[Picture]:
    """The focus travelling from far to near and back, (h, w, 3) each; `limits` [px]."""
    way = np.linspace(*limits, count // 2 + 1)
    pictures = []
    for number, disparity in enumerate(way):
        if progress:
            progress("refocusing", number / len(way))
        pictures.append(_rgb(refocus(light_field, float(disparity))))
    yield from pictures
    yield from pictures[-2:0:-1]


def write_animation(path: Path, frames: Sequence[Picture], frames_per_second: float = 15) -> None:
    """Write frames as GIF, or as MP4 (which needs imageio-ffmpeg)."""
    ending = path.suffix.lower()
    if ending not in ANIMATION_ENDINGS:
        raise InvalidOption(f"{path}: cannot make {path.suffix or 'this'}; use .gif or .mp4.")
    if ending == ".mp4":
        _write_mp4(path, frames, frames_per_second)
        return
    pictures = [
        Image.fromarray(frame).quantize(dither=Image.Dither.FLOYDSTEINBERG) for frame in frames
    ]
    with replacing(path) as temporary:
        pictures[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=round(1000 / frames_per_second),
            loop=0,
        )


def _write_mp4(path: Path, frames: Sequence[Picture], frames_per_second: float) -> None:
    check_video()
    import imageio.v3 as imageio

    height, width = (size - size % 2 for size in frames[0].shape[:2])  # the codec wants even sizes
    even = np.stack([frame[:height, :width] for frame in frames])
    with replacing(path) as temporary:
        imageio.imwrite(
            temporary, even, plugin="FFMPEG", fps=frames_per_second, quality=9, macro_block_size=2
        )


def check_video() -> None:
    """Raise `MissingDependency` if MP4 cannot be written."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise MissingDependency(
            "MP4 needs imageio-ffmpeg. "
            'Install it with: pip install "oaccdepth[video]", or write a .gif.'
        ) from error


def _rgb(picture: Array) -> Picture:
    """(h, w, 1 or 3) in any form that a light field holds, as (h, w, 3) uint8."""
    values = as_bytes(as_float(picture))
    return np.repeat(values, 3, axis=2) if values.shape[2] == 1 else values
