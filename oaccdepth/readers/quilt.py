"""Looking Glass quilts: refused with a message that says how to cut them into views."""

from __future__ import annotations

import os
import re
from pathlib import Path

from oaccdepth.errors import UnknownFormat
from oaccdepth.files.regular import is_regular, open_regular

NAME = "quilt"
EXTENSIONS: tuple[str, ...] = (".png", ".jpg", ".jpeg", ".webp", ".mp4")
SIGN = "Looking Glass quilts (name_qs8x6a0.75.png): cut them into a folder of views first"

QUILT_NAME = re.compile(r".*_qs(\d{1,3})x(\d{1,3})a[\d.]+", re.IGNORECASE)
EXIF_KEYS = tuple("LKGColumns".encode(code) for code in ("ascii", "utf-16-le", "utf-16-be"))
END_BYTES = 1 << 16  # programs put EXIF at the beginning or at the end of a file


def detect(path: Path) -> bool:
    """Accept a picture or video with a quilt's name or EXIF entry."""
    if not is_regular(path) or path.suffix.lower() not in EXTENSIONS:
        return False
    if QUILT_NAME.fullmatch(path.stem):
        return True
    try:
        with open_regular(path) as file:
            start = file.read(END_BYTES)
            file.seek(max(0, file.seek(0, os.SEEK_END) - END_BYTES))
            ends = start + b"\n" + file.read(END_BYTES)
            return any(key in ends for key in EXIF_KEYS)
    except OSError:
        return False


def refuse(path: Path) -> UnknownFormat:
    """Say what to do with a quilt."""
    match = QUILT_NAME.fullmatch(path.stem)
    views = f" of {int(match[1]) * int(match[2])} views" if match else ""
    return UnknownFormat(
        f"{path}: a Looking Glass quilt{views}, all of one camera row. "
        "Cut it into view_00_00.png, view_00_01.png, ..., from bottom left to top right."
    )
