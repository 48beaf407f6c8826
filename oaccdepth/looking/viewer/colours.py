"""The colour maps that a page offers, as tables of 256 colours; one of them for differences."""

from __future__ import annotations

import numpy as np

from oaccdepth.lightfield import FloatArray
from oaccdepth.options import COLORMAPS
from oaccdepth.writers.pictures import NOT_KNOWN, Picture, colourise

# From too far (blue) over equal (almost white) to too near (red); darker towards the ends.
_DIFFERENCE = ("#0b3c8c", "#3b7dd8", "#9ec9f2", "#f7f5f2", "#f6b394", "#d8523f", "#8a1020")


def tables() -> tuple[list[str], Picture]:
    """Names, and the tables as (n, 256, 3) RGB; the last is the one for differences."""
    ramp = np.linspace(0, 1, 256, dtype=np.float32)[None]
    maps = [colourise(ramp, (0.0, 1.0), name)[0] for name in COLORMAPS]
    return [*COLORMAPS, "difference"], np.stack([*maps, _difference_table()])


def colour_difference(values: FloatArray, largest: float) -> Picture:
    """Signed values as (h, w, 3) RGB: blue below zero, red above, the ends at -/+ `largest`."""
    steps = np.rint((np.nan_to_num(values) / largest + 1) * 127.5)
    picture: Picture = _difference_table()[np.clip(steps, 0, 255).astype(np.uint8)]
    picture[~np.isfinite(values)] = NOT_KNOWN
    return picture


def _difference_table() -> Picture:
    anchors = np.array([list(bytes.fromhex(colour[1:])) for colour in _DIFFERENCE], dtype=float)
    places = np.linspace(0, len(anchors) - 1, 256)
    channels = [np.interp(places, range(len(anchors)), anchors[:, c]) for c in range(3)]
    return np.asarray(np.rint(np.stack(channels, axis=1)), dtype=np.uint8)
