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
    use_views: tuple[int, int] | None = None  # (u, v): central views to use; None: up to 9x9
    stride: int = 1  # use every n-th view, counted from the centre
    transpose: bool = False  # exchange camera rows and columns
    flip_u: bool = False  # reverse the camera rows
    flip_v: bool = False  # reverse the camera columns
    check_orientation: bool = True  # detect and correct transposed or flipped axes
    pattern: str | None = None  # of view names, with groups (row, column) or (index)
    axes: str | None = None  # axis order of an array file, such as "uvhwc"
    gamma: float | None = None  # display gamma for linear pictures; None: measured
    layout: str | None = None  # of one picture with all views: mosaic, lenslet; None: measured
    order: str | None = None  # of numbered views: rows, columns, serpentine, serpentine-columns
    allow_missing: bool = False  # mask views that are not there, instead of refusing


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


@dataclass(frozen=True)
class TrainOptions:
    """How to train; the schedule runs over `steps`, or over `minutes` of training."""

    preset: str = "fast"  # fast, paper
    steps: int | None = None
    minutes: float | None = None
    batch: int = 8  # patches a step, of each process
    patch: int = 64  # px on a side
    learning_rate: float = 2e-3  # at the end of the warm-up
    warm_up: int = 200  # steps
    weight_decay: float = 1e-4
    clip: float = 1.0  # largest norm of the gradient
    average: float = 0.999  # of the weights' exponential moving average
    first_pass_share: float = 0.0  # of the schedule, trained with the first pass alone
    iterations: int = 2  # passes in training
    synthetic: float = 0.0  # share of the patches that are rendered, not from DATA
    full_size: float = 0.47  # share of those from DATA that are not sub-sampled; as in the paper
    part: str = ""  # of the network, to be trained alone: edges, refinement
    freeze_norms: bool = False  # batch norms as in use, with the statistics they came with
    seed: int = 0
    workers: int = 1  # processes that prepare patches; 0: none, in the loop itself
    initial: str | None = None  # weights to begin with
    checkpoint_minutes: float = 5.0
    validate_steps: int = 1000  # 0: never


@dataclass(frozen=True)
class BatchOptions:
    """Which light fields of a folder to do, and where."""

    include: tuple[str, ...] = ()  # patterns of scenes to do, such as "training/*"; empty: all
    exclude: tuple[str, ...] = ()  # patterns of scenes to leave out
    limit: int | None = None  # the first N scenes only
    redo: bool = False  # also what is done already
    jobs: int | None = None  # processes; None: one here, one per GPU or four CPUs on a cluster
    ray: str | None = None  # address of a Ray cluster, "auto" or "local"
    formats: tuple[str, ...] = ()  # files besides the usual: npy, png16, depth, ply
    colormap: str = "viridis"
    value_range: Range | None = None  # px, of the coloured picture; None: the map's own
