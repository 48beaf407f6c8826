"""How far the views agree on a map and on no other, and how far what they say reaches.

Where a picture is black, saturated or plain, every disparity fits. What is answered there was
carried from the surroundings, and the farther, the less it is worth.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from oaccdepth.compiling import run_by_rows
from oaccdepth.evidence import differences, mean_colour
from oaccdepth.evidence.packing import packed
from oaccdepth.evidence.plain import PRESENT, slopes
from oaccdepth.evidence.views import Views, present, thinned

RADIUS = 2  # px: information is averaged over 5x5
LEAST = 0.00013  # of information, at one step: less is nothing that 8 bits could hold
NOISE_GAIN = 325.0  # of noise squared, at one step: measured at 1 and 4 grey levels
MOST_NOISE = 0.02  # mean difference of views; in stronger noise the fit hardly hears it
CALM = 0.1  # share of the pixels on which noise is measured: those with the least information
TEXTURE_RADIUS = 6  # px: texture weaker than noise is only seen over 13x13
ALIKE = 0.17  # correlation of slopes that noise alone hardly has there; from twice that on certain
LEAST_SLOPE = LEAST / 20  # squared, of all channels: the same as LEAST, for 40 views
MEASURED_VIEWS = 4  # that are compared with the reference: as good as twenty
RIVALS = (-1.0, -0.5, 0.5, 1.0)  # px beside an answer
HALF_VOTE = 0.01  # mean colour difference at which a view is half against a disparity
DECAY = 0.5**0.125  # per px: half as much every 8 px
FARTHEST = 32  # px: from there on a sixteenth is as good as nothing


def some(views: Views) -> Views:
    """The views that are compared with the reference."""
    return thinned(views, MEASURED_VIEWS)


@torch.no_grad()
def apart(views: Views, disparity: Tensor) -> Tensor:
    """How far the colours of views are from the reference's (k, h, w); NaN: not there."""
    found = differences(views, disparity)
    return torch.where(found < PRESENT, found, torch.nan) / len(views.reference)


def misfit(differences: Tensor) -> Tensor:
    """Mean square (h, w) of differences (k, h, w); 1, the worst, where no view is there."""
    return differences.square().nanmean(0).nan_to_num(1.0)


def lead(views: Views, disparity: Tensor, differences: Tensor) -> Tensor:
    """How much less (h, w) the views are against a map than against the best rival beside it.

    About 0 where several disparities fit, and where none does: between bars that are finer than
    the views can tell, and in noise.
    """
    if disparity.device.type != "cpu":
        return plain_rivals(views, disparity) - votes(differences)
    from oaccdepth.evidence import reach_kernels

    least = torch.empty_like(disparity)
    run_by_rows(
        reach_kernels.against,
        len(disparity),
        *packed(views),
        views.steps.numpy(),
        views.margin,
        disparity.contiguous().numpy(),
        torch.tensor(RIVALS).numpy(),
        least.numpy(),
    )
    return least - votes(differences)


def plain_rivals(views: Views, disparity: Tensor) -> Tensor:
    """Mean of the votes (h, w) against the best rival, in tensor operations."""
    return torch.stack([votes(apart(views, disparity + away)) for away in RIVALS]).amin(0)


def votes(differences: Tensor) -> Tensor:
    """Mean of the votes (h, w) to which differences (k, h, w) amount; 1 where no view is there."""
    return (differences / (differences + HALF_VOTE)).nanmean(0).nan_to_num(1.0)


@torch.no_grad()
def reach(views: Views, disparity: Tensor, differences: Tensor, information: Tensor) -> Tensor:
    """What is left (h, w) of the information nearby: 1 where the views say something themselves."""
    own = torch.maximum(informed(views, differences, information), textured(views, disparity))
    return fade(own)


def fade(own: Tensor) -> Tensor:
    """What is left (h, w) of what the pixels around have."""
    if own.device.type != "cpu":
        return plain_fade(own)
    from oaccdepth.evidence import reach_kernels

    out = torch.empty_like(own)
    limits = (reach_kernels.F(DECAY), FARTHEST)
    # each part takes in what is FARTHEST around it: few parts do less of that twice
    run_by_rows(reach_kernels.fade, len(own), own.numpy(), *limits, out.numpy(), parts=1)
    return out


def plain_fade(own: Tensor) -> Tensor:
    """The same in tensor operations."""
    found = own = own[None, None]
    for _ in range(FARTHEST):
        found = torch.maximum(own, DECAY * F.max_pool2d(found, 3, 1, 1))
    return found[0, 0]


def informed(views: Views, differences: Tensor, information: Tensor) -> Tensor:
    """1 where there is far more information (h, w) than noise would pretend; 0: no more."""
    mean = mean_around(information[None], RADIUS)[0]
    calm = mean <= mean.flatten().kthvalue(1 + int(CALM * mean.numel())).values
    steps = float(views.steps.square().sum(1).mean())  # information grows with their square
    # Elsewhere than at calm pixels views differ by how they are interpolated as well.
    noise = min(float(differences[:, calm].nanmedian().nan_to_num(0.0)), MOST_NOISE)
    floor = steps * (LEAST + NOISE_GAIN * noise**2)
    return ((mean - floor) / floor).clamp(0, 1)


def textured(views: Views, disparity: Tensor) -> Tensor:
    """1 where the reference has the texture (h, w) that the other views see at a map, else 0.

    It may be weaker than the noise: that of the reference is not that of the others, so that only
    texture makes their slopes alike.
    """
    one, other = present(views.reference), present(mean_colour(views, disparity))
    both, one, other = mean_around(products(one, other), TEXTURE_RADIUS)
    alike = both / (one * other).sqrt().clamp(min=LEAST_SLOPE**2)
    enough = ((both - LEAST_SLOPE) / LEAST_SLOPE).clamp(0, 1)
    return torch.minimum(((alike - ALIKE) / ALIKE).clamp(0, 1), enough)


def products(one: Tensor, other: Tensor) -> Tensor:
    """Products of the slopes of two pictures (c, h, w), and their squares: (3, h, w)."""
    if one.device.type != "cpu":
        return plain_products(one, other)
    from oaccdepth.evidence import reach_kernels

    out = one.new_empty(3, *one.shape[1:])
    arrays = [x.contiguous().numpy() for x in (one, other, out)]
    run_by_rows(reach_kernels.alike, one.shape[1], *arrays)
    return out


def plain_products(one: Tensor, other: Tensor) -> Tensor:
    """The same in tensor operations."""
    a, b = (slopes(picture).flatten(0, 1) for picture in (one, other))
    return torch.stack([(a * b).sum(0), a.square().sum(0), b.square().sum(0)])


def mean_around(maps: Tensor, radius: int) -> Tensor:
    """Mean (n, h, w) over the squares around each pixel, along columns and rows in turn."""
    if maps.device.type != "cpu":
        return plain_mean_around(maps, radius)
    from oaccdepth.evidence import reach_kernels

    out = maps.new_empty(maps.shape)
    arrays = maps.contiguous().numpy(), radius, out.numpy()
    run_by_rows(reach_kernels.means, maps.shape[1], *arrays)
    return out


def plain_mean_around(maps: Tensor, radius: int) -> Tensor:
    """The same in tensor operations."""
    side = 2 * radius + 1
    columns = F.avg_pool2d(maps[None], (side, 1), 1, (radius, 0), count_include_pad=False)
    return F.avg_pool2d(columns, (1, side), 1, (0, radius), count_include_pad=False)[0]
