"""Picture files -> arrays, with their bit depth and alpha. RGB, rows from the top.

Pillow decodes 8-bit pictures, because it is strict about damaged files and prints nothing. OpenCV
decodes deeper ones, because it keeps 16 bits per channel. The size is read from the header first,
so that no file can fill the memory. Pillow may try only the formats that we document, because it
runs other programs for some of the others.
"""

from __future__ import annotations

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import cv2.utils.logging as cv2_logging
import numpy as np
from PIL import Image

from oaccdepth.errors import UnreadableFile
from oaccdepth.files.limits import MOST_VIEW_PIXELS, check_picture
from oaccdepth.files.regular import open_regular, read_small
from oaccdepth.lightfield import Array
from oaccdepth.readers import png

EXTENSIONS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
PILLOW_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
START_BYTES = 1 << 16  # contain the header and the description that we write
MOST_BESIDES = 1 << 26  # bytes besides the picture itself: other pages, profiles, thumbnails
MOST_TAGS = 10_000  # in a TIFF file
TIFF_TAGS = WIDTH, HEIGHT, BITS, CHANNELS = 256, 257, 258, 277
MOST_SCANS = 100  # in a JPEG picture; each is a pass over all pixels, and no program writes so many
SCAN = b"\xff\xda"  # the marker at the start of a scan
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
    """Header of a picture file."""

    height: int
    width: int
    is_deep: bool = False  # more than 8 bits per channel
    pixel_bytes: int = 4  # least memory needed for decoding
    description: dict[str, Any] = field(default_factory=dict)  # text from our own writer


def is_picture(name: str) -> bool:
    """Whether a file has the extension of a picture."""
    return name.lower().endswith(EXTENSIONS)


def read_header(path: Path) -> Header:
    """Read the size of a picture without decoding it."""
    try:
        with open_regular(path) as file:
            start = file.read(START_BYTES)
        if start.startswith(png.SIGNATURE):
            found, description = png.parse_start(start)
            pixel_bytes = max(4, png.CHANNELS[found.colour] * found.depth // 8)
            return Header(found.height, found.width, found.depth > 8, pixel_bytes, description)
        if start[:4] in (b"II*\0", b"MM\0*"):
            return _tiff_header(path)
        with _opened(path) as picture:
            return Header(picture.height, picture.width)
    except DAMAGED as error:
        raise _damaged(path, error) from error


def decode(path: Path, most_pixels: int = MOST_VIEW_PIXELS) -> Array:
    """Decode a picture as (h, w) grey, (h, w, 2) with alpha, (h, w, 3) RGB or (h, w, 4)."""
    header = read_header(path)
    try:
        check_picture(path, (header.height, header.width), most_pixels, header.pixel_bytes)
        values = _decode_deep(path, header) if header.is_deep else _decode_8_bit(path, header)
    except (*DAMAGED, cv2.error) as error:
        raise _damaged(path, error) from error
    if values.shape[:2] != (header.height, header.width):
        raise UnreadableFile(
            f"{path}: decodes to {values.shape[1]} x {values.shape[0]} pixels, "
            f"its header says {header.width} x {header.height}. Export it again."
        )
    return values


def decode_jpeg(data: bytes) -> Array:
    """Decode a JPEG picture from a viewer page as (h, w, 3) RGB; raise ValueError otherwise."""
    try:
        with _QUIET, Image.open(io.BytesIO(data), formats=("JPEG",)) as picture:
            if picture.width * picture.height > MOST_VIEW_PIXELS or data.count(SCAN) > MOST_SCANS:
                raise ValueError("too large")
            return np.asarray(picture.convert("RGB"))
    except DAMAGED as error:
        raise ValueError("not a JPEG picture") from error


def _damaged(path: Path, error: BaseException) -> UnreadableFile:
    if isinstance(error, UnreadableFile):
        return error  # its message says more
    if isinstance(error, FileNotFoundError):
        return UnreadableFile(f"{path}: no such file.")
    if isinstance(error, PermissionError):
        return UnreadableFile(f"{path}: no permission to read it. Check its permissions.")
    return UnreadableFile(f"{path}: damaged or not a picture. Copy or export it again.")


def _decode_8_bit(path: Path, header: Header) -> Array:
    """Decode with Pillow, which raises for a truncated file and never returns half a picture."""
    with _opened(path) as picture:
        if picture.size != (header.width, header.height):
            raise ValueError("two headers that differ")
        if picture.format in ("JPEG", "MPO"):  # MPO: several JPEG pictures in one file
            _check_scans(path)
        if picture.mode in ("L", "LA", "RGB", "RGBA"):
            return np.asarray(picture)
        if picture.mode == "1":
            return np.asarray(picture.convert("L"))
        if picture.mode.startswith(("I", "F")):
            return np.asarray(picture)
        has_alpha = picture.mode in ("PA", "La", "RGBa") or "transparency" in picture.info
        return np.asarray(picture.convert("RGBA" if has_alpha else "RGB"))


def _check_scans(path: Path) -> None:
    """Refuse a JPEG picture with very many scans: a small file could take minutes to decode."""
    with open_regular(path) as file:
        parts = iter(lambda: file.read(1 << 20), b"")
        if sum(part.count(SCAN) for part in parts) > MOST_SCANS:
            raise ValueError("too many scans")


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Open a picture with Pillow, if it has one of the formats that we document."""
    with (
        _QUIET,
        open_regular(path) as file,
        Image.open(file, formats=PILLOW_FORMATS) as picture,
    ):
        yield picture


class _Quiet:
    """Changes global settings of the decoders while any thread decodes, then restores them.

    Pillow's pixel limit is too low for large mosaics; we check our own. Its warnings are only
    about metadata; damaged pixels raise an error. OpenCV would log what is wrong with a file.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._undo = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._silence()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._undo.close()

    def _silence(self) -> None:
        self._undo.callback(setattr, Image, "MAX_IMAGE_PIXELS", Image.MAX_IMAGE_PIXELS)
        Image.MAX_IMAGE_PIXELS = None
        self._undo.callback(cv2_logging.setLogLevel, cv2_logging.getLogLevel())
        cv2_logging.setLogLevel(cv2_logging.LOG_LEVEL_SILENT)
        self._undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")


_QUIET = _Quiet()


def _decode_deep(path: Path, header: Header) -> Array:
    """Decode with OpenCV, which keeps 16-bit and floating-point values."""
    data = read_small(path, 16 * header.height * header.width + MOST_BESIDES)
    if data.startswith(png.SIGNATURE):
        data = png.reduce_to_picture(data)
    with _QUIET:
        values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if values is None:
        raise ValueError("cannot be decoded")
    if values.ndim == 3 and values.shape[2] >= 3:
        order = [2, 1, 0, 3][: values.shape[2]]
        values = values[:, :, order]  # BGR(A) -> RGB(A)
    return np.asarray(values)


def _tiff_header(path: Path) -> Header:
    """Read the size from the first directory. OpenCV decodes every TIFF, so it counts as deep."""
    with open_regular(path) as file:
        start = file.read(8)
        order = "<" if start.startswith(b"II") else ">"
        (offset,) = struct.unpack(order + "I", start[4:])
        file.seek(offset)
        (entries,) = struct.unpack(order + "H", file.read(2))
        tags = [file.read(12) for _ in range(min(entries, MOST_TAGS))]
        sizes: dict[int, int] = {}
        for entry in tags:
            tag, kind, count = struct.unpack(order + "HHI", entry[:8])
            if tag in TIFF_TAGS:
                code = "H" if kind == 3 else "I"
                if tag == BITS and count > 2:  # one per channel, stored elsewhere
                    file.seek(*struct.unpack(order + "I", entry[8:]))
                    found = struct.unpack(order + "H", file.read(2))
                else:
                    found = struct.unpack_from(order + code, entry, 8)
                sizes[tag] = max(*found, sizes.get(tag, 0))  # decoders differ in which one they use
    pixel_bytes = max(4, sizes.get(CHANNELS, 1) * sizes.get(BITS, 1) // 8)
    return Header(sizes[HEIGHT], sizes[WIDTH], is_deep=True, pixel_bytes=pixel_bytes)
