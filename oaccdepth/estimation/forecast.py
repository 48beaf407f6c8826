"""The time and memory that an estimate will need, foreseen for a small part of its cost."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

from oaccdepth.estimation.blocks import cut_blocks, plan_levels
from oaccdepth.estimation.clock import Clock
from oaccdepth.estimation.disparity_range import Coverage
from oaccdepth.estimation.inference import TILES, check_size, cover, per_step, run
from oaccdepth.estimation.sweeps import PAPER_MARGIN
from oaccdepth.estimation.tiles import Region, plan_tiles
from oaccdepth.estimation.weights import LoadedWeights, load_network
from oaccdepth.lightfield import LightField
from oaccdepth.networks import authors
from oaccdepth.networks.fast import ALIGNMENT, RECEPTIVE_MARGIN, FastNet
from oaccdepth.options import EstimateOptions
from oaccdepth.progress import ignore

TIMED_PART = 5  # the part that is timed has a fifth of the picture's sides, 1/25 of its area
TIMED_SIDES = (32, 160)  # px: not smaller nor larger than that
LIBRARIES = 402_000_000  # bytes: the process without a light field
# Bytes at the peak, measured: of each level and pixel of a block, of a tile; of each pixel.
BLOCK_BYTES = 23
TILE_BYTES = 32
MAP_BYTES = 120
PAPER_TILE_BYTES = 30_000  # of each pixel of a tile


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
    loaded = network or load_network(options.weights, options.device)
    light_field = replace(light_field, reference=options.reference or light_field.reference)
    if light_field.step != 1:
        step = light_field.step
        own = plan(light_field.in_own_steps(), per_step(options, step), network=loaded)
        low, high = own.coverage.disparity_range
        coverage = replace(own.coverage, disparity_range=(low / step, high / step))
        return replace(own, coverage=coverage)
    check_size(light_field, loaded)
    started = time.perf_counter()
    coverage = cover(light_field, loaded, options)
    seconds = time.perf_counter() - started
    if coverage.source != "none":  # else the network is not asked
        seconds += foresee_seconds(light_field, options, loaded, coverage)
    return Plan(seconds, foresee_memory(light_field, options, loaded, coverage), coverage)


def foresee_seconds(
    light_field: LightField, options: EstimateOptions, loaded: LoadedWeights, coverage: Coverage
) -> float:
    """Seconds of all passes, from those over a small part of the picture."""
    height, width = light_field.resolution
    least, most = TIMED_SIDES
    side = max(least, min(most, int(math.sqrt(height * width)) // TIMED_PART))
    one = replace(coverage, shears=coverage.shears[:1])
    _seconds(middle(light_field, least), options, loaded, one)  # the first run prepares kernels
    part = middle(light_field, side // ALIGNMENT * ALIGNMENT)
    work = work_px(light_field, options, loaded, coverage) / work_px(part, options, loaded, one)
    return _seconds(part, options, loaded, one) * work


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


def _seconds(
    light_field: LightField, options: EstimateOptions, loaded: LoadedWeights, coverage: Coverage
) -> float:
    """How long all passes take."""
    clock = Clock(loaded.device)
    tile = options.tile or TILES[loaded.kind]
    with clock.stage("all"):
        run(light_field, loaded, options, coverage, tile, clock, ignore)
    return clock.seconds["all"]


def regions(
    light_field: LightField, options: EstimateOptions, loaded: LoadedWeights, coverage: Coverage
) -> list[tuple[int, list[int]]]:
    """Pixels of every block, and of every tile in it."""
    tile = options.tile or TILES[loaded.kind]
    network = loaded.network
    height, width = light_field.resolution
    if loaded.compat == "authors":
        kept = authors.TILE // 2
        count = math.ceil(height / kept) * math.ceil(width / kept)
        return [(height * width, [authors.TILE**2] * count)]
    if not isinstance(network, FastNet):
        tiles = plan_tiles(height, width, tile, PAPER_MARGIN, 1)
        return [(height * width, [_area(part.region) for part in tiles])]
    levels = plan_levels(*coverage.disparity_range, network.config.level_step)
    found = []
    for block in cut_blocks(light_field, len(levels)):
        height, width = (side.stop - side.start for side in block.region)
        tiles = plan_tiles(height, width, tile, RECEPTIVE_MARGIN, ALIGNMENT)
        found.append((height * width, [_area(part.region) for part in tiles]))
    return found


def work_px(
    light_field: LightField, options: EstimateOptions, loaded: LoadedWeights, coverage: Coverage
) -> int:
    """Pixels that the network sees, margins of tiles and blocks included, over all sweeps."""
    is_fast = isinstance(loaded.network, FastNet)
    blocks = regions(light_field, options, loaded, coverage)
    return sum(sum(tiles) for _, tiles in blocks) * (1 if is_fast else len(coverage.shears))


def foresee_memory(
    light_field: LightField, options: EstimateOptions, loaded: LoadedWeights, coverage: Coverage
) -> int:
    """Bytes at the peak: libraries, views, what grows with blocks, tiles and the picture."""
    picture = math.prod(light_field.resolution)
    kept = MAP_BYTES + (4 * math.prod(light_field.grid) if options.keep_masks else 0)
    fixed = LIBRARIES + light_field.views.nbytes + kept * picture
    block, tiles = max(regions(light_field, options, loaded, coverage))
    network = loaded.network
    if not isinstance(network, FastNet):
        at_once = authors.TILES_AT_ONCE if loaded.compat == "authors" else 1
        return fixed + PAPER_TILE_BYTES * at_once * max(tiles)
    levels = len(plan_levels(*coverage.disparity_range, network.config.level_step))
    views = 4 * math.prod(light_field.grid) * light_field.views.shape[-1]
    growing = (views + BLOCK_BYTES * levels) * block + TILE_BYTES * levels * max(tiles)
    return int(fixed + growing)


def _area(region: Region) -> int:
    return int((region[0].stop - region[0].start) * (region[1].stop - region[1].start))
