"""What training minimises: tensors in, one number and its parts out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth.networks.edges import Choice, otherness
from oaccdepth.networks.fast import FastNet, PassState
from oaccdepth.networks.paper import OACCNet

BAD = 0.07  # px: the benchmark's threshold
RIGHT = 0.05  # px further from the truth than the best surface, and as good


class FastLoss(nn.Module):
    """The fast network and its loss as one module, so that DistributedDataParallel can wrap it.

    Every pass: the cross-entropy to the truth, split between its two neighbouring candidates (it
    moves the answer from a wrong surface to the right one), the L1 error (it makes it exact), and
    the share of bad pixels, softened. The last pass also learns how sure it may be.
    """

    def __init__(self, network: FastNet) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, views: Tensor, truth: Tensor, valid: Tensor, iterations: int
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log."""
        passes = self.network(views, iterations)
        weight = valid.to(truth) / valid.sum().clamp(min=1)
        loss = torch.zeros((), device=truth.device)
        for state in passes:
            loss = loss + (pass_loss(state, truth) * weight).sum()
            if state.choice is not None:
                loss = loss + choice_loss(state.choice, truth, valid)
        last = passes[-1]
        error = (last.disparity - truth).abs().detach()
        bad = (error > BAD).to(truth)
        if iterations > 1:
            loss = loss + (certainty_loss(self.network, last, bad) * weight).sum()
        parts = {
            "l1_first": ((passes[0].disparity - truth).abs().detach() * weight).sum(),
            "l1": (error * weight).sum(),
            "bad": 100 * (bad * weight).sum(),
        }
        return loss, parts


class PartLoss(nn.Module):
    """A part of the fast network, and its share of FastLoss, on what `parts` collected."""

    def __init__(self, network: FastNet, part: str) -> None:
        super().__init__()
        self.network, self.part = network, part

    def forward(
        self,
        views: Tensor,
        truth: Tensor,
        valid: Tensor,
        logits: Tensor,
        summary: Tensor,
        context: Tensor,
        disparity: Tensor,
        spread: Tensor,
        iterations: int,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log. The number of passes does not matter here."""
        weight = valid.to(truth) / valid.sum().clamp(min=1)
        before = PassState(disparity, spread, logits, logits, summary)
        if self.part == "edges":
            choice = self.network.settle(views, before, before, context)
            answer = choice.disparity
        else:
            chosen = Choice(disparity, spread, logits, logits)
            state = self.network.look_again(views, chosen, before, context)
            answer = state.disparity
        error = (answer.detach() - truth).abs()
        bad = (error > BAD).to(truth)
        if self.part == "edges":
            loss = choice_loss(choice, truth, valid)
        else:
            part = pass_loss(state, truth) + certainty_loss(self.network, state, bad)
            loss = (part * weight).sum()
        return loss, {"l1": (error * weight).sum(), "bad": 100 * (bad * weight).sum()}


class PaperLoss(nn.Module):
    """The paper's network and its loss: L1, one pass with the mask of the true disparity."""

    def __init__(self, network: OACCNet) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, views: Tensor, truth: Tensor, valid: Tensor, iterations: int
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and its parts for the log. The number of passes does not matter here."""
        margin = (views.shape[-1] - truth.shape[-1]) // 2
        inner = views[..., margin:-margin, margin:-margin]
        present = (inner >= 0).to(inner)
        error = (self.network(inner.clamp(min=0), truth, present) - truth).abs()
        weight = valid.to(truth) / valid.sum().clamp(min=1)
        loss = (error * weight).sum()
        bad = (error.detach() > BAD).to(truth)
        return loss, {"l1": loss.detach(), "bad": 100 * (bad * weight).sum()}


def pass_loss(state: PassState, truth: Tensor) -> Tensor:
    """L1, bad pixels softened, cross-entropy: (b, h, w)."""
    error = (state.disparity - truth).abs()
    return error + 0.1 * error / (error + BAD) + split_cross_entropy(state, truth)


def certainty_loss(network: FastNet, state: PassState, bad: Tensor) -> Tensor:
    """How well the network knows where it is right: (b, h, w)."""
    sure = network.certainty(state)
    return 0.1 * F.binary_cross_entropy_with_logits(sure, 1 - bad, reduction="none")


def choice_loss(choice: Choice, truth: Tensor, valid: Tensor) -> Tensor:
    """Cross-entropy to the surfaces that come closest to the truth, and the L1 error.

    Mean over the pixels with surfaces to choose from; elsewhere all are the same.
    """
    weight = otherness(choice.surfaces).amax(1) * valid
    weight = weight / weight.sum().clamp(min=1)
    distance = (choice.surfaces - truth[:, None]).abs()
    is_right = distance <= distance.amin(1, keepdim=True) + RIGHT
    scores = F.log_softmax(choice.logits, 1).masked_fill(~is_right, -torch.inf)
    error = (choice.disparity - truth).abs()
    return ((error - torch.logsumexp(scores, 1)) * weight).sum()


def loss_module(network: FastNet | OACCNet, part: str = "") -> nn.Module:
    """A network, or a part of it, with the loss it is trained with."""
    if isinstance(network, OACCNet):
        return PaperLoss(network)
    return PartLoss(network, part) if part else FastLoss(network)


def split_cross_entropy(state: PassState, truth: Tensor) -> Tensor:
    """Cross-entropy to the truth as a mixture of the two candidates around it: (b, h, w)."""
    candidates = state.candidates
    step = (candidates[:, 1:2] - candidates[:, :1]).clamp(min=1e-3)
    position = ((truth[:, None] - candidates[:, :1]) / step).clamp(0, state.logits.shape[1] - 1)
    low = position.floor().clamp(max=state.logits.shape[1] - 2)
    share = (position - low)[:, 0]
    index = low.long()
    scores = F.log_softmax(state.logits, 1)
    return -torch.lerp(scores.gather(1, index)[:, 0], scores.gather(1, index + 1)[:, 0], share)
