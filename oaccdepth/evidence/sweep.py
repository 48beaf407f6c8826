"""What the views say about a disparity: samples compared with the centre pixel. Tensors only."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

ABSENT = -1.0  # stands where there is no picture; pictures are in [0, 1]
SMALLEST_SUM = 0.1  # of masks over the views; below, nothing is seen and nothing is said
FIT_STEP = 0.1  # px of disparity to either side, over which slopes are measured
FIT_TOLERANCE = 0.02  # of intensity: a view that is as far off counts half
RESIDUAL_GAIN = 4.0  # residuals are small; this brings them to the votes' size


def compare(samples: Tensor, centre: Tensor, gains: Sequence[float], out: Tensor) -> None:
    """Fill in residuals out[0] and votes out[1:], one for each gain, all of the samples' shape."""
    residual = out[0]
    torch.sub(samples, centre, out=residual)
    for votes, gain in zip(out[1:], gains, strict=True):
        torch.abs(residual, out=votes)
        votes.mul_(gain).clamp_(max=1)
    residual.mul_(RESIDUAL_GAIN)


def silence(evidence: Tensor, samples: Tensor, num_full: int) -> None:
    """Take absent samples (u, v, h, w) out of the evidence (2, u, v, h, w).

    Dividing by the share of those present keeps the scale (Eq. 5).
    """
    present = (samples >= 0).to(samples)
    evidence *= present * (num_full / present.sum((0, 1)).clamp(min=SMALLEST_SUM))


def with_presence(views: Tensor) -> Tensor:
    """Views (b, u, v, h, w) without ABSENT, and where there is a picture: (b, u, v, 2, h, w)."""
    return torch.stack([views.clamp(min=0), (views >= 0).to(views)], 3)


def presence(share: Tensor) -> Tensor:
    """How much a sample counts whose share of pixels that are there is given, both in [0, 1].

    1 inside a picture, fading to 0 within half a pixel beyond its edge: were it a yes or a no,
    rounding would decide for every sample that lies on the very edge.
    """
    return (2 * share - 1).clamp(min=0)


def share_there(samples: Tensor) -> Tensor:
    """The same from samples of views whose absent pixels hold ABSENT, at no other cost.

    A sample that is half there counts for more the brighter it is; that is at the very edge only.
    """
    return (1 + 2 * samples.clamp(max=0)).clamp(min=0)


def warp(views: Tensor, disparity: Tensor, margin: int) -> list[Tensor]:
    """All views sampled where each disparity says that the centre pixel went (Eq. 6).

    Disparity (b, n, h, w) to n samples (b, u*v, h, w), bilinear; of views with channels
    (b, u, v, c, h, w) likewise.
    """
    b, u, v, *channels, height, width = views.shape
    h, w = disparity.shape[2:]
    # In the coordinates of grid_sample, where a picture reaches from -1 to 1. x and y lie side by
    # side in memory; arranging the small tensors so makes the large one in a single step.
    unit = torch.tensor([2 / (width - 1), 2 / (height - 1)]).to(views)  # x, y
    rows, columns, us, vs = (torch.arange(side).to(views) for side in (h, w, u, v))
    place = torch.stack([columns.expand(h, w), rows[:, None].expand(h, w)], -1) + margin
    place = (place * unit - 1).flatten(1)  # (h, w*2)
    steps = torch.stack([(v // 2 - vs).repeat(u), (u // 2 - us).repeat_interleave(v)], -1) * unit
    steps = steps.repeat(1, w)[:, None]  # (u*v, 1, w*2)
    pictures = views.reshape(b * u * v, -1, height, width)
    samples = []
    for d in disparity.repeat_interleave(2, -1)[:, :, None].unbind(1):  # (b, 1, h, w*2)
        where = torch.addcmul(place, steps, d).view(b * u * v, h, w, 2)
        sampled = F.grid_sample(pictures, where, padding_mode="border", align_corners=True)
        samples.append(sampled.view(b, u * v, *channels, h, w))
    return samples


@torch.no_grad()
def fit(views: Tensor, centre: Tensor, disparity: Tensor, margin: int) -> Tensor:
    """How the views' misfit changes with the disparity (b, h, w): (b, 2, h, w).

    Half its first and half its second derivative, summed over the views, as a Gauss-Newton step
    needs them. Views that disagree, mostly because something is in front, hardly count.
    """
    steps = torch.tensor([-FIT_STEP, FIT_STEP]).to(disparity)
    before, after = warp(views, disparity[:, None] + steps[:, None, None], margin)
    present = share_there(before) * share_there(after)
    before, after = before.clamp(min=0), after.clamp(min=0)
    residual = (before + after) / 2 - centre[:, None]
    slope = (after - before) / (2 * FIT_STEP)
    weight = present * slope / (1 + (residual / FIT_TOLERANCE) ** 2)
    return torch.stack([(weight * residual).sum(1), (weight * slope).sum(1)], 1)


def power(x: Tensor, exponent: float) -> Tensor:
    """To this power, in place; by squaring where that will do, which is many times as fast."""
    while exponent > 1 and exponent % 2 == 0:
        x.square_()
        exponent /= 2
    return x.pow_(exponent) if exponent != 1 else x


def interpolate_levels(logits: Tensor, position: Tensor) -> Tensor:
    """Logits (b, l, h, w) at fractional level positions (b, n, h, w), linear."""
    low = position.floor().clamp(0, logits.shape[1] - 2)
    index = low.long()
    return torch.lerp(logits.gather(1, index), logits.gather(1, index + 1), position - low)
