"""NumPy files: .npy and .npz with an array of views in any documented axis order."""

from __future__ import annotations

import io
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.files.limits import claimed_bytes
from oaccdepth.files.regular import is_regular, open_regular
from oaccdepth.lightfield import Array
from oaccdepth.options import ReadOptions
from oaccdepth.readers.axes import array_grid, choose_axes, loaded_once
from oaccdepth.readers.containers import (
    OUR_AXES,
    Dataset,
    bad_mask,
    check_storage,
    choose_dataset,
    parse_extras,
    with_validity,
)
from oaccdepth.readers.grid import ViewGrid
from oaccdepth.readers.values import as_map

NAME = "numpy"
EXTENSIONS: tuple[str, ...] = (".npy", ".npz")
SIGN = "NumPy file with an array of views; its axes by shape, or by --axes uvhwc"

HEADER_BYTES = 1 << 16  # no array of numbers has a longer header
MOST_MEMBERS = 1000
# Compression that NumPy uses. With others, zipfile may unpack a gigabyte at a time.
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
DAMAGED = (
    OSError,
    ValueError,
    TypeError,
    SyntaxError,
    EOFError,
    LookupError,
    ArithmeticError,
    MemoryError,
    RuntimeError,  # an encrypted archive
    NotImplementedError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def detect(path: Path) -> bool:
    """Accept a file with one of NumPy's extensions."""
    return is_regular(path) and path.suffix.lower() in EXTENSIONS


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Find the array that holds the views."""
    if path.suffix.lower() == ".npz":
        return _open_archive(path, options)
    with _mapped(path) as array:
        shape, is_numeric = array.shape, array.dtype.kind in "biuf"
    if not is_numeric or len(shape) < 3:
        raise InvalidLightField(
            f"{path}: holds no light field (shape {' x '.join(map(str, shape)) or 'scalar'}). "
            "Expected an array of views, such as 9 x 9 x 512 x 512 x 3."
        )
    axes = choose_axes(shape, str(path), options.axes)
    return array_grid(
        lambda: _mapped(path), shape, axes, options, str(path), f"NumPy array ({axes})"
    )


@contextmanager
def _mapped(path: Path) -> Iterator[Any]:
    yield map_array(path)


def map_array(path: Path) -> Array:
    """Map the array of an .npy file into memory, without reading it."""
    try:
        with open_regular(path) as file:
            header = _parse_header(file.read(HEADER_BYTES))
        if header.dtype.hasobject:
            raise ValueError("Python objects")
        if header.start + claimed_bytes(header.shape, header.dtype.itemsize) > path.stat().st_size:
            raise ValueError("truncated")
        order: Literal["C", "F"] = "F" if header.is_fortran else "C"
        if 0 in header.shape:
            return np.empty(header.shape, header.dtype, order)  # an empty array cannot be mapped
        return np.asarray(np.memmap(path, header.dtype, "r", header.start, header.shape, order))
    except DAMAGED as error:
        raise _damaged(path) from error


@dataclass(frozen=True)
class _Header:
    """Header of an .npy file or of an archive member."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    start: int  # offset of the values


def _parse_header(start: bytes) -> _Header:
    """Parse the header from the first bytes of a file."""
    file = io.BytesIO(start)
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about files written by Python 2
        shape, is_fortran, dtype = read(file)
    if any(size < 0 for size in shape):
        raise ValueError("negative size")
    return _Header(tuple(shape), is_fortran, dtype, file.tell())


def _open_archive(path: Path, options: ReadOptions) -> ViewGrid:
    members = _list_members(path)
    dataset = choose_dataset(path, members, options)
    check_storage(path, dataset)
    found = {member.name: member for member in members}
    is_ours = "written_by_oaccdepth" in found
    asked = options.axes or (OUR_AXES if is_ours else None)
    axes = choose_axes(dataset.shape, f"{path}, {dataset.name}", asked)
    opened = loaded_once(lambda: _load_member(path, dataset))
    reason = f"NumPy archive with {dataset.name} ({axes})"
    grid = array_grid(opened, dataset.shape, axes, options, str(path), reason)
    if "valid" in found:
        valid = _load_member(path, found["valid"])
        _check_validity(path, valid, grid)
        grid = with_validity(path, grid, lambda u, v: valid[u, v])
    if not is_ours:
        return grid
    camera, disparity_range = parse_extras(
        path,
        *(
            _load_member(path, found[name]) if name in found else None
            for name in ("camera", "disparity_range")
        ),
    )
    truth = found.get("disparity")
    return replace(
        grid,
        orientation="certain",
        camera=camera,
        disparity_range=disparity_range,
        ground_truth=None if truth is None else lambda: as_map(_load_member(path, truth), path),
    )


def _check_validity(path: Path, valid: Array, grid: ViewGrid) -> None:
    if valid.ndim not in (2, 4) or valid.shape[:2] != grid.shape:
        raise bad_mask(path, valid.shape, grid.shape)


def read_members(path: Path, names: Sequence[str]) -> list[Array]:
    """Read arrays of numbers from an archive; check the size that each of them claims first."""
    members = {member.name: member for member in _list_members(path) if member.is_numeric}
    for name in names:
        if name not in members:
            raise UnreadableFile(f"{path}: holds no numbers named {name}. Export it again.")
    return [_load_member(path, members[name]) for name in names]


def _list_members(path: Path) -> list[Dataset]:
    """List the names and shapes in an archive; read only the headers of its members."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS:
                raise ValueError("too many members")
            size = path.stat().st_size
            described = [_describe(archive, info, size) for info in members]
            if len({member.name for member in described}) < len(described):
                raise ValueError("two members of one name: NumPy would read the other")
            return described
    except DAMAGED as error:
        raise _damaged(path) from error


def _describe(archive: zipfile.ZipFile, info: zipfile.ZipInfo, archive_bytes: int) -> Dataset:
    if info.compress_type not in PACKINGS:
        raise ValueError("not packed by NumPy")
    with archive.open(info) as member:
        header = _parse_header(member.read(HEADER_BYTES))
    claimed = claimed_bytes(header.shape, header.dtype.itemsize)
    if claimed > info.file_size or info.compress_size > archive_bytes:
        raise ValueError(f"{info.filename} claims {claimed} bytes and holds {info.file_size}")
    name = info.filename.removesuffix(".npy")
    is_numeric = header.dtype.kind in "biuf"
    return Dataset(name, header.shape, is_numeric, claimed, info.compress_size)


def _load_member(path: Path, member: Dataset) -> Array:
    check_storage(path, member)
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as archive:
            return np.asarray(archive[member.name])
    except DAMAGED as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> UnreadableFile:
    return UnreadableFile(f"{path}: damaged or not a NumPy file. Copy or export it again.")
