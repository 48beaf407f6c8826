"""Batches for the fast network: patches of variants that live for a while and are then replaced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from oaccdepth.errors import InvalidOption
from oaccdepth.evidence.views import Views
from oaccdepth.options import TrainOptions
from oaccdepth.training.scenes import Scene
from oaccdepth.training.variants import MARGIN, STEP, UNKNOWN, Variant, make_variant

POOL = 12  # variants that patches are drawn from
NARROW = 0.4  # share of steps with fewer levels: a range is searched no wider than it must be
FEWEST_PAIRS = 4  # of levels
LIFE = 96  # steps that a variant is kept for


@dataclass(frozen=True, eq=False)
class PatchBatch:
    """Patches of one step."""

    volume: Tensor  # (b, l/2, 24, h, w) uint8
    levels: Tensor  # (b, l) [px]
    truth: Tensor  # (b, h, w) [px]
    valid: Tensor  # (b, h, w) bool
    views: list[Views]  # of each patch, for the later passes

    def to(self, device: torch.device) -> PatchBatch:
        """The same on a device."""
        return PatchBatch(
            self.volume.to(device),
            self.levels.to(device),
            self.truth.to(device),
            self.valid.to(device),
            [views.to(device) for views in self.views],
        )


class PatchBatches(Dataset[PatchBatch]):
    """Batch number n of a process is always the same: that makes a run resumable.

    Slot s of the pool holds a variant for LIFE steps; slots change one after the other.
    """

    def __init__(
        self,
        scenes: Sequence[Scene],
        more: Sequence[Scene],
        options: TrainOptions,
        refine_views: int,
        rank: int = 0,
    ) -> None:
        self.scenes, self.more, self.options, self.rank = scenes, more, options, rank
        self.refine_views = refine_views
        smallest = min(min(scene.truth.shape) for scene in [*scenes, *more])
        if options.patch > smallest:
            raise InvalidOption(
                f"--patch {options.patch}: larger than a scene. Use at most {smallest // 8 * 8}."
            )
        self.pool: dict[int, tuple[int, Variant]] = {}

    def __getitem__(self, step: int) -> PatchBatch:
        rng = np.random.default_rng((self.options.seed, self.rank, 1, step))
        slots = rng.integers(POOL, size=self.options.batch)
        parts = [
            cut_patch(self._variant(int(slot), step), self.options.patch, rng) for slot in slots
        ]
        if rng.random() < NARROW:
            parts = narrow(parts, rng)
        return PatchBatch(
            torch.stack([part.volume for part in parts]),
            torch.stack([part.levels for part in parts]),
            torch.stack([part.truth for part in parts]),
            torch.stack([part.valid for part in parts]),
            [part.views for part in parts],
        )

    def _variant(self, slot: int, step: int) -> Variant:
        generation = (step * POOL // LIFE + slot) // POOL
        if slot not in self.pool or self.pool[slot][0] != generation:
            self.pool[slot] = (generation, self._make(slot, generation))
        return self.pool[slot][1]

    def _make(self, slot: int, generation: int) -> Variant:
        rng = np.random.default_rng((self.options.seed, self.rank, 0, slot, generation))
        scene = self.choose_scene(rng)
        return make_variant(scene, rng, self.refine_views, self.options.patch)

    def choose_scene(self, rng: np.random.Generator) -> Scene:
        """One of the scenes, or of those that `--more` gives, as often as `--more-share` says."""
        scenes = self.more if self.more and rng.random() < self.options.more_share else self.scenes
        return scenes[int(rng.integers(len(scenes)))]


def cut_patch(variant: Variant, size: int, rng: np.random.Generator) -> Variant:
    """A square of a variant, at best one with something valid in it."""
    height, width = variant.truth.shape
    for _ in range(8):
        y, x = (8 * int(rng.integers((side - size) // 8 + 1)) for side in (height, width))
        here = (..., slice(y, y + size), slice(x, x + size))
        if variant.valid[here].float().mean() > 0.5:
            break
    wide = (..., slice(y, y + size + 2 * MARGIN), slice(x, x + size + 2 * MARGIN))
    views = variant.views
    return Variant(
        Views(
            views.pictures[wide].contiguous(),
            views.reference[here].contiguous(),
            views.steps,
            MARGIN,
        ),
        variant.volume[here],
        variant.levels,
        variant.truth[here],
        variant.valid[here],
    )


def narrow(parts: list[Variant], rng: np.random.Generator) -> list[Variant]:
    """The same patches with a random window of levels that covers what occurs in all of them."""
    pairs = [levels_needed(part) for part in parts]
    count = max(FEWEST_PAIRS, *(last - first + 1 for first, last in pairs))
    total = len(parts[0].volume)
    count = int(rng.integers(count, total + 1))
    result = []
    for part, (first, last) in zip(parts, pairs, strict=True):
        start = int(rng.integers(max(0, last - count + 1), min(first, total - count) + 1))
        window = slice(start, start + count)
        levels = part.levels[2 * start : 2 * (start + count)]
        result.append(replace(part, volume=part.volume[window], levels=levels))
    return result


def levels_needed(part: Variant) -> tuple[int, int]:
    """First and last pair of levels that the truth needs."""
    known = part.truth[part.valid & (part.truth < UNKNOWN)]
    if not len(known):
        return len(part.volume) // 2, len(part.volume) // 2
    low, high = float(known.min()) - STEP / 2, float(known.max()) + STEP / 2
    first = math.floor((low - float(part.levels[0])) / (2 * STEP))
    last = math.floor((high - float(part.levels[0])) / (2 * STEP))
    return max(first, 0), min(last, len(part.volume) - 1)
