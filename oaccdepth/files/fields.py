"""Checks values that were read from a file: numbers, ranges, cameras.

Metadata may hold anything: text instead of a number, a list, a date, infinity, a number with a
million digits. The caller says what a field must be; anything else raises `BadField`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from oaccdepth.lightfield import Camera
from oaccdepth.options import Range
from oaccdepth.printable import printable

LARGEST = 1e12  # mm, px, seconds: nothing real is larger
LARGEST_DISPARITY = 1e6  # px
LONGEST_NUMBER = 64  # characters
MOST_TEXT = 1 << 24  # bytes of JSON; our own files have a few thousand


Bounds = tuple[float, float]
T = TypeVar("T")


class BadField(ValueError):
    """A value from a file that has the wrong type or is out of range."""


def as_number(value: Any, low: float = -LARGEST, high: float = LARGEST) -> float:
    """Convert to a finite number within bounds; text and one-element arrays are accepted."""
    if isinstance(value, np.ndarray | np.generic):
        value = _as_item(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadField(f"{type(value).__name__}, expected a number")
    if isinstance(value, str) and len(value) > LONGEST_NUMBER:
        raise BadField("a text of many characters, expected a number")
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:
        raise BadField("not a number") from error
    if not math.isfinite(number) or not low <= number <= high:
        raise BadField(f"{number:g}, expected {low:g} to {high:g}")
    return number


def as_whole(value: Any, low: int, high: int) -> int:
    """Convert to a whole number within these bounds."""
    number = as_number(value, low, high)
    if number != int(number):
        raise BadField(f"{number:g}, expected a whole number")
    return int(number)


def as_numbers(
    value: Any, count: int, low: float = -LARGEST, high: float = LARGEST
) -> tuple[float, ...]:
    """Convert a list or an array to `count` numbers."""
    if isinstance(value, np.ndarray):
        if value.shape != (count,) or value.dtype.kind not in "iuf":
            raise BadField(f"{value.dtype} of shape {value.shape}, expected {count} numbers")
        value = value.tolist()
    if not isinstance(value, list | tuple) or len(value) != count:
        raise BadField(f"expected {count} numbers")
    return tuple(as_number(item, low, high) for item in value)


def as_range(value: Any) -> Range:
    """Convert to the lowest and the highest disparity [px]."""
    low, high = as_numbers(value, 2, -LARGEST_DISPARITY, LARGEST_DISPARITY)
    if low > high:
        raise BadField(f"from {low:g} to {high:g}, expected the lower number first")
    return low, high


def as_camera(value: Any) -> Camera:
    """Convert to a Camera: baseline, focal length, sensor, focus distance [mm], and crop offset."""
    numbers = as_numbers(value, 6 if _length(value) == 6 else 4)
    if min(numbers[:3]) <= 0 or numbers[3] < 0:
        raise BadField("a camera with lengths of 0 or less")
    return Camera(*numbers)


def _length(value: Any) -> int:
    """Length of a list or a one-dimensional array; 0 for anything else."""
    if isinstance(value, np.ndarray):
        return value.size if value.ndim == 1 else 0
    return len(value) if isinstance(value, list | tuple) else 0


def parse_json(data: bytes | str) -> Any:
    """Parse JSON; raise `BadField` if it is not JSON or is nested too deeply."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadField("not readable as JSON") from error


def as_dataclass(kind: type[T], value: Any, bounds: Mapping[str, Bounds] | None = None) -> T:
    """Convert a mapping to a dataclass, each field by its type; `bounds` limits the numbers."""
    if not isinstance(value, Mapping):
        raise BadField(f"{type(value).__name__}, expected names and values")
    assert is_dataclass(kind)
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    for name in value:
        if name not in known:
            raise BadField(f"the unknown field {printable(str(name)[:40])}")
    parsed = {}
    for name, field in known.items():
        if name in value:
            try:
                parsed[name] = as_type(value[name], hints[name], (bounds or {}).get(name))
            except BadField as error:
                raise BadField(f"{name}: {error}") from error
        elif field.default is MISSING and field.default_factory is MISSING:
            raise BadField(f"{name} is missing")
    return kind(**parsed)


def as_type(value: Any, kind: Any, bounds: Bounds | None = None) -> Any:
    """Check a value against a type annotation, and convert it."""
    low, high = bounds or (-LARGEST, LARGEST)
    if kind is Any:
        return value
    if kind is float:
        return as_number(value if isinstance(value, int | float) else None, low, high)
    if kind is int:
        return as_whole(value if isinstance(value, int) else None, math.ceil(low), math.floor(high))
    if kind in (str, bool, NoneType):
        if not isinstance(value, kind):
            raise BadField(f"{type(value).__name__}, expected {kind.__name__}")
        return value
    return _as_container(value, kind, bounds)


def _as_container(value: Any, kind: Any, bounds: Bounds | None) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        *others, last = (part for part in inner if part is not NoneType)
        for part in others:
            with suppress(BadField):
                return as_type(value, part, bounds)
        return as_type(value, last, bounds)
    if origin is tuple and isinstance(value, list | tuple):
        kinds = (inner[0],) * len(value) if inner[1:] == (...,) else inner
        if len(kinds) != len(value):
            raise BadField(f"{len(value)} values, expected {len(kinds)}")
        return tuple(as_type(item, part, bounds) for item, part in zip(value, kinds, strict=True))
    if origin is dict and isinstance(value, dict):
        return {as_type(key, inner[0]): as_type(item, inner[1]) for key, item in value.items()}
    raise BadField(f"{type(value).__name__}, expected {getattr(origin, '__name__', kind)}")


def _as_item(value: Any) -> Any:
    if value.size != 1 or value.dtype.kind not in "iuf":
        raise BadField(f"{value.dtype} of shape {value.shape}, expected a number")
    return value.item()
