"""Opening HDF5 files: what they hold, and one dataset at a time, with our messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oaccdepth.errors import InvalidLightField, UnreadableFile

SIGNATURE = b"\x89HDF\r\n\x1a\n"
# What h5py raises on damaged files.
DAMAGED = (OSError, RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
MOST_COMPRESSION = 2000  # deflate reaches 1032; what claims more was never written
BOMB_BYTES, BOMB_COMPRESSION = 1 << 28, 300  # no pictures compress so well; zeros do


@dataclass(frozen=True)
class Dataset:
    """An array of numbers in a file."""

    name: str  # with its group, such as LF/LF
    shape: tuple[int, ...]
    is_numeric: bool
    bytes_claimed: int
    bytes_stored: int


def is_hdf5(path: Path) -> bool:
    """Whether the file starts as HDF5 does, with or without MATLAB's 512 bytes before."""
    try:
        with path.open("rb") as file:
            start = file.read(520)
    except OSError:
        return False
    return start.startswith(SIGNATURE) or start[512:] == SIGNATURE


@contextmanager
def open_file(path: Path) -> Iterator[Any]:
    """Open an HDF5 file for reading; damage is one of our errors, also while it is read."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            yield file
    except (UnreadableFile, InvalidLightField):
        raise
    except DAMAGED as error:
        kind = "a MATLAB" if path.suffix.lower() == ".mat" else "an HDF5"
        raise UnreadableFile(f"{path}: damaged or not {kind} file. Copy it again.") from error


def list_datasets(file: Any) -> list[Dataset]:
    """Return the datasets at the root and in its groups (a MATLAB struct is a group)."""
    import h5py

    found = []
    for name, item in file.items():
        if isinstance(item, h5py.Dataset):
            found.append(_describe(name, item))
        elif isinstance(item, h5py.Group) and not name.startswith("#"):  # MATLAB's #refs#
            found += [
                _describe(f"{name}/{inner}", dataset)
                for inner, dataset in item.items()
                if isinstance(dataset, h5py.Dataset)
            ]
    return found


def _describe(name: str, dataset: Any) -> Dataset:
    return Dataset(
        name,
        tuple(int(size) for size in dataset.shape or ()),
        dataset.dtype.kind in "biuf",
        int(dataset.nbytes),
        int(dataset.id.get_storage_size()),
    )


def dataset_opener(path: Path, name: str) -> Callable[[], AbstractContextManager[Any]]:
    """Return a function that opens one dataset, for as long as it is used."""

    @contextmanager
    def opened() -> Iterator[Any]:
        with open_file(path) as file:
            yield file[name]

    return opened


def check_storage(path: Path, dataset: Dataset) -> None:
    """Refuse an array that claims far more than the file holds."""
    is_large = dataset.bytes_claimed > BOMB_BYTES
    most = BOMB_COMPRESSION if is_large else MOST_COMPRESSION
    if dataset.bytes_claimed > most * max(1, dataset.bytes_stored):
        raise UnreadableFile(
            f"{path}: {dataset.name} claims {dataset.bytes_claimed} bytes and holds "
            f"{dataset.bytes_stored}. Copy or export it again."
        )
