"""The two surfaces that meet near a pixel, and how much of the pixel the nearer one covers.

A pixel on the outline of a thing has a colour between that of the thing and that of what is behind
it, and fits neither in the other views. What its neighbours look like on either side says which of
the two it mostly shows. So does what the other views see there, with less noise: all of them see
the thing, and behind its edge something else each.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from oaccdepth.compiling import run_by_rows
from oaccdepth.evidence.packing import packed
from oaccdepth.evidence.plain import mean_colour
from oaccdepth.evidence.views import Views, present

RADIUS = 4  # px around a pixel in which surfaces are found
SOFTNESS = 0.15  # px of disparity, within which answers are of one surface
APART = 0.1  # px between two surfaces, from which on they are two; from twice that on fully
PURE = (
    0.1  # px of disparity within 3x3 pixels, at which a pixel counts half as being of one surface
)
FALL = 1.5  # px: neighbours count e times less with every such distance
LEAST_CONTRAST = 1e-3  # between the colours of two surfaces, each channel in [0, 1]
MOST_UNSURE = 2.0  # times that contrast: beyond it, two surfaces cannot be told apart by colour
LEAST_WEIGHT = 1e-6  # of what is known of a surface
FIELDS = 11  # places: 2; shares: 4; contrast, misfit, variation of both, weight


@torch.no_grad()
def surfaces(disparity: Tensor, views: Views) -> Tensor:
    """What is known of the two surfaces near each pixel of a map (h, w) [px]: (11, h, w).

    The farther and the nearer one [px]; how much of the pixel the nearer one covers, less a half:
    by the pixel's colour, by its light (the colour squared), and by what all views see at the
    nearer and at the farther surface; how far apart the colours of both are; how far, beside that,
    the pixel's is from any mixture of them, and how much the colours of each vary; how much there
    was to learn all this from. All but the first two are 0 where there is one surface only.
    """
    return meet(views, disparity, *around(disparity))


def around(disparity: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The farther and the nearer surface around each pixel, and the range within 3x3: (h, w)."""
    if disparity.device.type != "cpu":
        return plain_around(disparity)
    from oaccdepth.evidence import surface_kernels

    means, within = disparity.new_empty(2, *disparity.shape), torch.empty_like(disparity)
    weights = torch.stack([weights_of(disparity, slope) for slope in (-1 / SOFTNESS, 1 / SOFTNESS)])
    maps = (x.contiguous().numpy() for x in (disparity, weights, means, within))
    run_by_rows(surface_kernels.around, len(disparity), *maps)
    return means[0], means[1], within


def plain_around(disparity: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same in tensor operations."""
    far, near = lean(disparity, -1 / SOFTNESS), lean(disparity, 1 / SOFTNESS)
    return far, near, local_range(disparity)


def meet(views: Views, disparity: Tensor, far: Tensor, near: Tensor, within: Tensor) -> Tensor:
    """What `surfaces` finds, by what is `around` each pixel."""
    pure = 1 / (1 + (within / PURE) ** 2)
    maps = (disparity.contiguous(), pure, far, near)
    if disparity.device.type != "cpu":
        return plain_meet(views, *maps)
    from oaccdepth.evidence import surface_kernels

    out = torch.empty(FIELDS, *disparity.shape)
    pictures, size, _ = packed(views)
    run_by_rows(
        surface_kernels.meet,
        len(disparity),
        present(views.reference).expand(3, -1, -1).contiguous().numpy(),
        *(x.numpy() for x in maps),
        fall().numpy(),
        pictures,
        size,
        views.steps.numpy(),
        views.margin,
        out.numpy(),
    )
    return out


def lean(x: Tensor, slope: float) -> Tensor:
    """Mean over the pixels around, each weighted by exp(slope * x): (h, w).

    Not the very least or largest value, which may be a single stray one.
    """
    weight = weights_of(x, slope)
    found = pool(torch.stack([weight * x, weight]))
    return found[0] / found[1]


def weights_of(x: Tensor, slope: float) -> Tensor:
    """How much each pixel counts for those around it."""
    return (slope * (x - x.mean())).clamp_(-60, 60).exp_()


def pool(x: Tensor) -> Tensor:
    """Mean over a square, rows and columns in turn; beyond the frame there is nothing."""
    side = 2 * RADIUS + 1
    rows = F.avg_pool2d(x, (side, 1), 1, (RADIUS, 0))
    return F.avg_pool2d(rows, (1, side), 1, (0, RADIUS))


def local_range(x: Tensor) -> Tensor:
    """Largest less smallest value within 3x3 pixels (h, w)."""
    both = F.max_pool2d(torch.stack([x, -x]), 3, 1, 1)
    return both[0] + both[1]


def fall() -> Tensor:
    """How much each neighbour counts (9, 9); the pixel itself, which is in question, not at all."""
    along = torch.arange(-RADIUS, RADIUS + 1.0)
    weights = (-torch.hypot(along[:, None], along) / FALL).exp()
    weights[RADIUS, RADIUS] = 0
    return weights


def plain_meet(views: Views, disparity: Tensor, pure: Tensor, far: Tensor, near: Tensor) -> Tensor:
    """The same as `surface_kernels.meet` in tensor operations."""
    picture = present(views.reference)
    h, w = disparity.shape
    gap = near - far
    wide = F.pad(torch.cat([disparity[None], pure[None], picture]), [RADIUS] * 4)
    sums = {side: picture.new_zeros(2 + 2 * len(picture), h, w) for side in ("far", "near")}
    for (i, j), weight in np.ndenumerate(fall().numpy()):
        here = wide[:, i : i + h, j : j + w]
        position = ((here[0] - far) / gap.clamp(min=LEAST_WEIGHT)).clamp(0, 1)
        known = torch.cat([torch.ones_like(here[:1]), here[:1], here[2:], here[2:].square()])
        sums["near"] += float(weight) * here[1] * position**4 * known
        sums["far"] += float(weight) * here[1] * (1 - position) ** 4 * known
    (weight_f, place_f, colour_f, light_f), (weight_n, place_n, colour_n, light_n) = (
        _means(sums[side], start) for side, start in (("far", far), ("near", near))
    )
    share = covered(picture, colour_f, colour_n)
    apart = colour_n - colour_f
    misfit = (picture - colour_f - share.clamp(0, 1) * apart).square().mean(0).sqrt()
    variation = [
        (light - colour.square()).mean(0).clamp(min=0).sqrt()
        for light, colour in ((light_f, colour_f), (light_n, colour_n))
    ]
    two = ((gap - APART) / APART).clamp(0, 1)
    places = [torch.lerp(far, place_f, two), torch.lerp(near, place_n, two)]
    seen = [covered(mean_colour(views, place), colour_f, colour_n) for place in reversed(places)]
    shares = [share, covered(picture.square(), light_f, light_n), *seen]
    signs = [one - 0.5 for one in shares]
    contrast = apart.square().mean(0).sqrt()
    unsure = [
        (one / contrast.clamp(min=LEAST_CONTRAST)).clamp(max=MOST_UNSURE)
        for one in (misfit, *variation)
    ]
    signs += [contrast, *unsure, torch.minimum(weight_f, weight_n)]
    return torch.stack(places + [two * sign for sign in signs])


def covered(own: Tensor, behind: Tensor, front: Tensor) -> Tensor:
    """Share (h, w) of what is in front in a mixture (c, h, w) of both."""
    apart = front - behind
    square = apart.square().sum(0).clamp(min=LEAST_CONTRAST**2)
    return (((own - behind) * apart).sum(0) / square).clamp(-0.5, 1.5)


def _means(sums: Tensor, start: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weight, disparity (a guess, where there is nothing), colour and light."""
    channels = (len(sums) - 2) // 2
    weight = sums[0] + LEAST_WEIGHT
    place = (sums[1] + LEAST_WEIGHT * start) / weight
    colour, light = sums[2 : 2 + channels] / weight, sums[2 + channels :] / weight
    return weight, place, colour, light
