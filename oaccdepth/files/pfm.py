"""Reads and writes PFM files with justpfm and our own checks. The first row is the top one."""

from __future__ import annotations

import os
from pathlib import Path

import justpfm
import numpy as np

from oaccdepth.errors import UnreadableFile
from oaccdepth.files.atomic import write_bytes
from oaccdepth.files.fields import LARGEST_DISPARITY
from oaccdepth.files.regular import open_regular
from oaccdepth.lightfield import FloatArray

MAX_PIXELS = 1 << 28  # a header may claim anything; no real map is larger


def read_pfm(path: Path) -> FloatArray:
    """Read a one-channel PFM of disparities as (h, w) float32, top row first.

    Values that are too large for a disparity become NaN, because their squares would overflow.
    """
    if not os.path.exists(path):
        raise UnreadableFile(f"{path}: no such file. Give a PFM file.")
    try:
        with open_regular(path):  # refuses a pipe, which would hang
            pass
        with np.errstate(over="ignore", invalid="ignore"):  # a header may scale to infinity
            data = justpfm.read_pfm(path, max_pixels=MAX_PIXELS)
    except UnreadableFile:
        raise
    except (OSError, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise UnreadableFile(f"{path}: not a readable PFM file ({error}).") from error
    if data.ndim == 3 and data.shape[2] == 1:
        data = data[:, :, 0]
    if data.ndim != 2:
        raise UnreadableFile(f"{path}: has {data.shape[2]} channels, expected one (header 'Pf').")
    values = np.ascontiguousarray(data, dtype=np.float32)  # also converts big-endian data
    absurd = np.isfinite(values) & (np.abs(values) > LARGEST_DISPARITY)
    return np.where(absurd, np.float32(np.nan), values) if absurd.any() else values


def write_pfm(path: Path, data: FloatArray) -> None:
    """Write (h, w) as PFM, byte for byte like the HCI benchmark's own files."""
    # Only encode with justpfm: its own writer leaves a temporary file behind when killed.
    write_bytes(path, justpfm.encode_pfm(np.ascontiguousarray(data, dtype=np.float32)))
