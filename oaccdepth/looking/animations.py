"""Animations as GIF or MP4: a tour of the views, or a focus pull."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from oaccdepth.errors import InvalidOption, MissingDependency
from oaccdepth.files.atomic import replacing
from oaccdepth.lightfield import LightField
from oaccdepth.looking.refocus import refocus
from oaccdepth.options import Range
from oaccdepth.progress import ReportProgress, ignore
from oaccdepth.writers.pictures import Picture, as_rgb

ANIMATIONS = ("parallax", "refocus")
ANIMATION_ENDINGS = (".gif", ".mp4")


def parallax_frames(light_field: LightField) -> list[Picture]:
    """What a camera sees on a circle around the centre view, (h, w, 3) each."""
    rows, columns = light_field.grid
    missing = set(light_field.missing_views)
    steps = 4 * max(rows, columns)
    places: list[tuple[int, int]] = []
    for step in range(steps):
        angle = 2 * math.pi * step / steps
        u = round(rows // 2 + (rows - 1) / 2 * math.sin(angle))
        v = round(columns // 2 + (columns - 1) / 2 * math.cos(angle))
        place = min(u, rows - 1), min(v, columns - 1)
        if place not in missing and (not places or places[-1] != place):
            places.append(place)
    return [as_rgb(light_field.views[place]) for place in places]


def refocus_frames(
    light_field: LightField,
    limits: Range,
    count: int = 24,
    progress: ReportProgress = ignore,
) -> Iterator[Picture]:
    """The focus moving from far to near and back, (h, w, 3) each; `limits` [px]."""
    way = np.linspace(*limits, count // 2 + 1)
    pictures = []
    for number, disparity in enumerate(way):
        progress("refocusing", number / len(way))
        pictures.append(as_rgb(refocus(light_field, float(disparity))))
    yield from pictures
    yield from pictures[-2:0:-1]


def write_animation(path: Path, frames: Sequence[Picture], frames_per_second: float = 15) -> None:
    """Write frames as GIF, or as MP4 (which needs imageio-ffmpeg)."""
    ending = path.suffix.lower()
    if ending not in ANIMATION_ENDINGS:
        raise InvalidOption(f"{path}: cannot make {path.suffix or 'this'}; use .gif or .mp4.")
    if ending == ".mp4":
        _write_mp4(path, frames, frames_per_second)
        return
    pictures = [
        Image.fromarray(frame).quantize(dither=Image.Dither.FLOYDSTEINBERG) for frame in frames
    ]
    with replacing(path) as temporary:
        pictures[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=round(1000 / frames_per_second),
            loop=0,
        )


def _write_mp4(path: Path, frames: Sequence[Picture], frames_per_second: float) -> None:
    check_video()
    import imageio.v3 as imageio

    height, width = (size - size % 2 for size in frames[0].shape[:2])  # the codec needs even sizes
    even = np.stack([frame[:height, :width] for frame in frames])
    with replacing(path) as temporary:
        imageio.imwrite(
            temporary, even, plugin="FFMPEG", fps=frames_per_second, quality=9, macro_block_size=2
        )


def check_video() -> None:
    """Raise `MissingDependency` if MP4 cannot be written."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise MissingDependency(
            "MP4 needs imageio-ffmpeg. "
            'Install it with: pip install "oaccdepth[video]", or write a .gif.'
        ) from error
