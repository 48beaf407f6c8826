"""Training patches keep the light field's geometry, whatever is done to them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from layered import Plane, Surface, cloud_texture, render

from oaccdepth.training import patches
from oaccdepth.training.patches import (
    Patch,
    PatchSampler,
    add_noise,
    augment,
    choose_views,
    crop_views,
    turn,
)
from oaccdepth.training.scenes import Scene

MARGIN = 16


@pytest.fixture(scope="module")
def slanted():
    """A smooth slanted plane: photo-consistent everywhere, sub-sampled too."""
    texture = cloud_texture(np.random.default_rng(2), 512, 2.0)
    made = render([Surface(Plane(-0.5, 0.01, 0.005), texture)], (9, 9), (120, 150))
    views = (made.light_field.views * 255).round().astype(np.uint8)
    return Scene("slanted", views, made.disparity, np.ones((120, 150), bool))


def inconsistency(patch, sign=1.0):
    """Mean difference of the views, warped with the truth, to the centre; (for tests only)."""
    size = patch.truth.shape[0]
    y, x = np.mgrid[:size, :size].astype(np.float32) + MARGIN
    centre = patch.views[4, 4, MARGIN:-MARGIN, MARGIN:-MARGIN]
    errors = []
    for u in range(9):
        for v in range(9):
            moved = cv2.remap(
                patch.views[u, v],
                x - sign * patch.truth * (v - 4),
                y - sign * patch.truth * (u - 4),
                cv2.INTER_LINEAR,
            )
            errors.append(np.abs(moved - centre)[moved >= 0])
    return np.concatenate(errors).mean()


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize("shear", [-1, 0, 2])
def test_crops_are_sheared_and_scaled_with_their_truth(slanted, scale, shear):
    lookup = np.repeat(np.arange(256, dtype=np.float32)[None] / 765, 3, 0)
    size, corner, phase = 16, (18, 20), np.array([0, scale - 1])
    views = crop_views(slanted.views, corner, size, MARGIN, scale, phase, shear, lookup)
    window = np.s_[
        scale * 18 : scale * (18 + size) : scale,
        scale - 1 + scale * 20 : scale - 1 + scale * (20 + size) : scale,
    ]
    truth = slanted.truth[window] / scale + shear
    patch = Patch(views, truth.astype(np.float32), np.ones((size, size), bool))
    right, wrong = inconsistency(patch), inconsistency(patch, -1.0)
    assert right < 0.01
    assert wrong > 3 * right


def test_every_augmented_patch_is_consistent(slanted):
    sampler = PatchSampler([slanted], 16, MARGIN, seed=1)
    consistent = 0
    for number in range(40):
        patch = sampler.draw(number)
        assert patch.views.shape == (9, 9, 48, 48)
        assert patch.truth.shape == patch.valid.shape == (16, 16)
        assert np.abs(patch.truth).max() < 4
        present = patch.views[patch.views >= 0]
        assert present.max() <= 1
        assert patch.views[4, 4, MARGIN:-MARGIN, MARGIN:-MARGIN].min() >= 0
        consistent += inconsistency(patch) < 0.03
    assert consistent >= 25  # the others are noisy


def test_a_number_always_gives_the_same_patch(slanted):
    first, second = (PatchSampler([slanted], 16, MARGIN, seed=1).draw(5) for _ in range(2))
    np.testing.assert_array_equal(first.views, second.views)
    other = PatchSampler([slanted], 16, MARGIN, seed=2).draw(5)
    assert not np.array_equal(first.views, other.views)


@pytest.mark.parametrize(("full_size", "expected"), [(1.0, {1}), (0.0, {2, 3}), (0.5, {1, 2, 3})])
def test_the_share_of_patches_that_are_not_sub_sampled(slanted, monkeypatch, full_size, expected):
    scales = []

    def listen(views, corner, size, margin, scale, *others):
        scales.append(scale)
        return crop_views(views, corner, size, margin, scale, *others)

    monkeypatch.setattr(patches, "crop_views", listen)
    sampler = PatchSampler([slanted], 16, MARGIN, seed=1, full_size=full_size)
    for number in range(40):
        sampler.draw(number)
    assert set(scales) == expected


def test_turning_moves_cameras_and_pictures_together(slanted):
    lookup = np.repeat(np.arange(256, dtype=np.float32)[None] / 765, 3, 0)
    views = crop_views(slanted.views, (20, 20), 16, MARGIN, 1, np.zeros(2, int), 0, lookup)
    patch = Patch(views, slanted.truth[20:36, 20:36], np.ones((16, 16), bool))
    seen = set()
    for seed in range(30):
        turned = Patch(*turn(patch.views, patch.truth, patch.valid, np.random.default_rng(seed)))
        seen.add(np.ascontiguousarray(turned.truth).tobytes())
        contiguous = Patch(np.ascontiguousarray(turned.views), turned.truth, turned.valid)
        assert inconsistency(contiguous) < 0.01
    assert len(seen) == 8


def test_samples_outside_the_frame_are_absent(slanted):
    lookup = np.repeat(np.arange(256, dtype=np.float32)[None] / 765, 3, 0)
    views = crop_views(slanted.views, (0, 134), 16, MARGIN, 1, np.zeros(2, int), 0, lookup)
    assert (views[:, :, :MARGIN] < 0).all()
    assert (views[:, :, :, -MARGIN:] < 0).all()
    assert (views[:, :, MARGIN:, :-MARGIN] >= 0).all()


def test_the_centre_view_always_stays():
    rng = np.random.default_rng(0)
    kept = [choose_views((9, 9), rng) for _ in range(300)]
    assert all(view[4, 4] for view in kept)
    assert 0.75 < np.mean([view.all() for view in kept]) < 0.95
    assert any(view.sum() == 9 for view in kept)


def test_noise_is_there_at_times():
    rng = np.random.default_rng(0)
    spread = [add_noise(np.zeros((2, 2, 8, 8), np.float32), rng, 0.2).std() for _ in range(100)]
    assert min(spread) == 0
    assert 0.1 < max(spread) < 0.35


def test_absent_samples_stay_absent(slanted):
    lookup = np.repeat(np.arange(256, dtype=np.float32)[None] / 765, 3, 0)
    views = crop_views(slanted.views, (0, 0), 16, MARGIN, 1, np.zeros(2, int), 0, lookup)
    patch = Patch(views, slanted.truth[:16, :16], np.ones((16, 16), bool))
    for seed in range(20):
        out = augment(patch, np.random.default_rng(seed))
        assert (out.views < 0).sum() >= (views < 0).sum()
        assert ((out.views == out.views.min()) | (out.views >= 0)).all()
