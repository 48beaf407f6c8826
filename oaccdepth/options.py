"""Every setting, declared once: its default, its help, its bounds and how its text is parsed.

The dataclasses are the API; `commands.shared.nesting` makes the command line from the same
declarations. Standard library only, so that `oaccdepth --help` answers at once. The shape of a
network is not an option: it belongs to its weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from oaccdepth.errors import InvalidOption, one_of

Pair = tuple[int, int]
Range = tuple[float, float]

MOST_VIEWS = 1000  # per axis, because every place of a grid is visited
PRECISIONS = ("auto", "fp32", "fp16", "bf16")
# Perceptually uniform ones first; names are OpenCV's, in lower case.
COLORMAPS = ("viridis", "cividis", "magma", "inferno", "plasma", "turbo", "gray")


@dataclass(frozen=True)
class Option:
    """What the command line knows about a field, besides its name, type and default."""

    help: str
    flag: str = ""  # "": made from the field's name
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    parse: Callable[[str, str], Any] | None = None  # (text, flag) -> value; None: by the type

    def check(self, value: Any, flag: str) -> None:
        """Refuse a value that is not one of the choices, or out of bounds."""
        if self.choices and value not in self.choices:
            expected = one_of(self.choices)
        elif self.least is not None and not all(
            self.least <= one <= (self.most or math.inf)
            for one in (value if isinstance(value, tuple) else (value,))
        ):
            value = "x".join(map(str, value)) if isinstance(value, tuple) else value
            most = "or more" if self.most is None else f"to {self.most:g}"
            expected = f"{self.least:g} {most}"
        else:
            return
        raise InvalidOption(f"{flag} {value}: expected {expected}.")


def option(default: Any, help: str, **more: Any) -> Any:
    """Declare a field that is also a command-line option; `more` as in `Option`."""
    return field(default=default, metadata={"option": Option(help, **more)})


class Declared:
    """What the groups of options below have in common."""

    panel: ClassVar[str] = "Options"  # the heading on help pages

    def __post_init__(self) -> None:
        """Check every value, wherever it comes from."""
        for name, (flag, declared) in declarations(type(self)).items():
            value = getattr(self, name)
            if value is not None and value != "":
                declared.check(value, flag)


def declarations(options: type) -> dict[str, tuple[str, Option]]:
    """Name of each declared field -> its flag and its declaration."""
    return {
        one.name: (declared.flag or f"--{one.name.replace('_', '-')}", declared)
        for one in fields(options)
        if (declared := one.metadata.get("option")) is not None
    }


def parse_pair(text: str, flag: str) -> Pair:
    """'9x9' as (9, 9)."""
    rows, _, columns = text.lower().partition("x")
    if not (rows.isdecimal() and columns.isdecimal() and int(rows) > 0 and int(columns) > 0):
        raise InvalidOption(f"{flag} {text}: expected ROWSxCOLUMNS, such as 9x9.")
    return int(rows), int(columns)


def parse_place(text: str, flag: str) -> Pair:
    """'0,8' as (0, 8)."""
    row, _, column = text.partition(",")
    if not (row.isdecimal() and column.isdecimal()):
        raise InvalidOption(f"{flag} {text}: expected ROW,COLUMN, counted from 0, such as 4,4.")
    return int(row), int(column)


def parse_pair_or_all(text: str, flag: str) -> Pair | str:
    """As `parse_pair`, or 'all'."""
    return text if text == "all" else parse_pair(text, flag)


def parse_range(text: str, flag: str) -> Range:
    """'-2:1.5' as (-2.0, 1.5)."""
    low, _, high = text.partition(":")
    try:
        result = float(low), float(high)
    except ValueError:
        result = (math.nan, math.nan)
    if not all(math.isfinite(value) for value in result) or result[0] == result[1]:
        raise InvalidOption(f"{flag} {text}: expected MIN:MAX, such as -2:1.5.")
    if result[0] > result[1]:
        raise InvalidOption(f"{flag} {text}: the ends are reversed. Use {flag} {high}:{low}.")
    return result


def parse_range_or_auto(text: str, flag: str) -> Range | None:
    """As `parse_range`; 'auto' is None."""
    return None if text == "auto" else parse_range(text, flag)


@dataclass(frozen=True)
class ReadOptions(Declared):
    """How to read a light field: what its files do not say."""

    panel: ClassVar[str] = "Reading"

    views: Pair | None = option(
        None,
        "Grid of cameras, rows x columns, if the files do not give it.",
        metavar="UxV",
        least=1,
        most=MOST_VIEWS,
        parse=parse_pair,
    )
    use_views: Pair | str | None = option(
        None,
        "How many central views to use, or all. Default: all, or some from the whole array.",
        metavar="UxV|all",
        parse=parse_pair_or_all,
    )
    stride: int = option(1, "Use every N-th view, counted from the centre.", metavar="N", least=1)
    crop: str | None = option(
        None,
        "Use this part of each view, in px; without X and Y, the middle.",
        metavar="WxH[+X+Y]",
    )
    scale: float = option(1.0, "Scale each view down, after --crop.", metavar="S")
    transpose: bool = option(False, "Swap camera rows and columns.")
    flip_u: bool = option(False, "Reverse the camera rows.")
    flip_v: bool = option(False, "Reverse the camera columns.")
    check_orientation: bool = option(True, "Detect and correct swapped or reversed camera axes.")
    pattern: str | None = option(
        None,
        "Names of the views: a pattern with two groups (row, column) or one (index).",
        metavar="REGEX",
    )
    axes: str | None = option(
        None, "Order of the axes of an array file, such as uvhwc.", metavar="ORDER"
    )
    gamma: float | None = option(
        None,
        "Display gamma for linear pictures. Default: detected.",
        metavar="G",
        least=0.1,
        most=10,
    )
    layout: str | None = option(
        None,
        "How the views are arranged in one picture: mosaic or lenslet. Default: detected.",
        metavar="NAME",
        choices=("mosaic", "lenslet"),
    )
    order: str | None = option(
        None,
        "Order of numbered views or of a mosaic: rows, columns, serpentine or "
        "serpentine-columns. Default: detected.",
        metavar="NAME",
        choices=("rows", "columns", "serpentine", "serpentine-columns"),
    )
    allow_missing: bool = option(False, "Accept missing views; they are masked.")
    baseline_mm: float | None = option(
        None, "Distance between neighbouring cameras, for metric depth.", metavar="MM"
    )
    focal_px: float | None = option(
        None, "Focal length in pixels of the stored pictures.", metavar="PX"
    )
    focal_mm: float | None = option(None, "Focal length; needs --sensor-mm.", metavar="MM")
    sensor_mm: float | None = option(
        None, "Size of the sensor along the longer side of the picture.", metavar="MM"
    )
    focus_distance_mm: float | None = option(
        None, "Distance of zero disparity. Default: parallel cameras.", metavar="MM"
    )


@dataclass(frozen=True)
class EstimateOptions(Declared):
    """How to estimate a disparity map."""

    panel: ClassVar[str] = "Estimating"

    weights: str = option("fast", "Bundled weights, or a .safetensors file.", metavar="NAME|FILE")
    device: str = option("auto", "auto, cpu, cuda, cuda:N or mps.", metavar="NAME")
    iterations: int | None = option(
        None,
        "Number of passes; all but the first are occlusion-aware. Default: as the weights were "
        "trained.",
        metavar="N",
        least=1,
    )
    tile: int | None = option(
        None,
        "Width and height of the tiles; smaller ones need less memory. Default: depends on the "
        "device.",
        metavar="PX",
        least=16,
    )
    precision: str = option(
        "auto",
        "Arithmetic of the network: auto, fp32, fp16 (GPUs) or bf16. auto is bf16 on CPUs "
        "that are fast at it, otherwise fp32.",
        metavar="NAME",
        choices=PRECISIONS,
    )
    disparity_range: Range | None = option(
        None,
        "Disparities to search, in px. Default: auto (from the files, or estimated).",
        metavar="MIN:MAX",
        parse=parse_range_or_auto,
    )
    reference: Pair | None = option(
        None,
        "View whose disparity to estimate: camera row and column, from 0. Default: the centre.",
        metavar="U,V",
        parse=parse_place,
    )
    keep_masks: bool = False  # occlusion masks of the last pass
    keep_passes: bool = False  # disparity (and masks, if kept) of every pass
    keep_evidence: bool = False  # matching evidence over disparity, for the viewer
    all_vote: bool = False  # every view of a large grid, not just about every other one


def with_voters(estimating: EstimateOptions, reading: ReadOptions) -> EstimateOptions:
    """Let every view vote if every view is asked for."""
    return replace(estimating, all_vote=True) if reading.use_views == "all" else estimating


@dataclass(frozen=True)
class WriteOptions(Declared):
    """Which files to write, and how they look."""

    panel: ClassVar[str] = "Writing"

    formats: tuple[str, ...] = option(
        (),
        "Also write this file: npy, png16, depth or ply. Repeat for more.",
        flag="--format",
        metavar="NAME",
    )
    colormap: str = option(
        COLORMAPS[0],
        "Colours of the disparity: viridis, cividis, magma, inferno, plasma, turbo or gray.",
        metavar="NAME",
        choices=COLORMAPS,
    )
    value_range: Range | None = option(
        None,
        "Disparities at the ends of the colour bar, in px. Default: the range of the map.",
        flag="--range",
        metavar="MIN:MAX",
        parse=parse_range,
    )
    view: bool = option(False, "Also write an interactive page, view.html.")
    all_views: bool = option(
        False, "Also write a disparity map of every view, views/disparity_UU_VV.pfm."
    )


@dataclass(frozen=True)
class TrainOptions(Declared):
    """How to train; the schedule runs over `steps`, or over `minutes` of training."""

    panel: ClassVar[str] = "Training"

    preset: str = option("fast", "Which network: fast or paper.", metavar="NAME")
    minutes: float | None = option(
        None, "How long to train, counting all sessions of the run.", metavar="N", least=0
    )
    steps: int | None = option(
        None, "How many steps to train, instead of --minutes.", metavar="N", least=1
    )
    initial: str | None = option(None, "Weights to start from.", metavar="NAME|FILE")
    batch: int = option(8, "Patches per step and process.", metavar="N", least=1)
    patch: int = option(64, "Width and height of a patch.", metavar="PX", least=16)
    learning_rate: float = option(
        2e-3, "Learning rate at the end of the warm-up.", metavar="RATE", least=0
    )
    warm_up: int = 200  # steps
    weight_decay: float = 1e-4
    clip: float = 1.0  # largest norm of the gradient
    average: float = 0.999  # of the weights' exponential moving average
    iterations: int = option(3, "Passes in training.", metavar="N", least=1)
    first_pass_share: float = option(
        0.0,
        "Share of the schedule that trains the first pass alone.",
        metavar="0..1",
        least=0,
        most=1,
    )
    more: str | None = option(
        None, "A second folder of scenes, such as rendered ones.", metavar="DATA"
    )
    more_share: float = option(
        0.5, "Share of the patches that come from --more.", metavar="0..1", least=0, most=1
    )
    full_size: float = option(
        0.72,
        "Share of the patches at full size; the others are sub-sampled by 2 or 3.",
        metavar="0..1",
        least=0,
        most=1,
    )
    part: str = option(
        "",
        "Train only this part of `fast`: first (the first pass), refinement (the later ones) or "
        "edges (what decides which surface a pixel on an edge shows). The last two need --initial.",
        metavar="NAME",
    )
    freeze_norms: bool = option(False, "Keep the batch-norm statistics of --initial.")
    validate_steps: int = option(
        1000, "Steps between validations; 0 to validate only at the end.", metavar="N", least=0
    )
    checkpoint_minutes: float = option(5.0, "Minutes between checkpoints.", metavar="N", least=0)
    workers: int = option(
        1, "Processes that prepare patches; 0 to use the training process.", metavar="N", least=0
    )
    seed: int = option(0, "Seed of the patches and the first weights.", metavar="N")


@dataclass(frozen=True)
class RenderOptions(Declared):
    """Which scenes to render, and how."""

    panel: ClassVar[str] = "Rendering"

    scenes: int = option(20, "How many scenes.", metavar="N", least=1, most=100_000)
    seed: int = option(
        0, "Seed of the first scene; each following scene adds one.", metavar="N", least=0
    )
    grid: Pair = option(
        (9, 9), "Cameras. Default: 9x9.", metavar="UxV", least=1, most=MOST_VIEWS, parse=parse_pair
    )
    size: Pair = option(
        (512, 512), "Height and width of a view, in px. Default: 512x512.", metavar="HxW",
        least=1, most=4096, parse=parse_pair,
    )  # fmt: skip
    samples: int = option(
        4, "Samples per pixel along each axis: 2 is quicker.", metavar="N", least=1, most=8
    )
    disparity_range: Range = option(
        (-4.0, 4.0),
        "Limits of the disparities, in px; each scene uses a part of this range. Default: -4:4.",
        metavar="MIN:MAX",
        parse=parse_range,
    )


@dataclass(frozen=True)
class BatchOptions(Declared):
    """Which light fields of a folder to process, and where."""

    include: tuple[str, ...] = option(
        (),
        "Only scenes that match, such as 'training/*'. Repeat for more.",
        metavar="PATTERN",
    )
    exclude: tuple[str, ...] = option(
        (), "Skip scenes that match. Repeat for more.", metavar="PATTERN"
    )
    limit: int | None = option(None, "Only the first N scenes.", metavar="N", least=1)
    redo: bool = option(False, "Process finished scenes again.", flag="--overwrite")
    jobs: int | None = option(
        None,
        "Number of processes; GPUs are used in turn. Default: 1; with --ray, as many as fit.",
        metavar="N",
        least=1,
    )
    ray: str | None = option(
        None,
        "Run on a Ray cluster: an address, auto or local. Needs the extra 'ray'.",
        metavar="ADDRESS",
    )
