"""Sweeps of the network of the paper: a light field at one shear, tile by tile, pass by pass.

Device, dtype and memory end here: what comes back are tensors on the CPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor

from oaccdepth.estimation.device import Clock
from oaccdepth.estimation.found import Found, FoundPass
from oaccdepth.estimation.tiles import Region, overlap, plan_tiles, put
from oaccdepth.lightfield import LightField, as_grey
from oaccdepth.networks.authors import estimate_like_authors
from oaccdepth.networks.paper import OACCNet, PassResult
from oaccdepth.options import Range
from oaccdepth.progress import ReportProgress

ABSENT = -1.0  # stands where there is no picture; pictures are in [0, 1]
OVERLAP = 1.0  # px of disparity, of neighbouring sweeps
PAPER_MARGIN = 32  # px: features reach 20, aggregation 8 and as much again in the second pass


def plan_shears(disparity_range: Range, reach: int) -> tuple[int, ...]:
    """Integer shears of sweeps that cover the range, each `reach` px to either side."""
    low, high = disparity_range
    if low >= -reach and high <= reach:
        return (0,)
    # The first sweep reaches down to the low end, the last one up to the high end.
    first, last = math.floor(low + reach), math.ceil(high - reach)
    if last <= first:
        return (round((low + high) / 2),)
    count = math.ceil((last - first) / (2 * reach - OVERLAP)) + 1
    return tuple(round(shear) for shear in np.linspace(first, last, count))


@dataclass(frozen=True)
class GreyViews:
    """Grey views of a region of the picture, sheared, on the network's device."""

    light_field: LightField
    shear: int
    device: torch.device

    def region(self, region: Region) -> Tensor:
        """(1, u, v, h, w); ABSENT where there is no picture.

        A point of the centre view at (y, x) lies at (y - d*(u-uc), x - d*(v-vc)) of view (u, v);
        sampling shear*(u-uc) rows further up leaves a disparity of d - shear.
        """
        rows, columns = self.light_field.grid
        height, width = (side.stop - side.start for side in region)
        grey = np.full((rows, columns, height, width), ABSENT, dtype=np.float32)
        for u in range(rows):
            top = region[0].start - self.shear * (u - rows // 2)
            for v in range(columns):
                left = region[1].start - self.shear * (v - columns // 2)
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
        picture = as_grey(self.light_field.views[u, v, y, x])
        if valid is not None and valid.ndim == 4:
            picture = np.where(valid[u, v, y, x], picture, np.float32(ABSENT))
        grey[into_y, into_x] = picture


@torch.inference_mode()
def sweep_paper(
    network: OACCNet,
    views: GreyViews,
    iterations: int,
    tile: int,
    clock: Clock,
    report: ReportProgress,
    keep_masks: bool,
    keep_evidence: bool,
    compat: str = "",
) -> Found:
    """All passes over one tile after the other; with compat 'authors' exactly as they do it."""
    height, width = views.light_field.resolution
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
    return Found(
        [FoundPass(p.disparity[0], p.mask[0] if keep_masks else None) for p in found],
        last.confidence[0],
        last.probability[0] if keep_evidence else None,
    )


def _paper_tiles(
    network: OACCNet,
    views: GreyViews,
    iterations: int,
    tile: int,
    clock: Clock,
    report: ReportProgress,
) -> list[PassResult]:
    size = views.light_field.resolution
    tiles = plan_tiles(*size, tile, PAPER_MARGIN, 1)
    wholes: list[Tensor] = []
    for index, part in enumerate(tiles):
        with clock.stage("views"):
            samples = views.region(part.region)
        with clock.stage("passes"):
            present = (samples >= 0).to(samples)
            passes = network.estimate_passes(samples.clamp(min=0), present, iterations)
            values = [maps.float().cpu() for result in passes for maps in vars(result).values()]
            pairs = zip_longest(wholes, values)
            wholes = [put(whole, value, part, size) for whole, value in pairs]
        report("estimating", (index + 1) / len(tiles))
    count = len(fields(PassResult))
    return [PassResult(*wholes[at : at + count]) for at in range(0, len(wholes), count)]
