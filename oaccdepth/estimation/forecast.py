"""The time and memory that an estimate will need, foreseen for a small part of its cost."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

from oaccdepth.estimation.blocks import cut_blocks
from oaccdepth.estimation.device import Clock
from oaccdepth.estimation.disparity_range import Coverage
from oaccdepth.estimation.inference import Task, check_size, cover_own, in_known_steps, run
from oaccdepth.estimation.steps import cover_times
from oaccdepth.estimation.sweeps import PAPER_MARGIN
from oaccdepth.estimation.tiles import Region, plan_tiles
from oaccdepth.estimation.weights import LoadedWeights, load_network
from oaccdepth.lightfield import LightField
from oaccdepth.networks import authors
from oaccdepth.networks.fast import ALIGNMENT, RECEPTIVE_MARGIN
from oaccdepth.options import EstimateOptions
from oaccdepth.progress import ignore

TIMED_PART = 5  # the part that is timed has a fifth of the picture's sides, 1/25 of its area
TIMED_SIDES = (32, 160)  # px: least and largest side of that part
LIBRARIES = 402_000_000  # bytes: the process without a light field
# Bytes at the peak, measured: of each level and pixel of a block, of a tile; of each pixel.
BLOCK_BYTES = 23
TILE_BYTES = 32
MAP_BYTES = 120
PAPER_TILE_BYTES = 30_000  # of each pixel of a tile


@dataclass(frozen=True)
class Plan:
    """The time and memory that an estimate needs."""

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
    loaded = network or load_network(options.weights, options.device)
    light_field = replace(light_field, reference=options.reference or light_field.reference)
    check_size(light_field, loaded)
    started = time.perf_counter()
    own, coverage = cover_own(light_field, loaded, options)
    seconds = time.perf_counter() - started
    task = in_known_steps(Task(own, loaded, options, coverage), light_field)
    if coverage.source != "none":  # else the network is not asked
        seconds += foresee_seconds(task)
    return Plan(seconds, foresee_memory(task), cover_times(task.coverage, 1 / task.unit))


def foresee_seconds(task: Task) -> float:
    """Seconds of all passes, from those over a small part of the picture."""
    height, width = task.light_field.resolution
    least, most = TIMED_SIDES
    side = max(least, min(most, int(math.sqrt(height * width)) // TIMED_PART))
    _seconds(replace(task, light_field=middle(task.light_field, least)))  # prepares kernels
    side = side // ALIGNMENT * ALIGNMENT
    part = replace(task, light_field=middle(task.light_field, side))
    return _seconds(part) * work_px(task) / work_px(part)


def middle(light_field: LightField, side: int) -> LightField:
    """The middle of all views: pictures may lack their corners."""
    rows, columns = (
        slice(max(0, (length - side) // 2), max(0, (length - side) // 2) + side)
        for length in light_field.resolution
    )
    valid = light_field.valid
    if valid is not None and valid.ndim == 4:
        valid = valid[:, :, rows, columns]
        if not valid[light_field.reference_view].any():
            valid = None  # as if all were there: it is only about time
    return replace(light_field, views=light_field.views[:, :, rows, columns], valid=valid)


def _seconds(task: Task) -> float:
    """How long all passes take."""
    clock = Clock(task.loaded.device)
    with clock.stage("all"):
        run(task, task.tile, clock, ignore)
    return clock.seconds["all"]


def regions(task: Task) -> list[tuple[int, list[int]]]:
    """Pixels of every block, and of every tile in it."""
    height, width = task.light_field.resolution
    if task.loaded.compat == "authors":
        kept = authors.TILE // 2
        count = math.ceil(height / kept) * math.ceil(width / kept)
        return [(height * width, [authors.TILE**2] * count)]
    if task.loaded.kind == "paper":
        tiles = plan_tiles(height, width, task.tile, PAPER_MARGIN, 1)
        return [(height * width, [_area(part.region) for part in tiles])]
    found = []
    for block in cut_blocks(task.light_field, len(task.levels)):
        height, width = (side.stop - side.start for side in block.region)
        tiles = plan_tiles(height, width, task.tile, RECEPTIVE_MARGIN, ALIGNMENT)
        found.append((height * width, [_area(part.region) for part in tiles]))
    return found


def work_px(task: Task) -> int:
    """Pixels that the network sees, margins of tiles and blocks included."""
    return sum(sum(tiles) for _, tiles in regions(task))


def foresee_memory(task: Task) -> int:
    """Bytes at the peak: libraries, views, what grows with blocks, tiles and the picture."""
    light_field = task.light_field
    num_views, picture = math.prod(light_field.grid), math.prod(light_field.resolution)
    kept = MAP_BYTES + (4 * num_views if task.options.keep_masks else 0)
    fixed = LIBRARIES + light_field.views.nbytes + kept * picture
    block, tiles = max(regions(task))
    if task.loaded.kind == "paper":
        at_once = authors.TILES_AT_ONCE if task.loaded.compat == "authors" else 1
        return fixed + PAPER_TILE_BYTES * at_once * max(tiles)
    levels, views = len(task.levels), 4 * num_views * light_field.views.shape[-1]
    return int(fixed + (views + BLOCK_BYTES * levels) * block + TILE_BYTES * levels * max(tiles))


def _area(region: Region) -> int:
    return int((region[0].stop - region[0].start) * (region[1].stop - region[1].start))
