"""Chooses which views to use: all, or some spread over the aperture; leaves out dark ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.lightfield import BoolArray, FloatArray
from oaccdepth.options import ReadOptions
from oaccdepth.readers.grid import FEWEST_VIEWS, ViewGrid

EXPOSED = 0.5  # share of the brightest view; darker views are vignetted
CLEARLY_BRIGHTER = 1.02  # ratio; below it, an even array keeps its usual centre view
ENOUGH = 0.8  # share of the views in a window that must be exposed
MOST_VIEWS = 128  # in total, unless the user asks for more: they take time and add little
MOST_VIGNETTED = 9  # per axis, for cameras whose outer views are dark


@dataclass(frozen=True)
class Window:
    """The rows and columns that are used, in the order of the file."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    notes: tuple[str, ...] = ()
    dark: BoolArray | None = None  # (rows, columns): too dark to use

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns used."""
        return len(self.rows), len(self.columns)

    @property
    def centre(self) -> tuple[int, int]:
        """Row and column of the reference view in the file."""
        return self.rows[len(self.rows) // 2], self.columns[len(self.columns) // 2]


def choose_window(
    source: str, grid: ViewGrid, options: ReadOptions, exposure: FloatArray | None = None
) -> Window:
    """Choose the views to use; `exposure` is the brightness (u, v) of views that may be dark."""
    rows, columns = grid.shape
    if rows * columns < FEWEST_VIEWS:
        raise InvalidLightField(too_few(source, grid.shape))
    wanted = _wanted(grid, options)
    if wanted is not None:
        _check_wanted(wanted, grid.shape, options, source)
        window = _place(grid.shape, wanted, options.stride, exposure)
    elif options.use_views == "all" or exposure is None:
        window = _spread(grid.shape, options)
    else:
        window = _exposed(grid.shape, options.stride, exposure)
    if window.shape[0] * window.shape[1] < FEWEST_VIEWS:
        raise InvalidOption(
            f"--stride {options.stride}: leaves {window.shape[0]} x {window.shape[1]} of "
            f"{rows} x {columns} views, at least {FEWEST_VIEWS} are needed. Use a smaller stride."
        )
    return Window(
        window.rows,
        window.columns,
        _describe(grid.shape, window, options),
        _find_dark(exposure, window),
    )


def too_few(source: str, shape: tuple[int, int]) -> str:
    """Say why one or two views cannot be used."""
    return (
        f"{source}: has {shape[0]} x {shape[1]} views, at least {FEWEST_VIEWS} are needed. "
        "If the views lie in another grid, pass --views UxV."
    )


def _wanted(grid: ViewGrid, options: ReadOptions) -> tuple[int, int] | None:
    """Return the requested number of rows and columns; None if there is none."""
    if options.use_views == "all":
        return None
    if options.use_views is not None and not isinstance(options.use_views, str):
        return options.use_views
    if options.use_views is not None:
        raise InvalidOption(f"--use-views {options.use_views}: expected UxV, such as 9x9, or all.")
    return options.views if grid.names_give_grid else None


def _check_wanted(
    wanted: tuple[int, int], shape: tuple[int, int], options: ReadOptions, source: str
) -> None:
    text = f"{'--use-views' if options.use_views else '--views'} {wanted[0]}x{wanted[1]}"
    if wanted[0] * wanted[1] < FEWEST_VIEWS:
        raise InvalidOption(f"{text}: expected at least {FEWEST_VIEWS} views, such as 3x3 or 1x5.")
    there = tuple(len(_every(size, options.stride)) for size in shape)
    if wanted[0] > there[0] or wanted[1] > there[1]:
        raise InvalidOption(
            f"{text}: {source} has {shape[0]} x {shape[1]} views"
            + (
                f", {there[0]} x {there[1]} with --stride {options.stride}."
                if options.stride > 1
                else "."
            )
        )


def _every(size: int, stride: int) -> tuple[int, ...]:
    """Take every n-th row or column, so that the centre stays the centre."""
    return tuple(range(size // 2 % stride, size, stride))


def _spread(shape: tuple[int, int], options: ReadOptions) -> Window:
    """Take all views; if there are too many, every second (third, ...) row and column.

    They cover the whole aperture: one distant view says more about small disparities than many
    close ones.
    """
    strides = [options.stride, options.stride]
    while True:
        rows, columns = (_every(size, stride) for size, stride in zip(shape, strides, strict=True))
        is_asked = options.use_views == "all" or options.stride > 1
        if is_asked or len(rows) * len(columns) <= MOST_VIEWS:
            return Window(rows, columns)
        largest = max(len(rows), len(columns))
        for axis, used in enumerate((rows, columns)):
            strides[axis] += len(used) == largest


def _exposed(shape: tuple[int, int], stride: int, exposure: FloatArray) -> Window:
    """Take the largest central window in which most views are exposed."""
    rows, columns = (min(MOST_VIGNETTED, _symmetric(size, stride)) for size in shape)
    window = _place(shape, (rows, columns), stride, exposure)
    while max(window.shape) > FEWEST_VIEWS and _share_exposed(exposure, window) < ENOUGH:
        window = _place(shape, _next_smaller(window.shape), stride, exposure)
    return window


def _symmetric(size: int, stride: int) -> int:
    centre = size // 2
    return 2 * (min(centre, size - 1 - centre) // stride) + 1


def _next_smaller(shape: tuple[int, int]) -> tuple[int, int]:
    """Remove two views from the longer axis, or from both if they are equal."""
    rows, columns = shape
    largest = max(shape)
    return rows - 2 * (rows == largest), columns - 2 * (columns == largest)


def _place(
    shape: tuple[int, int], counts: tuple[int, int], stride: int, exposure: FloatArray | None
) -> Window:
    """Centre the window; if an axis is even, choose the better exposed of its two centres."""
    best: Window | None = None
    for row in _centres(shape[0], exposure is not None):
        for column in _centres(shape[1], exposure is not None):
            rows = _around(row, counts[0], stride, shape[0])
            columns = _around(column, counts[1], stride, shape[1])
            if rows is None or columns is None:
                continue
            window = Window(rows, columns)
            if best is None or _light(exposure, window) > CLEARLY_BRIGHTER * _light(exposure, best):
                best = window
    assert best is not None  # the counts are limited to the available views
    return best


def _centres(size: int, has_choice: bool) -> tuple[int, ...]:
    if size % 2 == 0 and has_choice:
        return size // 2, size // 2 - 1
    return (size // 2,)


def _around(centre: int, count: int, stride: int, size: int) -> tuple[int, ...] | None:
    first = centre - count // 2 * stride
    last = first + (count - 1) * stride
    return None if first < 0 or last >= size else tuple(range(first, last + 1, stride))


def _light(exposure: FloatArray | None, window: Window) -> float:
    return 0.0 if exposure is None else float(exposure[np.ix_(window.rows, window.columns)].sum())


def _share_exposed(exposure: FloatArray, window: Window) -> float:
    dark = _find_dark(exposure, window)
    return 1.0 if dark is None else 1 - float(dark.mean())


def _find_dark(exposure: FloatArray | None, window: Window) -> BoolArray | None:
    if exposure is None:
        return None
    inside = exposure[np.ix_(window.rows, window.columns)]
    dark = np.asarray(inside < EXPOSED * exposure.max(), dtype=np.bool_)
    dark[len(window.rows) // 2, len(window.columns) // 2] = False  # always use the reference
    return dark if dark.any() else None


def _describe(shape: tuple[int, int], window: Window, options: ReadOptions) -> tuple[str, ...]:
    if window.shape == shape:
        return ()
    text = f"{shape[0]} x {shape[1]} views: {window.shape[0]} x {window.shape[1]}"
    if options.stride > 1:
        return (f"{text} are used, with stride {options.stride}.",)
    if max(_steps(window.rows) + _steps(window.columns)) > 1:
        return (f"{text}, spread over all of them, are used. --use-views all takes every view.",)
    return (
        f"{shape[0]} x {shape[1]} views: the central {window.shape[0]} x {window.shape[1]} "
        "are used.",
    )


def _steps(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (numbers[1] - numbers[0],) if len(numbers) > 1 else (1,)
