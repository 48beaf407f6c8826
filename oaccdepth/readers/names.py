"""File names -> which picture is which view. Looks at names only, opens nothing."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import PurePath

from oaccdepth.errors import InvalidOption
from oaccdepth.options import ReadOptions
from oaccdepth.readers.decoding import is_picture
from oaccdepth.readers.grid import AS_STORED, FEWEST_VIEWS, LARGEST_GRID, Arrangement, Position

# Other pictures beside the views: ground truth, our own results, and files of other programs.
NOT_A_VIEW = re.compile(
    r"(^|[^a-z])(gt|ground_?truth|disp|disparit(y|ies)|depths?|labels?|masks?|thumb(nail)?s?|confidence"
    r"|(in)?valid|objectids?|oid|normals?|visibility|preview|contact|stacked|refo|unused|highres"
    r"|errors?|pass|eslf|qs\d+x\d+a[\d.]+)([^a-z]|$)",
    re.IGNORECASE,
)
PAIR = re.compile(
    r"(?P<prefix>.*?)(?P<row>\d+)(?P<middle>[^\d]{1,4})(?P<column>\d+)(?P<suffix>\D*)"
)
INDEX = re.compile(r"(?P<prefix>.*?)(?P<index>\d+)(?P<suffix>\D*)")
NUMBER = r"-?\d+(?:\.\d+)?"
GANTRY = re.compile(
    rf".*_(?P<row>\d\d)_(?P<column>\d\d)_(?P<y>{NUMBER})_(?P<x>{NUMBER})(_-?\d+\.\d+)*_?"
)
DIGITS = re.compile(r"\d+")
SERPENTINE = re.compile(r"(?P<prefix>.*)_(?P<counter>\d{3})_(?P<column>\d\d)_(?P<row>\d\d)")
WARP_STACK = re.compile(r".*_warp_image(?P<index>\d{3})\D.*")
FEWEST_FILES = 9


@dataclass(frozen=True)
class Naming:
    """Which picture of a folder is which view of the grid."""

    shape: tuple[int, int]
    names: dict[Position, str]
    reason: str
    name_of: Callable[[int, int], str]  # also for missing views
    names_give_grid: bool = True
    order_is_known: bool = True
    orientation: str = "unknown"
    arrangement: Arrangement = AS_STORED
    suspect: str = "u"
    vignetted: bool = False
    coordinates: dict[Position, tuple[float, float]] | None = None  # (y, x) of the cameras

    @property
    def absent(self) -> frozenset[Position]:
        """Positions in the grid that have no picture."""
        rows, columns = self.shape
        everywhere = {(u, v) for u in range(rows) for v in range(columns)}
        return frozenset(everywhere - self.names.keys())


def view_names(names: Iterable[str]) -> list[str]:
    """Return the pictures that may be views: no hidden files, ground truth, masks or thumbnails."""
    return sorted(
        name
        for name in names
        if is_picture(name) and not name.startswith(".") and not NOT_A_VIEW.search(_stem(name))
    )


def _stem(name: str) -> str:
    return PurePath(name).stem


def parse_names(names: Sequence[str], options: ReadOptions) -> Naming | None:
    """Find the grid that the names describe; None if there is none."""
    if options.pattern is not None:
        return _by_pattern(names, options)
    names = view_names(names)
    return (
        _by_coordinates(names)
        or _by_serpentine_counter(names)
        or _by_warp_index(names)
        or _by_pairs(names, options)
        or _by_varying_numbers(names)
        or _by_index(names, options)
        or _by_one_number(names, options)
    )


def _by_coordinates(names: Sequence[str]) -> Naming | None:
    """Stanford gantry: use the camera's y and x, not its row and column numbers."""
    found = [(name, match) for name in names if (match := GANTRY.fullmatch(_stem(name)))]
    if len(found) < FEWEST_FILES:
        return None
    heights: dict[int, list[float]] = defaultdict(list)
    widths: dict[int, list[float]] = defaultdict(list)
    for _, match in found:
        heights[int(match["row"])].append(float(match["y"]))
        widths[int(match["column"])].append(float(match["x"]))
    if not (_are_coordinates(heights) and _are_coordinates(widths)):
        return None
    rows, columns = _by_mean(heights), _by_mean(widths)
    names_at, coordinates = {}, {}
    for name, match in found:
        place = rows.index(int(match["row"])), columns.index(int(match["column"]))
        names_at[place] = name
        coordinates[place] = float(match["y"]), float(match["x"])
    is_stanford = "." in found[0][1]["y"] or "." in found[0][1]["x"]
    return Naming(
        (len(rows), len(columns)),
        names_at,
        f"names give the camera's y and x ({found[0][0]})",
        lambda u, v: f"row {rows[u]:02d}, column {columns[v]:02d}",
        orientation="presumed" if is_stanford else "unknown",
        coordinates=coordinates,
    )


def _by_mean(coordinates: dict[int, list[float]]) -> list[int]:
    """Sort row or column numbers by their mean coordinate."""
    return sorted(coordinates, key=lambda key: sum(coordinates[key]) / len(coordinates[key]))


def _are_coordinates(groups: dict[int, list[float]]) -> bool:
    """Whether cameras in a row (or column) are closer to each other than to the next row."""
    middles = sorted(sum(group) / len(group) for group in groups.values())
    spread = max(max(group) - min(group) for group in groups.values())
    return all(after - before > spread for before, after in pairwise(middles))


def _by_serpentine_counter(names: Sequence[str]) -> Naming | None:
    """IMG_0001_NNN_SS_TT: a counter in serpentine order, the column, the row."""
    found = [(name, match) for name in names if (match := SERPENTINE.fullmatch(_stem(name)))]
    found.sort(key=lambda item: int(item[1]["counter"]))
    places = {(int(match["row"]), int(match["column"])): name for name, match in found}
    steps = [abs(b[0] - a[0]) + abs(b[1] - a[1]) for a, b in pairwise(places)]
    if len(places) < FEWEST_FILES or len(places) < len(found) or any(s != 1 for s in steps):
        return None
    return _naming(places, "names give a counter, the column and the row", "presumed")


def _by_warp_index(names: Sequence[str]) -> Naming | None:
    """Lytro Power Tools: ..._warp_imageNNN_..., 14 x 14 views, row by row."""
    places = {
        divmod(int(match["index"]), 14): name
        for name in names
        if (match := WARP_STACK.fullmatch(_stem(name)))
    }
    if len(places) < FEWEST_FILES or max(row for row, _ in places) >= 14:
        return None
    return Naming(
        (14, 14),
        places,
        "names of a Lytro warp stack (..._warp_imageNNN)",
        lambda u, v: f"..._warp_image{14 * u + v:03d}",
        orientation="presumed",
        vignetted=True,
    )


def _by_pairs(names: Sequence[str], options: ReadOptions) -> Naming | None:
    """Two numbers at the end of the name: row and column."""
    for prefix, places in _pairs(names):
        is_line = options.views is None and _is_line(places)
        is_told = options.views == (_size(places, 0), _size(places, 1))
        if (is_told or len(places) >= FEWEST_FILES) and (is_line or _is_grid(places)):
            reason = f"names give row and column ({places[min(places)]})"
            return _with_preset(_naming(places, reason, "unknown"), prefix)
    return None


def _pairs(names: Sequence[str]) -> list[tuple[str, dict[Position, str]]]:
    """Group similar names that end with two numbers; return prefix and places, largest first."""
    groups: dict[tuple[str, ...], dict[Position, str]] = defaultdict(dict)
    for name in names:
        if match := PAIR.fullmatch(_stem(name)):
            ending = PurePath(name).suffix.lower()
            like = (match["prefix"], match["middle"], match["suffix"], ending)
            groups[like][int(match["row"]), int(match["column"])] = name
    by_size = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [(key[0], places) for key, places in by_size]


def few_views(names: Sequence[str]) -> tuple[int, int] | None:
    """Grid of a complete set of names that is too small to be taken as views without --views."""
    for _, places in _pairs(view_names(names)):
        is_full = _is_full_grid(places, len(places))
        if FEWEST_VIEWS <= len(places) < FEWEST_FILES and is_full:
            may_be = _is_line(places) or _is_grid(places)
            return (_size(places, 0), _size(places, 1)) if may_be else None
    return None


def _by_varying_numbers(names: Sequence[str]) -> Naming | None:
    """Two numbers anywhere in the names that form a complete grid; ignore other numbers."""
    for group in _alike(names):
        numbers, varying = _varying_numbers(group)
        for first, second in combinations(varying, 2):
            places = {(row[first], row[second]): group[n] for n, row in enumerate(numbers)}
            if _is_full_grid(places, len(group)):
                return _from_two_numbers(places)
    return None


def _alike(names: Sequence[str]) -> list[list[str]]:
    """Group names that differ only in their numbers; return large enough groups, largest first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[DIGITS.sub("#", name)].append(name)
    large = [group for group in groups.values() if len(group) >= FEWEST_FILES]
    return sorted(large, key=len, reverse=True)


def _varying_numbers(group: Sequence[str]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return all numbers in similar names, and the indices of those that vary."""
    numbers = [tuple(int(text[:20]) for text in DIGITS.findall(name)) for name in group]
    varying = [k for k in range(len(numbers[0])) if len({row[k] for row in numbers}) > 1]
    return numbers, varying


def _by_one_number(names: Sequence[str], options: ReadOptions) -> Naming | None:
    """One number anywhere in the names that counts the views; the others are constant."""
    for group in _alike(names):
        numbers, varying = _varying_numbers(group)
        if len(varying) == 1:
            numbered = {row[varying[0]]: name for row, name in zip(numbers, group, strict=True)}
            if naming := number_views(numbered, options):
                return replace(naming, name_of=lambda u, v: f"row {u}, column {v}")
    return None


def _is_full_grid(places: dict[Position, str], count: int) -> bool:
    rows, columns = _size(places, 0), _size(places, 1)
    return max(rows, columns) <= LARGEST_GRID and rows * columns == len(places) == count


def _from_two_numbers(places: dict[Position, str]) -> Naming:
    rows, columns = _axis(places, 0), _axis(places, 1)
    reason = f"two numbers in the names give row and column ({places[min(places)]})"
    return replace(
        _naming(places, reason, "unknown"),
        name_of=lambda u, v: f"row {rows[u]}, column {columns[v]}",
    )


def _with_preset(naming: Naming, prefix: str) -> Naming:
    """Apply what is known about the names that some programs use."""
    if prefix == "SAI_":  # V-SENSE: columns from right to left
        flipped = Arrangement(flip_v=True)
        return replace(naming, arrangement=flipped, suspect="v", orientation="presumed")
    return naming


def _is_grid(places: dict[Position, str]) -> bool:
    if not all(2 <= _size(places, axis) <= LARGEST_GRID for axis in (0, 1)):
        return False
    rows, columns = _axis(places, 0), _axis(places, 1)
    if len(places) >= 0.5 * len(rows) * len(columns):
        return True
    row, column = rows[len(rows) // 2], columns[len(columns) // 2]
    return all((u, column) in places for u in rows) and all((row, v) in places for v in columns)


def _is_line(places: dict[Position, str]) -> bool:
    """Whether all views are in one row or column: view_1_1, view_1_2 and so on.

    IMG_0001_001 does not count: its first number is the picture's, the second counts the views.
    """
    match = PAIR.fullmatch(_stem(places[min(places)]))
    return (
        match is not None
        and len(match["row"]) == len(match["column"]) <= 2
        and 1 in (_size(places, 0), _size(places, 1))
    )


def _axis(places: Iterable[Position], axis: int) -> range:
    """Row or column numbers as a range: first, last and the step between them."""
    numbers = sorted({place[axis] for place in places})
    step = math.gcd(*(number - numbers[0] for number in numbers)) or 1
    return range(numbers[0], numbers[-1] + 1, step)


def _size(places: Iterable[Position], axis: int) -> int:
    """Length of this axis; len() overflows if a name contains a number with twenty digits."""
    numbers = _axis(places, axis)
    return (numbers.stop - 1 - numbers.start) // numbers.step + 1


def _naming(places: dict[Position, str], reason: str, orientation: str) -> Naming:
    rows, columns = _axis(places, 0), _axis(places, 1)
    shape = len(rows), len(columns)
    example = places[min(places)]
    return Naming(
        shape,
        {(rows.index(u), columns.index(v)): name for (u, v), name in places.items()},
        reason,
        lambda u, v: _like(example, rows[u], columns[v]),
        orientation=orientation,
        vignetted=all(10 <= size <= 15 for size in shape),  # Lytro cameras: dark outer views
    )


def _like(example: str, row: int, column: int) -> str:
    """Name of another view, formed like `example`, for messages."""
    match = PAIR.fullmatch(_stem(example))
    if match is None:
        return f"row {row}, column {column}"
    row_text, column_text = (
        f"{number:0{len(match[group])}d}" for number, group in ((row, "row"), (column, "column"))
    )
    stem = f"{match['prefix']}{row_text}{match['middle']}{column_text}{match['suffix']}"
    return stem + PurePath(example).suffix


def _by_index(names: Sequence[str], options: ReadOptions) -> Naming | None:
    """One number at the end of the name that counts the views."""
    groups: dict[tuple[str, ...], dict[int, str]] = defaultdict(dict)
    for name in names:
        if match := INDEX.fullmatch(_stem(name)):
            like = (match["prefix"], match["suffix"], PurePath(name).suffix.lower())
            groups[like][int(match["index"])] = name
    if not groups:
        return None
    key, numbered = max(groups.items(), key=lambda item: len(item[1]))
    if len(numbered) < 2:  # the last number does not count the views
        return None
    naming = number_views(numbered, options)
    is_mit = key[0].endswith("-") and len(numbered) in (25, 49) and min(numbered) == 1
    if naming is not None and is_mit:  # MIT, Wetzstein: rows from the bottom
        flipped = Arrangement(flip_u=True)
        return replace(naming, arrangement=flipped, orientation="presumed")
    return naming


def number_views(numbered: dict[int, str], options: ReadOptions) -> Naming | None:
    """Arrange numbered views row by row (or by column, with --order), lowest number first."""
    first = min(numbered)
    span = max(numbered) - first + 1
    shape = options.views or square_of(span, len(numbered))
    if shape is None or span > shape[0] * shape[1]:
        return None
    rows, columns = shape
    by_column = options.order in ("columns", "serpentine-columns")

    def place(index: int) -> Position:
        return (index % rows, index // rows) if by_column else divmod(index, columns)

    def name_of(u: int, v: int) -> str:
        index = first + (v * rows + u if by_column else u * columns + v)
        return _renumbered(numbered[first], index)

    return Naming(
        shape,
        {place(number - first): name for number, name in numbered.items()},
        f"names count the views ({numbered[first]})",
        name_of,
        names_give_grid=False,
        order_is_known=False,
    )


def square_of(span: int, count: int) -> tuple[int, int] | None:
    """Return the square grid for views whose numbers cover `span`, of which `count` exist.

    A few may be missing, also at the end. If more than one in ten is missing, return None.
    """
    side = math.isqrt(max(0, span - 1)) + 1
    if side < 3 or count < 0.9 * side * side or side > LARGEST_GRID:
        return None
    return side, side


def _renumbered(example: str, index: int) -> str:
    match = INDEX.fullmatch(_stem(example))
    assert match is not None  # this expression has matched the example before
    number = f"{index:0{len(match['index'])}d}"
    return f"{match['prefix']}{number}{match['suffix']}{PurePath(example).suffix}"


def _by_pattern(names: Sequence[str], options: ReadOptions) -> Naming | None:
    """Use the user's --pattern: groups row and column, by name or in this order; or one index."""
    pattern = _compile(options.pattern or "")
    groups = pattern.groupindex
    places: dict[Position, str] = {}
    numbered: dict[int, str] = {}
    for name in sorted(names):
        match = pattern.search(name) if is_picture(name) else None
        if match is None:
            continue
        if pattern.groups == 1:
            numbered[_number(match[1], options)] = name
        else:
            row = match[groups.get("row", 1)]
            column = match[groups.get("column", 2)]
            places[_number(row, options), _number(column, options)] = name
    if numbered:
        return number_views(numbered, options)
    if places and all(_size(places, axis) <= LARGEST_GRID for axis in (0, 1)):
        return _naming(places, f"names match --pattern {options.pattern}", "unknown")
    return None


def _compile(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise InvalidOption(f"--pattern {text}: not a regular expression ({error}).") from error
    if pattern.groups not in (1, 2):
        raise InvalidOption(
            f"--pattern {text}: has {pattern.groups} groups, expected two (row and column) "
            r"or one (index), such as 'view_(\d+)_(\d+)'."
        )
    return pattern


def _number(text: str | None, options: ReadOptions) -> int:
    if text is None or not text.isdecimal():
        raise InvalidOption(
            f"--pattern {options.pattern}: a group matched {text!r}, expected digits."
        )
    return int(text)
