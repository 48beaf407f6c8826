"""What passes answer, what later ones know of it, and the candidates they choose. Tensors only."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

WINDOW = 1  # levels on either side of the best one over which an answer is averaged
OFFSETS = 7  # candidates around the last answer
EXTRA = 2  # plus the farther and the nearer surface nearby
NEAR = 0.15  # px: a surface this close to the answer is the same; from twice that on, another
PLACE_RADII = (1, 4)  # px around a pixel: the last answers are averaged there for comparison
LARGEST_PLACE = 4.0  # steps between candidates
LEAST_INFORMATION = 1e-3  # less than an 8-bit picture can hold
LEAST_BELIEF = -16.0  # logit of a level, relative to the best one: less is all the same
LEAST_MISFIT = 0.004**2  # a difference of one grey level of 255


@dataclass
class Answer:
    """The answer of a pass for each pixel."""

    disparity: Tensor  # (b, h, w) [px]
    spread: Tensor  # (b, h, w) [px]: how far apart its hypotheses are
    logits: Tensor  # (b, l or n, h, w) of the levels or candidates
    certainty: Tensor  # (b, h, w): logit of an error below 0.07 px, as the network sees it
    _: KW_ONLY
    hypotheses: Tensor  # (b, l) or (b, n, h, w) [px]: disparities of the logits
    information: Tensor | None = None  # (b, h, w): how strongly the views support it, after a fit
    misfit: Tensor | None = None  # (b, h, w): squared difference of the views, after the last fit
    lead: Tensor | None = None  # (b, h, w): how much better it fits than those beside it
    reach: Tensor | None = None  # (b, h, w) in [0, 1]: less where it comes from elsewhere
    baseline: Tensor | None = None  # (b) [steps]: mean distance of the views it was fitted to
    doubt: Tensor | None = None  # (b, h, w): of the choice between surfaces, 0 beside edges


@dataclass
class Memory:
    """What later passes know about the first."""

    levels: Tensor  # (b, l) [px]
    logits: Tensor  # (b, l, h, w)
    picture: Tensor  # (b, 3, h, w): the reference view, 0 where it is absent


Maps = TypeVar("Maps", Answer, Memory)


def only(maps: Maps, index: int) -> Maps:
    """The maps of one picture out of several."""
    fields = vars(maps).items()
    own = {name: value[index : index + 1] for name, value in fields if value is not None}
    return replace(maps, **own)


def signs(answer: Answer) -> tuple[Tensor, ...]:
    """Signs of a good answer (b, h, w): certainty, misfit, lead over rivals, baseline, doubt.

    The first three are averaged over 3x3 pixels, the outer ones counting half: upsampling leaves a
    pattern of every other pixel in them.
    """
    differ = torch.ones_like(answer.disparity) if answer.misfit is None else answer.misfit
    ahead = torch.zeros_like(answer.disparity) if answer.lead is None else answer.lead
    maps = torch.stack([answer.certainty, differ, ahead], 1)
    twice = F.avg_pool2d(maps, 2, 1, 1, count_include_pad=False)
    certainty, differ, ahead = F.avg_pool2d(twice, 2, 1).unbind(1)
    wide = torch.ones(len(maps)) if answer.baseline is None else answer.baseline
    baseline = torch.log(wide).to(ahead)[:, None, None].expand_as(ahead)
    doubt = torch.zeros_like(certainty) if answer.doubt is None else answer.doubt
    return certainty, torch.log(differ + LEAST_MISFIT), ahead, baseline, doubt


def said(answer: Answer) -> Tensor:
    """How strongly the views support an answer (b, h, w); 1 if it was not fitted to them."""
    if answer.information is None:
        return torch.ones_like(answer.disparity)
    return answer.information


def windowed_mean(logits: Tensor, levels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Disparity, spread and the best level's share (b, h, w): means over that level and those near.

    The mean over all levels could lie between two surfaces, on neither of them.
    """
    count = logits.shape[1]
    around = first_best(logits) + torch.arange(-WINDOW, WINDOW + 1).to(logits)[:, None, None]
    index = around.clamp(0, count - 1).long()
    there = (around >= 0) & (around < count)
    near = torch.softmax(logits.gather(1, index).masked_fill(~there, -1e4), 1)
    places = levels.to(logits).view(-1, count, 1, 1)
    mean = (near * places.expand_as(logits).gather(1, index)).sum(1)
    p = torch.softmax(logits, 1).detach()
    spread = (places - mean.detach()[:, None]).abs_().mul_(p).sum(1)
    return mean, spread, p.amax(1)


def first_best(logits: Tensor) -> Tensor:
    """Number of the best level (b, 1, h, w): as `argmax`, which takes four times as long."""
    count = logits.shape[1]
    from_last = torch.arange(count, 0, -1).to(logits)[:, None, None]
    is_best = logits.detach() == logits.detach().amax(1, keepdim=True)
    return count - (is_best * from_last).amax(1, keepdim=True)


@torch.no_grad()
def choose_candidates(disparity: Tensor, others: Tensor, step: float) -> Tensor:
    """Offsets around the last answer, then the farther and the nearer surface: (b, n, h, w)."""
    own = disparity[:, None]
    half = OFFSETS // 2
    offsets = torch.arange(-half, half + 1, device=own.device).to(own)[None, :, None, None] * step
    return torch.cat([own + offsets, others], 1)


@torch.no_grad()
def describe(candidates: Tensor, last: Answer, memory: Memory, step: float) -> Tensor:
    """What is known about the candidates before gathering evidence: (b, c, h, w).

    The first pass's logit of each; the distance of the surfaces; the distance of the last answer
    from the mean around it (evidence is relative to each pixel's own answer and cannot show this);
    its uncertainty; the step; the picture; how strongly the views support the answer.
    """
    levels = memory.levels.view(-1, memory.logits.shape[1], 1, 1)
    position = (candidates - levels[:, :1]) / (levels[:, 1:2] - levels[:, :1])
    belief = interpolate_levels(memory.logits, position).div_(4)
    own = candidates[:, OFFSETS // 2, None]
    away = (candidates[:, OFFSETS:] - own).clamp(-2, 2)
    means = [
        F.avg_pool2d(own, 2 * radius + 1, 1, radius, count_include_pad=False)
        for radius in PLACE_RADII
    ]
    places = [((own - mean) / step).clamp(-LARGEST_PLACE, LARGEST_PLACE) for mean in means]
    about = torch.stack([last.spread.clamp(max=2), torch.full_like(last.spread, 4 * step)], 1)
    firm = torch.log(said(last) + LEAST_INFORMATION)[:, None] / 4
    return torch.cat([belief, away, *places, about, memory.picture - 0.5, firm], 1)


def interpolate_levels(logits: Tensor, position: Tensor) -> Tensor:
    """How much less than the best (b, l, h, w) are logits between levels: at (b, n, h, w).

    Interpolated linearly, and by no more than LEAST_BELIEF.
    """
    best = logits.amax(1, keepdim=True)
    position = position.clamp(0, logits.shape[1] - 1)
    low = position.floor().clamp(max=logits.shape[1] - 2)
    index = low.long()
    below, above = (
        (logits.gather(1, one) - best).clamp_(min=LEAST_BELIEF) for one in (index, index + 1)
    )
    return torch.lerp(below, above, position - low)


def decide(logits: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Disparity and spread (b, h, w): the pixel's own surface, refined, or another one.

    If an extra surface is really the own one, its probability is added to the own one. Then the
    probabilities are squared: 1 % for another surface must not move an answer, but two equally
    likely ones give their mean.
    """
    p = torch.softmax(logits, 1)
    offsets = candidates[:, :OFFSETS]
    near = torch.softmax(logits[:, :OFFSETS], 1)
    own = (near * offsets).sum(1, keepdim=True)
    other = p[:, OFFSETS:] * otherness(candidates)
    stay = 1 - other.sum(1, keepdim=True)
    weights = torch.cat([stay, other], 1).square()
    weights = weights / weights.sum(1, keepdim=True)
    places = torch.cat([own, candidates[:, OFFSETS:]], 1)
    disparity = (weights * places).sum(1)
    inner = (near * (offsets - own).abs()).sum(1)
    outer = (other * (candidates[:, OFFSETS:] - own).abs()).sum(1)
    return disparity, (inner + outer).detach()


def otherness(candidates: Tensor) -> Tensor:
    """0 where an extra surface is the pixel's own, 1 where it is another one: (b, 2, h, w)."""
    away = (candidates[:, OFFSETS:] - candidates[:, OFFSETS // 2, None]).abs()
    return ((away - NEAR) / NEAR).clamp(0, 1)
