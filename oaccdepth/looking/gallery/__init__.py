"""Pages of several results -> one index page with moving thumbnails, scores and links."""

from __future__ import annotations

import base64
import html
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import cv2
import numpy as np

from oaccdepth.files.atomic import write_bytes
from oaccdepth.files.fields import as_numbers
from oaccdepth.lightfield import FloatArray
from oaccdepth.looking.viewer.pack import encode_jpeg
from oaccdepth.looking.viewer.page import fill, policy, read_blocks
from oaccdepth.readers.decoding import decode_jpeg
from oaccdepth.writers.pictures import Picture, choose_range, colourise

logger = logging.getLogger(__name__)

THUMBNAIL = 240  # px: larger side
QUALITY = 76  # JPEG
MOST_FRAMES = 9


@dataclass(frozen=True, eq=False)
class Entry:
    """One result: its page and disparity, or why there is none."""

    name: str
    page: Path | None = None
    disparity: FloatArray | None = None  # (h, w) [px]
    facts: Mapping[str, str] = field(default_factory=dict)  # shown below, by name
    message: str = ""  # why it failed


def write_gallery(path: Path, entries: Sequence[Entry], title: str, summary: Sequence[str]) -> None:
    """Write the index page; it works from disk, next to the pages that it links to."""
    style, script = _text("style.css"), _text("script.js")
    parts = {
        "policy": policy(style, script),
        "title": html.escape(title),
        "summary": html.escape(" · ".join(summary)),
        "style": style,
        "cards": "\n".join(_card(entry, path.parent) for entry in entries),
        "script": script,
    }
    page = fill(_text("page.html"), parts)
    write_bytes(path, page.encode("utf-8", "backslashreplace"))  # names may hold invalid Unicode


def _text(name: str) -> str:
    return (files("oaccdepth.looking.gallery") / name).read_text(encoding="utf-8")


def _card(entry: Entry, folder: Path) -> str:
    facts = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>"
        for name, value in entry.facts.items()
    )
    head = f"<h2>{html.escape(entry.name)}</h2>"
    if entry.page is None:
        return f'<li class="card failed">{head}<p>{html.escape(entry.message)}</p></li>'
    link = quote(os.fsencode(Path(os.path.relpath(entry.page, folder)).as_posix()))
    pictures = _pictures(entry, entry.page)
    return (
        f'<li class="card"><a href="{link}"><div class="pictures">{pictures}</div>{head}'
        f"<dl>{facts}</dl></a></li>"
    )


def _pictures(entry: Entry, page: Path) -> str:
    """The views of one row side by side (one is shown at a time), and the disparity."""
    frames = read_frames(page)
    parts = []
    if frames:
        strip = _data_url(np.concatenate(frames, axis=1))
        parts.append(
            f'<div class="look" data-frames="{len(frames)}">'
            f'<img src="{strip}" alt="Views of {html.escape(entry.name)}"></div>'
        )
    if entry.disparity is not None:
        coloured = colourise(entry.disparity, choose_range(entry.disparity))
        map_url = _data_url(_shrunk(coloured))
        parts.append(
            f'<img class="map" src="{map_url}" alt="Disparity of {html.escape(entry.name)}">'
        )
    return "".join(parts)


def read_frames(page: Path) -> list[Picture]:
    """Views of the middle row (or column) of a page, from left to right, as thumbnails.

    Empty for a page without views, or a damaged one.
    """
    try:
        meta, blocks = read_blocks(page, "view-")
        rows, columns = as_numbers(meta.get("grid"), 2)
        places = sorted(_place(name) for name in blocks)
        line = [(u, v) for u, v in places if u == rows // 2]
        if len(line) < 2:
            line = [(u, v) for u, v in places if v == columns // 2]
        chosen = np.linspace(0, len(line) - 1, min(len(line), MOST_FRAMES)).round().astype(int)
        frames = [_decoded(blocks["view-{}-{}".format(*line[i])]) for i in chosen]
        if len({frame.shape for frame in frames}) > 1:
            raise ValueError("views of different sizes")
        return frames
    except (OSError, ValueError, KeyError) as error:
        logger.info("%s: no views to be shown (%s)", page, type(error).__name__)
        return []


def _place(name: str) -> tuple[int, int]:
    _, u, v = name.split("-")
    return int(u), int(v)


def _decoded(jpeg: bytes) -> Picture:
    return _shrunk(np.asarray(decode_jpeg(jpeg), dtype=np.uint8))


def _shrunk(picture: Picture) -> Picture:
    height, width = picture.shape[:2]
    scale = min(1.0, THUMBNAIL / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.uint8)


def _data_url(picture: Picture) -> str:
    data = encode_jpeg(picture, QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}"
