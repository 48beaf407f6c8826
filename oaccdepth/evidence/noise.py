"""How noisy the views are, and the views smoothed as far as that asks for.

Votes saturate: noise that exceeds the texture makes all disparities look alike. A pixel and its
neighbours mostly show the same surface, so smoothing takes more of the noise than of the texture.
Without noise it would only take fine texture and narrow gaps.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from oaccdepth.compiling import run_by_rows
from oaccdepth.evidence import plain
from oaccdepth.evidence.views import ABSENT, Views, present

NEAREST = 8  # views in which little is hidden
CLOSEST = 4  # of them that differ least: in lattices, those along a bar
STRIDE = 8  # px between the pixels at which noise is measured
AROUND = 8  # of these pixels in each direction that are heard together
CALM = 0.05  # share of them with the least differences: others may be texture or edges
PER_DEVIATION = 0.25  # such a difference in noise of deviation 1: the least of many is small
MISFIT = 0.1  # px of disparity between a pixel and its best level: a difference by texture alone
INTERPOLATION = 0.008  # deviation up to which it may be texture, sampled between pixels
HALF = 0.015  # deviation beyond that, at which half of a picture is smoothed
BINOMIAL = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)  # deviation 1 px


def measured(views: Views, levels: Tensor) -> Views:
    """The same views, with the deviation of their noise around each pixel of the reference."""
    found = F.interpolate(deviations(views, levels)[None, None], views.size, mode="bilinear")
    return replace(views, noise=found[0, 0])


def deviations(views: Views, levels: Tensor) -> Tensor:
    """Deviation of the noise around every eighth pixel.

    At the best level, a pixel differs by noise from the views next to the reference, and by
    little else.
    """
    nearest = views.steps.norm(dim=1).argsort(stable=True)[:NEAREST]
    least = differences(views, nearest, levels)
    step = views.steps[nearest].norm(dim=1).mean().nan_to_num(0.0)
    picture = present(views.reference)
    calm = smoothed(picture, torch.ones_like(picture[0]))  # without most of the noise
    texture = MISFIT * step * plain.slope(calm).mean(0)[::STRIDE, ::STRIDE]
    least = torch.where(least < plain.PRESENT, least - texture, 0.0).clamp(min=0)
    rank = round(CALM * (2 * AROUND + 1) ** 2)
    return ranked(least, rank) / PER_DEVIATION


def differences(views: Views, chosen: Tensor, levels: Tensor) -> Tensor:
    """Mean difference, per channel, of the chosen views that differ least, at the best level.

    At every eighth pixel; PRESENT or more where no view is there.
    """
    if levels.device.type != "cpu":
        return plain_differences(views, chosen, levels)
    from oaccdepth.evidence import noise_kernels

    least = levels.new_empty([-(-side // STRIDE) for side in views.size])
    given = (views.pictures, chosen, views.compared, views.steps)
    arrays = [x.contiguous().numpy() for x in given]
    scale = (views.margin, levels.contiguous().numpy(), STRIDE)
    run_by_rows(noise_kernels.differences, len(least), *arrays, *scale, least.numpy())
    return least


def plain_differences(views: Views, chosen: Tensor, levels: Tensor) -> Tensor:
    """The same in tensor operations."""
    nearest = views.only(chosen)
    means = []
    for level in levels:
        found = plain.differences(nearest, level, STRIDE).sort(0).values[:CLOSEST]
        there = found < plain.PRESENT
        mean = torch.where(there, found, 0.0).sum(0) / there.sum(0) / len(views.reference)
        means.append(mean.nan_to_num(torch.inf))  # no view is there
    return torch.stack(means).amin(0)


def ranked(x: Tensor, rank: int) -> Tensor:
    """The value (h, w) of a rank, from 1 on, around each one."""
    if x.device.type != "cpu":
        return plain_ranked(x, rank)
    from oaccdepth.evidence import noise_kernels

    out = torch.empty_like(x)
    run_by_rows(noise_kernels.ranked, len(x), x.contiguous().numpy(), AROUND, rank, out.numpy())
    return out


def plain_ranked(x: Tensor, rank: int) -> Tensor:
    """The same in tensor operations."""
    wide = F.pad(x[None, None], [AROUND] * 4, mode="replicate")
    around = F.unfold(wide, 2 * AROUND + 1)[0]  # (289, n)
    return around.kthvalue(rank, 0).values.view(x.shape)


def calmed(views: Views, in_place: bool = False) -> Views:
    """The views, smoothed where they are known to be noisy; `in_place` overwrites them."""
    if views.noise is None or not (views.noise > INTERPOLATION).any():
        return views
    excess = (views.noise - INTERPOLATION).clamp(min=0).square()
    share = excess / (excess + HALF**2)
    wide = F.pad(share[None, None], [views.margin] * 4, mode="replicate")[0, 0]
    pictures = views.pictures if in_place else torch.empty_like(views.pictures)
    smooth(views.pictures, wide, pictures)
    return replace(views, pictures=pictures, reference=smoothed(views.reference, share))


def smoothed(picture: Tensor, share: Tensor) -> Tensor:
    """A share (h, w) of a picture (c, h, w) smoothed; what is absent stays so, and is not heard."""
    out = torch.empty_like(picture)
    smooth(picture[None], share, out[None])
    return out


def smooth(pictures: Tensor, share: Tensor, out: Tensor) -> None:
    """Fill `out`, which may be the pictures (k, c, h, w) themselves, with smoothed ones."""
    if pictures.device.type != "cpu":
        for into, picture in zip(out, pictures, strict=True):
            into[:] = plain_smoothed(picture, share)
        return
    from oaccdepth.evidence import noise_kernels

    given, found = (x.flatten(0, 1).numpy() for x in (pictures, out))
    run_by_rows(noise_kernels.smooth, len(given), given, share.contiguous().numpy(), found)


def plain_smoothed(picture: Tensor, share: Tensor) -> Tensor:
    """The same of one picture (c, h, w) in tensor operations."""
    there = picture <= 1
    mean = blur(torch.where(there, picture, 0.0)) / blur(there.to(picture)).clamp(min=1e-6)
    return torch.where(there, torch.lerp(picture, mean, share), ABSENT)


def blur(picture: Tensor) -> Tensor:
    """Binomial means over 5x5 pixels."""
    height, width = picture.shape[1:]
    wide = F.pad(picture[None], [2] * 4, mode="replicate")[0]
    rows = sum_of([wide[:, k : k + height] for k in range(5)])
    return sum_of([rows[:, :, k : k + width] for k in range(5)])


def sum_of(shifted: list[Tensor]) -> Tensor:
    """The weighted sum."""
    total = shifted[0] * BINOMIAL[0]
    for part, weight in zip(shifted[1:], BINOMIAL[1:], strict=True):
        total.add_(part, alpha=weight)
    return total
