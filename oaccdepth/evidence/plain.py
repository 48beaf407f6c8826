"""The evidence in plain tensor operations, for any device; `kernels.py` is quicker on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from oaccdepth.evidence.views import AXES, HALF_PLANES, SECTORS, Views
from oaccdepth.evidence.visibility import visible

PRESENT = 4.0  # summed colour differences from here on come from a sample that is not there
MISFIT = 0.25  # px
ROUNDING = 1e-3  # px beyond the frame that are rounding


def differences(views: Views, disparity: Tensor, stride: int = 1) -> Tensor:
    """Summed colour difference of each view's sample to the reference pixel: (k, h, w).

    PRESENT or more where there is no sample.
    """
    sample, inside = samples(views, disparity, stride)
    total = (sample - views.compared[:, ::stride, ::stride]).abs().sum(1)
    return torch.where(inside, total, PRESENT)


def mean_colour(views: Views, disparity: Tensor) -> Tensor:
    """What the views see at a disparity (h, w), on average; the reference where none does."""
    sample, inside = samples(views, disparity)
    there = (inside & (sample.amax(1) < PRESENT))[:, None]  # (k, 1, h, w)
    count = there.sum(0)
    mean = torch.where(there, sample, 0.0).sum(0) / count.clamp(min=1)
    return torch.where(count > 0, mean, views.reference)


def samples(views: Views, disparity: Tensor, stride: int = 1) -> tuple[Tensor, Tensor]:
    """Each view's sample for every reference pixel, bilinear: (k, c, h, w); which are in the frame.

    At a disparity (h, w) of each pixel's own, or a single number; or only for every so many pixels.
    """
    height, width = views.pictures.shape[-2:]
    like = views.reference
    rows, columns = (torch.arange(0, n, stride, device=like.device).to(like) for n in views.size)
    h, w = len(rows), len(columns)
    rows, columns = rows[:, None] + views.margin, columns + views.margin
    steps = views.steps.to(like)[:, :, None, None]
    y = (rows + steps[:, 0] * disparity).expand(-1, h, w)
    x = (columns + steps[:, 1] * disparity).expand(-1, h, w)
    inside = (y >= -ROUNDING) & (y <= height - 1 + ROUNDING)
    inside &= (x >= -ROUNDING) & (x <= width - 1 + ROUNDING)
    y0, x0 = y.floor().clamp(0, height - 2), x.floor().clamp(0, width - 2)
    fy, fx = snap(y - y0), snap(x - x0)
    index = (y0 * width + x0).long().flatten(1)[:, None]  # (k, 1, h*w)
    flat = views.pictures.flatten(2)  # (k, c, h'*w')
    corners = {0: (1 - fy) * (1 - fx), 1: (1 - fy) * fx, width: fy * (1 - fx), width + 1: fy * fx}
    sample = like.new_zeros(len(flat), len(like), h, w)
    for offset, weight in corners.items():
        part = _pick(flat, index + offset, h, w) * weight[:, None]
        sample = sample + torch.where(weight[:, None] > 0, part, 0.0)
    return sample, inside


def snap(fraction: Tensor) -> Tensor:
    """A fraction in [0, 1]; none where it is only rounding: then the next pixel is not asked."""
    fraction = fraction.clamp(0, 1)
    return torch.where(fraction < 2 * ROUNDING, 0.0, fraction)


def _pick(flat: Tensor, index: Tensor, h: int, w: int) -> Tensor:
    channels = flat.shape[1]
    return flat.gather(2, index.expand(-1, channels, -1)).view(-1, channels, h, w)


def average(votes: Tensor, weight: Tensor, views: Views) -> tuple[Tensor, Tensor, Tensor]:
    """Means (g, h, w) of votes (g, k, h, w): of all views, least of a half-plane, least of an axis.

    At an edge half of the views see what the reference sees; in a narrow gap only those along it.
    """
    belongs = F.one_hot(views.sectors, SECTORS).to(votes)  # (k, z)
    total = torch.einsum("gkhw,kz->gzhw", votes * weight, belongs)
    count = torch.einsum("khw,kz->zhw", weight, belongs)
    everything = count.sum(0)
    full = torch.where(everything >= 1e-3, total.sum(1) / everything.clamp(min=1e-3), 0.0)
    half, axis = (
        torch.where(least > 1.5, full, least)
        for least in (_least(total, count, s, views.least_views) for s in (HALF_PLANES, AXES))
    )
    return full, half, axis


def _least(total: Tensor, count: Tensor, sets: Tensor, least_views: float) -> Tensor:
    """Least mean over sets of sectors (s, n) that have enough samples, else 2: (g, h, w)."""
    there = count[sets].sum(1)
    mean = total[:, sets].sum(2) / there.clamp(min=1e-6)
    return torch.where(there >= least_views, mean, 2.0).amin(1)


def vote(difference: Tensor, gains: Sequence[float], channels: int) -> Tensor:
    """Saturating votes against a disparity (g, k, h, w): full at a mean difference of 1 / gain."""
    return torch.stack([(difference * (gain / channels)).clamp(max=1) for gain in gains])


def sweep(views: Views, levels: Tensor, gains: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Votes at every level: (l, 3*gains, h, w) uint8, and three costs of them (3, h, w, l)."""
    channels = len(views.reference)
    found = []
    for level in levels:
        difference = differences(views, level)
        present = (difference < PRESENT).to(difference)
        found.append(torch.cat(average(vote(difference, gains, channels), present, views)))
    votes = torch.stack(found)  # (l, 3*gains, h, w)
    return as_bytes(votes), as_bytes(mix(votes).permute(1, 2, 3, 0))


def mix(votes: Tensor) -> Tensor:
    """The costs that are aggregated, of votes (l, 3*gains, h, w): (l, 3, h, w).

    All votes alike; those that look past an occluder, at an edge or in a gap; those that hear faint
    texture.
    """
    full, half, axis = votes.chunk(3, 1)
    every = (full + half + axis) / 3
    return torch.stack([every.mean(1), torch.minimum(half, axis).mean(1), every[:, -1]], 1)


def as_bytes(votes: Tensor) -> Tensor:
    """Votes in [0, 1] as uint8."""
    return (votes * 255 + 0.5).to(torch.uint8)


def masks_of(
    difference: Tensor, channels: int, squarings: int, tolerance: Tensor | float = 0.0
) -> Tensor:
    """How far each view sees what the reference sees (k, h, w), by Eq. 8; 0 where nothing is.

    All ones if squarings is negative. A mean colour difference up to the tolerance is none.
    """
    mask = 1 - (difference / channels - tolerance).clamp(0, 1)
    for _ in range(squarings):
        mask = mask.square()
    if squarings < 0:
        mask = torch.ones_like(mask)
    return torch.where(difference < PRESENT, mask, 0.0)


def look(
    views: Views, candidates: Tensor, base: Tensor, squarings: int, gains: Sequence[float]
) -> Tensor:
    """Votes at candidates (n, h, w), weighted by the masks of a base disparity: (n*3*g + 1, h, w).

    The last channel is the mean mask.
    """
    difference = differences(views, base)
    there = (difference < PRESENT).sum(0)
    mask = masks_of(difference, len(views.reference), squarings) * visible(views, base)
    channels: list[Tensor] = []
    for candidate in candidates:
        difference = differences(views, candidate)
        weight = torch.where(difference < PRESENT, mask, 0.0)
        channels += average(vote(difference, gains, len(views.reference)), weight, views)
    return torch.cat([*channels, (mask.sum(0) / there.clamp(min=1))[None]])


def noise_of(views: Views, disparity: Tensor) -> Tensor:
    """Mean colour difference (h, w) that a view has without any occlusion.

    Twice the noise, measured as the median difference of all samples, and what a misfit of a
    quarter pixel makes of the picture's gradient: interpolation, blur and calibration together, as
    measured on Lytro pictures.
    """
    channels = len(views.reference)
    difference = differences(views, disparity) / channels
    there = difference[difference < PRESENT / channels]
    noise = there.median() if len(there) else torch.zeros(())
    picture = views.reference.clamp(max=1).mean(0, keepdim=True)
    return 2 * noise + MISFIT * slope(picture)[0]


def slope(picture: Tensor) -> Tensor:
    """How much each channel of a picture (c, h, w) changes per px."""
    return torch.hypot(*slopes(picture))


def slopes(picture: Tensor) -> Tensor:
    """The same along rows and along columns: (2, c, h, w)."""
    wide = F.pad(picture[None], (1, 1, 1, 1), mode="replicate")[0]
    across, down = wide[:, 1:-1, 2:] - wide[:, 1:-1, :-2], wide[:, 2:, 1:-1] - wide[:, :-2, 1:-1]
    return torch.stack([across, down]) / 2
