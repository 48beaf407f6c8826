"""A light field through the fast network: block by block, and in every block pass by pass.

A block is as large as memory allows for its number of levels, whatever the device and the tile:
most pictures are one. Semi-global aggregation looks along whole lines of a block, so blocks
overlap; tiles within a block only save memory and change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oaccdepth import evidence
from oaccdepth.compiling import compiling_meanwhile
from oaccdepth.estimation.allocator import keeping_memory
from oaccdepth.estimation.device import Clock
from oaccdepth.estimation.found import Found, FoundPass
from oaccdepth.estimation.tiles import Region, Tile, overlap, plan_tiles, put
from oaccdepth.evidence import plain
from oaccdepth.evidence.views import ABSENT, Views, thin_out, voters
from oaccdepth.evidence.visibility import visible
from oaccdepth.lightfield import FloatArray, LightField, as_float
from oaccdepth.networks.answers import Answer
from oaccdepth.networks.fast import ALIGNMENT, RECEPTIVE_MARGIN, FastNet
from oaccdepth.progress import ReportProgress, share

BLOCK_VOTES = 34 * 600 * 600  # levels times pixels of a block, at the most: about a gigabyte
MEASURED_VIEWS = 8  # to measure the noise on
VIEWS_AT_ONCE = 8  # when masks are made: more take memory, fewer time
MORE_SQUARINGS = 2  # of a mask, Eq. 8, where something nearer may be in the way
NO_MASK = -1  # squarings that leave 1 wherever there is a sample
USUAL_WIDTH = 3.0  # px of levels that the first pass can do with
LEVEL_MARGIN = 1.0  # px beyond a narrower range that it looks at, at the most
LEAST_MARGIN = 0.25  # and beyond any
BLOCK_MARGIN = 96  # px around what is kept of a block: beyond, paths hardly matter

# Their time over that of a refinement, measured on two cores: 9x9 views of 512x512 px.
FIRST_PASS, MASKS = 1.4, 0.12
CUTTING = 0.05  # share of cutting the views out


@dataclass(frozen=True)
class Wanted:
    """What is to be found, and kept."""

    levels: Tensor  # (l) [px]
    iterations: int
    tile: int  # px
    reference: tuple[int, int]
    keep_masks: bool = False
    keep_evidence: bool = False
    all_vote: bool = False


def plan_levels(low: float, high: float, step: float) -> Tensor:
    """Levels that cover a range, in pairs; the even ones are multiples of two steps.

    And a margin around it: the first pass tells a best level by the worse ones beside it.
    """
    missing = (USUAL_WIDTH - (high - low)) / 2
    margin = min(max(missing, LEAST_MARGIN), LEVEL_MARGIN)
    low, high = low - margin, high + margin
    first = math.floor((low - step / 2) / (2 * step))
    last = math.ceil((high + step) / (2 * step))  # the last level is a step below
    return torch.arange(2 * first, 2 * max(last, first + 2)) * step


def cut_blocks(light_field: LightField, num_levels: int) -> list[Tile]:
    """Blocks of a picture: as large as their number of levels allows."""
    side = int(math.sqrt(BLOCK_VOTES / num_levels)) // ALIGNMENT * ALIGNMENT
    return plan_tiles(*light_field.resolution, max(side, 64), BLOCK_MARGIN, ALIGNMENT)


@torch.inference_mode()
def run_blocks(
    network: FastNet, light_field: LightField, wanted: Wanted, clock: Clock, report: ReportProgress
) -> Found:
    """Every pass over every block."""
    blocks = cut_blocks(light_field, len(wanted.levels))
    found = Found()
    with keeping_memory(), first_use(clock.device):
        for index, block in enumerate(blocks):
            part = share(report, index / len(blocks), (index + 1) / len(blocks))
            run_block(network, light_field, wanted, block, found, clock, part)
    return found


def first_use(device: torch.device) -> AbstractContextManager[None]:
    """On a CPU: if nothing is compiled yet, two processes compile."""
    if device.type != "cpu":
        return nullcontext()
    from oaccdepth.evidence import sample_kernels

    return compiling_meanwhile("oaccdepth.evidence.first_use", sample_kernels.look)


def run_block(
    network: FastNet,
    light_field: LightField,
    wanted: Wanted,
    block: Tile,
    found: Found,
    clock: Clock,
    report: ReportProgress,
) -> None:
    """Every pass over one block; what is kept of it goes into `found`."""
    with clock.stage("views"):
        chosen = None if wanted.all_vote else voters
        views = cut_views(light_field, wanted, block.region, clock.device, chosen)
        levels = wanted.levels.to(clock.device)
    report("estimating", CUTTING)
    masks = MASKS * wanted.keep_masks
    whole = FIRST_PASS + wanted.iterations - 1 + masks * wanted.iterations
    keep = Keeper(found, block, light_field.resolution)
    tiles = in_tiles(wanted.tile, views.size)
    few = partial(choose_later, network, chosen)
    later = partial(cut_views, light_field, wanted, block.region, clock.device, few)
    passes = network.passes(views, levels, wanted.iterations, tiles, later)
    del views  # as soon as the first pass has seen them, most are not needed any more
    for number in range(wanted.iterations):
        with clock.stage("first pass" if number == 0 else "refinement"):
            answer = next(passes)
        # Where the views say nothing, surfaces are continued, at times beyond what was searched.
        answer = replace(answer, disparity=answer.disparity.clamp(levels[0], levels[-1]))
        done = FIRST_PASS + number + masks * number
        report("estimating", CUTTING + (1 - CUTTING) * done / whole)
        keep.disparity(number, answer)
        if number == 0 and wanted.keep_evidence:
            keep.evidence(answer)
        if wanted.keep_masks:
            with clock.stage("masks"):
                views = cut_views(light_field, wanted, block.region, clock.device)
                keep.masks(number, light_field, wanted, views, answer, network.config.squarings)
                del views
            report("estimating", CUTTING + (1 - CUTTING) * (done + masks) / whole)
    keep.confidence(network.confidence(answer)[0])


def choose_later(
    network: FastNet, choose: Callable[[Tensor], Tensor] | None, steps: Tensor
) -> Tensor:
    """Numbers of the views that later passes look at: some of those that vote."""
    voting = torch.arange(len(steps)) if choose is None else choose(steps)
    return voting[network.for_later(steps[voting])]


def cut_views(
    light_field: LightField,
    wanted: Wanted,
    region: Region,
    device: torch.device,
    choose: Callable[[Tensor], Tensor] | None = None,
) -> Views:
    """The views of a region with as much around it as the levels reach; ABSENT beyond the frame.

    All of them, or those that `choose` takes by their steps.
    """
    places = light_field.camera_places.reshape(-1, 2)
    columns = light_field.grid[1]
    number = wanted.reference[0] * columns + wanted.reference[1]
    steps = (places[number] - places).astype(np.float32)
    missing = {u * columns + v for u, v in light_field.missing_views}
    others = [k for k in range(len(places)) if k != number and k not in missing]
    if choose is not None:
        others = [others[k] for k in choose(torch.from_numpy(steps[others])).tolist()]
    size = tuple(-(-(side.stop - side.start) // ALIGNMENT) * ALIGNMENT for side in region)
    is_whole = all(
        side.start == 0 and side.stop >= limit
        for side, limit in zip(region, light_field.resolution, strict=True)
    )
    reach = float(wanted.levels.abs().max()) + 1
    margin = 0 if is_whole else math.ceil(reach * float(np.abs(steps).max())) + 1
    channels = light_field.views.shape[-1]
    wide = (size[0] + 2 * margin, size[1] + 2 * margin)
    pictures = torch.empty(len(others), channels, *wide)
    corner = (region[0].start - margin, region[1].start - margin)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        cut = partial(fill, light_field=light_field, corner=corner)
        list(pool.map(cut, pictures.numpy(), [divmod(k, columns) for k in others]))
    reference = torch.empty(channels, *size)
    fill(reference.numpy(), wanted.reference, light_field, (region[0].start, region[1].start))
    placed = torch.from_numpy(steps[others])
    return Views(pictures, reference, placed, margin).to(device)


def fill(
    into: FloatArray, view: tuple[int, int], light_field: LightField, corner: tuple[int, int]
) -> None:
    """Copy what one view has of a window (c, h, w) whose corner is given; ABSENT elsewhere."""
    height, width = light_field.resolution
    y, into_y = overlap(corner[0], into.shape[1], height)
    x, into_x = overlap(corner[1], into.shape[2], width)
    inner = into[:, into_y, into_x]
    if inner.shape != into.shape:
        into[:] = ABSENT
    as_float(light_field.views[(*view, y, x)].transpose(2, 0, 1), out=inner)
    valid = light_field.valid
    if valid is not None and valid.ndim == 4:
        inner[:, ~valid[(*view, y, x)]] = ABSENT


def in_tiles(tile: int, size: tuple[int, int]) -> Callable[..., Any]:
    """Run a step of the network on tiles with all the context they depend on."""
    tiles = plan_tiles(*size, tile, RECEPTIVE_MARGIN, ALIGNMENT)

    def run(step: Callable[..., tuple[Tensor, ...]], *maps: Tensor) -> tuple[Tensor, ...]:
        if len(tiles) == 1:
            return step(*maps)
        wholes: tuple[Tensor, ...] = ()
        for part in tiles:
            values = step(*(one[(..., *part.region)] for one in maps))
            pairs = zip_longest(wholes, values)
            wholes = tuple(put(whole, value, part, size) for whole, value in pairs)
        return wholes

    return run


class Keeper:
    """Puts what a block found into its place of the whole picture."""

    def __init__(self, found: Found, block: Tile, resolution: tuple[int, int]) -> None:
        self.found, self.block, self.resolution = found, block, resolution

    def _put(self, whole: Tensor | None, values: Tensor) -> Tensor:
        return put(whole, values.float().cpu(), self.block, self.resolution)

    def disparity(self, number: int, answer: Answer) -> None:
        """What a pass answered."""
        if number == len(self.found.passes):
            self.found.passes.append(FoundPass(torch.empty(self.resolution)))
        self._put(self.found.passes[number].disparity, answer.disparity[0])

    def confidence(self, sure: Tensor) -> None:
        """How sure the last pass is."""
        self.found.confidence = self._put(self.found.confidence, sure)

    def evidence(self, answer: Answer) -> None:
        """What the first pass believes of every level."""
        likely = torch.softmax(answer.logits[0], 0)
        self.found.evidence = self._put(self.found.evidence, likely)

    def masks(
        self,
        number: int,
        light_field: LightField,
        wanted: Wanted,
        views: Views,
        answer: Answer,
        squarings: int,
    ) -> None:
        """What each view sees of a pass's answer: 0 for missing views, 1 for the reference.

        The map says where something nearer may be in the way, and the colours whether it is.
        """
        rows, columns = light_field.grid
        masks = torch.zeros(rows * columns, *views.size)
        own = wanted.reference[0] * columns + wanted.reference[1]
        missing = {u * columns + v for u, v in light_field.missing_views}
        others = [k for k in range(len(masks)) if k != own and k not in missing]
        some = views.only(thin_out(views.steps, MEASURED_VIEWS))
        tolerance = plain.noise_of(some, answer.disparity[0])
        squarings = NO_MASK if squarings == NO_MASK else squarings + MORE_SQUARINGS
        is_free = visible(views, answer.disparity[0]).bool()
        for first in range(0, len(others), VIEWS_AT_ONCE):
            places = others[first : first + VIEWS_AT_ONCE]
            some = views.only(torch.arange(first, first + len(places)))
            difference = evidence.differences(some, answer.disparity[0])
            channels = len(views.reference)
            there, seen = (
                plain.masks_of(difference, channels, times, tolerance)
                for times in (NO_MASK, squarings)
            )
            free = is_free[first : first + len(places)]
            masks[places] = torch.where(free, there, seen).cpu()
        masks[own] = (views.reference[0] <= 1).float()
        known = self.found.passes[number]
        flat = None if known.masks is None else known.masks.flatten(0, 1)
        known.masks = self._put(flat, masks).view(rows, columns, *self.resolution)
