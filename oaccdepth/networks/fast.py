"""FastNet, the compact occlusion-aware network: tensors in, tensors out; no files, no devices.

In the first pass, a small 3D hourglass combines the evidence of all levels: votes and their
semi-global aggregation. Every further pass chooses candidates around the last answer (sub-pixel
offsets, and the farther and the nearer of the surfaces that meet nearby), gathers their evidence
under the occlusion masks implied by that answer, and gives a new answer (docs/method.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth import evidence
from oaccdepth.evidence.edges import PLACES, SIGNS, find_edges
from oaccdepth.evidence.fit import fewer, fit
from oaccdepth.evidence.noise import calmed, measured
from oaccdepth.evidence.reach import apart, lead, misfit, reach, some
from oaccdepth.evidence.surfaces import FIELDS, surfaces
from oaccdepth.evidence.views import Views, present, thin_out
from oaccdepth.networks.answers import (
    EXTRA,
    OFFSETS,
    PLACE_RADII,
    Answer,
    Memory,
    choose_candidates,
    decide,
    describe,
    only,
    signs,
    windowed_mean,
)
from oaccdepth.networks.blocks import Hourglass, UNet, by_level, join, plus
from oaccdepth.networks.paper import LEAK, as_line
from oaccdepth.networks.strips import STRIP, assemble, cut_strips, kept_of

ALIGNMENT = 8  # the hourglass halves the picture three times
SUB_LEVELS = 2  # neighbouring levels that share one position as channels
LEVELS = 34  # of the first pass in training, from -4 px on
PRIOR = slice(2 * evidence.MEANS, 2 * evidence.MEANS + 2)  # channels: all votes, aggregated
MEETING = FIELDS - EXTRA  # what is known of where these two meet
EDGE_CHANNELS = 64  # if what decides edges is trained
AT_ONCE = 1 << 13  # pixels on edges, so that they stay in the cache
# px that an answer depends on: 24 + 12 + 4 + 3 for layers, plus blocks of 8, upsampling, context
RECEPTIVE_MARGIN = 64

InTiles = Callable[..., Any]


@dataclass(frozen=True)
class FastConfig:
    """The shape of the network; stored with its weights."""

    BOUNDS: ClassVar[dict[str, tuple[float, float]]] = {
        "level_step": (0.01, 4),
        "refine_steps": (0.001, 4),
        "refine_views": (1, 1000),
        "edge_channels": (0, 2048),
        "squarings": (-1, 8),
        "certainty": (-100, 100),
        "lead": (-100, 100),
        "baseline": (-100, 100),
        "doubt": (-100, 100),
    }

    channels: tuple[int, int, int, int] = (16, 32, 48, 64)  # full, half, quarter, eighth resolution
    refine_channels: tuple[int, int, int] = (48, 64, 96)  # full, half, quarter resolution
    edge_channels: int = 0  # of what decides edges; 0: not trained, and edges stay as they are
    level_step: float = 0.25  # px between levels of the first pass
    refine_steps: tuple[float, ...] = (0.1, 0.06)  # px between candidates of later passes
    refine_views: int = 20  # number of views that later passes use; 28 were no better
    squarings: int = 3  # of the mask, Eq. 8: q = 2 ** squarings; -1: no masks
    iterations: int = 2
    # logistic regression from the signs of a good answer to a probability: weights of certainty
    # and misfit, offset; weights of the other signs, 0 in weights from before these were signs
    certainty: tuple[float, float, float] = (1.0, 0.0, 0.0)
    lead: float = 0.0
    baseline: float = 0.0
    doubt: float = 0.0


@dataclass
class Entrance:
    """How evidence enters the hourglass: one layer, joined with the context of the picture."""

    own: Tensor  # (b, 1, c, h, w): the context, the same for all levels
    weight: Tensor
    bias: Tensor
    finish: nn.Module  # what follows

    def join(self, given: Tensor, rows: slice) -> Tensor:
        """Some rows of the evidence (b*l/2, 24, rows, w) uint8 to channels (b*l/2, c, rows, w)."""
        x = given.to(self.own.dtype).contiguous(memory_format=torch.channels_last)
        x = by_level(F.conv2d(x, self.weight, self.bias), len(x) // len(self.own))
        joined: Tensor = self.finish(plus(x, self.own[..., rows, :]).flatten(0, 1))
        return joined


class FastNet(nn.Module):
    """The network of the bundled weights."""

    def __init__(self, config: FastConfig = FastConfig()) -> None:  # noqa: B008 (frozen)
        super().__init__()
        self.config = config
        full = config.channels[0]
        self.enter = nn.Conv2d(SUB_LEVELS * evidence.KINDS, full, 1)
        self.enter_norm = nn.Sequential(nn.BatchNorm2d(full), nn.LeakyReLU(LEAK, inplace=True))
        self.context = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.LeakyReLU(LEAK, inplace=True),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.LeakyReLU(LEAK, inplace=True),
            nn.Conv2d(16, full, 3, padding=1),
        )
        self.hourglass = Hourglass(*config.channels, out=SUB_LEVELS)
        self.beta = nn.Parameter(torch.tensor(20.0))
        self.certain = nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 1, 1))
        self.refinement = Refinement(config.refine_channels)
        self.edges = edge_choice(config.edge_channels) if config.edge_channels else None

    def passes(
        self,
        views: Views,
        levels: Tensor,
        iterations: int | None = None,
        in_tiles: InTiles | None = None,
        later: Callable[[], Views] | None = None,
    ) -> Iterator[Answer]:
        """Yield the answer of every pass; the last one is fitted and is the result.

        `in_tiles(step, *maps)` may run a step on parts of a picture: all maps that a step takes
        or returns are (..., h, w). `later()` gives the views that `for_later` chooses, when they
        are needed; without it, they are kept from the beginning. Noisy views are overwritten.
        """
        views = measured(views, levels)
        kept = torch.arange(0) if later else self.for_later(views.steps)
        chosen = [views.only(kept)]
        views = calmed(views, in_place=True)
        volume = self.sweep(views, levels)[None]  # (1, l/2, 24, h, w) uint8
        further = (iterations or self.config.iterations) - 1
        answers = self.answers(volume, chosen, levels[None], further, in_tiles)
        del views, volume  # here and below: free memory that is no longer needed
        for number, answer in enumerate(answers):
            if number == 0 and later:
                chosen[0] = replace(later(), noise=chosen[0].noise)
            yield self.polish(chosen[0], answer, 2) if number == further else answer

    def for_later(self, steps: Tensor) -> Tensor:
        """Numbers of the views that later passes look at."""
        return thin_out(steps, self.config.refine_views)

    def answers(
        self,
        volume: Tensor,
        views: Sequence[Views],
        levels: Tensor,
        further: int,
        in_tiles: InTiles | None = None,
    ) -> Iterator[Answer]:
        """The first pass and `further` ones over pictures or patches with known evidence.

        Volume (b, l/2, 24, h, w) uint8, levels (b, l), and the views that later passes use.
        """
        run = in_tiles or (lambda step, *maps: step(*maps))
        picture = torch.stack([colour(one.reference) for one in views])
        first = partial(self.first_pass, levels=levels)
        answer = Answer(*run(first, volume, picture), hypotheses=levels)
        del volume
        memory = Memory(levels, answer.logits.detach(), picture)
        yield answer
        for number in range(further):
            given = self.prepare_all(views, answer, memory, number)
            answer = Answer(*run(self.refinement, *given), hypotheses=given[-1])
            yield answer

    def prepare_all(
        self, views: Sequence[Views], answer: Answer, memory: Memory, number: int
    ) -> tuple[Tensor, ...]:
        """The same as `prepare` for several pictures."""
        given = [
            self.prepare(one, only(answer, index), only(memory, index), number)
            for index, one in enumerate(views)
        ]
        return given[0] if len(given) == 1 else tuple(map(torch.cat, zip(*given, strict=True)))

    def prepare(
        self, views: Views, answer: Answer, memory: Memory, number: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The input of a refinement: evidence, what is known, and the candidates (1, n, h, w)."""
        answer = self.polish(views, answer, 1)
        step = self.refine_step(number)
        met = surfaces(answer.disparity[0], fewer(views))[None]
        candidates = choose_candidates(answer.disparity, met[:, :EXTRA], step)
        known = torch.cat([describe(candidates, answer, memory, step), met[:, EXTRA:]], 1)
        return self.look(views, candidates), known, candidates

    def sweep(self, views: Views, levels: Tensor) -> Tensor:
        """Evidence at all levels (l/2, 24, h, w) uint8."""
        return evidence.sweep(views, levels)

    @torch.no_grad()
    def polish(self, views: Views, answer: Answer, times: int) -> Answer:
        """Fit an answer to the views: before each refinement, and after the last one."""
        asked, disparity = fewer(views), answer.disparity[0]
        if times > 1:
            disparity, doubt = self.settle(fit(asked, disparity, 1)[0], views.reference)
        disparity, information = fit(asked, disparity, times)
        answer = replace(answer, information=information[None])
        if times > 1:
            compared = some(asked)
            differences = apart(compared, disparity)
            answer = replace(
                answer,
                misfit=misfit(differences)[None],
                lead=lead(compared, disparity, differences)[None],
                reach=reach(asked, disparity, differences, information)[None],
                baseline=views.baseline[None],
                doubt=doubt[None],
            )
        return replace(answer, disparity=disparity[None])

    def add_edges(self) -> None:
        """Add what decides edges, untrained, if it is missing."""
        if self.edges is None:
            self.config = replace(self.config, edge_channels=EDGE_CHANNELS)
            self.edges = edge_choice(EDGE_CHANNELS)

    @torch.no_grad()
    def settle(self, disparity: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
        """Give every pixel on an edge of a fitted map (h, w) [px] the surface that it shows.

        Also says how doubtful that is (h, w): how likely another choice would be better.
        """
        doubt = torch.zeros_like(disparity)
        if self.edges is None:
            return disparity, doubt
        with torch.autocast(disparity.device.type, enabled=False):
            found = find_edges(disparity, reference)
            scores = torch.cat([self.edges(some) for some in torch.split(found.signs, AT_ONCE)])
            likely, choice = torch.softmax(scores, 1).max(1, keepdim=True)
        settled = disparity.flatten().clone()
        settled[found.where] = found.places.gather(1, choice)[:, 0]
        doubt.view(-1)[found.where] = 1 - likely[:, 0]
        return settled.view_as(disparity), doubt

    def first_pass(self, volume: Tensor, picture: Tensor, levels: Tensor) -> tuple[Tensor, ...]:
        """Evidence (b, l/2, 24, h, w) uint8 to the fields of an Answer."""
        pairs = volume.shape[1]
        entrance = self.entrance(picture)
        strips = cut_strips(volume.shape[-2], STRIP if not self.training else volume.shape[-2])
        entered = assemble(
            (self.begin(volume, entrance, *strip) for strip in strips), volume.shape[-2]
        )
        # No name holds on to what goes in, so that its memory can be used again.
        half = self.hourglass.mix_levels(self.halve(entered, strips), pairs)
        fields = []
        for rows, wide in strips:
            below = half[..., wide.start // 2 : wide.stop // 2, :]
            found = self.hourglass.enlarge(entered[..., wide, :], below)
            change = by_level(found[..., kept_of(rows, wide), :], pairs)
            fields.append(self.answer(change, volume[:, :, PRIOR, rows], levels))
        return tuple(torch.cat(parts, -2) for parts in zip(*fields, strict=True))

    def halve(self, entered: Tensor, strips: list[tuple[slice, slice]]) -> Tensor:
        """What entered, strip by strip, to half the resolution."""
        halves = ((self.hourglass.to_half(entered[..., rows, :]),) for rows, _ in strips)
        return assemble(halves, entered.shape[-2] // 2)

    def answer(self, change: Tensor, aggregated: Tensor, levels: Tensor) -> tuple[Tensor, ...]:
        """What the hourglass adds to the aggregated evidence (b, l/2, 2, h, w) -> an Answer."""
        prior = aggregated.to(torch.float32).flatten(1, 2)  # (b, l, h, w) in 0..255
        logits = change.flatten(1, 2) - self.beta / 255 * prior
        disparity, spread, best = windowed_mean(logits, levels)
        about = torch.stack([best, spread, prior.mean(1) / 255], 1).detach()
        return disparity, spread, logits, self.certain(about)[:, 0]

    def entrance(self, picture: Tensor) -> Entrance:
        """How evidence enters the hourglass, beside the context of the picture."""
        own = self.context(picture.contiguous(memory_format=torch.channels_last))[:, None]
        norm, activation = self.enter_norm
        assert isinstance(norm, nn.BatchNorm2d) and self.enter.bias is not None
        weight, bias = self.enter.weight / 255, self.enter.bias  # the evidence is in 0..255
        if norm.training:
            return Entrance(own, weight, bias, self.enter_norm)
        scale, offset = as_line(norm)  # as in `ConvNorm`: one pass over memory, not two
        own = own * scale.view(-1, 1, 1).to(own.dtype)
        return Entrance(own, weight * scale.view(-1, 1, 1, 1), bias * scale + offset, activation)

    def begin(
        self, volume: Tensor, entrance: Entrance, rows: slice, wide: slice
    ) -> tuple[Tensor, Tensor]:
        """Some rows of the evidence enter the hourglass: two terms (b*l/2, c, rows, w)."""
        x = entrance.join(volume[..., wide, :].flatten(0, 1), wide)
        kept = kept_of(rows, wide)
        return self.hourglass.detail(x)[..., kept, :], x[..., kept, :]

    def refine_step(self, number: int) -> float:
        """Pixels between the candidates of this refinement; later ones reuse the last value."""
        return self.config.refine_steps[min(number, len(self.config.refine_steps) - 1)]

    def confidence(self, answer: Answer) -> Tensor:
        """The probability that an answer's error is below 0.07 px (b, h, w).

        It is 0 far from any texture, where the views say nothing.
        """
        certainty, misfit, offset = self.config.certainty
        own, differ, ahead, wide, doubt = signs(answer)
        logit = certainty * own + misfit * differ + offset + self.config.doubt * doubt
        sure = torch.sigmoid(logit + self.config.lead * ahead + self.config.baseline * wide)
        return sure if answer.reach is None else sure * answer.reach

    @torch.no_grad()
    def look(self, views: Views, candidates: Tensor) -> Tensor:
        """Evidence at candidates (1, n, h, w) under the masks of the middle one: (1, c, h, w)."""
        base = candidates[0, OFFSETS // 2]
        return evidence.look(calmed(views), candidates[0], base, self.config.squarings)[None]


def edge_choice(channels: int) -> nn.Sequential:
    """What decides edges: signs (n, SIGNS) to scores of the farther, the nearer, the own answer.

    Signs of any size count alike. Untrained, it leaves every pixel as it is.
    """
    norm = nn.BatchNorm1d(SIGNS, affine=False)
    last = nn.Linear(channels, PLACES)
    nn.init.zeros_(last.weight)
    with torch.no_grad():
        last.bias.copy_(torch.tensor([0.0, 0.0, 1.0]))
    first, second = nn.Linear(SIGNS, channels), nn.Linear(channels, channels)
    return nn.Sequential(norm, first, nn.ReLU(), second, nn.ReLU(), last)


class Refinement(nn.Module):
    """Weighs the candidates of every pixel by their evidence."""

    def __init__(self, channels: tuple[int, int, int]) -> None:
        super().__init__()
        count = OFFSETS + EXTRA
        known = count + EXTRA + len(PLACE_RADII) + 2 + 3 + 1 + MEETING  # see `prepare`
        self.net = UNet(evidence.MEANS * count + 1 + known, channels, count + 1)
        self.beta = nn.Parameter(torch.tensor(12.0))

    def forward(self, seen: Tensor, known: Tensor, candidates: Tensor) -> tuple[Tensor, ...]:
        """From evidence, what is known, and candidates (b, n, h, w) to the fields of an Answer."""
        count = OFFSETS + EXTRA
        found = self.net(join([seen, known]))
        votes = seen[:, :-1].movedim(1, -1)  # (b, h, w, c): as they lie in memory
        votes = votes.reshape(*votes.shape[:3], count, evidence.MEANS).mean(-1).movedim(-1, 1)
        prior = F.avg_pool2d(votes, 3, 1, 1, count_include_pad=False)
        logits = found[:, :count].float() - self.beta * prior
        disparity, spread = decide(logits, candidates)
        return disparity, spread, logits, found[:, count].float()


def colour(reference: Tensor) -> Tensor:
    """The reference view as three channels (3, h, w) in [0, 1]; 0 where it is absent."""
    return present(reference).expand(3, -1, -1)
