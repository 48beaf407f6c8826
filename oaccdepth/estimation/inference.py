"""estimate(): LightField to DisparityMap. Chooses device, range and tiles; opens only weights."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from oaccdepth.disparity import DisparityMap, Pass, Provenance
from oaccdepth.errors import DeviceUnavailable, InvalidLightField, InvalidOption, is_out_of_memory
from oaccdepth.estimation.blocks import Wanted, plan_levels, run_blocks
from oaccdepth.estimation.device import DTYPES, Clock, empty_cache, half_is_quick
from oaccdepth.estimation.disparity_range import Coverage, choose_coverage
from oaccdepth.estimation.exposure import normalise_exposure
from oaccdepth.estimation.found import Found, FoundPass, fill_absent, fill_unknown
from oaccdepth.estimation.merging import merge_sweeps
from oaccdepth.estimation.opposite import correct
from oaccdepth.estimation.steps import cover_times, in_longer_steps, surplus, times
from oaccdepth.estimation.sweeps import GreyViews, plan_shears, sweep_paper
from oaccdepth.estimation.weights import LoadedWeights, load_network
from oaccdepth.estimation.widening import MOST_TIMES, can_be_widened, say_widened, widen
from oaccdepth.lightfield import Camera, FloatArray, LightField
from oaccdepth.networks.fast import FastNet
from oaccdepth.networks.paper import OACCNet, occlusion_mask
from oaccdepth.options import EstimateOptions, Range
from oaccdepth.progress import AGAIN, FIRST_SHARE, NEXT_SHARE, ReportProgress, ignore, share
from oaccdepth.version import __version__

log = logging.getLogger(__name__)

SMALLEST_SIDE = 16  # px: below, the hourglass has nothing left at an eighth of the size
SMALLEST_TILE = 64
AT_INFINITY = 0.1  # px less than the disparity of infinity that is still taken for it
FEWEST_BEYOND = 0.01  # share of the picture that must be beyond infinity to be mentioned
SAME_PICTURE = "All views are the same picture: nothing moves, so every disparity is 0."
NO_INFORMATION = (
    "The views say nothing about disparity: no texture, or nothing but noise. "
    "The map is flat and its confidence 0."
)
TILES = {"fast": 576, "paper": 256}  # px on a side: a 512 px picture is one tile for `fast`


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be estimated, with which weights, and where to search."""

    light_field: LightField
    loaded: LoadedWeights
    options: EstimateOptions
    coverage: Coverage
    unit: float = 1.0  # its disparities are so many times those of the capture

    @property
    def captured_range(self) -> Range:
        """What is searched [px per step of the capture]."""
        return times(self.coverage.disparity_range, 1 / self.unit)

    @property
    def iterations(self) -> int:
        """Number of passes."""
        return self.options.iterations or self.loaded.network.config.iterations

    @property
    def tile(self) -> int:
        """Width and height of a tile [px], if memory allows."""
        return self.options.tile or TILES[self.loaded.kind]

    @property
    def levels(self) -> Tensor:
        """Disparities that the network compares [px]."""
        network = self.loaded.network
        if isinstance(network, FastNet):
            return plan_levels(*self.coverage.disparity_range, network.config.level_step)
        return torch.tensor(network.config.levels) + self.shears[0]

    @property
    def shears(self) -> tuple[int, ...]:
        """One for each sweep of the paper's network; the fast one needs none."""
        network = self.loaded.network
        if isinstance(network, FastNet):
            return (0,)
        return plan_shears(self.coverage.disparity_range, network.config.reach)


def estimate(
    light_field: LightField,
    options: EstimateOptions = EstimateOptions(),
    *,
    network: LoadedWeights | FastNet | OACCNet | None = None,
    progress: ReportProgress | None = None,
) -> DisparityMap:
    """Estimate the disparity of the centre view, or of the light field's reference view.

    Parameters
    ----------
    network
        Weights that are loaded already; `options.weights` and `options.device` are then not used.
    progress
        Called with the stage and how much of it is done, 0 to 1.
    """
    started = time.perf_counter()
    loaded = network or load_network(options.weights, options.device)
    if not isinstance(loaded, LoadedWeights):
        loaded = LoadedWeights(loaded)
    light_field = replace(light_field, reference=options.reference or light_field.reference)
    check_size(light_field, loaded)
    clock = Clock(loaded.device)
    with clock.stage("range"):
        own, coverage = cover_own(light_field, loaded, options)
        alike, remark = normalise_exposure(own, coverage.disparity_range)
    task = in_known_steps(Task(alike, loaded, options, coverage), light_field)
    log.info(_intention(task))
    if coverage.source == "none":
        found, notes = nothing_found(task), [NO_INFORMATION]
    else:
        task, found, notes = find(task, clock, progress or ignore)
    notes += [remark] if remark else []
    clock.seconds["total"] = time.perf_counter() - started
    made_with = describe(task, clock, notes)
    log.info("Seconds: " + ", ".join(f"{n} {s:.1f}" for n, s in made_with.seconds.items()) + ".")
    result = as_map(found, task, made_with)
    return result if task.unit == 1 else result.per_step(1 / task.unit, light_field.camera)


def cover_own(
    light_field: LightField, loaded: LoadedWeights, options: EstimateOptions
) -> tuple[LightField, Coverage]:
    """The light field in steps between the views that are used, and what to search in these."""
    ends = options.disparity_range
    if ends is not None:
        options = replace(options, disparity_range=times(ends, light_field.step))
    own = light_field.in_own_steps()
    return own, cover(own, loaded, options)


def in_known_steps(task: Task, captured: LightField) -> Task:
    """The same in steps that our network knows; the camera stays that of the capture."""
    own, network = task.light_field, task.loaded.network
    factor = surplus(own) if isinstance(network, FastNet) else 1
    return replace(
        task,
        light_field=replace(in_longer_steps(own, factor), camera=captured.camera),
        coverage=cover_times(task.coverage, factor),
        unit=captured.step * factor,
    )


def find(task: Task, clock: Clock, report: ReportProgress) -> tuple[Task, Found, list[str]]:
    """Search; fill in what is not known, and say what is remarkable."""
    task, found, notes = search(task, clock, report)
    light_field = task.light_field
    is_ours = isinstance(task.loaded.network, FastNet)  # the paper's answers stay as they are
    if is_ours:
        correct_small_array(task, found)
    fill_absent(found, light_field)
    if is_ours and not fill_unknown(found):
        return task, nothing_found(task), [*notes, NO_INFORMATION]
    disparity = _array(found.passes[-1].disparity) / np.float32(task.unit)
    notes += remark_on_depth(disparity, light_field.camera)
    notes += [SAME_PICTURE] if are_the_same(light_field) else []
    return task, found, notes


def correct_small_array(task: Task, found: Found) -> None:
    """Ask opposite views of a 3x3 array, in which fractions of a pixel matter most."""
    assert found.confidence is not None
    last = found.passes[-1]
    corrected = correct(task.light_field, _array(last.disparity), _array(found.confidence))
    last.disparity = torch.from_numpy(corrected).clamp(task.levels[0], task.levels[-1])


def search(task: Task, clock: Clock, report: ReportProgress) -> tuple[Task, Found, list[str]]:
    """Run, and again with a wider range if the map reaches beyond the one that was found."""
    first = task
    for number, part in enumerate(parts_of_progress(task, report)):
        coverage = task.coverage
        found, notes = attempt(task, clock, part)
        wider = widen_for(task, found, number)
        if wider is None:
            break
        task = replace(task, coverage=wider)
        log.info("The map reaches the end of that. " + _intention(task))
    task = replace(task, coverage=coverage)  # the last one that was searched
    if coverage is not first.coverage:
        ends = first.captured_range, task.captured_range
        notes.append(say_widened(*ends, is_enough=wider is None))
    return task, found, notes


def parts_of_progress(task: Task, report: ReportProgress) -> Iterator[ReportProgress]:
    """A callback for each attempt: the first leaves something for those that may follow."""
    if not may_widen(task):
        yield report
        return
    start, end = 0.0, FIRST_SHARE
    yield share(report, start, end)
    for number in range(MOST_TIMES):
        start, end = end, end + NEXT_SHARE * (1 - end)
        stage = f"{AGAIN}, try {number + 2}"
        report(stage, start)
        yield share(partial(_as_stage, report, stage), start, end)


def _as_stage(report: ReportProgress, stage: str, _: str, fraction: float) -> None:
    report(stage, fraction)


def attempt(task: Task, clock: Clock, report: ReportProgress) -> tuple[Found, list[str]]:
    """Run once, with as much memory as there is."""
    return with_less_memory(lambda tile: run(task, tile, clock, report), task)


def may_widen(task: Task) -> bool:
    """Whether the range may turn out to be too narrow, and the network can tell."""
    return isinstance(task.loaded.network, FastNet) and can_be_widened(task.coverage)


def widen_for(task: Task, found: Found, number: int) -> Coverage | None:
    """A wider range, if the compact network's map reaches beyond its own after so many tries."""
    if not may_widen(task):
        return None
    assert found.confidence is not None
    disparity = found.passes[-1].disparity
    return widen(task.coverage, task.levels, disparity, found.confidence, number)


def are_the_same(light_field: LightField) -> bool:
    """Whether all views are one picture, which is more often a mistake than a far scene."""
    views, missing = light_field.views, set(light_field.missing_views)
    there = [view for view in np.ndindex(*light_field.grid) if view not in missing]
    first = views[there[0]]
    return all(np.array_equal(views[view], first) for view in there[1:])


def _intention(task: Task) -> str:
    """Say what is going to be done, for `-v`."""
    low, high = task.captured_range
    return (
        f"Weights {task.loaded.name} on {task.loaded.device}, {task.iterations} passes, "
        f"tiles of {task.tile} px; "
        f"disparities from {low:.1f} to {high:.1f} px ({task.coverage.source})."
    )


def cover(light_field: LightField, loaded: LoadedWeights, options: EstimateOptions) -> Coverage:
    """What to search; with the authors' weights, whose program never shears, all they reach."""
    network, wanted = loaded.network, options.disparity_range
    if wanted is None and loaded.compat == "authors" and isinstance(network, OACCNet):
        reach = float(network.config.reach)
        return Coverage((-reach, reach), "weights")
    return choose_coverage(light_field, wanted)


def check_size(light_field: LightField, loaded: LoadedWeights) -> None:
    """Refuse light fields that the network cannot handle."""
    name = light_field.source or "light field"
    height, width = light_field.resolution
    rows, columns = light_field.grid
    if min(height, width) < SMALLEST_SIDE:
        raise InvalidLightField(
            f"{name}: views are {width}x{height} px, smaller than "
            f"the smallest tile, {SMALLEST_SIDE}x{SMALLEST_SIDE}. Use larger pictures."
        )
    if rows * columns - len(light_field.missing_views) < 2:
        raise InvalidLightField(
            f"{name}: a single view. Disparity needs two views or more of the same scene."
        )
    if loaded.kind == "paper" and light_field.reference_view != (rows // 2, columns // 2):
        raise InvalidOption("--reference: these weights work only for the centre view. Use fast.")
    if loaded.kind == "paper" and min(rows, columns) < 3:
        raise InvalidLightField(
            f"{name}: {rows}x{columns} views, but these weights need 3x3 or more. "
            "Use --weights fast."
        )


def remark_on_depth(disparity: FloatArray, camera: Camera | None) -> list[str]:
    """Say so if the camera leaves a part of the picture without a finite depth."""
    if camera is None:
        return []
    # What is infinitely far away may be a little wrong.
    depth = camera.depth_mm(disparity + np.float32(AT_INFINITY), max(disparity.shape))
    share = float(np.isinf(depth).mean())
    if share < FEWEST_BEYOND:
        return []
    disparity_of_infinity = "0 px, as the cameras are parallel"
    if camera.focus_mm > 0:
        far = camera.disparity_px(np.full((1, 1), np.inf, np.float32), max(disparity.shape))
        disparity_of_infinity = f"{far.item():.2f} px"
    return [
        f"{100 * share:.0f} % of the picture has no finite depth: its disparity is less than that "
        f"of infinity ({disparity_of_infinity}). Check --focus-distance-mm, --baseline-mm and the "
        "focal length."
    ]


def nothing_found(task: Task) -> Found:
    """A flat map that nobody should trust: the views say nothing."""
    grid, size = task.light_field.grid, task.light_field.resolution
    flat = torch.zeros(size)
    masks = torch.ones(*grid, *size) if task.options.keep_masks else None
    return Found([FoundPass(flat, masks) for _ in range(task.iterations)], flat)


def with_less_memory(work: Callable[[int], Found], task: Task) -> tuple[Found, list[str]]:
    """Do the work with tiles of a size; a device that runs out of memory gets smaller ones."""
    notes: list[str] = []
    tile, loaded, precision = task.tile, task.loaded, task.options.precision
    dtype = choose_precision(precision, loaded)
    if precision not in ("auto", dtype_name(dtype)):
        notes.append(f"--precision {precision} is slow on this CPU; computed in fp32.")
    half = dtype != torch.float32
    while True:
        try:
            with torch.autocast(loaded.device.type, dtype) if half else nullcontext():
                return work(tile), notes
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            tile //= 2
            if tile < SMALLEST_TILE:
                instead = "smaller views" if loaded.device.type == "cpu" else "--device cpu"
                raise DeviceUnavailable(
                    f"--device {loaded.device}: out of memory even with tiles of {2 * tile} px. "
                    f"Use {instead}."
                ) from error
            empty_cache(loaded.device)
            notes.append(f"The device ran out of memory: tiles halved to {tile} px.")
            log.warning(notes[-1])


def choose_precision(name: str, loaded: LoadedWeights) -> torch.dtype:
    """What the network computes in; the paper's network in fp32, unless a GPU is told otherwise."""
    if loaded.device.type != "cpu":
        return DTYPES.get(name, torch.float32)
    is_quick = name in ("auto", "bf16") and loaded.kind == "fast" and half_is_quick()
    return torch.bfloat16 if is_quick else torch.float32


def dtype_name(dtype: torch.dtype) -> str:
    """Its name among the options."""
    return next(name for name, known in DTYPES.items() if known == dtype)


def run(task: Task, tile: int, clock: Clock, report: ReportProgress) -> Found:
    """The network at hand over the whole picture."""
    network, light_field, options = task.loaded.network, task.light_field, task.options
    if isinstance(network, OACCNet):
        return run_paper(task, network, tile, clock, report)
    wanted = Wanted(
        task.levels,
        task.iterations,
        tile,
        light_field.reference_view,
        options.keep_masks,
        options.keep_evidence,
        options.all_vote,
    )
    return run_blocks(network, light_field, wanted, clock, report)


def run_paper(
    task: Task, network: OACCNet, tile: int, clock: Clock, report: ReportProgress
) -> Found:
    """One sweep for each shear, and the best of them for each pixel."""
    light_field, shears, compat = task.light_field, task.shears, task.loaded.compat
    kept = (task.options.keep_masks, task.options.keep_evidence)
    sweeps: list[Found] = []
    for number, shear in enumerate(shears):
        views = GreyViews(light_field, shear, clock.device)
        part = share(report, number / len(shears), (number + 1) / len(shears))
        sweeps.append(
            sweep_paper(network, views, task.iterations, tile, clock, part, *kept, compat)
        )
    with clock.stage("merging"):
        return merge_sweeps(light_field, sweeps, shears)


def describe(task: Task, clock: Clock, notes: list[str]) -> Provenance:
    """How the map was made."""
    light_field, loaded = task.light_field, task.loaded
    own = {"weights": loaded.name, "iterations": task.iterations}
    return Provenance(
        version=__version__,
        weights=loaded.name,
        weights_sha256=loaded.sha256,
        options=asdict(task.options) | own,
        device=str(clock.device),
        seconds={stage: round(seconds, 3) for stage, seconds in clock.seconds.items()},
        input={
            "source": light_field.source,
            "format": light_field.format,
            "grid": list(light_field.grid),
            "resolution": list(light_field.resolution),
            "notes": list(light_field.notes),
        },
        disparity_range=task.coverage.disparity_range,
        range_source=task.coverage.source,
        notes=tuple(notes),
    )


def as_map(found: Found, task: Task, made_with: Provenance) -> DisparityMap:
    """Tensors to the arrays that the caller gets."""
    passes = tuple(
        Pass(_array(part.disparity), None if part.masks is None else _array(part.masks))
        for part in found.passes
    )
    assert found.confidence is not None
    evidence = found.evidence if task.options.keep_evidence else None
    return DisparityMap(
        disparity=passes[-1].disparity,
        confidence=_array(found.confidence),
        masks=passes[-1].masks,
        passes=passes if task.options.keep_passes else (),
        evidence=None if evidence is None else _array(evidence),
        levels=() if evidence is None else tuple(task.levels.tolist()),
        camera=task.light_field.camera,
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
    views = GreyViews(light_field, 0, torch.device("cpu"))
    height, width = light_field.resolution
    grey = views.region((slice(0, height), slice(0, width)))
    present = (grey >= 0).to(grey)
    found = torch.from_numpy(np.nan_to_num(disparity) * np.float32(light_field.step))[None]
    return _array(occlusion_mask(grey.clamp(min=0), found, decay, present)[0])
