"""Scenes with ground truth -> pixels on edges, as an estimate finds them, to learn which is whose.

What is known of them does not depend on the direction of an edge, so there is nothing to flip or
to turn: every scene is estimated once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from oaccdepth.estimation.inference import estimate
from oaccdepth.evaluation.metrics import BAD
from oaccdepth.evidence.edges import Edges, find_edges
from oaccdepth.lightfield import LightField
from oaccdepth.networks.fast import FastNet
from oaccdepth.options import TrainOptions
from oaccdepth.training.scenes import Scene

LARGEST = 640  # px on a side, which an estimate does not cut into blocks
MOST_KEPT = 20_000  # pixels of a scene
SCENES = 8  # drawn for each patch that a batch of other parts would have
FARTHEST = 3.0  # px that an error counts, at the most
LEAST_COST = 0.02  # between choices: below it, there is nothing to decide


@dataclass(frozen=True, eq=False)
class EdgeBatch:
    """Pixels on edges of several scenes, or those of one."""

    signs: Tensor  # (n, SIGNS)
    errors: Tensor  # (n, 3) [px]: of the farther surface, the nearer one, and the own answer


class Watching(FastNet):
    """Keeps the edges that an estimate finds."""

    last: Edges
    width: int  # px, of the map that they are on

    def settle(self, disparity: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
        """As usual; edges that are not trained yet are looked at, too."""
        with torch.autocast(disparity.device.type, enabled=False):
            self.last, self.width = find_edges(disparity, reference), disparity.shape[1]
        return super().settle(disparity, reference)


class EdgeBatches(Dataset[Any]):
    """Batches of pixels on edges; what is drawn for a step of a process is always the same.

    The estimates are those of the network that the run began with, on the CPU.
    """

    def __init__(
        self,
        scenes: Sequence[Scene],
        more: Sequence[Scene],
        options: TrainOptions,
        network: FastNet,
        rank: int = 0,
    ) -> None:
        self.scenes, self.more, self.options, self.rank = scenes, more, options, rank
        self.network = Watching(network.config).eval()
        self.network.load_state_dict(network.state_dict())
        self.found: dict[int, EdgeBatch] = {}

    def __getitem__(self, step: int) -> EdgeBatch:
        rng = np.random.default_rng((self.options.seed, self.rank, 1, step))
        drawn = [self.draw(rng) for _ in range(SCENES * self.options.batch)]
        signs, errors = zip(*drawn, strict=True)
        return EdgeBatch(torch.cat(signs), torch.cat(errors))

    def draw(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Some pixels of a scene, or of one that `--more` gives, as often as `--more-share` says.

        As many as the root of how many it has: in noise, edges are everywhere.
        """
        is_more = bool(self.more) and rng.random() < self.options.more_share
        first, count = (len(self.scenes), len(self.more)) if is_more else (0, len(self.scenes))
        pixels = self.pixels_of(first + int(rng.integers(count)))
        total = len(pixels.signs)
        chosen = torch.from_numpy(rng.integers(max(total, 1), size=round(total**0.5)))
        return pixels.signs[chosen], pixels.errors[chosen]

    def pixels_of(self, number: int) -> EdgeBatch:
        """Pixels on edges of a scene, which is estimated when it is first needed."""
        if number not in self.found:
            scene = [*self.scenes, *self.more][number]
            rng = np.random.default_rng((self.options.seed, number))
            self.found[number] = find_pixels(self.network, scene, rng)
        return self.found[number]


def find_pixels(network: Watching, scene: Scene, rng: np.random.Generator) -> EdgeBatch:
    """Pixels on edges of a scene, at most MOST_KEPT, where it matters which choice is taken."""
    truth, valid = scene.truth[:LARGEST, :LARGEST], scene.valid[:LARGEST, :LARGEST]
    ends = truth[valid]
    searched = (float(ends.min()), float(ends.max())) if ends.size else None
    views = np.ascontiguousarray(scene.views[:, :, :LARGEST, :LARGEST])
    estimate(LightField(views, disparity_range=searched), network=network)
    rows, columns = np.divmod(network.last.where.numpy(), network.width)
    inside = (rows < truth.shape[0]) & (columns < truth.shape[1])  # maps are filled up to 8 px
    inside[inside] = valid[rows[inside], columns[inside]]
    known = np.flatnonzero(inside)
    expected = torch.from_numpy(truth[rows[known], columns[known]])
    errors = network.last.places[known] - expected[:, None]
    kept = np.flatnonzero(costs_above_best(errors).amax(1).numpy() > LEAST_COST)
    kept = np.sort(rng.permutation(kept)[:MOST_KEPT])
    return EdgeBatch(network.last.signs[known[kept]], errors[kept])


def costs_above_best(errors: Tensor) -> Tensor:
    """How much worse each choice is than the best one: (n, 3) for errors (n, 3) [px]."""
    costs = cost(errors)
    return costs - costs.amin(1, keepdim=True)


def cost(error: Tensor) -> Tensor:
    """How bad an error [px] is: as a bad pixel, as a squared error, and a little as it is."""
    size = error.abs()
    is_bad = (size > BAD).to(size)
    return is_bad + size.clamp(max=FARTHEST).square() + 0.3 * size / (size + BAD)
