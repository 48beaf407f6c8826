"""ViewGrid -> LightField: loads the views that are used, once, into one array, and checks them."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from oaccdepth.errors import InvalidLightField
from oaccdepth.lightfield import Array, BoolArray, Camera, FloatArray, LightField, as_grey
from oaccdepth.options import ReadOptions
from oaccdepth.readers import orientation, values
from oaccdepth.readers.decoding import MOST_VIEW_PIXELS
from oaccdepth.readers.grid import Arrangement, Piece, Position, ViewGrid
from oaccdepth.readers.window import Window, choose_window, too_few

logger = logging.getLogger(__name__)

MOST_BYTES = 16 << 30  # of all views; a header may claim anything


def assemble(path: Path, grid: ViewGrid, options: ReadOptions, format_name: str) -> LightField:
    """Load the views of a grid that are to be used, as a light field in our convention."""
    source = str(path)
    if min(grid.shape) < 3:
        raise InvalidLightField(too_few(source, grid.shape))
    grid = _with_order(source, grid, options)
    window = choose_window(source, grid, options, _measure_exposure(grid))
    notes = [*grid.notes, *window.notes]
    notes += _check_missing(source, grid, window, options)
    stack = _Stack(source, grid, window)
    stack.fill()
    stack.check_centre()
    if grid.vignetted:
        notes += stack.mask_unexposed()
    notes += _apply_gamma(stack.views, grid, options)
    notes += stack.arrange(options)
    return LightField(
        views=stack.views,
        valid=_simplest(stack.valid),
        source=Path(os.path.abspath(path)).name,
        format=format_name,
        reason=grid.reason,
        camera=_wider(grid.camera, options.stride),
        disparity_range=grid.disparity_range
        and (
            grid.disparity_range[0] * options.stride,
            grid.disparity_range[1] * options.stride,
        ),
        notes=tuple(notes),
    )


def _wider(camera: Camera | None, stride: int) -> Camera | None:
    """Views that are further apart have a longer baseline between neighbours."""
    if camera is None or stride == 1:
        return camera
    return dataclasses.replace(camera, baseline_mm=camera.baseline_mm * stride)


def _simplest(valid: BoolArray | None) -> BoolArray | None:
    """No mask if all is valid; one value per view if no view is valid in part."""
    if valid is None or valid.all():
        return None
    if valid.ndim == 4:
        present = valid.any(axis=(2, 3))
        if np.array_equal(present, valid.all(axis=(2, 3))):
            return np.asarray(present, dtype=np.bool_)
    return valid


class _Stack:
    """The array that becomes the light field, while it is being filled, in the file's order."""

    def __init__(self, source: str, grid: ViewGrid, window: Window) -> None:
        self.source, self.grid, self.window = source, grid, window
        rows, columns = window.shape
        centre = grid.load(window.rows[rows // 2], window.columns[columns // 2])
        if centre is None:
            raise InvalidLightField(f"{source}: the centre view is missing. It is the reference.")
        self.conversion = values.choose_conversion(centre, source)
        self.height, self.width = centre.shape[:2]
        shape = (rows, columns, self.height, self.width, self.conversion.channels)
        _check_size(source, shape, self.conversion.dtype)
        self.views: Array = np.zeros(shape, dtype=self.conversion.dtype)
        self.valid: BoolArray | None = None

    def fill(self) -> None:
        """Load every view that is used."""
        pieces = self.grid.pieces
        if pieces is None:
            found = self._load_one_by_one()
        else:
            found = pieces(self.window.rows, self.window.columns)
        for piece in found:
            self._put(piece)

    def _load_one_by_one(self) -> Iterator[Piece]:
        for i, u in enumerate(self.window.rows):
            for j, v in enumerate(self.window.columns):
                view = self.grid.load(u, v)
                here = slice(i, i + 1), slice(j, j + 1)
                if view is None:
                    self._mask()[here] = False
                    continue
                self._check_view(values.with_channels(view), u, v)
                yield Piece(*here, slice(None), slice(None), view[None, None])

    def _check_view(self, view: Array, u: int, v: int) -> None:
        if view.shape[:2] != (self.height, self.width):
            raise InvalidLightField(
                f"{self.source}: views have different sizes: {self.grid.name_of(u, v)} has "
                f"{view.shape[1]} x {view.shape[0]} pixels, "
                f"the centre view {self.width} x {self.height}. Export all views alike."
            )

    def _put(self, piece: Piece) -> None:
        stored = piece.values if piece.values.ndim == 5 else piece.values[..., None]
        name = self.grid.name_of(self.window.rows[piece.u][0], self.window.columns[piece.v][0])
        place = (piece.u, piece.v, piece.y, piece.x)
        colour, valid = self.conversion.convert(stored, name)
        self.views[place] = colour
        if valid is not None:
            self._mask()[place] &= valid

    def check_centre(self) -> None:
        """Refuse a centre view of which nothing is known: there is nothing to estimate."""
        rows, columns = self.window.shape
        if self.valid is not None and not self.valid[rows // 2, columns // 2].any():
            raise InvalidLightField(
                f"{self.source}: no pixel of the centre view is finite and opaque, "
                "so there is nothing to estimate. Export it again."
            )

    def _mask(self) -> BoolArray:
        if self.valid is None:
            self.valid = np.ones(self.views.shape[:4], dtype=np.bool_)
        return self.valid

    def mask_unexposed(self) -> list[str]:
        """Mask views that are dark as a whole, and dark corners of the others."""
        rows, columns = self.window.shape
        notes = []
        if self.window.dark is not None:
            self._mask()[self.window.dark] = False
            notes.append(f"{_views(int(self.window.dark.sum()))} too dark, masked out.")
        centre = self.views[rows // 2, columns // 2]
        masked = 0
        for u in range(rows):
            for v in range(columns):
                if self.window.dark is not None and self.window.dark[u, v]:
                    continue  # masked and counted already
                exposed = values.exposed_pixels(self.views[u, v], centre)
                if not exposed.all():
                    self._mask()[u, v] &= exposed
                    masked += 1
        if masked:
            notes.append(f"{_views(masked)} with dark corners, masked out there.")
        return notes

    def arrange(self, options: ReadOptions) -> list[str]:
        """Bring the camera axes into our order: as the format is known, as asked, as measured."""
        self._rearrange(self.grid.arrangement)
        asked = Arrangement(options.transpose, options.flip_u, options.flip_v)
        if asked:
            self._rearrange(asked)
            return []
        if not options.check_orientation or self.grid.orientation == "certain":
            return []
        finding = orientation.find_arrangement(
            self._grey, self.window_shape, self.grid.suspect, self.grid.orientation == "presumed"
        )
        if not finding.arrangement:
            return []
        self._rearrange(finding.arrangement)
        done, way_out = _say_correction(finding.arrangement)
        logger.warning("warning: %s: %s: %s. %s", self.source, finding.text, done, way_out)
        return [f"{finding.text[0].upper()}{finding.text[1:]}: {done}."]

    @property
    def window_shape(self) -> tuple[int, int]:
        """Rows and columns as they are arranged now."""
        return self.views.shape[0], self.views.shape[1]

    def _grey(self, u: int, v: int) -> FloatArray:
        return as_grey(self.views[u, v])

    def _rearrange(self, arrangement: Arrangement) -> None:
        self.views = orientation.rearrange(self.views, arrangement)
        if self.valid is not None:
            self.valid = np.asarray(orientation.rearrange(self.valid, arrangement), dtype=np.bool_)


def _say_correction(done: Arrangement) -> tuple[str, str]:
    """Say what was done, and what to pass if that was wrong.

    Which of two axes is the wrong one only shows in what hides what, so it may be a guess; the
    other one gives the same picture with near and far exchanged.
    """
    if done.flip_u == done.flip_v:
        return "corrected", "If that is wrong, pass --no-check-orientation."
    axis, other = ("rows", "--flip-v") if done.flip_u else ("columns", "--flip-u")
    other = f"--transpose {other}" if done.transpose else other
    return (
        f"corrected by reversing the camera {axis}",
        f"If near and far come out exchanged, pass {other}; "
        "if nothing was wrong, --no-check-orientation.",
    )


def _views(count: int) -> str:
    return "1 view" if count == 1 else f"{count} views"


def _check_size(source: str, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    rows, columns, height, width, channels = shape
    needed = rows * columns * height * width * channels * dtype.itemsize
    if height * width > MOST_VIEW_PIXELS or needed > MOST_BYTES:
        raise InvalidLightField(
            f"{source}: {rows} x {columns} views of {width} x {height} pixels need "
            f"{needed / (1 << 30):.1f} GiB. Use fewer with --use-views, or smaller pictures."
        )


def _measure_exposure(grid: ViewGrid) -> FloatArray | None:
    """Brightness (u, v) of all views, where the outer ones may be dark."""
    if not grid.vignetted:
        return None
    if grid.sample is not None:
        sample = grid.sample()
        return values.brightness(sample if sample.ndim == 5 else sample[..., None])
    result = np.zeros(grid.shape, dtype=np.float32)
    for u, v in np.ndindex(*grid.shape):
        view = grid.load(u, v)
        if view is not None:
            result[u, v] = values.brightness(values.with_channels(view)[None, None, ::4, ::4])[0, 0]
    return result


def _apply_gamma(views: Array, grid: ViewGrid, options: ReadOptions) -> list[str]:
    gamma = options.gamma
    if gamma is None:
        rows, columns = views.shape[:2]
        is_candidate = grid.may_be_linear and views.dtype == np.uint16  # as decoders write
        gamma = values.choose_gamma(views[rows // 2, columns // 2]) if is_candidate else 1.0
        note = f"Dark, linear values: display gamma {gamma:g} applied (--gamma 1 keeps them)."
    else:
        note = f"Display gamma {gamma:g} applied, as asked."
    if gamma == 1:
        return []
    values.apply_gamma(views, gamma)
    return [note]


def _check_missing(source: str, grid: ViewGrid, window: Window, options: ReadOptions) -> list[str]:
    """Refuse a grid with holes, unless it was made so (a cross of views) or the user says so."""
    missing = [(u, v) for u in window.rows for v in window.columns if (u, v) in grid.absent]
    if not missing:
        return []
    rows, columns = grid.shape
    names = [grid.name_of(u, v) for u, v in missing]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    if (window.rows[len(window.rows) // 2], window.columns[len(window.columns) // 2]) in missing:
        raise InvalidLightField(
            f"{source}: the centre view is missing, and it is the reference. Missing: {shown}."
        )
    if not options.allow_missing and not is_sparse_by_design(grid.shape, grid.absent):
        is_guess = not grid.names_give_grid and options.views is None
        raise InvalidLightField(
            f"{source}: found {rows * columns - len(grid.absent)} views, "
            f"expected {rows * columns} ({rows} x {columns}). Missing: {shown}. "
            + ("If the grid is another, pass --views UxV. " if is_guess else "")
            + "To do without, pass --allow-missing."
        )
    return [f"{_views(len(missing))} missing, masked out: {shown}."]


def is_sparse_by_design(shape: tuple[int, int], absent: frozenset[Position]) -> bool:
    """Whether the holes leave the middle row and column, and are the same turned by 180 degrees."""
    rows, columns = shape
    if len(absent) < 0.25 * rows * columns:
        return False
    leaves_cross = all(u != rows // 2 and v != columns // 2 for u, v in absent)
    return leaves_cross and absent == {(rows - 1 - u, columns - 1 - v) for u, v in absent}


def _with_order(source: str, grid: ViewGrid, options: ReadOptions) -> ViewGrid:
    """Undo a serpentine order, in which every second row or column runs backwards."""
    order = options.order
    is_open = not grid.order_is_known and not grid.absent
    if order is None and is_open and options.check_orientation:
        order = orientation.find_order(lambda u, v: _any_grey(grid, u, v), grid.shape)
        if order != "rows":
            logger.warning(
                "warning: %s: the views lie in %s order: corrected. "
                "If that is wrong, pass --order rows.",
                source,
                order,
            )
    if order in (None, "rows", "columns"):
        return grid
    rows, columns = grid.shape
    load = grid.load

    def load_straight(u: int, v: int) -> Array | None:
        if order == "serpentine":
            return load(u, columns - 1 - v if u % 2 else v)
        return load(rows - 1 - u if v % 2 else u, v)

    note = f"The views lie in {order} order: corrected."
    return dataclasses.replace(
        grid, load=load_straight, pieces=None, notes=(*grid.notes, note), order_is_known=True
    )


def _any_grey(grid: ViewGrid, u: int, v: int) -> FloatArray:
    """A view as grey, for the order check, before its number type is settled."""
    view = grid.load(u, v)
    if view is None:
        raise InvalidLightField(f"{grid.name_of(u, v)}: missing.")
    conversion = values.choose_conversion(view, grid.name_of(u, v))
    return as_grey(conversion.convert(values.with_channels(view))[0])
