"""What training minimises: tensors in, one number and its parts out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth.evaluation.metrics import BAD
from oaccdepth.networks.answers import OFFSETS, Answer
from oaccdepth.networks.fast import FastNet, Refinement
from oaccdepth.networks.paper import OACCNet
from oaccdepth.training.edges import EdgeBatch, costs_above_best
from oaccdepth.training.pieces import GreyBatch, PatchBatch
from oaccdepth.training.prepared import PreparedBatch
from oaccdepth.training.variants import UNKNOWN

BETTER = 0.1  # px that another surface must be nearer to the truth, to be the right one
USUAL = 0.15  # loss of a patch that can be solved
SHARE_OF_CHOICE = 0.2  # of the cross-entropy, beside the expected cost


class FastLoss(nn.Module):
    """The fast network and its loss as one module, so that DistributedDataParallel can wrap it.

    Every pass: the divergence from the truth, split between its two neighbouring candidates (it
    moves the answer from a wrong surface to the right one), the L1 error (it makes it exact), the
    share of bad pixels, softened, and how well the pass knows where it is right.
    """

    def __init__(self, network: FastNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: PatchBatch, iterations: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log."""
        answers = list(
            self.network.answers(batch.volume, batch.views, batch.levels, iterations - 1)
        )
        losses = [answer_loss(answer, batch.truth, batch.valid) for answer in answers]
        first, last = (answer.disparity.detach() for answer in (answers[0], answers[-1]))
        return torch.stack(losses).sum(), measure(first, last, batch)


class RefinementLoss(nn.Module):
    """The same for the refinement alone, of what was prepared for it beforehand."""

    def __init__(self, refinement: Refinement) -> None:
        super().__init__()
        self.refinement = refinement

    def forward(self, batch: PreparedBatch, iterations: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log. How many passes came before does not matter here."""
        fields = self.refinement(batch.seen, batch.known, batch.candidates)
        answer = Answer(*fields, hypotheses=batch.candidates)
        loss = answer_loss(answer, batch.truth, batch.valid)
        first = batch.candidates[:, OFFSETS // 2]
        return loss, measure(first, answer.disparity.detach(), batch)


class EdgeLoss(nn.Module):
    """What decides edges and its loss: how much worse its choices are than the best ones."""

    def __init__(self, edges: nn.Module) -> None:
        super().__init__()
        self.edges = edges

    def forward(self, batch: EdgeBatch, iterations: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log. The number of passes does not matter here.

        The expected cost alone would get stuck where all pixels stay as they are: so a little of
        the cross-entropy to the best choice is added, by how much there is to lose.
        """
        count = max(len(batch.signs), 1)
        self.edges.train(self.training and count > 1)  # one pixel has no deviation
        scores = self.edges(batch.signs).float()
        costs = costs_above_best(batch.errors)
        expected = (torch.softmax(scores, 1) * costs).sum(1)
        unlikely = F.cross_entropy(scores, costs.argmin(1), reduction="none") * costs.amax(1)
        chosen = batch.errors.gather(1, scores.argmax(1, keepdim=True))[:, 0].detach().abs()
        return (expected + SHARE_OF_CHOICE * unlikely).sum() / count, {
            "l1_first": batch.errors[:, -1].abs().sum() / count,
            "l1": chosen.sum() / count,
            "bad": 100 * (chosen > BAD).sum() / count,
        }


def measure(first: Tensor, last: Tensor, batch: PatchBatch | PreparedBatch) -> dict[str, Tensor]:
    """Errors of the first and the last pass where the truth is known, for the log."""
    known = batch.valid & (batch.truth < UNKNOWN)
    before, after = ((maps - batch.truth).abs() for maps in (first, last))
    return {
        "l1_first": mean_over(before, known),
        "l1": mean_over(after, known),
        "bad": 100 * mean_over((after > BAD).to(after), known),
    }


def answer_loss(answer: Answer, truth: Tensor, valid: Tensor) -> Tensor:
    """Divergence, L1 and bad pixels, softened, where the truth is known; and the certainty's loss.

    Patches of noise or without texture, which nobody could solve, would make two thirds of a plain
    mean; with the logarithm, it is worth as much to halve the loss of any patch.
    """
    error = (answer.disparity - truth).abs()
    known = valid & (truth < UNKNOWN)  # elsewhere only the certainty can be learnt
    exact = error + 0.1 * error / (error + BAD)
    patches = mean_over(divergence(answer, truth) + exact, known, (1, 2))
    right = (error.detach() <= BAD).to(error)
    sure = F.binary_cross_entropy_with_logits(answer.certainty, right, reduction="none")
    return USUAL * torch.log1p(patches / USUAL).mean() + 0.1 * mean_over(sure, valid)


def mean_over(values: Tensor, where: Tensor, dims: tuple[int, ...] = (0, 1, 2)) -> Tensor:
    """Mean of the values that count; 0 if none does."""
    return torch.where(where, values, 0).sum(dims) / where.sum(dims).clamp(min=1)


def divergence(answer: Answer, truth: Tensor) -> Tensor:
    """From the truth to what a pass believes of its levels or candidates: (b, h, w)."""
    find = level_divergence if answer.hypotheses.ndim == 2 else candidate_divergence
    return find(answer.logits, answer.hypotheses, truth)


def level_divergence(logits: Tensor, levels: Tensor, truth: Tensor) -> Tensor:
    """From the truth, as a mixture of the two levels around it, to the answer: (b, h, w)."""
    levels = levels.view(-1, logits.shape[1], 1, 1)
    position = (truth - levels[:, 0]) / (levels[:, 1] - levels[:, 0])
    return divergence_at(F.log_softmax(logits, 1), position)


def candidate_divergence(logits: Tensor, candidates: Tensor, truth: Tensor) -> Tensor:
    """The same for candidates; where another surface is the right one, from that one."""
    scores = F.log_softmax(logits, 1)
    own = candidates[:, OFFSETS // 2]
    step = candidates[:, OFFSETS // 2 + 1] - own
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
    least: Tensor = torch.special.entr(share) + torch.special.entr(1 - share)  # no answer has less
    return -torch.lerp(below, above, share) - least


def loss_module(network: FastNet | OACCNet, part: str = "") -> nn.Module:
    """A network, or a part of it, with the loss it is trained with."""
    if isinstance(network, OACCNet):
        return PaperLoss(network)
    if part == "edges":
        assert network.edges is not None
        return EdgeLoss(network.edges)
    return RefinementLoss(network.refinement) if part == "refinement" else FastLoss(network)


class PaperLoss(nn.Module):
    """The paper's network and its loss: L1, one pass with the mask of the true disparity."""

    def __init__(self, network: OACCNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: GreyBatch, iterations: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log. The number of passes does not matter here."""
        views, truth, valid = batch.views, batch.truth, batch.valid
        present = (views <= 1).to(views)
        error = (self.network(views.clamp(max=1), truth, present) - truth).abs()
        loss, bad = mean_over(error, valid), mean_over((error.detach() > BAD).to(error), valid)
        return loss, {"l1": loss.detach(), "bad": 100 * bad}
