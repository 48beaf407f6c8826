"""What training minimises: tensors in, one number and its parts out."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth.evidence.fit import fewer, fit
from oaccdepth.networks.fast import (
    OFFSETS,
    Answer,
    FastNet,
    Memory,
    choose_candidates,
    colour,
    describe,
)
from oaccdepth.networks.paper import OACCNet
from oaccdepth.training.patches import GreyBatch
from oaccdepth.training.pieces import PatchBatch
from oaccdepth.training.variants import UNKNOWN

BAD = 0.07  # px: the benchmark's threshold
BETTER = 0.1  # px that another surface must be nearer to the truth, to be the right one
USUAL = 0.15  # loss of a patch that can be solved


class FastLoss(nn.Module):
    """The fast network and its loss as one module, so that DistributedDataParallel can wrap it.

    Every pass: the divergence from the truth, split between its two neighbouring candidates (it
    moves the answer from a wrong surface to the right one), the L1 error (it makes it exact), the
    share of bad pixels, softened, and how well the pass knows where it is right.
    """

    def __init__(self, network: FastNet, part: str = "") -> None:
        super().__init__()
        self.network, self.part = network, part

    def forward(self, batch: PatchBatch, iterations: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log."""
        picture = torch.stack([colour(views.reference) for views in batch.views])
        with torch.set_grad_enabled(self.part != "refinement" and torch.is_grad_enabled()):
            fields = self.network.first_pass(batch.volume, picture, batch.levels)
        answer = Answer(*fields)
        first = answer.disparity
        loss = torch.zeros_like(first.sum())
        if self.part != "refinement":
            divergence = level_divergence(answer.logits, batch.levels, batch.truth)
            loss = loss + answer_loss(answer, divergence, batch.truth, batch.valid)
        memory = Memory(batch.levels, answer.logits.detach(), picture)
        for number in range(iterations - 1):
            step = self.network.refine_step(number)
            answer, divergence = self._refine(batch, self._fitted(batch, answer), memory, step)
            loss = loss + answer_loss(answer, divergence, batch.truth, batch.valid)
        return loss, measure(first.detach(), answer.disparity.detach(), batch)

    @torch.no_grad()
    def _fitted(self, batch: PatchBatch, answer: Answer) -> Answer:
        """What a refinement starts from: the last answers, fitted to the views."""
        pairs = zip(batch.views, answer.disparity.detach().float(), strict=True)
        fits = [fit(fewer(views), disparity, 1) for views, disparity in pairs]
        disparity, information = (torch.stack(maps) for maps in zip(*fits, strict=True))
        return replace(answer, disparity=disparity, information=information)

    def _refine(
        self, batch: PatchBatch, last: Answer, memory: Memory, step: float
    ) -> tuple[Answer, Tensor]:
        """One further pass over every patch; its answer and divergence."""
        candidates = choose_candidates(last.disparity, step)
        seen = [
            self.network.look(views, part[None])
            for views, part in zip(batch.views, candidates, strict=True)
        ]
        known = describe(candidates, last, memory, step)
        answer = Answer(*self.network.refinement(torch.cat(seen), known, candidates))
        return answer, candidate_divergence(answer.logits, candidates, batch.truth, step)


def measure(first: Tensor, last: Tensor, batch: PatchBatch) -> dict[str, Tensor]:
    """Errors of the first and the last pass where the truth is known, for the log."""
    known = batch.valid & (batch.truth < UNKNOWN)
    before, after = ((maps - batch.truth).abs() for maps in (first, last))
    return {
        "l1_first": mean_over(before, known),
        "l1": mean_over(after, known),
        "bad": 100 * mean_over((after > BAD).to(after), known),
    }


def answer_loss(answer: Answer, divergence: Tensor, truth: Tensor, valid: Tensor) -> Tensor:
    """Divergence, L1 and bad pixels, softened, where the truth is known; and the certainty's loss.

    Patches of noise or without texture, which nobody could solve, would make two thirds of a plain
    mean; with the logarithm, it is worth as much to halve the loss of any patch.
    """
    error = (answer.disparity - truth).abs()
    known = valid & (truth < UNKNOWN)  # elsewhere only the certainty can be learnt
    exact = error + 0.1 * error / (error + BAD)
    patches = mean_over(divergence + exact, known, (1, 2))
    right = (error.detach() <= BAD).to(error)
    sure = F.binary_cross_entropy_with_logits(answer.certainty, right, reduction="none")
    return USUAL * torch.log1p(patches / USUAL).mean() + 0.1 * mean_over(sure, valid)


def mean_over(values: Tensor, where: Tensor, dims: tuple[int, ...] = (0, 1, 2)) -> Tensor:
    """Mean of the values that count; 0 if none does."""
    return torch.where(where, values, 0).sum(dims) / where.sum(dims).clamp(min=1)


def level_divergence(logits: Tensor, levels: Tensor, truth: Tensor) -> Tensor:
    """From the truth, as a mixture of the two levels around it, to the answer: (b, h, w)."""
    levels = levels.view(-1, logits.shape[1], 1, 1)
    position = (truth - levels[:, 0]) / (levels[:, 1] - levels[:, 0])
    return divergence_at(F.log_softmax(logits, 1), position)


def candidate_divergence(logits: Tensor, candidates: Tensor, truth: Tensor, step: float) -> Tensor:
    """The same for candidates; where another surface is the right one, from that one."""
    scores = F.log_softmax(logits, 1)
    own = candidates[:, OFFSETS // 2]
    near = divergence_at(scores[:, :OFFSETS], (truth - own) / step + OFFSETS // 2)
    away = (truth - own).abs() - step * (OFFSETS // 2)  # beyond what the offsets reach
    distance, best = (candidates[:, OFFSETS:] - truth[:, None]).abs().min(1, keepdim=True)
    other = -scores[:, OFFSETS:].gather(1, best)[:, 0]
    return torch.where(distance[:, 0] + BETTER < away, other, near)


def divergence_at(scores: Tensor, position: Tensor) -> Tensor:
    """Kullback-Leibler, from the two levels around a position (b, h, w) to scores (b, l, h, w)."""
    position = position.clamp(0, scores.shape[1] - 1)
    low = position.floor().clamp(max=scores.shape[1] - 2)
    index, share = low.long()[:, None], position - low
    below, above = scores.gather(1, index)[:, 0], scores.gather(1, index + 1)[:, 0]
    least: Tensor = torch.special.entr(share) + torch.special.entr(1 - share)  # cannot be avoided
    return -torch.lerp(below, above, share) - least


def loss_module(network: FastNet | OACCNet, part: str = "") -> nn.Module:
    """A network with the loss it is trained with."""
    return PaperLoss(network) if isinstance(network, OACCNet) else FastLoss(network, part)


class PaperLoss(nn.Module):
    """The paper's network and its loss: L1, one pass with the mask of the true disparity."""

    def __init__(self, network: OACCNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: GreyBatch, iterations: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log. The number of passes does not matter here."""
        views, truth, valid = batch.views, batch.truth, batch.valid
        margin = (views.shape[-1] - truth.shape[-1]) // 2
        inner = views[..., margin:-margin, margin:-margin]
        present = (inner >= 0).to(inner)
        error = (self.network(inner.clamp(min=0), truth, present) - truth).abs()
        weight = valid.to(truth) / valid.sum().clamp(min=1)
        loss = (error * weight).sum()
        bad = (error.detach() > BAD).to(truth)
        return loss, {"l1": loss.detach(), "bad": 100 * (bad * weight).sum()}
