"""Several sweeps of a wide scene become one: each pixel takes the answer that the views confirm."""

import numpy as np
import pytest
import torch
from layered import scene_between

from oaccdepth.estimation.found import Found, FoundPass
from oaccdepth.estimation.merging import best_sweep, choose, merge_sweeps, votes_against


@pytest.fixture(scope="module")
def wide():
    return scene_between(-6.0, 6.0, grid=(5, 5))


def found(disparity, confidence=0.5, masks=None):
    disparity = torch.as_tensor(disparity, dtype=torch.float32)
    return Found([FoundPass(disparity, masks)], torch.full_like(disparity, confidence))


def test_views_vote_against_what_is_wrong(wide):
    right = votes_against(wide.light_field, wide.disparity)
    wrong = votes_against(wide.light_field, wide.disparity + 1)
    assert np.median(right) < 0.2 and np.median(wrong) > 2 * np.median(right)


def test_every_pixel_takes_the_sweep_that_reaches_it(wide):
    """One sweep is right where things are near, the other where they are far."""
    is_near = wide.disparity > 0
    near = np.where(is_near, wide.disparity, 2.0).astype(np.float32)
    far = np.where(is_near, -2.0, wide.disparity).astype(np.float32)
    number = best_sweep(wide.light_field, [found(far), found(near)]).numpy()
    assert np.mean(number == is_near) > 0.9


def test_a_single_sweep_gets_its_shear_back(wide):
    merged = merge_sweeps(wide.light_field, [found(wide.disparity - 4)], (4,))
    np.testing.assert_allclose(merged.passes[0].disparity, wide.disparity, atol=1e-5)


def test_confidence_and_masks_come_from_the_chosen_sweep():
    number = torch.tensor([[0, 1], [1, 0]])
    masks = [torch.zeros(3, 3, 2, 2), torch.ones(3, 3, 2, 2)]
    sweeps = [found(torch.full((2, 2), k), 0.2 + k / 2, masks[k]) for k in (0, 1)]
    chosen = choose(sweeps, number)
    assert torch.equal(chosen.passes[0].disparity, number.float())
    assert torch.equal(chosen.confidence, 0.2 + number / 2)
    assert torch.equal(chosen.passes[0].masks, number.float().expand(3, 3, 2, 2))
