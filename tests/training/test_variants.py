"""Variants of scenes keep the light field's geometry, whatever is done to them."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from layered import Plane, Surface, cloud_texture, render

from oaccdepth.evidence.views import ABSENT
from oaccdepth.training.scenes import Scene
from oaccdepth.training.variants import (
    MARGIN,
    choose_shear,
    choose_views,
    cut,
    cut_views,
    disturb,
    empty,
    gather_evidence,
    make_piece,
    turn,
)


@pytest.fixture(scope="module")
def slanted():
    """A smooth slanted plane: photo-consistent everywhere, sub-sampled too."""
    texture = cloud_texture(np.random.default_rng(2), 512, 2.0)
    made = render([Surface(Plane(-0.5, 0.01, 0.005), texture)], (9, 9), (104, 120))
    views = (made.light_field.views * 255).round().astype(np.uint8)
    return Scene("slanted", views, made.disparity, np.ones((104, 120), bool))


def inconsistency(views, truth, sign=1.0):
    """Mean difference between the centre view and the views warped with the truth."""
    y, x = np.mgrid[: truth.shape[0], : truth.shape[1]].astype(np.float32) + MARGIN
    centre = views[4, 4, MARGIN:-MARGIN, MARGIN:-MARGIN]
    errors = []
    for u in range(0, 9, 2):
        for v in range(0, 9, 2):
            moved = cv2.remap(
                np.ascontiguousarray(views[u, v]),
                x - np.float32(sign) * truth * (v - 4),
                y - np.float32(sign) * truth * (u - 4),
                cv2.INTER_LINEAR,
                borderValue=(ABSENT,) * 3,
            )
            errors.append(np.abs(moved - centre)[moved.max(-1) <= 1])
    return np.concatenate(errors).mean()


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize("shear", [-1, 0, 2])
def test_pieces_are_refocused_and_sub_sampled_with_their_truth(slanted, scale, shear):
    size = [24, 32]
    views = cut_views(slanted.views, (18, 20), size, scale, shear)
    assert views.shape == (9, 9, 24 + 2 * MARGIN, 32 + 2 * MARGIN, 3)
    window = np.s_[scale * 18 : scale * 42 : scale, scale * 20 : scale * 52 : scale]
    truth = (slanted.truth[window] / scale + shear).astype(np.float32)
    right, wrong = inconsistency(views, truth), inconsistency(views, truth, -1.0)
    assert right < 0.01
    assert wrong > 3 * right


def test_every_cut_and_turned_piece_is_consistent(slanted):
    seen = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        piece = None
        while piece is None:  # sub-sampled, it may be too small
            piece = cut(slanted, rng, 40)
        views, truth, valid = turn(*piece, rng)
        assert valid.all() and np.abs(truth).max() < 3.9
        assert min(truth.shape) >= 40
        assert inconsistency(views, np.ascontiguousarray(truth)) < 0.01
        seen.add((truth.shape, truth[0, 0] < truth[-1, 0], truth[0, 0] < truth[0, -1]))
    assert len(seen) > 4  # sizes and orientations


@pytest.mark.parametrize(
    ("full_size", "expected"),
    [(1.0, {(104, 120)}), (0.0, {(48, 56), (32, 40)}), (0.5, {(104, 120), (48, 56), (32, 40)})],
)
def test_the_share_of_pieces_that_are_not_sub_sampled(slanted, full_size, expected):
    centre = replace(slanted, views=slanted.views[4:5, 4:5])
    pieces = [cut(centre, np.random.default_rng(seed), 24, full_size) for seed in range(40)]
    assert {truth.shape for _, truth, _ in pieces} == expected


def test_outside_the_frame_there_is_nothing(slanted):
    views = cut_views(slanted.views, (0, 88), [32, 32], 1, 0)
    assert (views[:, :, :MARGIN] == ABSENT).all() and (views[:, :, :, -MARGIN:] == ABSENT).all()
    assert (views[:, :, MARGIN:, :-MARGIN] <= 1).all()


def test_a_seed_always_gives_the_same_variant(slanted):
    first, second, other = (
        gather_evidence(make_piece(slanted, np.random.default_rng(seed), 40), 8)
        for seed in (3, 3, 4)
    )
    assert torch.equal(first.volume, second.volume) and torch.equal(first.truth, second.truth)
    assert torch.equal(first.views.pictures, second.views.pictures)
    assert first.volume.shape != other.volume.shape or not torch.equal(first.volume, other.volume)
    assert len(first.views.pictures) == 8
    height, width = first.truth.shape
    assert first.volume.shape == (17, 24, height, width)
    assert first.views.pictures.shape[-2:] == (height + 2 * MARGIN, width + 2 * MARGIN)


def test_the_evidence_of_a_variant_speaks_for_its_truth(slanted):
    right = 0
    for seed in range(6):
        variant = gather_evidence(make_piece(slanted, np.random.default_rng(seed), 40), 0)
        aggregated = variant.volume[:, 18:20].flatten(0, 1).float()  # (l, h, w)
        answer = variant.levels[aggregated.argmin(0)]
        error = (answer - variant.truth).abs()[variant.valid]
        right += bool(error.median() < 0.3)
    assert right >= 4  # the others have noise or next to no contrast


def test_refocusing_keeps_a_piece_within_reach():
    rng = np.random.default_rng(0)
    for _ in range(200):
        truth = rng.uniform(-6, 6) + rng.uniform(0, 2) * rng.random(50)
        shear = choose_shear(truth.astype(np.float32), rng)
        assert np.abs(truth + shear).max() < 4


def test_the_centre_view_always_stays():
    rng = np.random.default_rng(0)
    kept = [choose_views((9, 9), rng) for _ in range(400)]
    assert all(views[4, 4] for views in kept)
    assert 0.7 < np.mean([views.all() for views in kept]) < 0.9
    counts = {int(views.sum()) for views in kept}
    assert {9, 17} <= counts  # a 3x3 array or a row; a cross


def test_disturbed_views_are_pictures_and_absent_ones_stay_so(slanted):
    views = cut_views(slanted.views[:3, :3], (0, 0), [24, 24], 1, 0)
    changed = 0
    for seed in range(20):
        out = disturb(views, np.random.default_rng(seed))
        np.testing.assert_array_equal(out == ABSENT, views == ABSENT)
        there = out[out <= 1]
        assert there.min() >= 0
        np.testing.assert_allclose(there * 255, np.round(there * 255), atol=1e-3)
        changed += not np.array_equal(out, views)
    assert changed == 20


def test_pictures_of_nothing(slanted):
    views = cut_views(slanted.views[:3, :3], (0, 0), [24, 24], 1, 0)
    nothing = [empty(views, np.random.default_rng(seed)) for seed in range(12)]
    assert all(np.array_equal(out == ABSENT, views == ABSENT) for out in nothing)
    spreads = {round(float(out[out <= 1].std()), 3) for out in nothing}
    assert 0.0 in spreads and len(spreads) > 2


def test_a_scene_whose_truth_is_hardly_known_gives_pieces(slanted):
    """There are few pixels to learn from, but the search ends."""
    valid = np.zeros((104, 120), bool)
    valid[50:60, 50:60] = True
    piece = make_piece(replace(slanted, valid=valid), np.random.default_rng(0), 96)
    assert 0 < piece.valid.sum() <= 100
