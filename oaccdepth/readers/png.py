"""PNG files, chunk by chunk: size, our description, and whether every byte is intact.

libpng prints its complaints straight to stderr. So we check everything that we pass to it, and
leave out chunks that do not affect the picture (W3C, Portable Network Graphics).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oaccdepth.files.fields import BadField, parse_json

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEYWORD = "oaccdepth"  # of the text that we write: the layout of the views
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
TRANSPARENT = {0: 2, 2: 6}  # bytes of tRNS, by colour type, for 16-bit samples
# Interlaced pictures: first row and column of each pass, and the steps between its pixels.
ADAM7 = (
    (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)
)  # fmt: skip


@dataclass(frozen=True)
class PngHeader:
    """Contents of the first chunk."""

    height: int
    width: int
    depth: int  # bits per sample
    colour: int
    is_interlaced: bool


def parse_start(data: bytes) -> tuple[PngHeader, dict[str, Any]]:
    """Parse the header and our description from the first bytes of a file."""
    header, description = None, {}
    for kind, content in _chunks(data, is_whole=False):
        if header is None:
            header = _parse_header(kind, content)
        keyword, _, text = content.partition(b"\0")
        if kind == b"tEXt" and keyword == KEYWORD.encode():
            description = _parse_description(text)
        if kind == b"IDAT" or description:
            break
    if header is None:
        raise ValueError("no header")
    return header, description


def reduce_to_picture(data: bytes) -> bytes:
    """Check a whole 16-bit file; return a copy that contains only the picture."""
    header, kept, packed = None, [], []
    for kind, content in _chunks(data, is_whole=True):
        if header is None:
            header = _parse_header(kind, content)
            kept.append(_chunk(kind, content))
        elif kind == b"IHDR":
            raise ValueError("two headers")
        elif kind == b"IDAT":
            packed.append(content)
        elif kind == b"tRNS" and len(content) == TRANSPARENT.get(header.colour) and not packed:
            kept.append(_chunk(kind, content))
    if header is None or header.depth != 16 or header.colour == 3:
        raise ValueError("not of 16 bits per sample")
    stream = b"".join(packed)
    _check_rows(header, stream)
    return b"".join([SIGNATURE, *kept[:2], _chunk(b"IDAT", stream), _chunk(b"IEND", b"")])


def _chunks(data: bytes, is_whole: bool) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and content of the chunks; in a whole file, also check checksums and the end."""
    offset = len(SIGNATURE)
    while offset + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, offset)
        end = offset + 12 + length
        content = data[offset + 8 : end - 4]
        if is_whole:
            if end > len(data):
                raise ValueError("truncated")
            (checksum,) = struct.unpack_from(">I", data, end - 4)
            if zlib.crc32(content, zlib.crc32(kind)) != checksum:
                raise ValueError("checksum differs")
        yield kind, content
        if kind == b"IEND":
            return
        offset = end
    if is_whole:
        raise ValueError("truncated")


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I4s", len(content), kind) + content + struct.pack(">I", checksum)


def _parse_header(kind: bytes, content: bytes) -> PngHeader:
    if kind != b"IHDR" or len(content) != 13:
        raise ValueError("no header")
    width, height, depth, colour, packing, filtering, interlace = struct.unpack(">IIBBBBB", content)
    if colour not in CHANNELS or (packing, filtering) != (0, 0) or interlace > 1:
        raise ValueError("a header that makes no sense")
    return PngHeader(height, width, depth, colour, interlace == 1)


def _check_rows(header: PngHeader, stream: bytes) -> None:
    """Refuse a stream that does not contain exactly the rows of the picture."""
    pixel_bytes = CHANNELS[header.colour] * header.depth // 8
    passes = [
        (count, 1 + pixel_bytes * pixels)
        for count, pixels in _passes(header)
        if count and pixels  # a small picture has fewer passes
    ]
    expected = sum(count * length for count, length in passes)
    unpacker = zlib.decompressobj()
    rows = unpacker.decompress(stream, expected + 1)
    if len(rows) != expected or not unpacker.eof or unpacker.unused_data:
        raise ValueError("more or fewer rows than the header says")
    start = 0
    for count, length in passes:
        end = start + count * length
        if max(rows[start:end:length]) > 4:
            raise ValueError("a filter that does not exist")
        start = end


def _passes(header: PngHeader) -> Iterator[tuple[int, int]]:
    """Yield the number of rows, and of pixels per row, in every pass."""
    if not header.is_interlaced:
        yield header.height, header.width
        return
    for row, column, row_step, column_step in ADAM7:
        yield -((row - header.height) // row_step), -((column - header.width) // column_step)


def _parse_description(text: bytes) -> dict[str, Any]:
    try:
        description = parse_json(text)
    except BadField:
        return {}
    return description if isinstance(description, dict) else {}
