"""Batches for the refinement: prepared as by the passes before it, and the same for a step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oaccdepth.networks.answers import OFFSETS
from oaccdepth.options import TrainOptions
from oaccdepth.training import prepared
from oaccdepth.training.pieces import LIFE
from oaccdepth.training.prepared import PreparedBatches
from oaccdepth.training.scenes import load_scenes
from oaccdepth.training.variants import gather_evidence, make_piece

OPTIONS = TrainOptions(batch=2, patch=24, steps=1, iterations=3)


@pytest.fixture(scope="module")
def scenes(scene_folder):
    return load_scenes(scene_folder)


def same(first, second):
    pairs = zip(vars(first).values(), vars(second).values(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def test_a_step_always_has_the_same_patches(scenes, untrained):
    running = PreparedBatches(scenes, [], OPTIONS, untrained)
    later = running[LIFE]
    assert same(PreparedBatches(scenes, [], OPTIONS, untrained)[LIFE], later)
    assert later.truth.shape == later.valid.shape == (2, 24, 24)
    assert later.candidates.shape == (2, OFFSETS + 2, 24, 24)
    assert len(later.seen) == len(later.known) == 2


@pytest.mark.parametrize("number", [0, 1])
def test_a_variant_is_prepared_as_in_use(scenes, untrained, number, monkeypatch):
    """The refinement gets the same input as in `passes`."""
    monkeypatch.setattr(prepared, "half_is_quick", lambda: False)
    piece = make_piece(scenes[0], np.random.default_rng(0), 48)
    variant = gather_evidence(piece, untrained.config.refine_views)
    given = []
    monkeypatch.setattr(untrained, "sweep", lambda views, levels: variant.volume)
    forward = untrained.refinement.forward
    monkeypatch.setattr(
        untrained.refinement, "forward", lambda *maps: given.append(maps) or forward(*maps)
    )
    with torch.no_grad():
        list(untrained.passes(variant.views, variant.levels, iterations=3))
    found = prepared.prepare(untrained, variant, number)
    for maps, expected in zip(found, given[number], strict=True):
        torch.testing.assert_close(maps, expected[0], rtol=1e-4, atol=1e-4)


def test_of_two_patches_the_one_with_more_edges_is_taken(scenes, untrained, monkeypatch):
    """Another surface lies half a pixel away, in the right half of the piece only."""
    candidates = torch.zeros(OFFSETS + 2, 24, 48)
    candidates[OFFSETS:, :, 24:] = 0.5
    flat = torch.zeros(24, 48)
    piece = prepared.PreparedBatch(flat[None], flat[None], candidates, flat, flat == 0)
    windows = [(slice(0, 24), slice(left, left + 24)) for left in (0, 24, 24, 0)]
    draws = iter(windows)
    monkeypatch.setattr(prepared, "choose_window", lambda *arguments: next(draws))
    batches = PreparedBatches(scenes, [], OPTIONS, untrained)
    for _ in range(2):  # whichever comes first
        _, _, cut, _, _ = batches._cut(piece, np.random.default_rng(0))
        assert (cut[OFFSETS:] == 0.5).all()
