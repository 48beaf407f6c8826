"""The course of training runs, from their tables to a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from oaccdepth.files.fields import BadField, as_number
from oaccdepth.files.regular import is_regular, read_small
from oaccdepth.lightfield import FloatArray
from oaccdepth.writers.pictures import Picture, choose_ticks

SIZE = (720, 400)  # px
FRAME = (64, 40, 700, 350)  # left, top, right, bottom of the plot in it
PAPER, INK, GRID = (255, 255, 255), (30, 36, 42), (222, 226, 230)
TRAINING, VALIDATION = (150, 170, 200), (200, 80, 30)
NEEDED = {"step", "seconds"}  # in every line of a table
MOST_TABLE = 1 << 28  # bytes; a day of training has a thousandth of it
LEFT_OUT = 60.0  # %: the first steps are worse, and would leave no room for the rest


@dataclass(frozen=True, eq=False)
class Curve:
    """BadPix 0.07 over the hours of training."""

    hours: FloatArray  # (n,)
    bad: FloatArray  # (n,) [%]


def draw(runs: Sequence[Path]) -> Picture:
    """Bad pixels of the training patches and of the validation scenes; runs one after the other."""
    training, validation = collect(runs, "metrics.csv"), collect(runs, "validation.csv")
    end = max([0.01, *training.hours, *validation.hours])
    top = min(LEFT_OUT, max([1.0, *training.bad, *validation.bad]))
    image = Image.new("RGB", SIZE, PAPER)
    pen = ImageDraw.Draw(image)
    _draw_axes(pen, end, top)
    pen.line(_places(training, end, top), fill=TRAINING, width=2)
    places = _places(validation, end, top)
    pen.line(places, fill=VALIDATION, width=2)
    for x, y in places:
        pen.ellipse((x - 4, y - 4, x + 4, y + 4), fill=VALIDATION)
    return np.asarray(image)


def collect(runs: Sequence[Path], name: str) -> Curve:
    """The bad pixels in the tables of this name; each run begins where the last one ended."""
    hours: list[float] = []
    bad: list[float] = []
    for index, run in enumerate(runs):
        before = sum(_last_hour(earlier) for earlier in runs[:index])
        for row in read_table(run / name):
            value = row.get("bad", row.get("badpix_0070"))
            if value is not None:
                hours.append(before + row["seconds"] / 3600)
                bad.append(value)
    return Curve(np.array(hours, np.float32), np.array(bad, np.float32))


def read_table(path: Path) -> list[dict[str, float]]:
    """The rows of a run's table; of steps that a killed run repeated, what it did the last time."""
    if not is_regular(path):
        return []
    rows: list[dict[str, float]] = []
    text = read_small(path, MOST_TABLE).decode(errors="replace")
    for found in csv.DictReader(io.StringIO(text, newline="")):
        try:
            row = {key: as_number(value) for key, value in found.items() if value}
        except BadField:
            continue  # a line that was cut short on a full disk
        if not row.keys() >= NEEDED:
            continue
        while rows and rows[-1]["step"] >= row["step"]:
            rows.pop()
        rows.append(row)
    return rows


def _last_hour(run: Path) -> float:
    rows = read_table(run / "metrics.csv") + read_table(run / "validation.csv")
    return max((row["seconds"] for row in rows), default=0.0) / 3600


def _places(curve: Curve, end: float, top: float) -> list[tuple[float, float]]:
    left, upper, right, lower = FRAME
    xs = left + (right - left) * curve.hours / end
    ys = lower - (lower - upper) * np.minimum(curve.bad, top) / top
    return [(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]


def _draw_axes(pen: ImageDraw.ImageDraw, end: float, top: float) -> None:
    left, upper, right, lower = FRAME
    font = ImageFont.load_default(14)
    for value, label in choose_ticks((0.0, top), 6):
        y = lower - (lower - upper) * value / top
        pen.line((left, y, right, y), fill=GRID)
        pen.text((left - 8, y), label, fill=INK, font=font, anchor="rm")
    for value, label in choose_ticks((0.0, end), 8):
        x = left + (right - left) * value / end
        pen.line((x, lower, x, lower + 5), fill=INK)
        pen.text((x, lower + 9), label, fill=INK, font=font, anchor="ma")
    pen.line((left, lower, right, lower), fill=INK)
    pen.text((left - 50, 12), "BadPix 0.07 [%]", fill=INK, font=font)
    pen.text((right, lower + 28), "hours", fill=INK, font=font, anchor="ra")
    pen.text((right, 12), "validation scenes", fill=VALIDATION, font=font, anchor="ra")
    pen.text((right - 140, 12), "training patches", fill=TRAINING, font=font, anchor="ra")
