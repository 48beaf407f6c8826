"""What the views say about a disparity: fused loops on a CPU, tensor operations elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from oaccdepth.compiling import run_by_rows
from oaccdepth.evidence import aggregation, plain
from oaccdepth.evidence.packing import packed
from oaccdepth.evidence.shifts import plan_shifts
from oaccdepth.evidence.views import Views
from oaccdepth.evidence.visibility import visible

GAINS = (10.0, 30.0, 100.0)  # a vote is full at a mean colour difference of 1 / gain
MEANS = 9  # three at three gains each
KINDS = MEANS + 3  # of evidence: means, and what is aggregated


def sweep(views: Views, levels: Tensor) -> Tensor:
    """All evidence at levels that come in pairs: (l/2, 24, h, w) uint8, channels last.

    Of each kind two levels side by side: the mean vote of all views, the least of a half-plane and
    the least of an axis, at three gains each; and three costs (`plain.mix`), aggregated.
    """
    h, w = views.size
    count = len(levels)
    volume = torch.empty(count // 2, h, w, 2 * KINDS, dtype=torch.uint8, device=levels.device)
    gather = fused_sweep if levels.device.type == "cpu" else plain_sweep
    costs = gather(views, levels, volume)
    pairs = volume[..., 2 * MEANS :].view(count // 2, h, w, -1, 2).movedim(3, 0)
    aggregate(costs, views.reference, pairs)
    return volume.permute(0, 3, 1, 2)


def aggregate(costs: Tensor, reference: Tensor, found: Tensor) -> None:
    """Fill in by how much costs (n, h, w, l) uint8 exceed those of the best level.

    Semi-globally, for two levels side by side: found (n, l/2, h, w, 2) uint8.
    """
    if costs.device.type != "cpu":
        for cost, into in zip(costs, found, strict=True):
            above = aggregation.aggregate(cost, reference)
            into[:] = above.view(*above.shape[:2], -1, 2).movedim(2, 0)
        return
    from oaccdepth.evidence import kernels

    height, width, levels = costs.shape[1:]
    room = -(-levels // kernels.LANES) * kernels.LANES  # the loops work on so many at a time
    wide = torch.full((height, width, room), 255, dtype=torch.uint8)
    total = torch.zeros(wide.shape, dtype=torch.int16).numpy().view(np.uint16)  # by all cores
    jumps = [aggregation.jumps(reference, *line).to(torch.uint16) for line in aggregation.LINES]
    for cost, into in zip(costs, found.numpy(), strict=True):
        wide[..., :levels] = cost
        for (dy, dx), jump in zip(aggregation.LINES, jumps, strict=True):
            lines = height if dy == 0 else (width if dx == 0 else height + width - 1)
            given = (wide.numpy(), levels, total, dy, dx, jump.numpy())
            run_by_rows(kernels.aggregate, lines, *given, kernels.U16(aggregation.STEP))
        run_by_rows(kernels.excess, height, total, into)


def look(
    views: Views,
    candidates: Tensor,
    base: Tensor,
    squarings: int,
    gains: Sequence[float] = GAINS,
) -> Tensor:
    """Votes at candidates (n, h, w) [px], weighted by the masks of a base: (n*9 + 1, h, w)."""
    if base.device.type != "cpu":
        return plain.look(views, candidates, base, squarings, gains)
    from oaccdepth.evidence import sample_kernels

    n, h, w = candidates.shape
    out = torch.empty(h, w, MEANS * n + 1)
    run_by_rows(
        sample_kernels.look,
        h,
        *packed(views),
        views.steps.numpy(),
        views.sectors.numpy(),
        views.margin,
        candidates.contiguous().numpy(),
        base.contiguous().numpy(),
        visible(views, base).numpy(),
        squarings,
        torch.tensor(gains).numpy(),
        sample_kernels.F(views.least_views),
        views.sectors.argsort(stable=True).numpy(),
        out.numpy(),
    )
    return out.permute(2, 0, 1)


def differences(views: Views, disparity: Tensor) -> Tensor:
    """Summed colour difference (k, h, w) of each view's sample at a disparity (h, w) [px]."""
    if disparity.device.type != "cpu":
        return plain.differences(views, disparity)
    from oaccdepth.evidence import sample_kernels

    h, w = views.size
    out = torch.empty(len(views.pictures), h, w)
    run_by_rows(
        sample_kernels.differences,
        h,
        *packed(views),
        views.steps.numpy(),
        views.margin,
        disparity.contiguous().numpy(),
        out.numpy(),
    )
    return out.mul_(len(views.reference))


def mean_colour(views: Views, disparity: Tensor) -> Tensor:
    """What the views see at a disparity (h, w) [px], on average: (c, h, w)."""
    if disparity.device.type != "cpu":
        return plain.mean_colour(views, disparity)
    from oaccdepth.evidence import sample_kernels

    out = torch.empty_like(views.reference, memory_format=torch.contiguous_format)
    pictures, size, _ = packed(views)
    run_by_rows(
        sample_kernels.mean_colours,
        len(disparity),
        views.reference.contiguous().numpy(),
        disparity.contiguous().numpy(),
        pictures,
        size,
        views.steps.numpy(),
        views.margin,
        out.numpy(),
    )
    return out


def plain_sweep(views: Views, levels: Tensor, volume: Tensor) -> Tensor:
    """Fill in the votes (l/2, h, w, 24); the costs to aggregate (3, h, w, l) uint8."""
    votes, costs = plain.sweep(views, levels, GAINS)
    pairs = votes.view(-1, 2, *votes.shape[1:]).permute(0, 3, 4, 2, 1)  # (l/2, h, w, 9, 2)
    volume[..., : 2 * MEANS] = pairs.flatten(3)
    return costs


def fused_sweep(views: Views, levels: Tensor, volume: Tensor) -> Tensor:
    """The same, quicker."""
    from oaccdepth.evidence import sweep_kernels as loops

    h, w = views.size
    costs = torch.empty(3, h, w, len(levels), dtype=torch.uint8)
    run_by_rows(
        loops.sweep,
        h,
        views.pictures.numpy(),
        loops.whole_numbers(views.reference.numpy()),
        plan_shifts(views.steps.numpy(), views.sectors.numpy(), levels.numpy()),
        views.margin,
        bool((views.pictures[:, 0] <= 1).all() and (views.reference <= 1).all()),
        np.array([3 * loops.SCALE / gain for gain in GAINS], np.uint16),
        loops.F(views.least_views),
        volume.numpy(),
        costs.numpy(),
        parts=1,
    )
    return costs
