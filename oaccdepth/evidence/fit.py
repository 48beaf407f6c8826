"""The last fit: planes that bend and break where the views say so.

Every view says how its misfit changes with the disparity of a pixel, firmly where there is texture.
The map that is sought keeps to what the views say as firmly as they say it, and has small second
differences elsewhere: one sparse linear system, solved a few times with weights that let the map
crease and break. Nothing here is learnt.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oaccdepth.compiling import run_by_rows
from oaccdepth.evidence.packing import packed
from oaccdepth.evidence.views import Views, thinned
from oaccdepth.evidence.visibility import visible

TOLERANCE = 0.02  # of intensity: a sample that is off by so much counts half
FIT_VIEWS = 8  # at most; with 12 or 20, no score was better by more than chance
USUAL_VIEWS = 40  # for which the numbers below are meant
ANCHOR = 1.0  # how firmly a pixel keeps its answer where the views say nothing
STIFFNESS = 30.0  # of the second differences
CREASE = 0.02  # px of second difference: from there on the map may crease
ROUNDS = 3
STEPS = 14  # of conjugate gradients in each round; 20 or 30 gain nothing
FARTHEST = 0.15  # px that an answer is moved by a single step


def fewer(views: Views) -> Views:
    """The views to which the map is fitted."""
    return thinned(views, FIT_VIEWS)


@torch.no_grad()
def fit(views: Views, disparity: Tensor, times: int = 2) -> tuple[Tensor, Tensor]:
    """The map (h, w) [px] near the given one that fits the views best, and how much they say.

    The views are asked again at the map that the first time found. How much they say is the
    curvature of their misfit, (h, w).
    """
    curvature = torch.zeros_like(disparity)
    for _ in range(times):
        disparity, curvature = fit_once(views, disparity)
    return disparity, curvature


def fit_once(views: Views, disparity: Tensor) -> tuple[Tensor, Tensor]:
    """Ask the views once, then solve."""
    share = USUAL_VIEWS / max(len(views.pictures), 1)
    slope, curvature = (share * part for part in misfit(views, disparity))
    firmness = curvature + ANCHOR
    target = disparity - (slope / firmness).clamp(-FARTHEST, FARTHEST)
    found = disparity
    for _ in range(ROUNDS):
        found = solve(found, target, firmness, stiffness_of(found))
    return found, curvature


def misfit(views: Views, disparity: Tensor) -> tuple[Tensor, Tensor]:
    """Half the first and second derivative of the views' squared misfit by disparity: (h, w) each.

    Cubic samples of the views that see a point; those that disagree hardly count.
    """
    if disparity.device.type != "cpu":
        return plain_misfit(views, disparity)
    from oaccdepth.evidence import sample_kernels

    slope, curvature = torch.empty_like(disparity), torch.empty_like(disparity)
    run_by_rows(
        sample_kernels.misfit,
        len(disparity),
        *packed(views),
        views.steps.numpy(),
        views.margin,
        disparity.contiguous().numpy(),
        visible(views, disparity).numpy(),
        len(views.reference),
        sample_kernels.F(TOLERANCE),
        slope.numpy(),
        curvature.numpy(),
    )
    return slope, curvature


def plain_misfit(views: Views, disparity: Tensor) -> tuple[Tensor, Tensor]:
    """The same in tensor operations, view by view."""
    slope, curvature = torch.zeros_like(disparity), torch.zeros_like(disparity)
    seen = visible(views, disparity).bool()
    for picture, step, sight in zip(views.pictures, views.steps, seen, strict=True):
        value, change, inside = sample(picture, step, views.margin, disparity)
        residual = value - views.reference
        weight = 1 / (1 + (residual / TOLERANCE) ** 2)
        weight = torch.where(inside & sight & (residual.abs() < 1), weight, 0.0)
        change = torch.where(weight > 0, change, 0.0)
        residual = torch.where(weight > 0, residual, 0.0)
        slope += (weight * change * residual).sum(0)
        curvature += (weight * change * change).sum(0)
    return slope, curvature


def sample(
    picture: Tensor, step: Tensor, margin: int, disparity: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Cubic samples of a picture (c, h, w), their change per px of disparity, which are there.

    All of the 4x4 pixels that a sample is made of have to be.
    """
    height, width = picture.shape[-2:]
    h, w = disparity.shape
    y = torch.arange(h, device=disparity.device)[:, None] + margin + step[0] * disparity
    x = torch.arange(w, device=disparity.device) + margin + step[1] * disparity
    inside = (y >= 1) & (y <= height - 2) & (x >= 1) & (x <= width - 2)
    y0, x0 = y.floor().clamp(1, height - 3), x.floor().clamp(1, width - 3)
    (wy, dy), (wx, dx) = cubic(y - y0), cubic(x - x0)
    corner = ((y0 - 1) * width + x0 - 1).long().flatten()
    flat = picture.flatten(1)
    value = torch.zeros(len(picture), h, w, device=disparity.device)
    change = torch.zeros_like(value)
    for i in range(4):
        for j in range(4):
            tap = flat[:, corner + i * width + j].view(-1, h, w)
            inside &= tap[0] <= 1
            value += wy[i] * wx[j] * tap
            change += (step[0] * dy[i] * wx[j] + step[1] * wy[i] * dx[j]) * tap
    return value, change, inside


def cubic(t: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Weights of four neighbours at a fraction t in [0, 1], and their derivatives (Catmull-Rom)."""
    weights = [
        t * (-0.5 + t * (1 - 0.5 * t)),
        1 + t * t * (-2.5 + 1.5 * t),
        t * (0.5 + t * (2 - 1.5 * t)),
        t * t * (-0.5 + 0.5 * t),
    ]
    derivatives = [
        -0.5 + t * (2 - 1.5 * t),
        t * (-5 + 4.5 * t),
        0.5 + t * (4 - 4.5 * t),
        t * (-1 + 1.5 * t),
    ]
    return weights, derivatives


def difference(x: Tensor, axis: int) -> Tensor:
    """Second differences along an axis; two fewer than values."""
    n = x.shape[axis]
    return x.narrow(axis, 0, n - 2) - 2 * x.narrow(axis, 1, n - 2) + x.narrow(axis, 2, n - 2)


def spread_back(x: Tensor, axis: int) -> Tensor:
    """The transpose of `difference`."""
    n = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = n + 2
    out = x.new_zeros(shape)
    out.narrow(axis, 0, n).add_(x)
    out.narrow(axis, 1, n).sub_(x, alpha=2)
    out.narrow(axis, 2, n).add_(x)
    return out


def stiffness_of(disparity: Tensor) -> tuple[Tensor, Tensor]:
    """How stiff a map (h, w) is around each pixel, down and across: (h, w) each, 0 at the frame."""
    if disparity.device.type != "cpu":
        return plain_stiffness_of(disparity)
    from oaccdepth.evidence import solver

    down, across = torch.empty_like(disparity), torch.empty_like(disparity)
    maps = (x.contiguous().numpy() for x in (disparity, down, across))
    run_by_rows(solver.stiffen, len(disparity), *maps, parts=1)
    return down, across


def plain_stiffness_of(disparity: Tensor) -> tuple[Tensor, Tensor]:
    """The same in tensor operations: less the larger a second difference is."""
    down, across = torch.zeros_like(disparity), torch.zeros_like(disparity)
    for axis, inner in ((0, down[1:-1]), (1, across[:, 1:-1])):
        inner[:] = STIFFNESS / (1 + (difference(disparity, axis) / CREASE) ** 2) ** 2
    return down, across


def solve(
    start: Tensor, target: Tensor, firmness: Tensor, stiffness: tuple[Tensor, Tensor]
) -> Tensor:
    """The map of least energy, all (h, w); second differences have their places' stiffness."""
    if start.device.type != "cpu":
        return plain_solve(start, target, firmness, stiffness)
    from oaccdepth.evidence import solver

    arrays = [x.contiguous().numpy() for x in (start, target, firmness, *stiffness)]
    found: Tensor = torch.from_numpy(solver.solve(arrays, STEPS))
    return found


def plain_solve(
    start: Tensor, target: Tensor, firmness: Tensor, stiffness: tuple[Tensor, Tensor]
) -> Tensor:
    """The same in tensor operations: conjugate gradients, preconditioned by the diagonal."""
    creases = [stiffness[0][1:-1], stiffness[1][:, 1:-1]]

    def apply(x: Tensor) -> Tensor:
        out = firmness * x
        for axis, weight in enumerate(creases):
            out += spread_back(weight * difference(x, axis), axis)
        return out

    diagonal = firmness.clone()
    for axis, weight in enumerate(creases):
        n = weight.shape[axis]
        for offset, share in ((0, 1.0), (1, 4.0), (2, 1.0)):
            diagonal.narrow(axis, offset, n).add_(weight, alpha=share)
    x = start.clone()
    residual = firmness * target - apply(x)
    direction = residual / diagonal
    energy = (residual * direction).sum()
    for _ in range(STEPS):
        image = apply(direction)
        length = energy / (direction * image).sum().clamp(min=1e-20)
        x += length * direction
        residual -= length * image
        scaled = residual / diagonal
        after = (residual * scaled).sum()
        direction = scaled + (after / energy.clamp(min=1e-20)) * direction
        energy = after
    return x
