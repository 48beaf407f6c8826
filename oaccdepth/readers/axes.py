"""Arrays of any axis order -> ViewGrid.

Letters name the axes: u and v are camera row and column, h and w height and width, c channels,
n the number of a view. The array may be in memory, memory-mapped (.npy) or an HDF5 dataset; only
the requested part is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.lightfield import Array
from oaccdepth.options import ReadOptions
from oaccdepth.readers.grid import LARGEST_GRID, Piece, ViewGrid
from oaccdepth.readers.names import square_of

# Tried in this order: the first one that fits the shape is used.
KNOWN_AXES = (
    "uvhwc",  # ours, LFToolbox and BasicLFSR in MATLAB, HCI
    "cwhvu",  # the same, written by MATLAB and read through HDF5
    "hwcuv",  # FSLFDE
    "hwuvc",
    "uvchw",
    "cuvhw",
    "uvhw",
    "hwuv",
    "whvu",
    "nhwc",
    "nchw",
    "hwcn",
    "nhw",
    "hwn",
)
MOST_GUESSED_VIEWS = 20  # per axis; a longer axis is taken as pixels
PIECE_BYTES, SAMPLE_BYTES = 4 << 20, 1 << 20
FEWEST_LINES = 4  # in a sample
Open = Callable[[], AbstractContextManager[Any]]  # yields an array-like: shape, dtype, indexing


def choose_axes(shape: Sequence[int], source: str, axes: str | None, matlab: bool = False) -> str:
    """Choose the axis order of an array: the one from --axes, or the first known one that fits.

    `matlab`: MATLAB wrote the array, so its axes appear reversed. Users give --axes in the order
    in which MATLAB shows them.
    """
    if axes is not None:
        letters = _check_axes(axes.lower(), shape, source)
        return letters[::-1] if matlab else letters
    stored = tuple(shape)[::-1] if matlab else tuple(shape)
    for known in KNOWN_AXES:
        if _fits(known, stored):
            return known[::-1] if matlab else known
    raise InvalidLightField(
        f"{source}: an array of shape {' x '.join(map(str, stored))} is not a known kind of "
        "light field. Expected camera rows, columns, height, width, channels; or pass --axes uvhwc."
    )


def _check_axes(axes: str, shape: Sequence[int], source: str) -> str:
    has_grid = ("u" in axes and "v" in axes and "n" not in axes) or (
        "n" in axes and not {"u", "v"} & set(axes)
    )
    if len(set(axes)) != len(axes) or not set(axes) <= set("uvhwcn") or not has_grid:
        raise InvalidOption(
            f"--axes {axes}: expected each of u, v, h, w, c at most once "
            "(or n for numbered views in place of u and v), such as uvhwc."
        )
    if "h" not in axes or "w" not in axes or len(axes) != len(shape):
        raise InvalidOption(
            f"--axes {axes}: {source} has {len(shape)} axes, of sizes "
            f"{' x '.join(map(str, shape))}. Expected one letter for each, with h and w."
        )
    return axes


def _fits(axes: str, shape: tuple[int, ...]) -> bool:
    if len(axes) != len(shape):
        return False
    size = dict(zip(axes, shape, strict=True))
    if "n" in size:
        return (
            size.get("c", 3) in (3, 4)
            and square_of(size["n"], size["n"]) == (math.isqrt(size["n"]),) * 2
            and min(size["h"], size["w"]) > 4
        )
    views = (size["u"], size["v"])
    return (
        size.get("c", 1) in (1, 3, 4)
        and all(1 <= count <= MOST_GUESSED_VIEWS for count in views)
        and min(size["h"], size["w"]) > max(views)
    )


def loaded_once(load: Callable[[], Array]) -> Open:
    """Open an array that can only be read as a whole: load it at first use, then keep it."""
    kept = cache(load)
    return lambda: nullcontext(kept())


def array_grid(
    open_array: Open,
    shape: Sequence[int],
    axes: str,
    options: ReadOptions,
    source: str,
    reason: str,
) -> ViewGrid:
    """Make a grid of views from an array; every access opens and closes the array."""
    size = dict(zip(axes, shape, strict=True))
    if 0 in shape:
        raise InvalidLightField(f"{source}: the array is empty ({' x '.join(map(str, shape))}).")
    if "n" in size:
        return _stack_grid(open_array, size, axes, options, source, reason)
    if max(size["u"], size["v"]) > LARGEST_GRID:
        raise InvalidLightField(
            f"{source}: {size['u']} x {size['v']} views are not possible. "
            "Pass the order of the axes with --axes, such as uvhwc."
        )

    def load(u: int, v: int) -> Array:
        index = tuple({"u": u, "v": v}.get(axis, slice(None)) for axis in axes)
        with open_array() as array:
            values = np.asarray(array[index])
        return np.transpose(values, _order(axes.replace("u", "").replace("v", ""), "hwc"))

    def pieces(rows: Sequence[int], columns: Sequence[int]) -> Iterator[Piece]:
        with open_array() as array:
            yield from _read_pieces(array, axes, _as_slice(rows), _as_slice(columns))

    def sample() -> Array:
        with open_array() as array:
            return _read_lines(array, axes)

    return ViewGrid(
        (size["u"], size["v"]),
        load,
        reason,
        pieces=pieces,
        sample=sample,
        orientation="unknown",
    )


def _stack_grid(
    open_array: Open,
    size: dict[str, int],
    axes: str,
    options: ReadOptions,
    source: str,
    reason: str,
) -> ViewGrid:
    """Make a grid from views that are only numbered, row by row or column by column."""
    shape = options.views or square_of(size["n"], size["n"])
    if shape is None or shape[0] * shape[1] != size["n"]:
        raise InvalidLightField(
            f"{source}: {size['n']} numbered views do not fill a grid"
            + (f" of {shape[0]} x {shape[1]}" if shape else "")
            + ". Pass --views UxV."
        )
    rows, columns = shape
    by_column = options.order in ("columns", "serpentine-columns")

    def load(u: int, v: int) -> Array:
        number = v * rows + u if by_column else u * columns + v
        index = tuple(number if axis == "n" else slice(None) for axis in axes)
        with open_array() as array:
            values = np.asarray(array[index])
        return np.transpose(values, _order(axes.replace("n", ""), "hwc"))

    return ViewGrid(
        shape, load, reason, names_give_grid=False, order_is_known=False, orientation="unknown"
    )


def _order(have: str, want: str) -> tuple[int, ...]:
    """Return the permutation from axis order `have` to `want`; `have` may lack c."""
    return tuple(have.index(axis) for axis in want if axis in have)


def _as_slice(numbers: Sequence[int]) -> slice:
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    return slice(numbers[0], numbers[-1] + 1, step)


def _read_pieces(array: Any, axes: str, rows: slice, columns: slice) -> Iterator[Piece]:
    """Read the array once, in slabs along h or w, whichever is stored first."""
    along = "h" if axes.index("h") < axes.index("w") else "w"
    size = array.shape[axes.index(along)]
    wanted = _thickness(array, axes, along, PIECE_BYTES)
    thickness = _in_whole_chunks(array, axes.index(along), wanted)
    for start in range(0, size, thickness):
        part = slice(start, min(size, start + thickness))
        chosen = {"u": rows, "v": columns, along: part}
        values = np.asarray(array[tuple(chosen.get(axis, slice(None)) for axis in axes)])
        everything = slice(None)
        yield Piece(
            everything,
            everything,
            part if along == "h" else everything,
            part if along == "w" else everything,
            np.transpose(values, _order(axes, "uvhwc")),
        )


def _thickness(array: Any, axes: str, along: str, budget: int) -> int:
    """Number of pixels along one axis, so that a slab has about `budget` bytes."""
    per_pixel = array.dtype.itemsize * math.prod(array.shape) // array.shape[axes.index(along)]
    return max(1, int(budget // max(1, per_pixel)))


def _in_whole_chunks(array: Any, place: int, thickness: int) -> int:
    """Round to whole chunks of an HDF5 file, so that no chunk is decompressed twice."""
    chunks = getattr(array, "chunks", None)
    return max(1, thickness // chunks[place]) * int(chunks[place]) if chunks else thickness


def _read_lines(array: Any, axes: str) -> Array:
    """Read a few evenly spaced lines of every view, (u, v, h', w'[, c])."""
    along = "h" if axes.index("h") < axes.index("w") else "w"
    size = array.shape[axes.index(along)]
    lines = max(FEWEST_LINES, _thickness(array, axes, along, SAMPLE_BYTES))
    step = max(1, size // lines)
    part = slice(step // 2, size, step)
    values = np.asarray(array[tuple(part if axis == along else slice(None) for axis in axes)])
    return np.transpose(values, _order(axes, "uvhwc"))
