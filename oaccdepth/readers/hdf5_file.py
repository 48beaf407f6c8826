"""Opens HDF5 files: lists their datasets, opens one at a time, and reports damage."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.files.limits import claimed_bytes
from oaccdepth.files.regular import open_regular
from oaccdepth.readers.containers import Dataset
from oaccdepth.readers.hdf5_trees import SIGNATURE, check_chunks, check_names

MOST_ITEMS = 10_000  # in a file; with links, a small file can list a billion
# Filter ids: gzip, shuffle, checksum, lzf. Others allocate any size that the file claims.
FILTERS = {1, 2, 3, 32000}
# What h5py raises on damaged files.
DAMAGED = (
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    struct.error,
)


def is_hdf5(path: Path) -> bool:
    """Whether a file starts with the HDF5 signature, or has it after MATLAB's 512 bytes."""
    try:
        with open_regular(path) as file:
            start = file.read(520)
    except OSError:
        return False
    return start.startswith(SIGNATURE) or start[512:] == SIGNATURE


@contextmanager
def open_file(path: Path) -> Iterator[Any]:
    """Open an HDF5 file for reading; turn errors about damage into ours, also while reading."""
    import h5py

    try:
        with open_regular(path):  # refuses a pipe, on which HDF5 would hang
            pass
        with h5py.File(path, "r") as file:
            yield file
    except (UnreadableFile, InvalidLightField):
        raise
    except DAMAGED as error:
        kind = "a MATLAB" if path.suffix.lower() == ".mat" else "an HDF5"
        raise UnreadableFile(f"{path}: damaged or not {kind} file. Copy it again.") from error


def list_datasets(path: Path, file: Any) -> list[Dataset]:
    """List the datasets at the root and in its groups (a MATLAB struct is a group)."""
    import h5py

    found = []
    counted = itertools.count()
    for name, item in _items(path, file, counted):
        if isinstance(item, h5py.Dataset):
            found.append(_describe(path, name, item))
        elif isinstance(item, h5py.Group) and not name.startswith("#"):  # MATLAB's #refs#
            found += [
                _describe(path, f"{name}/{inner}", dataset)
                for inner, dataset in _items(path, item, counted)
                if isinstance(dataset, h5py.Dataset)
            ]
    return found


def _items(path: Path, group: Any, counted: Iterator[int]) -> Iterator[tuple[str, Any]]:
    """Yield names and objects of a group, without soft links: their targets are listed anyway."""
    import h5py

    with open_regular(path) as plain:
        check_names(plain, _header(group))
    for name in group:
        if next(counted) >= MOST_ITEMS:
            raise UnreadableFile(f"{path}: holds more than {MOST_ITEMS} arrays. Copy it again.")
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise _elsewhere(path, name, link.filename)
        if isinstance(link, h5py.HardLink):
            yield name, group[name]


def _header(item: Any) -> int:
    """Return the address of an object's header."""
    import h5py

    low, high = h5py.h5g.get_objinfo(item.id).objno
    return int(low + (high << 32))  # in two parts on Windows, otherwise high is 0


def _elsewhere(path: Path, name: str, other: str) -> UnreadableFile:
    return UnreadableFile(
        f"{path}: {name} lies in another file ({other}), which is not opened. "
        "Copy the array into this file."
    )


def _describe(path: Path, name: str, dataset: Any) -> Dataset:
    if dataset.is_virtual:
        raise _elsewhere(path, name, dataset.virtual_sources()[0].file_name)
    if dataset.external:
        raise _elsewhere(path, name, str(dataset.external[0][0]))
    _check_filters(path, name, dataset)
    if dataset.chunks:
        with open_regular(path) as plain:
            check_chunks(plain, _header(dataset), _count_chunks(dataset))
    itemsize = dataset.dtype.itemsize
    shape = tuple(int(size) for size in dataset.shape or ())
    # A chunk is decompressed as a whole, even if the array is smaller.
    claimed = max(claimed_bytes(part, itemsize) for part in (shape, dataset.chunks or ()))
    # get_storage_size adds up the chunks, and crashes if their tree contains a cycle.
    stored = path.stat().st_size if dataset.chunks else int(dataset.id.get_storage_size())
    return Dataset(name, shape, dataset.dtype.kind in "biuf", claimed, stored)


def _count_chunks(dataset: Any) -> int | None:
    """Return how many chunks the dataset may have, None if there is no limit."""
    if None in dataset.maxshape:
        return None
    sides = zip(dataset.maxshape, dataset.chunks, strict=True)
    return math.prod(-(-int(side) // int(of_chunk)) for side, of_chunk in sides)


def _check_filters(path: Path, name: str, dataset: Any) -> None:
    """Refuse unusual filters, and double compression, which could expand a million times."""
    made = dataset.id.get_create_plist()
    filters = [made.get_filter(number)[0] for number in range(made.get_nfilters())]
    if not FILTERS.issuperset(filters) or len(set(filters)) < len(filters):
        raise UnreadableFile(
            f"{path}: {name} is compressed in a way that is not supported. "
            "Save it again, with gzip or lzf."
        )


def dataset_opener(path: Path, name: str) -> Callable[[], AbstractContextManager[Any]]:
    """Return a function that opens one dataset, as a context manager."""

    @contextmanager
    def opened() -> Iterator[Any]:
        with open_file(path) as file:
            yield file[name]

    return opened
