"""FastNet, the compact occlusion-aware network: tensors in, tensors out; no files, no devices.

Pass 1 sweeps integer disparities; every further pass looks again, at sub-pixel offsets around the
answer of the last one, with the occlusion masks that this answer implies. What both feed to their
3D hourglass is evidence, not intensity: the residual of every view to the centre pixel, and a
saturating vote, so that occluders cannot outvote what is seen (docs/method.md).

Views come as (b, u, v, h + 2*MARGIN, w + 2*MARGIN) grey in [0, 1]. A sample that must not vote
(outside the frame, a view that does not exist, a vignetted pixel) holds ABSENT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth.evidence.sweep import (
    SMALLEST_SUM,
    compare,
    fit,
    interpolate_levels,
    power,
    presence,
    share_there,
    silence,
    warp,
    with_presence,
)
from oaccdepth.networks.blocks import Hourglass, Projection, by_level, same
from oaccdepth.networks.edges import (
    EDGE_REACH,
    VOTE_GAINS,
    Choice,
    EdgeNet,
    average_surface,
    surfaces_around,
)
from oaccdepth.networks.paper import LEAK, angular_patch

FIT_DAMPING = 0.25  # of the mean squared slope over the views: where nothing tells, nothing moves
FARTHEST_FIT = 0.1  # px that an answer is moved at the end
SMALLEST_ROOM = 0.02  # px between candidates at the very end of the reach
STRIP_SAMPLES = 1 << 21  # of evidence at a time outside of training: 16 MiB, about a core's cache
ALIGNMENT = 8  # the hourglass halves the picture three times
PLACE_RADII = (1, 4)  # px around a pixel, over which the last answers are averaged for comparison
LARGEST_PLACE = 4.0  # steps between candidates


@dataclass(frozen=True)
class FastConfig:
    """The shape of the network; stored with its weights."""

    grid: tuple[int, int] = (9, 9)
    reach: int = 4  # disparities from -reach to reach [px]
    channels: tuple[int, int, int, int] = (16, 32, 48, 64)  # full, half, quarter, eighth resolution
    refine_channels: tuple[int, int, int, int] = (16, 24, 32, 48)
    num_offsets: int = 5  # candidates around the last answer
    smallest_step: float = 0.125  # between candidates [px]
    largest_step: float = 0.5
    vote_gain: float = 12.0  # residual at which a vote is full: 1 / gain
    refine_vote_gain: float = 24.0
    decay: float = 8.0  # q of the mask, Eq. 8
    smoothing_radius: int = 4  # px around a pixel that a refined answer is averaged over; 0: none
    smoothing_tolerance: float = 0.1  # px of disparity, within which neighbours count
    iterations: int = 2

    @property
    def margin(self) -> int:
        """Pixels around the picture that a view may be shifted by."""
        return self.reach * (max(self.grid) // 2)

    @property
    def receptive_margin(self) -> int:
        """Pixels of the centre view around a pixel that one pass may look at.

        3 layers at an eighth, 3 at a quarter, 2 at half and 3 at full resolution, three
        enlargements, blocks of 8 px, and a context of 3 px: 24 + 12 + 4 + 3 + 8 + 4 + 7 + 3. Then
        the choice of surfaces, the means nearby, the smoothing and the last fit; tiles begin at
        multiples of the alignment.
        """
        reach = 65 + EDGE_REACH + max(PLACE_RADII) + 2 * self.smoothing_radius
        return -(-reach // ALIGNMENT) * ALIGNMENT

    @property
    def num_levels(self) -> int:
        """Disparities of the first pass."""
        return 2 * self.reach + 1


@dataclass
class PassState:
    """What a pass knows of each pixel, for the loss, the next pass and the caller."""

    disparity: Tensor  # (b, h, w) [px]
    spread: Tensor  # (b, h, w) [px]: how far apart its hypotheses lie
    logits: Tensor  # (b, l, h, w)
    candidates: Tensor  # (b, l, h, w) or (1, l, 1, 1) [px]
    summary: Tensor  # (b, c, h, w) features at the answer
    mask: Tensor | None = None  # (b, u*v, h, w) in [0, 1]: what the pass modulated with
    choice: Choice | None = None  # of surfaces, that the pass began with


class FastNet(nn.Module):
    """The network of the bundled weights."""

    def __init__(self, config: FastConfig = FastConfig()) -> None:  # noqa: B008 (frozen)
        super().__init__()
        self.config = config
        full, refine_full = config.channels[0], config.refine_channels[0]
        self.project = Projection(2, config.grid, full)
        self.enter = nn.Sequential(nn.BatchNorm2d(full), nn.LeakyReLU(LEAK, inplace=True))
        self.hourglass = Hourglass(*config.channels)
        self.context = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.LeakyReLU(LEAK, inplace=True),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.LeakyReLU(LEAK, inplace=True),
            nn.Conv2d(16, full + refine_full, 3, padding=1),
        )
        self.beta = nn.Parameter(torch.tensor(8.0))
        self.refine_project = Projection(2, config.grid, refine_full)
        self.mask_project = Projection(1, config.grid, refine_full)
        self.link = nn.Conv2d(full + 2, refine_full, 1)
        self.belief = nn.Parameter(torch.zeros(refine_full))  # of a candidate, from the first pass
        self.place = nn.Parameter(torch.zeros(len(PLACE_RADII), refine_full))
        self.refine_enter = nn.Sequential(
            nn.BatchNorm2d(refine_full), nn.LeakyReLU(LEAK, inplace=True)
        )
        self.refine_detail = same(refine_full, refine_full)
        nn.init.zeros_(self.refine_detail.norm.weight)  # it adds nothing at first
        self.refine_hourglass = Hourglass(*config.refine_channels)
        self.refine_beta = nn.Parameter(torch.tensor(8.0))
        self.certain = nn.Conv2d(refine_full + 2, 1, 1)
        self.edges = EdgeNet(config.grid, full + refine_full)

    def forward(self, views: Tensor, iterations: int | None = None) -> list[PassState]:
        """Every pass in turn; the last one's disparity is the answer."""
        first, context = self.first_pass(views)
        passes = [first]
        for _ in range((iterations or self.config.iterations) - 1):
            passes.append(self.refine(views, passes[-1], first, context))
        if len(passes) > 1 and not self.training:
            passes[-1] = self.polish(views, passes[-1])
        return passes

    def first_pass(self, views: Tensor) -> tuple[PassState, Tensor]:
        """Plane sweep over the integer disparities, and the context that later passes reuse."""
        config = self.config
        context = self.context(self.centre(views)[:, None])  # (b, c + c', h, w)
        own, later = context.split((config.channels[0], config.refine_channels[0]), 1)
        x, prior = self.sweep(views, own)  # (b*l, c, h, w), (b, l, h, w)
        logits, features = self.hourglass(x, config.num_levels)
        prior = F.avg_pool2d(prior, 5, 1, 2, count_include_pad=False)
        levels = torch.arange(-config.reach, config.reach + 1, device=views.device)
        candidates = levels.to(logits)[None, :, None, None]
        state = answer(logits - self.beta * prior, candidates, features, windowed=True)
        return state, later

    def refine(
        self, views: Tensor, last: PassState, first: PassState, context: Tensor
    ) -> PassState:
        """One occlusion-aware, sub-pixel pass; the same weights serve every further one."""
        choice = self.settle(views, last, first, context)
        return self.look_again(views, choice, first, context)

    def look_again(
        self, views: Tensor, choice: Choice, first: PassState, context: Tensor
    ) -> PassState:
        """What the views say around the chosen surfaces."""
        config = self.config
        candidates = self.choose_candidates(choice)  # (b, n, h, w)
        step = candidates[:, -1:] - candidates[:, :1]
        about = torch.cat([first.summary, choice.spread.detach()[:, None], step], 1)
        shared = context + self.link(about)
        belief = interpolate_levels(first.logits, candidates + config.reach)  # (b, n, h, w)
        each = torch.cat([belief[:, :, None], places(candidates)], 2)  # (b, n, 1 + p, h, w)
        x, prior, mask = self.look_closer(views, candidates, shared, each)
        x = x + self.refine_detail(x)
        logits, features = self.refine_hourglass(x, config.num_offsets)
        prior = F.avg_pool2d(prior, 3, 1, 1, count_include_pad=False)
        logits = logits - self.refine_beta * prior
        state = answer(logits, candidates, features, windowed=False)
        # a refined answer is relative to each pixel's own last answer, so the hourglass cannot see,
        # and repeats, how much neighbours differ from each other
        state.disparity = self.average(state.disparity[:, None], state.disparity)[:, 0]
        state.mask, state.choice = mask, choice
        return state

    def polish(self, views: Tensor, state: PassState) -> PassState:
        """The last answer moved to where the samples of its surface fit best: no weights needed."""
        parts = []
        for rows in self._strips(views, 2):
            strip = self._with_margin(views, rows)
            found = fit(strip, self.centre(strip), state.disparity[:, rows], self.config.margin)
            parts.append((found,))
        slope, curvature = self.average(join(parts)[0], state.disparity).unbind(1)
        step = -slope / (curvature + FIT_DAMPING)
        moved = state.disparity + step.clamp(-FARTHEST_FIT, FARTHEST_FIT)
        return replace(state, disparity=moved.clamp(-self.config.reach, self.config.reach))

    def average(self, values: Tensor, disparity: Tensor) -> Tensor:
        """Means of values (b, k, h, w) over each pixel's surface."""
        radius, tolerance = self.config.smoothing_radius, self.config.smoothing_tolerance
        return average_surface(values, disparity, radius, tolerance)

    def settle(self, views: Tensor, last: PassState, first: PassState, context: Tensor) -> Choice:
        """Choose anew between the surfaces around each pixel."""
        with torch.no_grad():
            surfaces = surfaces_around(last.disparity)
        evidence, votes = self.look_at_surfaces(views, surfaces)
        belief = interpolate_levels(first.logits, surfaces + self.config.reach)
        about = torch.cat([first.summary, context], 1)
        choice: Choice = self.edges(
            evidence, votes, surfaces, belief.detach(), about.detach(), last.spread
        )
        return choice

    def look_at_surfaces(self, views: Tensor, surfaces: Tensor) -> tuple[Tensor, Tensor]:
        """Evidence at surfaces (b, s, h, w), projected (b*s, c, h, w); mean votes (b, s, h, w)."""
        grid = (views.shape[1], views.shape[2])
        parts = []
        for rows in self._strips(views, surfaces.shape[1]):
            strip = self._with_margin(views, rows)
            evidence, votes = self.surface_evidence(strip, surfaces[:, :, rows])
            parts.append((self.edges.project(evidence, grid), votes))
        projected, votes = join(parts)
        return projected, votes

    @torch.no_grad()
    def surface_evidence(self, views: Tensor, surfaces: Tensor) -> tuple[Tensor, Tensor]:
        """Residuals and votes at the surfaces (b*s, 2*u*v, h, w); the votes' mean (b, s, h, w).

        Of all views that are there, without masks: who hides the one surface shows the other.
        """
        config = self.config
        centre = self.centre(views)[:, None]
        num_full = config.grid[0] * config.grid[1]
        b, n, h, w = surfaces.shape
        num_views = views.shape[1] * views.shape[2]
        kinds = 1 + len(VOTE_GAINS)
        evidence = views.new_empty(b, n, kinds, num_views, h, w)
        for index, sample in enumerate(warp(views, surfaces, config.margin)):
            part = evidence[:, index]
            compare(sample.clamp(min=0), centre, VOTE_GAINS, part.movedim(1, 0))
            present = share_there(sample)
            present *= num_full / present.sum(1, keepdim=True).clamp(min=SMALLEST_SUM)
            part *= present[:, None]
        votes = evidence[:, :, 1].sum(2) / num_full
        return evidence.view(b * n, kinds * num_views, h, w), votes

    def sweep(self, views: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Evidence at the integer disparities with its context (b*l, c, h, w), ready to be mixed.

        And the mean votes (b, l, h, w). Outside of training a few rows at a time: all the evidence
        of a picture would be gigabytes, and what stays in the cache is quick.
        """
        grid = (views.shape[1], views.shape[2])
        parts = []
        for rows in self._strips(views, self.config.num_levels):
            evidence, votes = self.sweep_evidence(self._with_margin(views, rows))
            x = by_level(self.project(evidence, grid), self.config.num_levels)
            x = x + context[:, None, :, rows]
            parts.append((self.enter(x.flatten(0, 1)), votes))
        entered, votes = join(parts)
        return entered, votes

    def look_closer(
        self, views: Tensor, candidates: Tensor, shared: Tensor, each: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Evidence at the candidates and of the masks (b*n, c, h, w), ready to be mixed.

        With what is known of all candidates (b, c, h, w) and of each (b, n, k, h, w). And the mean
        votes (b, n, h, w) and the masks (b, u*v, h, w).
        """
        grid = (views.shape[1], views.shape[2])
        weights = torch.cat([self.belief[None], self.place])  # (k, c)
        parts = []
        pictures = with_presence(views)  # once: strips overlap by far
        for rows in self._strips(views, self.config.num_offsets):
            strip = self._with_margin(pictures, rows)
            evidence, votes, mask, relative = self.warp_evidence(strip, candidates[:, :, rows])
            x = by_level(self.refine_project(evidence, grid), self.config.num_offsets)
            x = x + (shared[:, :, rows] + self.mask_project(relative, grid))[:, None]
            x = x + torch.einsum("bnkhw,kc->bnchw", each[..., rows, :], weights)
            parts.append((self.refine_enter(x.flatten(0, 1)), votes, mask))
        entered, votes, mask = join(parts)
        return entered, votes, mask

    def _strips(self, views: Tensor, num_levels: int) -> list[slice]:
        """Rows to treat together."""
        height, width = (side - 2 * self.config.margin for side in views.shape[-2:])
        count = height
        if not self.training:
            per_row = num_levels * views.shape[0] * views.shape[1] * views.shape[2] * width
            count = max(1, min(height, STRIP_SAMPLES // per_row))
        return [slice(start, min(start + count, height)) for start in range(0, height, count)]

    def _with_margin(self, views: Tensor, rows: slice) -> Tensor:
        return views[..., rows.start : rows.stop + 2 * self.config.margin, :]

    def certainty(self, state: PassState) -> Tensor:
        """Logit of the probability that the error is below 0.07 px (b, h, w), after refining."""
        likely = torch.softmax(state.logits, 1).amax(1, keepdim=True)
        about = torch.cat([state.summary, likely, state.spread[:, None]], 1).detach()
        logit: Tensor = self.certain(about)[:, 0]
        return logit

    def confidence(self, state: PassState, refined: bool) -> Tensor:
        """In [0, 1] (b, h, w): how likely the error is below 0.07 px; unrefined, the best level."""
        if refined:
            return torch.sigmoid(self.certainty(state))
        return torch.softmax(state.logits, 1).amax(1)

    def centre(self, views: Tensor) -> Tensor:
        """The centre view without its margin (b, h, w); 0 where it is absent."""
        margin = self.config.margin
        u, v = views.shape[1] // 2, views.shape[2] // 2
        return views[:, u, v, margin:-margin, margin:-margin].clamp(min=0)

    @torch.no_grad()
    def sweep_evidence(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """Residuals and votes at the integer disparities (b*l, 2*u*v, h, w).

        And the mean over the views of the votes (b, l, h, w): a classical matching cost.
        """
        config = self.config
        centre = self.centre(views)
        b, u, v = views.shape[:3]
        h, w = centre.shape[-2:]
        evidence = views.new_empty(b, config.num_levels, 2, u, v, h, w)
        votes = views.new_empty(b, config.num_levels, h, w)
        for sample in range(b):  # one after the other: they stay in the cache, few are incomplete
            num_absent = config.grid[0] * config.grid[1] - u * v
            is_complete = num_absent == 0 and bool(views[sample].amin() >= 0)
            for index, d in enumerate(range(-config.reach, config.reach + 1)):
                patch = angular_patch(views[sample : sample + 1], d, config.margin)[0]
                compare(patch, centre[sample], (config.vote_gain,), evidence[sample, index])
                if not is_complete:
                    silence(evidence[sample, index], patch, config.grid[0] * config.grid[1])
            votes[sample] = evidence[sample, :, 1].sum((1, 2)) / (config.grid[0] * config.grid[1])
        return evidence.view(b * config.num_levels, 2 * u * v, h, w), votes

    @torch.no_grad()
    def choose_candidates(self, last: Choice) -> Tensor:
        """Disparities around the last answer, wider apart where it was torn. (b, n, h, w)."""
        config = self.config
        half = config.num_offsets // 2
        step = last.spread.clamp(config.smallest_step, config.largest_step)
        # the views' margin is for the reach, no further
        room = (config.reach - last.disparity.abs()) / half
        step = step.minimum(room.clamp(min=SMALLEST_ROOM))[:, None]
        offsets = torch.arange(-half, half + 1, device=step.device).to(step)[None, :, None, None]
        return last.disparity[:, None] + step * offsets

    @torch.no_grad()
    def warp_evidence(
        self, pictures: Tensor, candidates: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Residuals and votes at the candidates, modulated by the mask of the middle one.

        Of views `with_presence`: (b*n, 2*u*v, h, w); the votes' mean (b, n, h, w); the mask
        (b, u*v, h, w) in [0, 1], and the same divided by its mean over the views.
        """
        config = self.config
        views = pictures[:, :, :, 0]
        centre = self.centre(views)[:, None]  # (b, 1, h, w)
        n, middle = candidates.shape[1], candidates.shape[1] // 2
        at_middle = warp(pictures, candidates[:, middle, None], config.margin)[0]
        before = warp(views, candidates[:, :middle], config.margin)
        after = warp(views, candidates[:, middle + 1 :], config.margin)
        samples = [*before, at_middle[:, :, 0], *after]
        mask = self.visible(views, samples[middle]) * presence(at_middle[:, :, 1])
        b, num_views, h, w = mask.shape
        num_full = config.grid[0] * config.grid[1]
        relative = mask * (num_full / mask.sum(1, keepdim=True).clamp(min=SMALLEST_SUM))
        evidence = mask.new_empty(b, n, 2, num_views, h, w)
        gains = (config.refine_vote_gain,)
        for index, sample in enumerate(samples):
            compare(sample, centre, gains, evidence[:, index].movedim(1, 0))
        evidence *= relative[:, None, None]
        votes = evidence[:, :, 1].sum(2) / num_full
        return evidence.view(b * n, 2 * num_views, h, w), votes, mask, relative

    def visible(self, views: Tensor, samples: Tensor) -> Tensor:
        """The occlusion mask (b, u*v, h, w) of samples, as if all of them were there."""
        misfit = (samples - self.centre(views)[:, None]).abs_()
        mask = power(misfit.neg_().add_(1).clamp_(min=0), self.config.decay)  # Eq. 8
        mask[:, samples.shape[1] // 2] = 1.0  # the centre view sees all of itself
        return mask


@torch.no_grad()
def places(candidates: Tensor) -> Tensor:
    """How many steps candidates lie from the mean of the last answers nearby.

    (b, n, h, w) to (b, n, p, h, w). Without it a pass would not see how neighbours differ from each
    other: what it looks at is relative to each pixel's own last answer.
    """
    middle = candidates[:, candidates.shape[1] // 2, None]
    step = candidates[:, 1:2] - candidates[:, :1]
    means = [
        F.avg_pool2d(middle, 2 * radius + 1, 1, radius, count_include_pad=False)
        for radius in PLACE_RADII
    ]
    found = torch.stack([(candidates - mean) / step for mean in means], 2)
    return found.clamp(-LARGEST_PLACE, LARGEST_PLACE)


def answer(logits: Tensor, candidates: Tensor, features: Tensor, windowed: bool) -> PassState:
    """Disparity, spread and the features at the answer, from the logits of the candidates.

    `windowed` takes the expectation over the best level and its neighbours only: between two
    surfaces the mean of both is on neither. The spread is what the distribution's variance exceeds
    that of a value between two neighbouring levels.
    """
    p = torch.softmax(logits, 1)
    summary = torch.einsum("blhw,blchw->bchw", p, features)
    step = candidates[:, 1:2] - candidates[:, :1]
    mean = (p * candidates).sum(1, keepdim=True)
    variance = (p * (candidates - mean) ** 2).sum(1, keepdim=True)
    between = ((mean - candidates[:, :1]) / step.clamp(min=1e-6)).frac()
    excess = variance - between * (1 - between) * step**2
    spread = excess.clamp(min=1e-12).sqrt()[:, 0].detach()
    if windowed:
        best = logits.argmax(1, keepdim=True)
        index = torch.arange(logits.shape[1], device=logits.device)[None, :, None, None]
        near = p * ((index - best).abs() <= 1)
        mean = (near * candidates).sum(1, keepdim=True) / near.sum(1, keepdim=True)
    return PassState(mean[:, 0], spread, logits, candidates, summary)


def join(parts: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Strips of rows to whole pictures; (…, h, w), one tensor for each of a strip's."""
    if len(parts) == 1:
        return parts[0]
    return tuple(torch.cat(strips, -2) for strips in zip(*parts, strict=True))
