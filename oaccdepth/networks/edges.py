"""Which surface a pixel near an edge belongs to. Tensors in, tensors out.

A refinement moves answers by fractions of a pixel: one on the wrong side of an edge never arrives.
But the right answer is known, a few pixels away. So each pixel is offered the farthest and the
nearest surface around it beside its own, and all views are asked about each. Unlike a refinement's
candidates, these mean the same surfaces on both sides of an edge, so neighbours can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth.networks.blocks import Projection, enlarge, halving, same

RADIUS = 4  # px around a pixel in which surfaces are found
SOFTNESS = 0.15  # px of disparity, within which answers are of one surface
NEAR = 0.15  # px: a surface so near the own answer is the same; from twice that on it is another
NUM_SURFACES = 3  # farthest, own, nearest
OWN = 1
# px: 3 layers at full resolution, 4 at half, 3 at a quarter, an enlargement, blocks of 4 px
EDGE_REACH = RADIUS + 30
CHANNELS = (16, 32, 48, 64)  # of each surface's evidence; at full, half, quarter resolution
VOTE_GAINS = (24.0, 120.0)  # a rim and a wall, both dark, differ by a hundredth


@dataclass
class Choice:
    """How a pixel's surfaces were weighed."""

    disparity: Tensor  # (b, h, w) [px]
    spread: Tensor  # (b, h, w) [px]: that of the last pass, but none near edges
    logits: Tensor  # (b, s, h, w)
    surfaces: Tensor  # (b, s, h, w) [px]


class EdgeNet(nn.Module):
    """Weighs the surfaces by their evidence, at full, half and quarter resolution."""

    def __init__(self, grid: tuple[int, int], num_about: int) -> None:
        super().__init__()
        evidence, full, half, quarter = CHANNELS
        self.project = Projection(1 + len(VOTE_GAINS), grid, evidence)
        self.enter = same(NUM_SURFACES * (evidence + 3) + num_about + 1, full)
        self.to_half = halving(full, half)
        self.half_in = nn.ModuleList([same(half, half) for _ in range(2)])
        self.to_quarter = halving(half, quarter)
        self.quarter = nn.ModuleList([same(quarter, quarter) for _ in range(3)])
        self.from_quarter = nn.Conv2d(quarter, half, 1)
        self.half_out = nn.ModuleList([same(half, half) for _ in range(2)])
        self.from_half = nn.ConvTranspose2d(half, full, 2, 2)
        self.mix = same(full, full)
        self.out = nn.Conv2d(full, NUM_SURFACES, 3, padding=1)
        nn.init.zeros_(self.out.weight)  # at step 0 the votes decide
        nn.init.zeros_(self.out.bias)  # type: ignore[arg-type]
        self.beta = nn.Parameter(torch.tensor(8.0))

    def forward(
        self,
        evidence: Tensor,
        votes: Tensor,
        surfaces: Tensor,
        belief: Tensor,
        about: Tensor,
        spread: Tensor,
    ) -> Choice:
        """Projected evidence (b*s, c, h, w); votes, surfaces, belief (b, s, h, w) [px]."""
        b, _, h, w = surfaces.shape
        away = surfaces - surfaces[:, OWN, None]
        x = torch.cat(
            [evidence.reshape(b, -1, h, w), 4 * votes, away, belief / 4, about, spread[:, None]], 1
        )
        x = self.enter(x.contiguous(memory_format=torch.channels_last))
        half = self.to_half(x)
        for layer in self.half_in:
            half = half + layer(half)
        quarter = self.to_quarter(half)
        for layer in self.quarter:
            quarter = quarter + layer(quarter)
        half = half + enlarge(self.from_quarter(quarter))
        for layer in self.half_out:
            half = half + layer(half)
        x = self.mix(x + self.from_half(half))
        smoothed = F.avg_pool2d(votes, 3, 1, 1, count_include_pad=False)
        logits = self.out(x) - self.beta * smoothed
        weights = decide(torch.softmax(logits, 1), surfaces)
        disparity = (weights * surfaces).sum(1)
        # near an edge, what comes next is not to wander from one surface towards another
        settled = spread * (1 - otherness(surfaces).amax(1))
        return Choice(disparity, settled, logits, surfaces)


def surfaces_around(disparity: Tensor) -> Tensor:
    """Farthest, own and nearest answer around each pixel: (b, h, w) to (b, 3, h, w) [px].

    Not the very least and the very largest value, which may be a single stray one, but a mean of
    those within SOFTNESS or so.
    """
    own = disparity[:, None]
    return torch.cat([lean(own, -1 / SOFTNESS), own, lean(own, 1 / SOFTNESS)], 1)


def lean(x: Tensor, slope: float) -> Tensor:
    """Mean over the pixels around, each weighted by exp(slope * x). (b, 1, h, w)."""
    weight = (slope * x).exp()
    return pool(weight * x) / pool(weight)


def pool(x: Tensor) -> Tensor:
    """Mean over a square, rows and columns in turn; beyond the frame there is nothing."""
    side = 2 * RADIUS + 1
    rows = F.avg_pool2d(x, (side, 1), 1, (RADIUS, 0))
    return F.avg_pool2d(rows, (1, side), 1, (0, RADIUS))


def otherness(surfaces: Tensor) -> Tensor:
    """0 where a surface is the pixel's own, 1 where it is another one. (b, s, h, w)."""
    away = (surfaces - surfaces[:, OWN, None]).abs()
    return ((away - NEAR) / NEAR).clamp(0, 1)


def decide(p: Tensor, surfaces: Tensor) -> Tensor:
    """Probabilities of surfaces to their weights in the answer (b, s, h, w).

    What speaks for the own surface under another name is added to it. Then squares: a hundredth of
    another surface must not move an answer, but between two equals it is their mean.
    """
    other = p * otherness(surfaces)
    own = 1 - other.sum(1, keepdim=True)
    squares = other**2
    total = own**2 + squares.sum(1, keepdim=True)
    weights = squares / total
    is_own = torch.zeros_like(p)
    is_own[:, OWN] = 1
    return weights + is_own * (own**2 / total)


def average_surface(values: Tensor, disparity: Tensor, radius: int, tolerance: float) -> Tensor:
    """Means of values (b, k, h, w) over the pixels around that lie on the same surface.

    Which those are is given, by the disparity (b, h, w) [px]; what they say may be learnt.
    """
    height, width = disparity.shape[1:]
    own = disparity.detach()[:, None]
    around = F.pad(values, (radius,) * 4, mode="replicate")
    surfaces = F.pad(own, (radius,) * 4, mode="replicate")
    total, weights = torch.zeros_like(values), torch.zeros_like(own)
    for y in range(2 * radius + 1):
        for x in range(2 * radius + 1):
            window = (..., slice(y, y + height), slice(x, x + width))
            weight = surfaces[window] - own
            weight.square_().mul_(-0.5 / tolerance**2).exp_()
            weights += weight
            total = torch.addcmul(total, weight, around[window])
    return total / weights
