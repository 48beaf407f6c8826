"""ESLF pictures (Stanford's Lytro archive, Kalantari): 14 x 14 pixels behind each lens."""

from __future__ import annotations

import re
from pathlib import Path

from oaccdepth.files.regular import is_regular
from oaccdepth.options import ReadOptions
from oaccdepth.readers import decoding
from oaccdepth.readers.grid import ViewGrid
from oaccdepth.readers.mosaic import open_picture

NAME = "eslf"
EXTENSIONS: tuple[str, ...] = decoding.EXTENSIONS
SIGN = "picture named *_eslf.png: 14 x 14 pixels behind each lens, or --views UxV"

ESLF_NAME = re.compile(r".*[._-]eslf", re.IGNORECASE)
LENS_PIXELS = (14, 14)


def detect(path: Path) -> bool:
    """Accept a picture whose name ends in eslf."""
    return (
        is_regular(path)
        and decoding.is_picture(path.name)
        and ESLF_NAME.fullmatch(path.stem) is not None
    )


def open_grid(path: Path, options: ReadOptions) -> ViewGrid:
    """Open the grid: view (u, v) consists of the pixels at row u, column v behind every lens."""
    return open_picture(path, options, "lenslet", LENS_PIXELS)
