"""Semi-global aggregation: what all pixels along eight directions say about a pixel's disparity.

Along every line the cheapest path is found by dynamic programming: a step to the neighbouring level
costs little, a jump more, and less where the picture has an edge. Integers throughout, so that the
plain version and the fused one agree to the last digit.
"""

from __future__ import annotations

import torch
from torch import Tensor

STEP = 8  # penalty of a neighbouring level, where a full vote is 255
JUMP = 127  # penalty of any other level, where the picture is flat
EDGE = 30.0  # a contrast of 1 / EDGE halves what a jump costs more than a step
LINES = ((0, 1), (1, 0), (1, 1), (1, -1))  # rows, columns, diagonals; each in both directions
BEYOND = 30000


def jumps(reference: Tensor, dy: int, dx: int) -> Tensor:
    """Penalty of a jump between each pixel and the one at (y - dy, x - dx): (h, w) int32."""
    before = torch.roll(reference, (dy, dx), (-2, -1))
    contrast = (reference - before).abs().amax(0).clamp(max=1)
    contrast[:dy] = 0  # what was rolled in from the other side
    if dx:
        contrast[:, slice(dx) if dx > 0 else slice(dx, None)] = 0
    return (STEP + (JUMP - STEP) / (1 + EDGE * contrast) + 0.5).to(torch.int32)


def aggregate(cost: Tensor, reference: Tensor) -> Tensor:
    """Costs (h, w, l) uint8 to what exceeds the best level's, over all lines: (h, w, l) uint8."""
    total = torch.zeros(cost.shape, dtype=torch.int32, device=cost.device)
    for dy, dx in LINES:
        penalty = jumps(reference, dy, dx)
        total += walk(cost, penalty, dy, dx)
        total += walk(cost.flip(0, 1), backwards(penalty, dy, dx), dy, dx).flip(0, 1)
    return excess(total)


def backwards(penalty: Tensor, dy: int, dx: int) -> Tensor:
    """The same penalties for the picture turned by half a turn."""
    return torch.roll(penalty, (-dy, -dx), (0, 1)).flip(0, 1)


def excess(total: Tensor) -> Tensor:
    """Sums over eight directions, by how much they exceed the least: uint8."""
    above = total - total.amin(-1, keepdim=True)
    return (above // 8).clamp(max=255).to(torch.uint8)


def walk(cost: Tensor, penalty: Tensor, dy: int, dx: int) -> Tensor:
    """Costs of the best paths that come from (y - dy, x - dx), row by row or column by column."""
    if dy == 0:  # along rows: the same along columns of the transposed picture
        return walk(cost.transpose(0, 1), penalty.t(), 1, 0).transpose(0, 1)
    found = [cost[0].to(torch.int32)]
    outside = torch.full_like(found[0][:, :1], BEYOND)
    for y in range(1, len(cost)):
        last = torch.roll(found[-1], dx, 0)
        least = last.amin(1, keepdim=True)
        wide = torch.cat([outside, last, outside], 1)
        near = torch.minimum(wide[:, :-2], wide[:, 2:]) + STEP
        best = torch.minimum(torch.minimum(last, near), least + penalty[y][:, None])
        path = best - least
        if dx:  # a line that begins at the side of the picture
            path[0 if dx > 0 else -1] = 0
        found.append(path + cost[y])
    return torch.stack(found)
