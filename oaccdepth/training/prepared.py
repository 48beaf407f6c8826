"""Batches for the refinement alone: the passes before it see whole variants, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oaccdepth.estimation.device import half_is_quick
from oaccdepth.networks.answers import otherness
from oaccdepth.networks.fast import FastNet
from oaccdepth.options import TrainOptions
from oaccdepth.training.pieces import NARROW, Pool, choose_window, narrow
from oaccdepth.training.scenes import Scene
from oaccdepth.training.variants import Piece, Variant, gather_evidence


@dataclass(frozen=True, eq=False)
class PreparedBatch:
    """What a refinement is given, and the truth; or the same of one variant, without b."""

    seen: Tensor  # (b, c, h, w)
    known: Tensor  # (b, c, h, w)
    candidates: Tensor  # (b, n, h, w) [px]
    truth: Tensor  # (b, h, w) [px]
    valid: Tensor  # (b, h, w) bool


class PreparedBatches(Pool[PreparedBatch]):
    """Patches of what the refinement is given.

    The passes before the one that is trained are those of the network that the run began with, on
    the CPU, and see whole variants, as they do in use.
    """

    def __init__(
        self,
        scenes: Sequence[Scene],
        more: Sequence[Scene],
        options: TrainOptions,
        network: FastNet,
        rank: int = 0,
    ) -> None:
        super().__init__(scenes, more, options, network.config.refine_views, rank)
        self.network = network

    def __getitem__(self, step: int) -> PreparedBatch:
        rng = self.generator(step)
        parts = [self._cut(variant, rng) for variant in self.draw(rng, step)]
        return PreparedBatch(*(torch.stack(maps) for maps in zip(*parts, strict=True)))

    def _cut(self, variant: PreparedBatch, rng: np.random.Generator) -> tuple[Tensor, ...]:
        """Of two patches the one with more pixels that have a choice of surfaces."""
        windows = [choose_window(variant.valid, self.options.patch, rng) for _ in range(2)]
        has_choice = otherness(variant.candidates[None])[0].amax(0)
        window = max(windows, key=lambda window: float(has_choice[window].sum()))
        return tuple(maps[(..., *window)] for maps in vars(variant).values())

    def finish(self, piece: Piece, rng: np.random.Generator) -> PreparedBatch:
        """The passes before the one that is trained."""
        variant = gather_evidence(piece, self.refine_views)
        if rng.random() < NARROW:
            (variant,) = narrow([variant], rng)
        number = int(rng.integers(self.options.iterations - 1))
        seen, known, candidates = prepare(self.network, variant, number)
        return PreparedBatch(seen, known, candidates, variant.truth, variant.valid)


@torch.no_grad()
def prepare(network: FastNet, variant: Variant, number: int) -> list[Tensor]:
    """What refinement `number` is given of a whole variant: evidence, what is known, candidates."""
    given: tuple[Tensor, ...] = ()

    def listen(step: Callable[..., Any], *maps: Tensor) -> Any:
        nonlocal given
        given = maps
        return step(*maps)

    volume, levels = variant.volume[None], variant.levels[None]
    with torch.autocast("cpu", torch.bfloat16, enabled=half_is_quick()):
        for _ in network.answers(volume, [variant.views], levels, number + 1, listen):
            pass  # what the last one was given stays
    return [maps[0].contiguous() for maps in given]
