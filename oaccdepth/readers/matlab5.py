"""MATLAB files of version 5 (before 7.3): reads arrays of numbers, also those in a struct.

Follows "MAT-File Format" by The MathWorks, level 5. SciPy reads these files, too, but a damaged one
can crash the process; here every length is checked before it is used. The axes of all arrays are
reversed, as in version 7.3 read through HDF5, because MATLAB uses column-major order.
"""

from __future__ import annotations

import math
import mmap
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.files.limits import MOST_BYTES, allowed, check_array, claimed_bytes
from oaccdepth.files.regular import open_regular
from oaccdepth.lightfield import Array
from oaccdepth.readers.containers import Dataset

HEADER_BYTES = 128
ORDERS = {b"IM": "<", b"MI": ">"}
MATRIX, COMPRESSED = 14, 15
STORED = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
CLASSES = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
}  # fmt: skip
STRUCT = 2
LOGICAL = 0x02
START_BYTES = 1 << 16  # of a compressed variable; enough for its name and shape
MOST_ARRAYS, MOST_VARIABLES, MOST_FIELDS, MOST_AXES = 10_000, 10_000, 1000, 32
DAMAGED = (struct.error, zlib.error, ValueError, LookupError, OSError, ArithmeticError, MemoryError)

Buffer = bytes | mmap.mmap


@dataclass(frozen=True)
class _Array:
    """Position of an array in a buffer."""

    name: str
    shape: tuple[int, ...]  # as in MATLAB
    kind: str  # number type in MATLAB
    stored: str = ""  # number type in the file, with its byte order
    start: int = 0
    size: int = 0  # bytes


def list_arrays(path: Path) -> list[Dataset]:
    """List names and (reversed) shapes of all arrays; decompress only the start of each."""
    found: list[Dataset] = []
    with _Opened(path) as file:
        for variable in file.variables():
            found += [_describe(array, variable) for array in file.arrays(variable, START_BYTES)]
            if len(found) > MOST_ARRAYS:
                raise ValueError("too many arrays")
    return found


def _describe(array: _Array, variable: _Variable) -> Dataset:
    claimed = claimed_bytes(array.shape, np.dtype(array.kind).itemsize)
    return Dataset(array.name, array.shape[::-1], True, claimed, variable.size)


def load_array(path: Path, name: str) -> Array:
    """Load an array with its axes reversed; map it into memory if it is not compressed."""
    with _Opened(path) as file:
        for variable in file.variables():
            names = {array.name for array in file.arrays(variable, START_BYTES)}
            if name not in names:
                continue
            for array in file.arrays(variable, None):
                if array.name == name:
                    return file.load(array, variable)
    raise UnreadableFile(f"{path}: has no array {name}.")


@dataclass(frozen=True)
class _Variable:
    """A variable at the top level of a file."""

    start: int  # of its content
    size: int
    is_compressed: bool


class _Opened:
    """A file of version 5, mapped into memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unpacked: tuple[int, bytes] = (-1, b"")  # start and content of the last variable
        self._claimed = 0  # bytes, by all unpacked variables

    def __enter__(self) -> _Opened:
        try:
            with open_regular(self.path) as file:
                self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.order = ORDERS[self.data[126:128]]
        except DAMAGED as error:
            raise self._damaged() from error
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.data.close()
        if isinstance(error, DAMAGED) and not isinstance(error, UnreadableFile | InvalidLightField):
            raise self._damaged() from error

    def _damaged(self) -> UnreadableFile:
        return UnreadableFile(f"{self.path}: damaged or not a MATLAB file. Copy it again.")

    def variables(self) -> Iterator[_Variable]:
        """Yield the variables at the top level of the file."""
        offset = HEADER_BYTES
        for _ in range(MOST_VARIABLES):
            if offset + 8 > len(self.data):
                return
            kind, start, size, after = _tag(self.data, offset, self.order)
            if kind == COMPRESSED:
                after = start + size  # only these are not padded
            if kind in (MATRIX, COMPRESSED):
                yield _Variable(start, size, kind == COMPRESSED)
            offset = after

    def arrays(self, variable: _Variable, most: int | None) -> list[_Array]:
        """List the arrays of numbers in a variable; decompress at most `most` bytes (None: all)."""
        if not variable.is_compressed:
            whole = variable.start + variable.size
            return _parse(self.data, variable.start, whole, self.order)
        content = self._unpack(variable, most)
        kind, start, size, _ = _tag(content, 0, self.order, is_partial=True)
        if most is not None and kind == MATRIX and _is_struct(content, start, self.order):
            content = self._unpack(variable, None)  # its fields may be anywhere
        return _parse(content, start, start + size, self.order) if kind == MATRIX else []

    def _unpack(self, variable: _Variable, most: int | None) -> bytes:
        if most is None and variable.start == self._unpacked[0]:
            return self._unpacked[1]
        packed = self.data[variable.start : variable.start + variable.size]
        if most is not None:
            return zlib.decompressobj().decompress(packed, most)
        head = zlib.decompressobj().decompress(packed, 8)
        size = _tag(head, 0, self.order, is_partial=True)[2] + 8
        self._check_claim(size, variable)
        self._unpacked = -1, b""  # free the memory before the next one
        self._unpacked = variable.start, zlib.decompressobj().decompress(packed, size)
        return self._unpacked[1]

    def _check_claim(self, size: int, variable: _Variable) -> None:
        """Refuse a variable that would fill the memory or take too long."""
        if size > MOST_BYTES:
            raise InvalidLightField(
                f"{self.path}: a variable needs {size / (1 << 30):.1f} GiB at once. "
                "Save it with -v7.3, which is read piece by piece."
            )
        check_array(self.path, "a variable", size, variable.size)
        self._claimed += size
        if self._claimed > 4 * allowed(len(self.data)):
            raise UnreadableFile(
                f"{self.path}: its variables claim far more than the file holds. Save it again."
            )

    def load(self, array: _Array, variable: _Variable) -> Array:
        """Map an array from the file, or take it from the decompressed variable."""
        stored = np.dtype(array.stored)
        shape = array.shape[::-1]
        if math.prod(shape) * stored.itemsize != array.size:
            raise ValueError("size differs from shape")
        if variable.is_compressed:
            content = self._unpack(variable, None)
            if array.start + array.size > len(content):
                raise ValueError("truncated")
            values = np.frombuffer(content, stored, math.prod(shape), array.start).reshape(shape)
        else:
            values = np.memmap(self.path, stored, "r", array.start, shape)
        # MATLAB stores doubles as small integers if they are whole numbers.
        is_packed = array.kind.startswith("f") and stored.kind != "f"
        return values.astype(np.float32) if is_packed else values


def _tag(
    data: Buffer, offset: int, order: str, is_partial: bool = False
) -> tuple[int, int, int, int]:
    """Return type, start and size of an element's content, and the start of the next element."""
    word, size = struct.unpack_from(order + "II", data, offset)
    if word >> 16:  # up to four bytes, packed into the tag
        kind, size, start, after = word & 0xFFFF, word >> 16, offset + 4, offset + 8
    else:
        kind, start = word, offset + 8
        after = start + size + -size % 8
    if start + size > len(data) and not is_partial:
        raise ValueError("truncated")
    return kind, start, size, after


def _parse(data: Buffer, offset: int, end: int, order: str) -> list[_Array]:
    """List the arrays in a matrix element: the matrix itself, or the fields of a struct."""
    head, offset = _parse_head(data, offset, order)
    if head is None:
        return []
    code, flags, shape, name = head
    if code in CLASSES:
        kind = "b1" if flags & LOGICAL else CLASSES[code]
        element, start, size, _ = _tag(data, offset, order, is_partial=True)
        return [_Array(name, shape, kind, order + STORED[element], start, size)]
    if code == STRUCT and math.prod(shape) == 1:
        return _parse_fields(data, offset, end, order, name)
    return []


def _is_struct(data: Buffer, offset: int, order: str) -> bool:
    head, _ = _parse_head(data, offset, order)
    return head is not None and head[0] == STRUCT


Head = tuple[int, int, tuple[int, ...], str]


def _parse_head(data: Buffer, offset: int, order: str) -> tuple[Head | None, int]:
    """Parse class, flags, shape and name of a matrix; return them and where its content starts."""
    _, start, size, offset = _tag(data, offset, order)
    if size < 8:
        return None, offset  # an empty cell
    (flags,) = struct.unpack_from(order + "I", data, start)
    _, start, size, offset = _tag(data, offset, order)
    if size > 4 * MOST_AXES:
        raise ValueError("number of axes")
    shape = struct.unpack_from(order + f"{size // 4}i", data, start)
    if min(shape, default=-1) < 0:
        raise ValueError("negative size")
    _, start, size, offset = _tag(data, offset, order)
    name = bytes(data[start : start + size]).decode("ascii")
    return (flags & 0xFF, flags >> 8 & 0xFF, shape, name), offset


def _parse_fields(data: Buffer, offset: int, end: int, order: str, name: str) -> list[_Array]:
    """List the fields of a 1 x 1 struct that are arrays of numbers."""
    _, start, _, offset = _tag(data, offset, order)
    (length,) = struct.unpack_from(order + "i", data, start)
    _, start, size, offset = _tag(data, offset, order)
    if not 1 <= length <= 1024 or size > length * MOST_FIELDS:
        raise ValueError("field names")
    fields = [
        bytes(data[at : at + length]).partition(b"\0")[0].decode("ascii")
        for at in range(start, start + size, length)
    ]
    found = []
    for field in fields:
        if offset + 8 > min(end, len(data)):
            break  # only the start was decompressed
        kind, start, size, after = _tag(data, offset, order, is_partial=True)
        if kind != MATRIX:
            raise ValueError("a field is no matrix")
        head, content = _parse_head(data, start, order)
        if head is not None and head[0] in CLASSES:
            element, at, count, _ = _tag(data, content, order, is_partial=True)
            stored = order + STORED[element]
            found.append(_Array(f"{name}/{field}", head[2], CLASSES[head[0]], stored, at, count))
        offset = after
    return found
