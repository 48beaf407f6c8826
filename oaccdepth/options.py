"""Every setting, its default and its meaning; the command line takes its defaults from here.

Standard library only, so that `oaccdepth --help` answers at once. The shape of a network is not an
option: it belongs to its weights.
"""

from __future__ import annotations

from dataclasses import dataclass

Range = tuple[float, float]


@dataclass(frozen=True)
class ReadOptions:
    """How to turn a path into a light field, where the files do not say it themselves."""

    views: tuple[int, int] | None = None  # (u, v): grid of the file where it is not obvious
    use_views: tuple[int, int] | None = None  # (u, v): how many central views to use; None: up to 9x9
    stride: int = 1  # use every n-th view, counted from the centre
    transpose: bool = False  # exchange camera rows and columns
    flip_u: bool = False  # reverse the camera rows
    flip_v: bool = False  # reverse the camera columns
    check_orientation: bool = True  # detect and correct transposed or flipped axes
    pattern: str | None = None  # regular expression with groups (row, column) or (index) of view names
    axes: str | None = None  # axis order of an array file, such as "uvhwc"
    gamma: float | None = None  # display gamma for linear pictures; None: measured


@dataclass(frozen=True)
class EstimateOptions:
    """How to estimate a disparity map."""

    weights: str = "fast"  # name of bundled weights, or a path
    iterations: int | None = None  # passes; None: what the weights were made for
    device: str = "auto"  # auto, cpu, cuda, cuda:N, mps
    precision: str = "fp32"  # fp32, fp16, bf16 (autocast, on GPUs)
    tile: int | None = None  # pixels on a side; None: what suits the weights and the device
    disparity_range: Range | None = None  # px; None: from the file, or estimated
    keep_masks: bool = False  # occlusion masks of the last pass
    keep_passes: bool = False  # disparity (and masks, if kept) of every pass
    keep_evidence: bool = False  # matching evidence over disparity, for the viewer
