"""One sweep: a light field at one shear through a network, tile by tile, pass by pass.

Device, dtype and memory end here: what comes back are tensors on the CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from oaccdepth.estimation.tiles import Tile, plan_tiles
from oaccdepth.evidence.sweep import ABSENT
from oaccdepth.lightfield import Array, FloatArray, LightField, as_luma
from oaccdepth.networks.authors import estimate_like_authors
from oaccdepth.networks.fast import ALIGNMENT, FastNet, PassState
from oaccdepth.networks.paper import OACCNet, PassResult

ReportProgress = Callable[[str, float], None]
Region = tuple[slice, slice]

PAPER_MARGIN = 32  # px: features reach 20, aggregation 8 and as much again in the second pass


@dataclass
class SweepPass:
    """What one pass gave for the whole picture; on the CPU."""

    disparity: Tensor  # (h, w) [px], without the shear
    masks: Tensor | None = None  # (u, v, h, w)


@dataclass
class Sweep:
    """What a sweep found."""

    passes: list[SweepPass]
    confidence: Tensor  # (h, w) in [0, 1]
    evidence: Tensor | None = None  # (l, h, w): probability of the levels


@dataclass
class Clock:
    """Seconds per stage; every reading waits for the device."""

    device: torch.device
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time until the block's work is really done."""
        start = time.perf_counter()
        yield
        synchronize(self.device)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def empty_cache(device: torch.device) -> None:
    """Give back what the device's allocator holds in reserve."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()


@dataclass
class Views:
    """Grey views of a region of the picture, sheared, on the network's device."""

    light_field: LightField
    shear: int
    margin: int
    device: torch.device
    grey: Callable[[Array], FloatArray] = as_luma
    _last: tuple[Region, Tensor] | None = None  # passes over a single tile ask again and again

    def region(self, region: Region) -> Tensor:
        """(1, u, v, h + 2*margin, w + 2*margin); ABSENT where there is no picture.

        A point of the centre view at (y, x) lies at (y - d*(u-uc), x - d*(v-vc)) of view (u, v);
        sampling shear*(u-uc) rows further up leaves a disparity of d - shear.
        """
        if self._last is None or self._last[0] != region:
            self._last = (region, self._read(region))
        return self._last[1]

    def _read(self, region: Region) -> Tensor:
        rows, columns = self.light_field.grid
        height, width = (side.stop - side.start + 2 * self.margin for side in region)
        grey = np.full((rows, columns, height, width), ABSENT, dtype=np.float32)
        for u in range(rows):
            top = region[0].start - self.margin - self.shear * (u - rows // 2)
            for v in range(columns):
                left = region[1].start - self.margin - self.shear * (v - columns // 2)
                self._fill(grey[u, v], u, v, top, left)
        return torch.from_numpy(grey)[None].to(self.device)

    def _fill(self, grey: np.ndarray, u: int, v: int, top: int, left: int) -> None:
        """Copy what one view has of a window whose corner is (top, left)."""
        height, width = self.light_field.resolution
        y, into_y = overlap(top, grey.shape[0], height)
        x, into_x = overlap(left, grey.shape[1], width)
        valid = self.light_field.valid
        if valid is not None and valid.ndim == 2 and not valid[u, v]:
            return
        picture = self.grey(self.light_field.views[u, v, y, x])
        if valid is not None and valid.ndim == 4:
            picture = np.where(valid[u, v, y, x], picture, np.float32(ABSENT))
        grey[into_y, into_x] = picture


def overlap(start: int, length: int, limit: int) -> tuple[slice, slice]:
    """What of start..start+length lies in 0..limit, and where that is in the window."""
    first = min(max(start, 0), limit)
    last = max(min(start + length, limit), first)
    return slice(first, last), slice(first - start, last - start)


class Canvas:
    """Tensors (…, h, w) of the whole picture, put together from tiles."""

    def __init__(self, height: int, width: int) -> None:
        self.size = (height, width)
        self.whole: dict[str, Tensor] = {}

    def put(self, name: str, tile: Tile, values: Tensor) -> None:
        """Keep the tile's part of a region's values."""
        if tile.kept == (slice(0, self.size[0]), slice(0, self.size[1])):
            self.whole[name] = values  # a single tile: nothing to copy
            return
        if name not in self.whole:
            self.whole[name] = values.new_empty(*values.shape[:-2], *self.size)
        self.whole[name][..., tile.kept[0], tile.kept[1]] = values[(..., *tile.kept_in_region)]

    def get(self, name: str, region: Region) -> Tensor:
        """A region's values."""
        return self.whole[name][(..., *region)]


@torch.inference_mode()
def sweep_fast(
    network: FastNet,
    views: Views,
    iterations: int,
    tile: int,
    clock: Clock,
    report: ReportProgress,
    keep_masks: bool,
    keep_evidence: bool,
) -> Sweep:
    """Every pass over all tiles before the next begins: margins need not add up over passes."""
    height, width = (-(-side // ALIGNMENT) * ALIGNMENT for side in views.light_field.resolution)
    tiles = plan_tiles(height, width, tile, network.config.receptive_margin, ALIGNMENT)
    canvas = Canvas(height, width)
    passes = []
    for number in range(iterations):
        is_last = number == iterations - 1
        name = "first pass" if number == 0 else "refinement"
        for index, part in enumerate(tiles):
            with clock.stage("views"):
                samples = views.region(part.region)
            with clock.stage(name):
                if number == 0:
                    state, context = network.first_pass(samples)
                    canvas.put("context", part, context)
                    canvas.put("logits", part, state.logits)
                    canvas.put("summary", part, state.summary)
                else:
                    state = network.refine(samples, *_known(canvas, part.region))
                    state = network.polish(samples, state) if is_last else state
                _keep(canvas, part, network, state, number, is_last, keep_masks)
            report("estimating", (number * len(tiles) + index + 1) / (iterations * len(tiles)))
        canvas.whole |= {"disparity": canvas.whole["next"], "spread": canvas.whole["next spread"]}
        canvas.whole = {n: t for n, t in canvas.whole.items() if not n.startswith("next")}
        passes.append(_finish_pass(canvas, views.light_field, keep_masks, number))
    evidence = torch.softmax(canvas.whole["logits"], 1)[0] if keep_evidence else None
    rows, columns = (slice(0, side) for side in views.light_field.resolution)
    return Sweep(
        passes,
        canvas.whole["confidence"][0, rows, columns].float().cpu(),
        None if evidence is None else evidence[:, rows, columns].float().cpu(),
    )


def _known(canvas: Canvas, region: Region) -> tuple[PassState, PassState, Tensor]:
    """What earlier passes found in a region: the last one, the first one, the context."""
    logits, summary = canvas.get("logits", region), canvas.get("summary", region)
    disparity, spread = canvas.get("disparity", region), canvas.get("spread", region)
    state = PassState(disparity, spread, logits, logits, summary)
    return state, state, canvas.get("context", region)


def _keep(
    canvas: Canvas,
    tile: Tile,
    network: FastNet,
    state: PassState,
    number: int,
    is_last: bool,
    keep_masks: bool,
) -> None:
    """Put what the next pass and the caller need on the canvas.

    The disparity under another name: neighbouring tiles still need that of the last pass.
    """
    canvas.put("next", tile, state.disparity)
    canvas.put("next spread", tile, state.spread)
    if is_last:
        canvas.put("confidence", tile, network.confidence(state, refined=number > 0))
    if keep_masks and state.mask is not None:
        canvas.put("mask", tile, state.mask.cpu())


def _finish_pass(
    canvas: Canvas, light_field: LightField, keep_masks: bool, number: int
) -> SweepPass:
    """A pass's disparity and masks without what lies beyond the picture, on the CPU."""
    (height, width), grid = light_field.resolution, light_field.grid
    disparity = canvas.whole["disparity"][0, :height, :width].float().cpu()
    masks = None
    if keep_masks and number == 0:  # the first pass takes every view for seen
        masks = torch.from_numpy(presence(light_field)).expand(*grid, height, width).float()
    elif keep_masks:
        masks = canvas.whole.pop("mask")[0, :, :height, :width].float()
        masks = masks.reshape(*grid, height, width)
    return SweepPass(disparity, masks)


def presence(light_field: LightField) -> np.ndarray:
    """1 where a view has a picture: (u, v, h, w), or (u, v, 1, 1)."""
    valid = light_field.valid
    if valid is None:
        return np.ones((*light_field.grid, 1, 1), dtype=np.float32)
    return (valid if valid.ndim == 4 else valid[:, :, None, None]).astype(np.float32)


@torch.inference_mode()
def sweep_paper(
    network: OACCNet,
    views: Views,
    iterations: int,
    tile: int,
    clock: Clock,
    report: ReportProgress,
    keep_masks: bool,
    keep_evidence: bool,
    compat: str = "",
) -> Sweep:
    """All passes over one tile after the other; with compat 'authors' exactly as they do it."""
    height, width = views.light_field.resolution
    views.margin = 0
    if compat == "authors":
        with clock.stage("passes"):
            grey = views.region((slice(0, height), slice(0, width)))[0].cpu()
            present = (grey >= 0).to(grey)
            # without a validity the numerics are exactly theirs
            validity = None if bool(present.all()) else present
            grey = grey.clamp(min=0)
            found = estimate_like_authors(network, grey, iterations, validity, progress=report)
    else:
        found = _paper_tiles(network, views, iterations, tile, clock, report)
    last = found[-1]
    return Sweep(
        [SweepPass(p.disparity[0], p.mask[0] if keep_masks else None) for p in found],
        last.confidence[0],
        last.probability[0] if keep_evidence else None,
    )


def _paper_tiles(
    network: OACCNet,
    views: Views,
    iterations: int,
    tile: int,
    clock: Clock,
    report: ReportProgress,
) -> list[PassResult]:
    height, width = views.light_field.resolution
    canvas = Canvas(height, width)
    tiles = plan_tiles(height, width, tile, PAPER_MARGIN, 1)
    names = ("disparity", "confidence", "mask", "probability")
    for index, part in enumerate(tiles):
        with clock.stage("views"):
            samples = views.region(part.region)
        with clock.stage("passes"):
            present = (samples >= 0).to(samples)
            passes = network.estimate_passes(samples.clamp(min=0), present, iterations)
            for number, result in enumerate(passes):
                for name in names:
                    canvas.put(f"{name} {number}", part, getattr(result, name).float().cpu())
        report("estimating", (index + 1) / len(tiles))
    return [
        PassResult(*(canvas.whole[f"{name} {number}"] for name in names))
        for number in range(iterations)
    ]
