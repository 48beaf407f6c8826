"""Light fields and disparities in steps of the capture -> in steps that the network knows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oaccdepth.estimation.disparity_range import Coverage
from oaccdepth.lightfield import LightField
from oaccdepth.options import Range

KNOWN = 4  # steps from the centre to the outermost views that the network was trained with


def surplus(light_field: LightField) -> int:
    """How many times farther away the outermost views are than the network knows them, at least 1.

    Levels of disparity must be closer together by as much: between two of them, the outermost of
    27 x 27 views would move by more than three pixels.
    """
    return max(1, int(np.abs(light_field.camera_places).max()) // KNOWN)


def in_longer_steps(light_field: LightField, factor: int) -> LightField:
    """The same with steps that are so many times as long; the camera is left as it is."""
    if factor == 1:
        return light_field
    places = light_field.camera_places / np.float32(factor)
    return replace(light_field, places=np.asarray(places, dtype=np.float32))


def times(ends: Range, factor: float) -> Range:
    """The range for steps that are so many times as long."""
    return ends[0] * factor, ends[1] * factor


def cover_times(coverage: Coverage, factor: float) -> Coverage:
    """The same for what is searched."""
    return replace(coverage, disparity_range=times(coverage.disparity_range, factor))
