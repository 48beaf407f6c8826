"""Batches: patches of pieces of scenes that live for a while and are then replaced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from oaccdepth.errors import InvalidOption
from oaccdepth.evidence.views import ABSENT, Views
from oaccdepth.options import TrainOptions
from oaccdepth.training.scenes import Scene
from oaccdepth.training.variants import (
    MARGIN,
    STEP,
    UNKNOWN,
    Piece,
    Variant,
    gather_evidence,
    make_piece,
)

POOL = 12  # pieces that patches are drawn from
NARROW = 0.4  # share of steps with fewer levels, as for scenes of a narrow range
FEWEST_PAIRS = 4  # of levels
LIFE = 96  # steps that a piece is kept for

Held = TypeVar("Held")


@dataclass(frozen=True, eq=False)
class PatchBatch:
    """Patches of one step."""

    volume: Tensor  # (b, l/2, 24, h, w) uint8
    levels: Tensor  # (b, l) [px]
    truth: Tensor  # (b, h, w) [px]
    valid: Tensor  # (b, h, w) bool
    views: list[Views]  # of each patch, for the later passes


@dataclass(frozen=True, eq=False)
class GreyBatch:
    """The same for the network of the paper, which finds its evidence itself."""

    views: Tensor  # (b, u, v, h, w) in [0, 1], or ABSENT
    truth: Tensor  # (b, h, w) [px]
    valid: Tensor  # (b, h, w) bool


class Pool(Dataset[Any], Generic[Held]):
    """Pieces that live for a while; what is drawn for step n of a process is always the same.

    That makes a run resumable. Slot s holds a piece for LIFE steps; slots change one after the
    other.
    """

    def __init__(
        self,
        scenes: Sequence[Scene],
        more: Sequence[Scene],
        options: TrainOptions,
        refine_views: int = 0,
        rank: int = 0,
    ) -> None:
        self.scenes, self.more, self.options, self.rank = scenes, more, options, rank
        self.refine_views = refine_views
        smallest = min(min(scene.truth.shape) for scene in [*scenes, *more])
        if options.patch > smallest:
            raise InvalidOption(
                f"--patch {options.patch}: larger than a scene. Use at most {smallest // 8 * 8}."
            )
        self.slots: dict[int, tuple[int, Held]] = {}

    def draw(self, rng: np.random.Generator, step: int) -> list[Held]:
        """As many pieces as a batch has patches."""
        return [self._held(int(slot), step) for slot in rng.integers(POOL, size=self.options.batch)]

    def finish(self, piece: Piece, rng: np.random.Generator) -> Held:
        """What is kept of a piece."""
        raise NotImplementedError

    def _held(self, slot: int, step: int) -> Held:
        generation = (step * POOL // LIFE + slot) // POOL
        if slot not in self.slots or self.slots[slot][0] != generation:
            self.slots[slot] = (generation, self._make(slot, generation))
        return self.slots[slot][1]

    def _make(self, slot: int, generation: int) -> Held:
        rng = np.random.default_rng((self.options.seed, self.rank, 0, slot, generation))
        options = self.options
        piece = make_piece(self.choose_scene(rng), rng, options.patch, options.full_size)
        return self.finish(piece, rng)

    def choose_scene(self, rng: np.random.Generator) -> Scene:
        """One of the scenes, or of those that `--more` gives, as often as `--more-share` says."""
        scenes = self.more if self.more and rng.random() < self.options.more_share else self.scenes
        return scenes[int(rng.integers(len(scenes)))]

    def generator(self, step: int) -> np.random.Generator:
        """Random numbers for a step."""
        return np.random.default_rng((self.options.seed, self.rank, 1, step))


class PatchBatches(Pool[Variant]):
    """Patches with their evidence, for all passes."""

    def __getitem__(self, step: int) -> PatchBatch:
        rng = self.generator(step)
        parts = [cut_patch(variant, self.options.patch, rng) for variant in self.draw(rng, step)]
        if rng.random() < NARROW:
            parts = narrow(parts, rng)
        return PatchBatch(
            torch.stack([part.volume for part in parts]),
            torch.stack([part.levels for part in parts]),
            torch.stack([part.truth for part in parts]),
            torch.stack([part.valid for part in parts]),
            [part.views for part in parts],
        )

    def finish(self, piece: Piece, rng: np.random.Generator) -> Variant:
        """Its evidence."""
        return gather_evidence(piece, self.refine_views)


class GreyBatches(Pool[GreyBatch]):
    """Patches of grey views."""

    def __getitem__(self, step: int) -> GreyBatch:
        rng = self.generator(step)
        parts = []
        for piece in self.draw(rng, step):
            window = choose_window(piece.valid, self.options.patch, rng)
            parts.append([maps[(..., *window)] for maps in vars(piece).values()])
        return GreyBatch(*(torch.stack(maps) for maps in zip(*parts, strict=True)))

    def finish(self, piece: Piece, rng: np.random.Generator) -> GreyBatch:
        """Any mixture of the colours; views that are not there are ABSENT."""
        colours = piece.views[:, :, MARGIN:-MARGIN, MARGIN:-MARGIN]
        grey = colours @ rng.dirichlet((1.0, 1.0, 1.0)).astype(np.float32)  # (u, v, h, w)
        there = (colours[..., 0] <= 1) & piece.kept[:, :, None, None]
        views = np.where(there, np.minimum(grey, 1), np.float32(ABSENT))
        known = piece.valid & (piece.truth < UNKNOWN)
        return GreyBatch(*map(torch.from_numpy, (views, piece.truth, known)))


def choose_window(valid: Tensor, size: int, rng: np.random.Generator) -> tuple[slice, slice]:
    """Rows and columns of a square, at best one with something valid in it."""
    height, width = valid.shape
    for _ in range(8):
        y, x = (8 * int(rng.integers((side - size) // 8 + 1)) for side in (height, width))
        window = slice(y, y + size), slice(x, x + size)
        if valid[window].float().mean() > 0.5:
            break
    return window


def cut_patch(variant: Variant, size: int, rng: np.random.Generator) -> Variant:
    """A square of a variant."""
    rows, columns = choose_window(variant.valid, size, rng)
    here = (..., rows, columns)
    wide = (..., with_margin(rows), with_margin(columns))
    views = variant.views
    return Variant(
        Views(
            views.pictures[wide].contiguous(),
            views.reference[here].contiguous(),
            views.steps,
            MARGIN,
            None if views.noise is None else views.noise[here],
        ),
        variant.volume[here],
        variant.levels,
        variant.truth[here],
        variant.valid[here],
    )


def with_margin(side: slice) -> slice:
    """The same pixels in views that have a margin, and the margin."""
    return slice(side.start, side.stop + 2 * MARGIN)


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
