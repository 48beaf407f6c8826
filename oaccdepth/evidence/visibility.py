"""Which views see a point, by the map alone: what is nearer hides what is behind it.

Masks of Eq. 8 compare colours, so an occluder of about the same colour escapes them, and what lies
beside an edge is pulled a little towards the nearer side. The map knows where its own edges are.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oaccdepth.compiling import run_by_rows
from oaccdepth.evidence.views import Views

BESIDE = 2.0  # px from an occluder where a sample already mixes in its colour
NEARER = 0.1  # px of disparity, at least, by which an occluder is in front

Suspects = tuple[list[tuple[int, int]], list[float]]  # see suspects_of


@torch.no_grad()
def visible(views: Views, disparity: Tensor) -> Tensor:
    """Whether each view sees each point of a map (h, w) [px]: (k, h, w) uint8.

    A point that no view would see is rather a mistake of the map: all views are asked.
    """
    suspects = suspects_of(views.steps, disparity)
    if not suspects:
        return torch.ones(0, *disparity.shape, dtype=torch.uint8, device=disparity.device)
    look_up = fused_visible if disparity.device.type == "cpu" else plain_visible
    seen = look_up(disparity, suspects)
    return seen.bitwise_or_(1 - seen.amax(0))


def fused_visible(disparity: Tensor, suspects: list[Suspects]) -> Tensor:
    """What the map alone says, quicker."""
    from oaccdepth.evidence import surface_kernels

    seen = torch.empty(len(suspects), *disparity.shape, dtype=torch.uint8)
    most = max(len(needed) for _, needed in suspects)
    places = torch.zeros(len(suspects), most, 2, dtype=torch.int64)
    least = torch.full((len(suspects), most), torch.inf)
    for number, (offsets, needed) in enumerate(suspects):
        places[number, : len(needed)] = torch.tensor(offsets, dtype=torch.int64).view(-1, 2)
        least[number, : len(needed)] = torch.tensor(needed)
    run_by_rows(
        surface_kernels.visible,
        len(disparity),
        disparity.contiguous().numpy(),
        disparity.amin(1).numpy(),
        disparity.amax(1).numpy(),
        places.numpy(),
        least.numpy(),
        seen.numpy(),
    )
    return seen


def suspects_of(steps: Tensor, disparity: Tensor) -> list[Suspects]:
    """Pixels that could hide a point from each view, relative to it, and by how much if nearer."""
    gap = float(disparity.max() - disparity.min())
    return [suspects_at(step, gap, max(disparity.shape)) for step in steps.tolist()]


def suspects_at(step: list[float], gap: float, most: int) -> Suspects:
    """The same for one view, of a map that spans a gap [px].

    A view at `step` sees p at p + step * d. So it sees q = p - step * (d' - d) there, if that has
    the disparity d'.
    """
    length = math.hypot(*step)
    if length == 0 or gap < NEARER:
        return [], []
    farthest = min(math.floor(length * gap + BESIDE), most)
    offsets, needed = [], []
    for distance in range(1, farthest + 1):
        y, x = (math.floor(0.5 - distance * part / length) for part in step)
        offsets.append((y, x))
        needed.append(max((distance - BESIDE) / length, NEARER))
    return offsets, needed


def plain_visible(disparity: Tensor, suspects: list[Suspects]) -> Tensor:
    """The same in tensor operations."""
    h, w = disparity.shape
    seen = torch.ones(len(suspects), h, w, dtype=torch.uint8, device=disparity.device)
    for into, (offsets, needed) in zip(seen, suspects, strict=True):
        for (y, x), least in zip(offsets, needed, strict=True):
            if abs(y) >= h or abs(x) >= w:
                break
            rows, columns = slice(max(0, -y), min(h, h - y)), slice(max(0, -x), min(w, w - x))
            other = disparity[max(0, y) : h + min(0, y), max(0, x) : w + min(0, x)]
            into[rows, columns] &= (other < disparity[rows, columns] + least).to(torch.uint8)
    return seen
