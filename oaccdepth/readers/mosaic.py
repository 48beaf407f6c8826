"""One picture that holds all views, side by side or as the pixels behind each lens."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import cv2
import numpy as np

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.files.fields import BadField, as_whole
from oaccdepth.files.limits import MOST_PICTURE_PIXELS
from oaccdepth.files.regular import is_regular
from oaccdepth.lightfield import Array, FloatArray, as_grey
from oaccdepth.options import ReadOptions
from oaccdepth.readers import decoding, values
from oaccdepth.readers.containers import parse_extras
from oaccdepth.readers.grid import LARGEST_GRID, Arrangement, ViewGrid

NAME = "mosaic"
EXTENSIONS: tuple[str, ...] = decoding.EXTENSIONS
SIGN = "one picture with all views side by side, or as pixels behind lenses (or --views UxV)"

LAYOUTS = ("mosaic", "lenslet")
ALIKE = 0.8  # correlation of neighbouring views at low resolution
SIDE = 48  # px, size at which views are compared
MOST_ALONG, LEAST_VIEW = 20, 16  # views along an axis that are looked for; px of the smallest
# Change from lens to lens, divided by that behind lenses. HCI scenes as 3x3, 5x5 and 9x9 views:
# 1.0 to 2.0, 1.4 to 2.6 and 1.6 to 3.7; single views: up to 1.02.
EDGE_OF_LENS = 1.2
BLOCKS = (4, 8, 16)  # px: compressed pictures change most from block to block
ENOUGH_LINES = 512
VIEW_NAME = re.compile(r"(input_Cam\d{3}|.*?\d{1,3}_\d{1,3})", re.IGNORECASE)


def detect(path: Path) -> bool:
    """Accept any picture file."""
    return is_regular(path) and decoding.is_picture(path.name)


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the layout of the views: from our own text, from the options, or by comparing parts."""
    return open_picture(path, options, None, None)


def open_picture(
    path: Path, options: ReadOptions, layout: str | None, shape: tuple[int, int] | None
) -> ViewGrid:
    """Open a picture; `layout` and `shape` are given if its name tells them."""
    header = decoding.read_header(path)
    load_picture = cache(partial(decoding.decode, path, MOST_PICTURE_PIXELS))
    if header.description:
        return _our_grid(path, header, load_picture)
    layout = options.layout or layout
    shape = options.views or shape
    if shape is None:
        shape, layout = _infer_arrangement(path, load_picture(), layout)
    _check_multiple(path, header.height, header.width, shape)
    layout = layout or _measure_layout(load_picture(), shape)
    return ViewGrid(
        shape,
        partial(_cut, load_picture, shape, layout),
        f"one picture, {shape[0]} x {shape[1]} views "
        + ("side by side" if layout == "mosaic" else "behind its lenses"),
        names_give_grid=False,
        arrangement=Arrangement(transpose=options.order == "columns"),
        order_is_known=layout == "lenslet",
        orientation="unknown" if layout == "mosaic" else "presumed",
        vignetted=layout == "lenslet" and all(10 <= size <= 15 for size in shape),
        may_be_linear=layout == "lenslet",
    )


def _cut(
    load_picture: Callable[[], Array], shape: tuple[int, int], layout: str, u: int, v: int
) -> Array:
    """Cut one view out of the picture."""
    picture = load_picture()
    rows, columns = shape
    if layout == "lenslet":
        return picture[u::rows, v::columns]
    height, width = picture.shape[0] // rows, picture.shape[1] // columns
    return picture[u * height : (u + 1) * height, v * width : (v + 1) * width]


def _check_multiple(path: Path, height: int, width: int, shape: tuple[int, int]) -> None:
    rows, columns = shape
    if height % rows or width % columns or max(shape) > LARGEST_GRID:
        raise InvalidLightField(
            f"{path}: {width} x {height} pixels are not a multiple of {columns} x {rows} "
            "(columns x rows of views). Pass the grid with --views ROWSxCOLUMNS."
        )


def _our_grid(path: Path, header: decoding.Header, load_picture: Callable[[], Array]) -> ViewGrid:
    """Open a picture that we wrote: a text in it describes the layout of the views."""
    description = header.description
    try:
        layout = description.get("layout")
        rows, columns = (as_whole(size, 1, LARGEST_GRID) for size in _pair(description["views"]))
        is_grey = as_whole(description.get("channels", 3), 1, 3) == 1
        if layout not in LAYOUTS:
            raise BadField("layout")
    except (KeyError, BadField) as error:
        raise UnreadableFile(f"{path}: its description is damaged. Export it again.") from error
    camera, disparity_range = parse_extras(
        path, description.get("camera"), description.get("disparity_range")
    )
    shape = rows, columns
    _check_multiple(path, header.height, header.width, shape)

    def load(u: int, v: int) -> Array:
        view = _cut(load_picture, shape, layout, u, v)
        return view[:, :, [0, 3]] if is_grey and view.ndim == 3 and view.shape[2] == 4 else view

    return ViewGrid(
        shape,
        load,
        f"one picture with all views, written by oaccdepth ({layout})",
        orientation="certain",
        camera=camera,
        disparity_range=disparity_range,
    )


def _pair(value: object) -> list[object]:
    if not isinstance(value, list) or len(value) != 2:
        raise BadField("expected rows and columns")
    return value


def _infer_arrangement(
    path: Path, picture: Array, layout: str | None
) -> tuple[tuple[int, int], str]:
    """Find the grid of the views and their layout, unless that is given."""
    sides = {"mosaic": _find_mosaic, "lenslet": _find_lenses}
    for name in LAYOUTS if layout is None else (layout,):
        if side := sides[name](picture):
            return (side, side), name
    height, width = picture.shape[:2]
    hint = ""
    if VIEW_NAME.fullmatch(path.stem):
        hint = f" If it is one view of many, give its folder, {path.parent}."
    raise InvalidLightField(
        f"{path}: one picture of {width} x {height} pixels, in which no grid of views can be "
        f"seen. Pass --views ROWSxCOLUMNS if it holds several.{hint}"
    )


def _possible_sides(picture: Array) -> list[int]:
    """Numbers of views along each axis that divide a picture, the largest first."""
    height, width = picture.shape[:2]
    return [
        side
        for side in range(MOST_ALONG, 2, -1)
        if not (height % side or width % side) and min(height, width) // side >= LEAST_VIEW
    ]


def _find_mosaic(picture: Array) -> int | None:
    """Largest square grid in which neighbouring parts look alike."""
    sides = _possible_sides(picture)
    return next((n for n in sides if _likeness(picture, (n, n), "mosaic") > ALIKE), None)


def _find_lenses(picture: Array) -> int | None:
    """Pixels behind each lens, if the picture changes most from one lens to the next.

    Neighbouring pixels behind one lens are one point seen from neighbouring places; those of two
    lenses are two points.
    """
    sides = [side for side in _possible_sides(picture) if side not in BLOCKS]
    changes = _changes(picture), _changes(picture.swapaxes(0, 1))
    edges = {side: min(_edge(change, side) for change in changes) for side in sides}
    best = max(edges, key=edges.__getitem__, default=None)
    return best if best is not None and edges[best] > EDGE_OF_LENS else None


def _changes(picture: Array) -> FloatArray:
    """Mean difference between each column and the next (w - 1), from some of the rows."""
    rows = picture[:: max(1, len(picture) // ENOUGH_LINES)].astype(np.float32)
    rows = rows if rows.ndim == 2 else rows[:, :, :3].mean(axis=2)
    return np.asarray(np.abs(np.diff(rows)).mean(axis=0), dtype=np.float32)


def _edge(changes: FloatArray, side: int) -> float:
    """How many times more changes from one lens to the next than anywhere behind the lenses."""
    *inside, between = (float(changes[place::side].mean()) for place in range(side))
    return between / max(inside) if max(inside) > 0 else 0.0


def _measure_layout(picture: Array, shape: tuple[int, int]) -> str:
    """Find the layout: views side by side look alike, parts of a lenslet picture do not."""
    return "mosaic" if _likeness(picture, shape, "mosaic") > ALIKE else "lenslet"


def _likeness(picture: Array, shape: tuple[int, int], layout: str) -> float:
    """Lowest correlation between the centre view and its neighbours, at low resolution."""
    u, v = shape[0] // 2, shape[1] // 2
    places = [(u, v), (u - 1, v), (u + 1, v), (u, v - 1), (u, v + 1)]
    thumbnails = [
        _thumbnail(_cut(lambda: picture, shape, layout, row, column))
        for row, column in places
        if 0 <= row < shape[0] and 0 <= column < shape[1]
    ]
    centre = thumbnails[0]
    if not centre.any() or len(thumbnails) < 3:
        return 0.0
    return min(float((centre * other).mean()) for other in thumbnails[1:])


def _thumbnail(view: Array) -> FloatArray:
    """Make a small grey copy with mean 0 and variance 1 (all 0 if the view is uniform)."""
    conversion = values.choose_conversion(view, "picture")
    grey = as_grey(conversion.convert(values.with_channels(view))[0])
    small = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    small -= small.mean()
    deviation = float(np.sqrt((small * small).mean()))
    return np.asarray(small / deviation if deviation > 1e-4 else small * 0, dtype=np.float32)
