"""estimate(): LightField to DisparityMap. Chooses device, tiles and sweeps; opens only weights."""

from __future__ import annotations

import logging
import math
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oaccdepth.disparity import DisparityMap, Pass, Provenance
from oaccdepth.errors import DeviceUnavailable, InvalidLightField
from oaccdepth.estimation.disparity_range import REACH, Coverage, choose_coverage
from oaccdepth.estimation.merging import merge_sweeps
from oaccdepth.estimation.sweeps import (
    PAPER_MARGIN,
    Clock,
    ReportProgress,
    Sweep,
    Views,
    empty_cache,
    sweep_fast,
    sweep_paper,
)
from oaccdepth.estimation.tiles import plan_tiles
from oaccdepth.lightfield import FloatArray, LightField, as_grey
from oaccdepth.networks import authors, checkpoint
from oaccdepth.networks.fast import ALIGNMENT, FastNet
from oaccdepth.networks.paper import OACCNet, occlusion_mask
from oaccdepth.options import EstimateOptions
from oaccdepth.version import __version__

log = logging.getLogger(__name__)

SMALLEST_SIDE = 16  # px: below, the hourglass has nothing left at an eighth of the size
SMALLEST_TILE = 64
TILES = {"fast": 576, "paper": 256}  # px on a side: a 512 px picture is one tile for `fast`
PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
# CUDA has an exception of its own for it; MPS, cuDNN and the CPU say it in words only.
OUT_OF_MEMORY = ("out of memory", "alloc_failed", "can't allocate memory", "not enough memory")


@dataclass(frozen=True, eq=False)
class LoadedWeights:
    """A network on its device, and what it is."""

    network: FastNet | OACCNet
    name: str = "untitled"
    sha256: str = ""
    compat: str = ""  # "authors": reproduce the numerics of their program


def load_network(weights: str = EstimateOptions.weights, device: str = "auto") -> LoadedWeights:
    """Load weights by name or path, onto a device; to be passed to `estimate` many times."""
    torch_device = choose_device(device)
    path = checkpoint.find_weights(weights)
    network, metadata = checkpoint.load(path)
    compat = metadata.get("compat", "")
    return LoadedWeights(network.to(torch_device), path.stem, checkpoint.sha256(path), compat)


def choose_device(name: str) -> torch.device:
    """The device of this name; auto: the best there is."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind, _, number = name.partition(":")
    count = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }.get(kind, 0)
    if (number and not (kind == "cuda" and number.isdecimal())) or int(number or 0) >= count:
        there = ["cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]
        if torch.backends.mps.is_available():
            there.append("mps")
        raise DeviceUnavailable(
            f"--device {name}: not there. Available: {', '.join(there)}. Or use --device auto."
        )
    return torch.device(name)


def estimate(
    light_field: LightField,
    options: EstimateOptions = EstimateOptions(),
    *,
    network: LoadedWeights | FastNet | OACCNet | None = None,
    progress: ReportProgress | None = None,
) -> DisparityMap:
    """Estimate the disparity of the centre view.

    Parameters
    ----------
    network
        Weights that are loaded already; `options.weights` and `options.device` are then not used.
    progress
        Called with the stage and how much of it is done, 0 to 1.
    """
    started = time.perf_counter()
    check_size(light_field)
    report = progress or (lambda stage, fraction: None)
    loaded = network or load_network(options.weights, options.device)
    if not isinstance(loaded, LoadedWeights):
        loaded = LoadedWeights(loaded)
    clock = Clock(next(loaded.network.parameters()).device)
    with clock.stage("range"):
        coverage = cover(light_field, loaded, options)
    log.info(_intention(loaded, options, coverage, clock.device))
    sweeps, notes = run_sweeps(light_field, loaded, options, coverage, clock, report)
    with clock.stage("merging"):
        merged = merge_sweeps(light_field, sweeps, coverage.shears)
    clock.seconds["total"] = time.perf_counter() - started
    made_with = describe(light_field, loaded, options, coverage, clock, notes)
    log.info("Seconds: " + ", ".join(f"{n} {s:.1f}" for n, s in made_with.seconds.items()) + ".")
    return as_map(merged, light_field, options, coverage, made_with)


def _intention(
    loaded: LoadedWeights, options: EstimateOptions, coverage: Coverage, device: torch.device
) -> str:
    """Say what is going to be done, for `-v`."""
    low, high = coverage.disparity_range
    shears = ", ".join(str(shear) for shear in coverage.shears)
    passes = options.iterations or loaded.network.config.iterations
    tile = options.tile or TILES[checkpoint.kind_of(loaded.network)]
    return (
        f"Weights {loaded.name} on {device}, {passes} passes, tiles of {tile} px; "
        f"disparities from {low:.1f} to {high:.1f} px ({coverage.source}), "
        f"views sheared by {shears} px."
    )


def cover(light_field: LightField, loaded: LoadedWeights, options: EstimateOptions) -> Coverage:
    """What to search; the authors' program, which `compat` reproduces, never shears."""
    if loaded.compat == "authors" and options.disparity_range is None:
        return Coverage((-REACH, REACH), "weights", (0,))
    return choose_coverage(light_field, options.disparity_range)


def check_size(light_field: LightField) -> None:
    """Refuse what no network of ours can see anything in."""
    height, width = light_field.resolution
    if min(height, width) < SMALLEST_SIDE:
        raise InvalidLightField(
            f"{light_field.source or 'light field'}: views are {width}x{height} px, smaller than "
            f"the smallest tile, {SMALLEST_SIDE}x{SMALLEST_SIDE}. Use larger pictures."
        )
    if min(light_field.grid) < 3:
        rows, columns = light_field.grid
        raise InvalidLightField(
            f"{light_field.source or 'light field'}: {rows}x{columns} views, expected at least 3x3."
        )


def run_sweeps(
    light_field: LightField,
    loaded: LoadedWeights,
    options: EstimateOptions,
    coverage: Coverage,
    clock: Clock,
    report: ReportProgress,
) -> tuple[list[Sweep], list[str]]:
    """One sweep for each shear; a device that runs out of memory gets smaller tiles."""
    notes: list[str] = []
    tile = options.tile or TILES[checkpoint.kind_of(loaded.network)]
    dtype = PRECISIONS[options.precision]
    if dtype != torch.float32 and clock.device.type == "cpu":
        notes.append(f"--precision {options.precision} is for GPUs; computed in fp32.")
        dtype = torch.float32
    sweeps: list[Sweep] = []
    while len(sweeps) < len(coverage.shears):
        number = len(sweeps)

        def report_sweep(stage: str, fraction: float, number: int = number) -> None:
            report(stage, (number + fraction) / len(coverage.shears))

        try:
            half = dtype != torch.float32
            with torch.autocast(clock.device.type, dtype) if half else nullcontext():
                sweep = run_sweep(
                    light_field, loaded, options, coverage.shears[number], tile, clock, report_sweep
                )
            sweeps.append(sweep)
        except RuntimeError as error:
            if not any(words in str(error).lower() for words in OUT_OF_MEMORY):
                raise
            tile //= 2
            if tile < SMALLEST_TILE:
                raise DeviceUnavailable(
                    f"--device {clock.device}: out of memory even with tiles of {2 * tile} px. "
                    "Use --device cpu."
                ) from error
            empty_cache(clock.device)
            notes.append(f"The device ran out of memory: tiles halved to {tile} px.")
            log.warning(notes[-1])
    return sweeps, notes


def run_sweep(
    light_field: LightField,
    loaded: LoadedWeights,
    options: EstimateOptions,
    shear: int,
    tile: int,
    clock: Clock,
    report: ReportProgress,
) -> Sweep:
    """One sweep with the network at hand."""
    network = loaded.network
    iterations = options.iterations or network.config.iterations
    views = Views(light_field, shear, network.config.margin, clock.device)
    keep_masks = options.keep_masks
    if isinstance(network, FastNet):
        return sweep_fast(
            network, views, iterations, tile, clock, report, keep_masks, options.keep_evidence
        )
    return sweep_paper(
        network,
        replace(views, grey=as_grey),
        iterations,
        tile,
        clock,
        report,
        keep_masks,
        options.keep_evidence,
        loaded.compat,
    )


def describe(
    light_field: LightField,
    loaded: LoadedWeights,
    options: EstimateOptions,
    coverage: Coverage,
    clock: Clock,
    notes: list[str],
) -> Provenance:
    """How the map was made."""
    settings = asdict(options)
    settings["weights"] = loaded.name
    settings["iterations"] = options.iterations or loaded.network.config.iterations
    return Provenance(
        version=__version__,
        weights=loaded.name,
        weights_sha256=loaded.sha256,
        options=settings,
        device=str(clock.device),
        seconds={stage: round(seconds, 3) for stage, seconds in clock.seconds.items()},
        input={
            "source": light_field.source,
            "format": light_field.format,
            "grid": list(light_field.grid),
            "resolution": list(light_field.resolution),
            "notes": list(light_field.notes),
        },
        disparity_range=coverage.disparity_range,
        range_source=coverage.source,
        notes=tuple(notes),
    )


def as_map(
    merged: Sweep,
    light_field: LightField,
    options: EstimateOptions,
    coverage: Coverage,
    made_with: Provenance,
) -> DisparityMap:
    """Tensors to the arrays that the caller gets."""
    passes = tuple(
        Pass(_array(part.disparity), None if part.masks is None else _array(part.masks))
        for part in merged.passes
    )
    evidence: FloatArray | None = None
    levels: tuple[float, ...] = ()
    if options.keep_evidence and merged.evidence is not None:
        evidence = _array(merged.evidence)
        half = len(evidence) // 2
        levels = tuple(float(coverage.shears[0] + step) for step in range(-half, half + 1))
    return DisparityMap(
        disparity=passes[-1].disparity,
        confidence=_array(merged.confidence),
        masks=passes[-1].masks,
        passes=passes if options.keep_passes else (),
        evidence=evidence,
        levels=levels,
        camera=light_field.camera,
        made_with=made_with,
    )


def _array(values: Tensor) -> FloatArray:
    return np.ascontiguousarray(values.numpy(), dtype=np.float32)


def masks_from_disparity(
    light_field: LightField, disparity: FloatArray, decay: float = 2.0
) -> FloatArray:
    """The occlusion masks (u, v, h, w) that a disparity map implies (Eq. 6-8)."""
    if disparity.shape != light_field.resolution:
        (height, width), (rows, columns) = light_field.resolution, disparity.shape
        raise InvalidLightField(
            f"the disparity map is {columns}x{rows} px, expected {width}x{height} as the views of "
            f"{light_field.source or 'the light field'}."
        )
    views = Views(light_field, 0, 0, torch.device("cpu"))
    height, width = light_field.resolution
    grey = views.region((slice(0, height), slice(0, width)))
    present = (grey >= 0).to(grey)
    found = torch.from_numpy(np.nan_to_num(disparity))[None]
    return _array(occlusion_mask(grey.clamp(min=0), found, decay, present)[0])


@dataclass(frozen=True)
class Plan:
    """What an estimate would take, before it is made."""

    seconds: float
    memory_bytes: int
    coverage: Coverage


def plan(
    light_field: LightField,
    options: EstimateOptions = EstimateOptions(),
    *,
    network: LoadedWeights | None = None,
) -> Plan:
    """Time and memory of an estimate, from timing a small part of the picture here and now."""
    check_size(light_field)
    loaded = network or load_network(options.weights, options.device)
    coverage = cover(light_field, loaded, options)
    side = 192
    height, width = light_field.resolution
    corner = replace(
        light_field,
        views=light_field.views[:, :, :side, :side],
        valid=_corner(light_field.valid, side),
    )
    _seconds(corner, options, loaded)  # the first run also prepares kernels
    seconds = _seconds(corner, options, loaded)
    area = math.prod(corner.resolution)
    scale = height * width / area * len(coverage.shears)
    memory = foresee_memory(light_field, options, loaded)
    return Plan(seconds * scale, memory, coverage)


def _seconds(light_field: LightField, options: EstimateOptions, loaded: LoadedWeights) -> float:
    """How long one sweep takes."""
    clock = Clock(next(loaded.network.parameters()).device)
    one_sweep = Coverage((-REACH, REACH), "option", (0,))
    with clock.stage("sweep"):
        run_sweeps(light_field, loaded, options, one_sweep, clock, lambda stage, fraction: None)
    return clock.seconds["sweep"]


def _corner(valid: Any, side: int) -> Any:
    return valid if valid is None or valid.ndim == 2 else valid[:, :, :side, :side]


def foresee_memory(light_field: LightField, options: EstimateOptions, loaded: LoadedWeights) -> int:
    """Bytes at the peak: libraries, the views, and what grows with picture and tile (measured)."""
    kind = checkpoint.kind_of(loaded.network)
    per_px = {"fast": (5000, 200), "paper": (30000, 120)}[kind]
    kept = 4 * math.prod(light_field.grid) if options.keep_masks else 0
    picture = math.prod(light_field.resolution)
    growing = per_px[0] * _region_px(light_field, options, loaded) + (per_px[1] + kept) * picture
    return 350_000_000 + light_field.views.nbytes + growing


def _region_px(light_field: LightField, options: EstimateOptions, loaded: LoadedWeights) -> int:
    """Pixels that are computed at once."""
    network = loaded.network
    if loaded.compat == "authors":
        return authors.TILES_AT_ONCE * authors.TILE**2
    tile = options.tile or TILES[checkpoint.kind_of(network)]
    if isinstance(network, FastNet):
        margin, alignment = network.config.receptive_margin, ALIGNMENT
    else:
        margin, alignment = PAPER_MARGIN, 1
    tiles = plan_tiles(*light_field.resolution, tile, margin, alignment)
    regions = (part.region for part in tiles)
    return max(int((y.stop - y.start) * (x.stop - x.start)) for y, x in regions)
