"""Batches: always the same for a step, and cut correctly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from oaccdepth import evidence
from oaccdepth.errors import InvalidOption
from oaccdepth.evidence.views import ABSENT
from oaccdepth.networks.paper import occlusion_mask
from oaccdepth.options import TrainOptions
from oaccdepth.training.loop import on_device
from oaccdepth.training.pieces import (
    FEWEST_PAIRS,
    LIFE,
    POOL,
    GreyBatches,
    PatchBatches,
    cut_patch,
    narrow,
)
from oaccdepth.training.scenes import Scene, load_scenes
from oaccdepth.training.variants import MARGIN, gather_evidence, make_piece

OPTIONS = TrainOptions(batch=2, patch=24, steps=1)


@pytest.fixture(scope="module")
def scenes(scene_folder):
    return load_scenes(scene_folder)


def same(first, second):
    return (
        torch.equal(first.volume, second.volume)
        and torch.equal(first.levels, second.levels)
        and torch.equal(first.truth, second.truth)
        and torch.equal(first.valid, second.valid)
        and all(
            torch.equal(a.pictures, b.pictures)
            for a, b in zip(first.views, second.views, strict=True)
        )
    )


def test_a_step_always_has_the_same_patches(scenes):
    """The order of requests does not matter, so a run can be resumed."""
    running = PatchBatches(scenes, [], OPTIONS, 8)
    earlier = running[LIFE - 1]
    later = running[LIFE]
    resumed = PatchBatches(scenes, [], OPTIONS, 8)
    assert same(resumed[LIFE], later)
    assert same(resumed[LIFE - 1], earlier)
    assert not same(PatchBatches(scenes, [], OPTIONS, 8, rank=1)[LIFE], later)


def test_batches_are_complete(scenes):
    batch = PatchBatches(scenes, [], OPTIONS, 8)[0]
    pairs = batch.volume.shape[1]
    assert batch.volume.shape == (2, pairs, 24, 24, 24) and batch.volume.dtype == torch.uint8
    assert batch.levels.shape == (2, 2 * pairs)
    assert batch.truth.shape == batch.valid.shape == (2, 24, 24)
    assert [views.size for views in batch.views] == [(24, 24)] * 2
    assert same(on_device(batch, torch.device("cpu")), batch)


def test_every_variant_lives_for_a_while(scenes):
    """Slots change one after the other, each once in LIFE steps."""
    batches = PatchBatches(scenes, [], OPTIONS, 0)
    made = []
    batches._make = lambda slot, generation: made.append((slot, generation))
    for step in range(2 * LIFE):
        for slot in range(POOL):
            batches._held(slot, step)
    assert len(set(made)) == len(made)
    assert all(2 <= sum(slot == s for s, _ in made) <= 3 for slot in range(POOL))


def test_a_patch_sees_what_its_variant_sees(scenes):
    """Its views give the same evidence as that cut out of the variant."""
    rng = np.random.default_rng(0)
    variant = gather_evidence(make_piece(scenes[0], rng, 48), 80)
    patch = cut_patch(variant, 24, rng)
    again = evidence.sweep(patch.views, patch.levels)
    difference = (again[:, :12].int() - patch.volume[:, :12].int()).abs()
    assert difference.max() <= 1


def test_narrow_levels_hold_the_truth(scenes):
    rng = np.random.default_rng(1)
    variants = [gather_evidence(make_piece(scenes[0], rng, 48), 0) for _ in range(2)]
    counts = set()
    for _ in range(20):
        parts = narrow([cut_patch(variant, 24, rng) for variant in variants], rng)
        counts.add(len(parts[0].volume))
        for part in parts:
            assert part.volume.shape[0] == len(part.levels) // 2 == len(parts[0].volume)
            known = part.truth[part.valid & (part.truth < 50)]
            if len(known):
                assert part.levels[0] <= known.min() and part.levels[-1] >= known.max()
    assert len(counts) > 3 and min(counts) >= FEWEST_PAIRS and max(counts) <= 17


def test_patches_of_grey_views(scenes):
    """The same for a step; a mixture of the colours, and 0 where there is no view."""
    batch = GreyBatches(scenes, [], OPTIONS)[LIFE]
    again, other = (GreyBatches(scenes, [], OPTIONS, rank=rank)[LIFE] for rank in (0, 1))
    assert all(map(torch.equal, vars(batch).values(), vars(again).values()))
    assert not torch.equal(batch.views, other.views)
    assert batch.views.shape == (2, 9, 9, 24, 24)
    assert batch.truth.shape == batch.valid.shape == (2, 24, 24)

    rng = np.random.default_rng(5)
    piece = replace(make_piece(scenes[0], rng, 48), kept=np.eye(9) > 0)
    found = GreyBatches(scenes, [], OPTIONS).finish(piece, rng).views
    assert (found[~np.eye(9, dtype=bool)] == ABSENT).all()
    colours = torch.from_numpy(piece.views[..., MARGIN:-MARGIN, MARGIN:-MARGIN, :])
    ours, colours = found.diagonal().movedim(-1, 0), colours.diagonal().movedim(-1, 0)
    there = colours.amax(-1) <= 1
    assert there.any() and ((ours <= 1) == there).all()
    assert (ours >= colours.amin(-1) - 1e-6)[there].all()
    assert (ours <= colours.amax(-1) + 1e-6)[there].all()


def test_the_papers_network_agrees_with_the_truth_of_its_patches(scenes):
    """The sign of the disparity matches the views: masks of the true disparity are nearly 1."""
    pool = GreyBatches(scenes, [], TrainOptions(batch=8, patch=24, steps=1))
    means = []
    for sign in (1, -1):
        batch = pool[0]
        seen = (batch.views <= 1).float()
        masks = occlusion_mask(batch.views.clamp(max=1), sign * batch.truth, 8.0, seen)
        compared = occlusion_mask(torch.zeros_like(seen), sign * batch.truth, 8.0, seen)
        means.append(float(masks.sum() / compared.sum()))
    assert means[0] > means[1] + 0.03


def test_more_scenes(scenes):
    """--more-share sets how often they are used."""
    other = Scene("other", 255 - scenes[0].views, scenes[0].truth, scenes[0].valid)
    for share, expected in ((0.0, {"town"}), (1.0, {"other"}), (0.5, {"town", "other"})):
        options = TrainOptions(batch=2, patch=24, steps=1, more_share=share)
        batches = PatchBatches(scenes, [other], options, 0)
        drawn = set()
        for slot in range(20):
            rng = np.random.default_rng((options.seed, 0, 0, slot, 0))
            drawn.add(batches.choose_scene(rng).name)
        assert drawn == expected


def test_a_patch_larger_than_a_scene(scenes):
    with pytest.raises(InvalidOption) as caught:
        PatchBatches(scenes, [], TrainOptions(patch=64, steps=1), 0)
    assert str(caught.value) == "--patch 64: larger than a scene. Use at most 48."
