"""Raw Lytro pictures (.lfp, .lfr, .lfx): refused with a message that describes the picture."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from oaccdepth.errors import UnknownFormat
from oaccdepth.files.fields import BadField, as_number
from oaccdepth.files.regular import is_regular, open_regular

NAME = "lytro-raw"
EXTENSIONS: tuple[str, ...] = (".lfp", ".lfr", ".lfx", ".ray", ".rays")
SIGN = "raw pictures of Lytro and Raytrix cameras: decode them first"

CONTAINER = b"\x89LFP\r\n\x1a\n"
SECTIONS = (b"\x89LFM\r\n\x1a\n", b"\x89LFC\r\n\x1a\n")
MOST_SECTIONS = 1000
MOST_TEXT = 1 << 22  # bytes of JSON in one section


def detect(path: Path) -> bool:
    """Accept a file with the extension of a raw picture, or with Lytro's first bytes."""
    if not is_regular(path):
        return False
    if path.suffix.lower() in EXTENSIONS:
        return True
    try:
        with open_regular(path) as file:
            return file.read(len(CONTAINER)) == CONTAINER
    except OSError:
        return False


def refuse(path: Path) -> UnknownFormat:
    """Say what the picture is, and which programs can decode it."""
    if path.suffix.lower() in (".ray", ".rays"):
        return UnknownFormat(
            f"{path}: a raw Raytrix picture. Export its views with the camera's own software, "
            "and give their folder."
        )
    metadata = read_metadata(path)
    about = f" ({', '.join(metadata)})" if metadata else ""
    return UnknownFormat(
        f"{path}: a raw Lytro picture{about}; decoding it takes the camera's white images. "
        "Decode it with LFToolbox (MATLAB) or PlenoptiCam (pip install plenopticam), "
        "and give the __Decoded.mat or the folder of views."
    )


def read_metadata(path: Path) -> list[str]:
    """Read camera, size, date and lens from the container; empty if it is damaged."""
    found: dict[str, Any] = {}
    try:
        with open_regular(path) as file:
            for text in _texts(file):
                _collect(json.loads(text), found, depth=0)
    except (OSError, ValueError, RecursionError, struct.error):
        pass  # show what was found before the damage
    return _describe(found)


def _texts(file: BinaryIO) -> Iterator[bytes]:
    """Yield the sections of a container that hold JSON."""
    if file.read(16)[:8] != CONTAINER:
        return
    for _ in range(MOST_SECTIONS):
        header = file.read(16)
        if header[:8] not in SECTIONS:
            return
        (length,) = struct.unpack(">I", header[12:])
        if length:
            file.seek(80, 1)  # SHA-1 as text, padded
        start = file.tell()
        text = file.read(min(length, MOST_TEXT))
        if text.lstrip()[:1] == b"{" and length <= MOST_TEXT:
            yield text
        file.seek(start + length + -length % 16)


def _collect(content: Any, found: dict[str, Any], depth: int) -> None:
    """Collect all texts and numbers, at any level of the tree."""
    if depth > 20:
        return
    if isinstance(content, dict):
        for key, value in content.items():
            if isinstance(value, str | int | float):
                found.setdefault(key, value)
            else:
                _collect(value, found, depth + 1)
    elif isinstance(content, list):
        for value in content[:100]:
            _collect(value, found, depth + 1)


def _describe(found: dict[str, Any]) -> list[str]:
    parts = []
    camera = [str(found[key])[:40] for key in ("make", "model") if found.get(key)]
    if camera:
        parts.append(" ".join(dict.fromkeys(camera)))
    width, height = (_number(found, key) for key in ("width", "height"))
    if width and height:
        parts.append(f"{width:.0f} x {height:.0f} pixels")
    if isinstance(found.get("zuluTime"), str):
        parts.append(found["zuluTime"][:10])
    for key, factor, text in (
        ("iso", 1, "ISO {:g}"),
        ("focalLength", 1000, "focal length {:.1f} mm"),
        ("fNumber", 1, "f/{:.1f}"),
        ("frameExposureDuration", 1, "exposed {:g} s"),
    ):
        value = _number(found, key)
        if value:
            parts.append(text.format(value * factor))
    return [part for part in parts if part.isprintable()]


def _number(found: dict[str, Any], key: str) -> float | None:
    """Return a plausible number; None if it is missing, text or out of range."""
    try:
        return None if isinstance(found[key], str) else as_number(found[key], 0, 1e6)
    except (KeyError, BadField):
        return None
