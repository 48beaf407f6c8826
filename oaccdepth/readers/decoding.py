"""Picture files -> arrays, with their bit depth and alpha. RGB, rows from the top.

Pillow is strict about damaged files and silent, OpenCV keeps 16 bits per channel: each decodes what
it is right for. The size is read from the header first, so that no file can fill the memory.
"""

from __future__ import annotations

import json
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import cv2.utils.logging as cv2_logging
import numpy as np
from PIL import Image

from oaccdepth.errors import UnreadableFile
from oaccdepth.lightfield import Array

EXTENSIONS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
MOST_VIEW_PIXELS = 1 << 26  # 8192 x 8192
MOST_PICTURE_PIXELS = 81 * 2048 * 2048  # all views of a large light field in one picture
BOMB_PIXELS, PIXELS_PER_BYTE = 1 << 26, 200  # a large picture that compresses so well is empty
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_KEYWORD = "oaccdepth"  # text in the PNG files that we write: how the views lie in them
# What Pillow raises on damaged files.
DAMAGED = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    EOFError,
    LookupError,
    ArithmeticError,
    MemoryError,
    AttributeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


@dataclass(frozen=True)
class Header:
    """What a picture file says about itself."""

    height: int
    width: int
    is_deep: bool = False  # more than 8 bits per channel
    description: dict[str, Any] = field(default_factory=dict)  # what our own writer put there


def is_picture(name: str) -> bool:
    """Whether a file name ends like a picture's."""
    return name.lower().endswith(EXTENSIONS)


def read_header(path: Path) -> Header:
    """Read the size of a picture without decoding it."""
    try:
        with path.open("rb") as file:
            start = file.read(32)
            if start.startswith(PNG_SIGNATURE):
                return _png_header(start, file.read(1 << 16))
        if start[:4] in (b"II*\0", b"MM\0*"):
            return _tiff_header(path)
        with _opened(path) as picture:
            return Header(picture.height, picture.width)
    except DAMAGED as error:
        raise _damaged(path, error) from error


def decode(path: Path, most_pixels: int = MOST_VIEW_PIXELS) -> Array:
    """Decode a picture as (h, w) grey, (h, w, 2) with alpha, (h, w, 3) RGB or (h, w, 4)."""
    header = read_header(path)
    pixels = header.height * header.width
    if pixels > most_pixels:
        raise UnreadableFile(
            f"{path}: claims {header.width} x {header.height} pixels, more than "
            f"{most_pixels // 1_000_000} million. Check the file, or give a smaller picture."
        )
    stored = path.stat().st_size
    if pixels > BOMB_PIXELS and pixels > PIXELS_PER_BYTE * stored:
        raise UnreadableFile(
            f"{path}: claims {header.width} x {header.height} pixels in {stored} bytes: "
            "there can be no picture in it. Check the file."
        )
    if pixels <= 0:
        raise UnreadableFile(f"{path}: has no pixels.")
    try:
        values = _decode_deep(path) if header.is_deep else _decode_8_bit(path)
    except (*DAMAGED, cv2.error) as error:
        raise _damaged(path, error) from error
    if values.shape[:2] != (header.height, header.width):
        raise UnreadableFile(
            f"{path}: decodes to {values.shape[1]} x {values.shape[0]} pixels, "
            f"its header says {header.width} x {header.height}. Export it again."
        )
    return values


def _damaged(path: Path, error: BaseException) -> UnreadableFile:
    if isinstance(error, FileNotFoundError):
        return UnreadableFile(f"{path}: no such file.")
    if isinstance(error, PermissionError):
        return UnreadableFile(f"{path}: may not be read. Check its permissions.")
    return UnreadableFile(f"{path}: damaged or not a picture. Copy or export it again.")


def _decode_8_bit(path: Path) -> Array:
    """Decode with Pillow: a truncated file is an error, not half a picture."""
    with _opened(path) as picture:
        if picture.mode in ("L", "LA", "RGB", "RGBA"):
            return np.asarray(picture)
        if picture.mode == "1":
            return np.asarray(picture.convert("L"))
        if picture.mode.startswith(("I", "F")):
            return np.asarray(picture)
        has_alpha = picture.mode in ("PA", "La", "RGBa") or "transparency" in picture.info
        return np.asarray(picture.convert("RGBA" if has_alpha else "RGB"))


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Open with Pillow, whose own limit of pixels is lower than ours: a mosaic may be large."""
    limit = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about metadata; the picture itself raises
            with Image.open(path) as picture:
                yield picture
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _decode_deep(path: Path) -> Array:
    """Decode with OpenCV, which keeps 16 bits and floating point, but prints to stderr."""
    data = path.read_bytes()
    if data.startswith(PNG_SIGNATURE):
        _check_png(data)
    level = cv2_logging.getLogLevel()
    cv2_logging.setLogLevel(cv2_logging.LOG_LEVEL_SILENT)
    try:
        values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    finally:
        cv2_logging.setLogLevel(level)
    if values is None:
        raise ValueError("cannot be decoded")
    if values.ndim == 3 and values.shape[2] >= 3:
        order = [2, 1, 0, 3][: values.shape[2]]
        values = values[:, :, order]  # BGR(A) -> RGB(A)
    return np.asarray(values)


def _check_png(data: bytes) -> None:
    """Refuse a PNG that is cut off or altered: libpng would print to stderr instead."""
    offset = len(PNG_SIGNATURE)
    while True:
        length, kind = struct.unpack_from(">I4s", data, offset)
        end = offset + 12 + length
        if end > len(data):
            raise ValueError("truncated")
        (checksum,) = struct.unpack_from(">I", data, end - 4)
        if zlib.crc32(data[offset + 4 : end - 4]) != checksum:
            raise ValueError("checksum differs")
        if kind == b"IEND":
            return
        offset = end


def _png_header(start: bytes, rest: bytes) -> Header:
    """Size and depth from IHDR, our description from a tEXt chunk before the picture data."""
    if start[12:16] != b"IHDR":
        raise ValueError("no IHDR")
    width, height, depth = struct.unpack(">IIB", start[16:25])
    return Header(height, width, is_deep=depth > 8, description=_png_description(start + rest))


def _png_description(data: bytes) -> dict[str, Any]:
    offset = len(PNG_SIGNATURE)
    while offset + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, offset)
        if kind == b"IDAT":
            break
        text = data[offset + 8 : offset + 8 + length]
        keyword, _, content = text.partition(b"\0")
        if kind == b"tEXt" and keyword == PNG_KEYWORD.encode():
            return _parse_description(content)
        offset += 12 + length
    return {}


def _parse_description(content: bytes) -> dict[str, Any]:
    try:
        description = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return description if isinstance(description, dict) else {}


def _tiff_header(path: Path) -> Header:
    """Size from the first directory; depth is left to OpenCV, which decodes every TIFF."""
    with path.open("rb") as file:
        start = file.read(8)
        order = "<" if start.startswith(b"II") else ">"
        (offset,) = struct.unpack(order + "I", start[4:])
        file.seek(offset)
        (entries,) = struct.unpack(order + "H", file.read(2))
        sizes = {}
        for _ in range(entries):
            entry = file.read(12)
            tag, kind = struct.unpack(order + "HH", entry[:4])
            if tag in (256, 257):  # ImageWidth, ImageLength; SHORT or LONG
                code = "H" if kind == 3 else "I"
                (sizes[tag],) = struct.unpack_from(order + code, entry, 8)
    return Header(sizes[257], sizes[256], is_deep=True)
