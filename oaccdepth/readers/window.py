"""Which of a file's views to use: the central ones, an odd number per axis, really exposed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.lightfield import BoolArray, FloatArray
from oaccdepth.options import ReadOptions
from oaccdepth.readers.grid import FEWEST_VIEWS, MOST_VIEWS, ViewGrid

EXPOSED = 0.5  # of the brightest view: darker views are vignetted
CLEARLY_BRIGHTER = 1.02  # or the usual centre view of an even array is kept
ENOUGH = 0.8  # share of the views in a window that must be exposed


@dataclass(frozen=True)
class Window:
    """The rows and columns of a file that are used, in the file's order."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    notes: tuple[str, ...] = ()
    dark: BoolArray | None = None  # (rows, columns): too dark to use

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns used."""
        return len(self.rows), len(self.columns)


def choose_window(
    source: str, grid: ViewGrid, options: ReadOptions, exposure: FloatArray | None = None
) -> Window:
    """Choose the central views; `exposure` is the brightness (u, v) of views that may be dark."""
    rows, columns = grid.shape
    if min(rows, columns) < FEWEST_VIEWS:
        raise InvalidLightField(too_few(source, grid.shape))
    wanted = options.use_views or (options.views if grid.names_give_grid else None)
    if wanted is not None:
        _check_wanted(wanted, grid.shape, options, source)
    counts = _default_counts(grid.shape, options.stride) if wanted is None else wanted
    if min(counts) < FEWEST_VIEWS:
        raise InvalidOption(
            f"--stride {options.stride}: leaves {counts[0]} x {counts[1]} of "
            f"{rows} x {columns} views, at least 3 x 3 are needed. Use a smaller stride."
        )
    window = _place(grid.shape, counts, options.stride, exposure)
    while wanted is None and exposure is not None and max(window.shape) > FEWEST_VIEWS:
        if _share_exposed(exposure, window) >= ENOUGH:
            break
        counts = _next_smaller(window.shape)
        window = _place(grid.shape, counts, options.stride, exposure)
    return Window(
        window.rows,
        window.columns,
        _describe(grid.shape, window, options, wanted),
        _find_dark(exposure, window),
    )


def too_few(source: str, shape: tuple[int, int]) -> str:
    """Say why a single row or column of views, or less, cannot be used."""
    return (
        f"{source}: has {shape[0]} x {shape[1]} views, at least 3 x 3 are needed: "
        "disparity is estimated from camera rows and columns together. "
        "If the views lie in another grid, pass --views UxV."
    )


def _check_wanted(
    wanted: tuple[int, int], shape: tuple[int, int], options: ReadOptions, source: str
) -> None:
    option = "--use-views" if options.use_views else "--views"
    text = f"{option} {wanted[0]}x{wanted[1]}"
    if max(wanted) > MOST_VIEWS:
        raise InvalidOption(
            f"{text}: at most 9 x 9 views can be used. Use every n-th view with --stride N, "
            "or fewer with --use-views UxV."
        )
    if min(wanted) < FEWEST_VIEWS or wanted[0] % 2 == 0 or wanted[1] % 2 == 0:
        raise InvalidOption(f"{text}: expected odd numbers from 3 to 9, such as 7x7.")
    there = tuple(_available(size, options.stride) for size in shape)
    if wanted[0] > there[0] or wanted[1] > there[1]:
        raise InvalidOption(
            f"{text}: {source} has {shape[0]} x {shape[1]} views, "
            f"of which {there[0]} x {there[1]} lie evenly around its centre"
            + (f" with --stride {options.stride}." if options.stride > 1 else ".")
        )


def _available(size: int, stride: int) -> int:
    centre = size // 2
    return 2 * (min(centre, size - 1 - centre) // stride) + 1


def _default_counts(shape: tuple[int, int], stride: int) -> tuple[int, int]:
    rows, columns = (min(MOST_VIEWS, _available(size, stride)) for size in shape)
    return rows, columns


def _next_smaller(shape: tuple[int, int]) -> tuple[int, int]:
    """Two views less on the larger axis, or on both if they are equal."""
    rows, columns = shape
    largest = max(shape)
    return rows - 2 * (rows == largest), columns - 2 * (columns == largest)


def _place(
    shape: tuple[int, int], counts: tuple[int, int], stride: int, exposure: FloatArray | None
) -> Window:
    """Place the window at the centre; an even axis has two, and the better exposed one is taken."""
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
    assert best is not None  # the counts were cut to what is available
    return best


def _centres(size: int, has_choice: bool) -> tuple[int, ...]:
    if size % 2 == 0 and has_choice:
        return size // 2, size // 2 - 1
    return (size // 2,)


def _around(centre: int, count: int, stride: int, size: int) -> tuple[int, ...] | None:
    first = centre - count // 2 * stride
    last = centre + count // 2 * stride
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
    dark[len(window.rows) // 2, len(window.columns) // 2] = False  # the reference in any case
    return dark if dark.any() else None


def _describe(
    shape: tuple[int, int], window: Window, options: ReadOptions, wanted: tuple[int, int] | None
) -> tuple[str, ...]:
    if window.shape == shape:
        return ()
    used = f"{window.shape[0]} x {window.shape[1]}"
    if options.stride > 1:
        return (
            f"{shape[0]} x {shape[1]} views: {used} are used, with stride {options.stride}; "
            f"disparities are per {options.stride} views.",
        )
    if wanted is None and (shape[0] % 2 == 0 or shape[1] % 2 == 0) and max(shape) <= MOST_VIEWS:
        return (f"{shape[0]} x {shape[1]} views: the central odd grid of {used} is used.",)
    return (f"{shape[0]} x {shape[1]} views: the central {used} are used.",)
