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


class FastLoss(nn.Module):
    """The fast network and its loss as one module, so that DistributedDataParallel can wrap it.

    Every pass: the cross-entropy to the truth, split between its two neighbouring candidates (it
    moves the answer from a wrong surface to the right one), the L1 error (it makes it exact), the
    share of bad pixels, softened, and how well the pass knows where it is right.
    """

    def __init__(self, network: FastNet, part: str = "") -> None:
        super().__init__()
        self.network, self.part = network, part

    def forward(self, batch: PatchBatch, iterations: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log."""
        picture = torch.stack([colour(views.reference) for views in batch.views])
        weight = batch.valid.to(batch.truth) / batch.valid.sum().clamp(min=1)
        known = weight * (batch.truth < UNKNOWN)  # elsewhere only the certainty can be learnt
        with torch.set_grad_enabled(self.part != "refinement" and torch.is_grad_enabled()):
            fields = self.network.first_pass(batch.volume, picture, batch.levels)
        answer = Answer(*fields)
        error = answer.disparity - batch.truth
        loss = torch.zeros_like(error.sum())
        parts = {"l1_first": (error.abs().detach() * known).sum()}
        if self.part != "refinement":
            entropy = level_entropy(answer.logits, batch.levels, batch.truth)
            loss = loss + (entropy * known).sum() + answer_loss(answer, batch.truth, weight, known)
        memory = Memory(batch.levels, answer.logits.detach(), picture)
        if iterations > 1:
            answer = replace(answer, disparity=self._fitted(batch, answer))
        for number in range(iterations - 1):
            step = self.network.refine_step(number)
            answer, entropy = self._refine(batch, answer, memory, step)
            loss = loss + (entropy * known).sum() + answer_loss(answer, batch.truth, weight, known)
        error = (answer.disparity - batch.truth).abs().detach()
        parts["l1"] = (error * known).sum()
        parts["bad"] = 100 * ((error > BAD).to(error) * known).sum()
        return loss, parts

    @torch.no_grad()
    def _fitted(self, batch: PatchBatch, answer: Answer) -> Tensor:
        """What refinements start from: the first answers, fitted to the views (b, h, w)."""
        pairs = zip(batch.views, answer.disparity.detach().float(), strict=True)
        return torch.stack([fit(fewer(views), disparity, 1)[0] for views, disparity in pairs])

    def _refine(
        self, batch: PatchBatch, last: Answer, memory: Memory, step: float
    ) -> tuple[Answer, Tensor]:
        """One further pass over every patch; its answer and cross-entropy."""
        candidates = choose_candidates(last.disparity.detach(), step)
        seen = [
            self.network.look(views, part[None])
            for views, part in zip(batch.views, candidates, strict=True)
        ]
        known = describe(candidates, last, memory, step)
        answer = Answer(*self.network.refinement(torch.cat(seen), known, candidates))
        return answer, candidate_entropy(answer.logits, candidates, batch.truth, step)


def answer_loss(answer: Answer, truth: Tensor, weight: Tensor, known: Tensor) -> Tensor:
    """L1 and bad pixels, softened, where the truth is known; the certainty's cross-entropy."""
    error = (answer.disparity - truth).abs()
    right = (error.detach() <= BAD).to(error)
    sure = F.binary_cross_entropy_with_logits(answer.certainty, right, reduction="none")
    exact = error + 0.1 * error / (error + BAD)
    return (exact * known).sum() + 0.1 * (sure * weight).sum()


def level_entropy(logits: Tensor, levels: Tensor, truth: Tensor) -> Tensor:
    """Cross-entropy to the truth as a mixture of the two levels around it: (b, h, w)."""
    levels = levels.view(-1, logits.shape[1], 1, 1)
    position = (truth - levels[:, 0]) / (levels[:, 1] - levels[:, 0])
    return -split(F.log_softmax(logits, 1), position)


def candidate_entropy(logits: Tensor, candidates: Tensor, truth: Tensor, step: float) -> Tensor:
    """The same for candidates; where another surface is the right one, to that one."""
    scores = F.log_softmax(logits, 1)
    own = candidates[:, OFFSETS // 2]
    near = -split(scores[:, :OFFSETS], (truth - own) / step + OFFSETS // 2)
    away = (truth - own).abs() - step * (OFFSETS // 2)  # beyond what the offsets reach
    distance, best = (candidates[:, OFFSETS:] - truth[:, None]).abs().min(1, keepdim=True)
    other = -scores[:, OFFSETS:].gather(1, best)[:, 0]
    return torch.where(distance[:, 0] + BETTER < away, other, near)


def split(scores: Tensor, position: Tensor) -> Tensor:
    """Scores (b, l, h, w) between the two levels around a position (b, h, w)."""
    position = position.clamp(0, scores.shape[1] - 1)
    low = position.floor().clamp(max=scores.shape[1] - 2)
    index = low.long()[:, None]
    return torch.lerp(
        scores.gather(1, index)[:, 0], scores.gather(1, index + 1)[:, 0], position - low
    )


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
