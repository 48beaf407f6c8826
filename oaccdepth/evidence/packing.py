"""Views as the compiled loops take them: one number a pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from oaccdepth.compiling import run_by_rows
from oaccdepth.evidence.views import Views

BEYOND = 4  # pixels after a picture's last row that are fetched, but have no weight


def packed(views: Views) -> tuple[Any, tuple[int, int], Any]:
    """Packed pictures (k, n), their height and width, and the reference (3, h, w) in 0..1020.

    Made once, and kept with the views: those that are part of others share theirs.
    """
    if "packed" not in views.kept:
        whole = views.kept.get("whole")
        views.kept["packed"] = pack(views) if whole is None else packed(whole)
    pictures, size, reference = views.kept["packed"]
    return pictures[: len(views.steps)], size, reference


def pack(views: Views) -> tuple[Any, tuple[int, int], Any]:
    """The same, made anew."""
    from oaccdepth.evidence import kernels

    height, width = views.pictures.shape[-2:]
    pictures = views.pictures.flatten(2).numpy()
    into = np.empty((len(pictures), (height + 1) * width + BEYOND), np.int32)
    if len(pictures):
        run_by_rows(kernels.pack, len(pictures), pictures, into)
    return into, (height, width), scaled(views.compared)


def scaled(reference: Tensor) -> Any:
    """A picture (c, h, w) as three colours in 0..1020."""
    from oaccdepth.evidence.kernels import GREY

    return (reference.expand(3, -1, -1) * GREY).round().contiguous().numpy()
