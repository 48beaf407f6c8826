"""ViewGrid -> LightField: loads the views that are used into one array and checks them."""

from __future__ import annotations

import dataclasses
import logging
import os
from pathlib import Path

import numpy as np

from oaccdepth.errors import InvalidLightField
from oaccdepth.files.limits import MOST_BYTES, MOST_VIEW_PIXELS
from oaccdepth.lightfield import Array, BoolArray, FloatArray, LightField, as_grey
from oaccdepth.options import Range, ReadOptions
from oaccdepth.readers import orientation, turning, values
from oaccdepth.readers.cutting import Cut, choose_cut
from oaccdepth.readers.grid import Arrangement, Piece, Position, ViewGrid
from oaccdepth.readers.own_camera import choose_camera, cropped_camera
from oaccdepth.readers.window import Window, choose_window

logger = logging.getLogger(__name__)


def assemble(path: Path, grid: ViewGrid, options: ReadOptions, format_name: str) -> LightField:
    """Load the views to use from a grid; return a light field in our axis convention."""
    source = str(path)
    grid = _with_order(source, grid, options)
    window = choose_window(source, grid, options, _measure_exposure(grid))
    notes = [*grid.notes, *window.notes]
    notes += _check_missing(source, grid, window, options)
    stack = _Stack(source, grid, window, options)
    camera = choose_camera(grid.camera, options, max(stack.stored))
    notes += stack.fill()
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
        camera=cropped_camera(camera, stack.cut),
        disparity_range=_scaled(grid.disparity_range, options.scale),
        notes=tuple(notes),
        places=stack.places,
    )


def _scaled(disparity_range: Range | None, factor: float) -> Range | None:
    if disparity_range is None or factor == 1:
        return disparity_range
    return disparity_range[0] * factor, disparity_range[1] * factor


def _camera_places(grid: ViewGrid, window: Window) -> FloatArray | None:
    """Positions (u, v, 2) of the used views [steps of the file]; None if all steps are 1."""
    if grid.places is not None:
        used = grid.places[np.ix_(window.rows, window.columns)] / _median_step(grid.places)
    else:
        used = np.stack(np.meshgrid(window.rows, window.columns, indexing="ij"), axis=-1)
    rows, columns = window.shape
    places = (used - used[rows // 2, columns // 2]).astype(np.float32)
    down, right = np.mgrid[:rows, :columns]
    regular = np.stack([down - rows // 2, right - columns // 2], axis=-1)
    return None if np.allclose(places, regular, atol=1e-3) else places


def _median_step(places: FloatArray) -> float:
    """Median distance between neighbours in a row (or column), in the unit of the file."""
    axis = 1 if places.shape[1] > 1 else 0
    return float(np.median(np.linalg.norm(np.diff(places, axis=axis), axis=-1))) or 1.0


def _simplest(valid: BoolArray | None) -> BoolArray | None:
    """Simplify a mask: None if all is valid; one value per view if no view is partly valid."""
    if valid is None or valid.all():
        return None
    if valid.ndim == 4:
        present = valid.any(axis=(2, 3))
        if np.array_equal(present, valid.all(axis=(2, 3))):
            return np.asarray(present, dtype=np.bool_)
    return valid


class _Stack:
    """The array that becomes the light field, filled in the order of the file."""

    def __init__(self, source: str, grid: ViewGrid, window: Window, options: ReadOptions) -> None:
        self.source, self.grid, self.window = source, grid, window
        rows, columns = window.shape
        centre = grid.load(window.rows[rows // 2], window.columns[columns // 2])
        if centre is None:
            raise InvalidLightField(f"{source}: the centre view is missing. It is the reference.")
        is_ours = grid.orientation == "certain"
        self.conversion = values.choose_conversion(
            centre, source, believes_alpha=grid.has_validity, keeps_dark=is_ours
        )
        self.stored = centre.shape[0], centre.shape[1]
        self.cut = choose_cut(self.stored, options, source)
        # Pieces come in any order, so we scale the views after all pieces have been read.
        size = self.stored if self.cut is None else self.cut.part if grid.pieces else self.cut.size
        shape = (rows, columns, *size, self.conversion.channels)
        _check_size(source, shape, self.conversion.dtype)
        self.views: Array = np.zeros(shape, dtype=self.conversion.dtype)
        self.valid: BoolArray | None = None
        self.places = _camera_places(grid, window)
        rows_and_columns = np.meshgrid(window.rows, window.columns, indexing="ij")
        self.positions = np.stack(rows_and_columns, axis=-1)  # (u, v, 2) in the file
        self.report = values.Report()

    def fill(self) -> list[str]:
        """Load every view that is used; return notes about problems with its values."""
        pieces = self.grid.pieces
        if pieces is None:
            self._load_one_by_one()
        else:
            for piece in pieces(self.window.rows, self.window.columns):
                self._put(piece)
            if self.cut is not None and self.cut.part != self.cut.size:
                self._shrink(self.cut)
        return [*self.conversion.notes, *self.report.notes()]

    def _load_one_by_one(self) -> None:
        for i, u in enumerate(self.window.rows):
            for j, v in enumerate(self.window.columns):
                view = self.grid.load(u, v)
                if view is None:
                    self._mask()[i, j] = False
                    continue
                view = values.with_channels(view)
                self._check_view(view, u, v)
                part = view if self.cut is None else view[self.cut.window]
                colour, valid = self._convert(part, self.grid.name_of(u, v))
                self.views[i, j] = colour if self.cut is None else self.cut.shrink(colour)
                if valid is not None:
                    small = valid if self.cut is None else self.cut.shrink_validity(valid)
                    self._mask()[i, j] = small

    def _check_view(self, view: Array, u: int, v: int) -> None:
        height, width = self.stored
        if view.shape[:2] != self.stored:
            raise InvalidLightField(
                f"{self.source}: views have different sizes: {self.grid.name_of(u, v)} has "
                f"{view.shape[1]} x {view.shape[0]} pixels, "
                f"the centre view {width} x {height}. Export all views alike."
            )

    def _convert(self, stored: Array, name: str) -> tuple[Array, BoolArray | None]:
        converted = self.conversion.convert(stored, name)
        self.report.add(converted, name)
        return converted.colour, converted.valid

    def _put(self, piece: Piece) -> None:
        stored = piece.values if piece.values.ndim == 5 else piece.values[..., None]
        name = self.grid.name_of(self.window.rows[piece.u][0], self.window.columns[piece.v][0])
        y, x = piece.y, piece.x
        if self.cut is not None:
            (y, inner_y), (x, inner_x) = (
                _overlap(part, length, window)
                for part, length, window in zip((y, x), self.stored, self.cut.window, strict=True)
            )
            stored = stored[:, :, inner_y, inner_x]
            if stored.size == 0:
                return
        place = (piece.u, piece.v, y, x)
        colour, valid = self._convert(stored, name)
        self.views[place] = colour
        if valid is not None:
            self._mask()[place] &= valid

    def _shrink(self, cut: Cut) -> None:
        """Scale all views down, one at a time."""
        large, valid = self.views, self.valid
        rows, columns, channels = *large.shape[:2], large.shape[-1]
        self.views = np.zeros((rows, columns, *cut.size, channels), dtype=large.dtype)
        self.valid = None
        for u, v in np.ndindex(rows, columns):
            self.views[u, v] = cut.shrink(large[u, v])
            if valid is not None:
                self._mask()[u, v] = cut.shrink_validity(valid[u, v])

    def check_centre(self) -> None:
        """Refuse a centre view that has no valid pixel."""
        rows, columns = self.window.shape
        if self.valid is not None and not self.valid[rows // 2, columns // 2].any():
            raise InvalidLightField(
                f"{self.source}: no pixel of the centre view is finite, opaque "
                "and valid, so there is nothing to estimate. Correct its mask, or export it again."
            )

    def _mask(self) -> BoolArray:
        if self.valid is None:
            self.valid = np.ones(self.views.shape[:4], dtype=np.bool_)
        return self.valid

    def mask_unexposed(self) -> list[str]:
        """Mask out dark views, and dark corners of the other views."""
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
                    continue  # already masked and counted
                exposed = values.exposed_pixels(self.views[u, v], centre)
                if not exposed.all():
                    self._mask()[u, v] &= exposed
                    masked += 1
        if masked:
            notes.append(f"{_views(masked)} with dark corners, masked out there.")
        return notes

    def arrange(self, options: ReadOptions) -> list[str]:
        """Bring the camera axes into our order: as the format, the user or a check says."""
        self._rearrange(self.grid.arrangement)
        asked = Arrangement(options.transpose, options.flip_u, options.flip_v)
        if asked:
            self._rearrange(asked)
            return []
        if not options.check_orientation or self.grid.orientation == "certain":
            return []
        finding = orientation.find_arrangement(
            self._grey,
            self._voting_grid(),
            self.grid.suspect,
            self.grid.orientation == "presumed",
        )
        notes = []
        is_guess = finding.is_sign_open and finding.arrangement.flip_u != finding.arrangement.flip_v
        if finding.arrangement:
            self._rearrange(finding.arrangement)
            done, way_out = orientation.say_correction(finding.arrangement, self.window_shape)
            way_out = f"{orientation.WHICH_IS_OPEN} {way_out}" if is_guess else way_out
            logger.warning("warning: %s: %s: %s. %s", self.source, finding.text, done, way_out)
            note = f"{finding.text[0].upper()}{finding.text[1:]}: {done}."
            notes.append(f"{note} {way_out}" if is_guess else note)
        if finding.is_sign_open and not is_guess:
            open_sign = (
                orientation.say_open_axes()
                if finding.is_class_open
                else orientation.say_open_sign(self.window_shape, finding.arrangement.transpose)
            )
            logger.warning("warning: %s: %s", self.source, open_sign)
            notes.append(f"{open_sign[0].upper()}{open_sign[1:]}")
        return notes

    def _voting_grid(self) -> tuple[int, int]:
        """Grid for the orientation check: the whole file, unless its outer views are dark."""
        rows, columns = self.window_shape
        if self.grid.vignetted:
            return rows, columns
        centre_u, centre_v = self.window.centre
        # As many views on both sides: with an even number, the window may have another centre.
        around = [
            2 * min(at, size - 1 - at) + 1 if size > 2 else size
            for at, size in zip((centre_u, centre_v), self.grid.shape, strict=True)
        ]
        if self.grid.arrangement.transpose:
            around.reverse()
        return around[0], around[1]

    @property
    def window_shape(self) -> tuple[int, int]:
        """Rows and columns in the current arrangement."""
        return self.views.shape[0], self.views.shape[1]

    def _grey(self, down: int, right: int) -> FloatArray | None:
        """Return the view at this distance from the centre, as arranged; None if it is missing."""
        known = self.grid.arrangement
        step = (-down if known.flip_u else down, -right if known.flip_v else right)
        step = (step[1], step[0]) if known.transpose else step
        u, v = self.window.centre[0] + step[0], self.window.centre[1] + step[1]
        is_inside = 0 <= u < self.grid.shape[0] and 0 <= v < self.grid.shape[1]
        if not is_inside or (u, v) in self.grid.absent:
            return None
        loaded = np.argwhere((self.positions == (u, v)).all(axis=-1))
        if len(loaded):
            return as_grey(self.views[tuple(loaded[0])])
        return _any_grey(self.grid, u, v, self.conversion, self.cut)

    def _rearrange(self, arrangement: Arrangement) -> None:
        self.views = turning.rearrange(self.views, arrangement)
        self.positions = turning.rearrange(self.positions, arrangement)
        if self.valid is not None:
            self.valid = np.asarray(turning.rearrange(self.valid, arrangement), dtype=np.bool_)
        if self.places is not None:
            self.places = turning.rearrange_places(self.places, arrangement)


def _overlap(part: slice, length: int, window: slice) -> tuple[slice, slice]:
    """Intersect part of an axis with a window; return slices into the window and into the part."""
    start, stop, _ = part.indices(length)
    first, last = max(start, window.start), min(stop, window.stop)
    last = max(first, last)
    into = slice(first - window.start, last - window.start)
    return into, slice(first - start, last - start)


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
    """Measure the brightness (u, v) of all views, if the outer ones may be dark."""
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
        is_candidate = grid.may_be_linear and views.dtype == np.uint16  # as decoders write it
        gamma = values.choose_gamma(views[rows // 2, columns // 2]) if is_candidate else 1.0
        note = f"Dark, linear values: display gamma {gamma:g} applied (--gamma 1 keeps them)."
    else:
        note = f"Display gamma {gamma:g} applied, as asked."
    if gamma == 1:
        return []
    values.apply_gamma(views, gamma)
    return [note]


def _check_missing(source: str, grid: ViewGrid, window: Window, options: ReadOptions) -> list[str]:
    """Refuse a grid with missing views, unless it is a cross or the user allows it."""
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
        found = rows * columns - len(grid.absent)
        raise InvalidLightField(
            f"{source}: found {found} {'view' if found == 1 else 'views'}, "
            f"expected {rows * columns} ({rows} x {columns}). Missing: {shown}. "
            + ("If the grid is another, pass --views UxV. " if is_guess else "")
            + "To continue without them, pass --allow-missing."
        )
    return [f"{_views(len(missing))} missing, masked out: {shown}."]


def is_sparse_by_design(shape: tuple[int, int], absent: frozenset[Position]) -> bool:
    """Whether the middle row and column are complete and the gaps are point-symmetric."""
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
        u, v = grid.shape[0] // 2, grid.shape[1] // 2
        order = orientation.find_order(lambda y, x: _any_grey(grid, u + y, v + x), grid.shape)
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


def _any_grey(
    grid: ViewGrid,
    u: int,
    v: int,
    conversion: values.Conversion | None = None,
    cut: Cut | None = None,
) -> FloatArray | None:
    """Load a view in grey for the order and orientation checks; None if it is missing."""
    view = grid.load(u, v)
    if view is None:
        return None
    name = grid.name_of(u, v)
    conversion = conversion or values.choose_conversion(view, name)
    colour = conversion.convert(values.with_channels(view), name).colour
    return as_grey(colour if cut is None else cut.apply(colour))
