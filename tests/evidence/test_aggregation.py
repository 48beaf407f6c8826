"""Semi-global aggregation: fused, plain and per-pixel dynamic programming agree exactly."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch

from oaccdepth import evidence
from oaccdepth.evidence import aggregation
from oaccdepth.evidence.views import ABSENT


def make_cost(shape, seed=0):
    rng = np.random.default_rng(seed)
    cost = torch.from_numpy(rng.integers(0, 256, shape, dtype=np.uint8))
    picture = torch.from_numpy(rng.random((3, *shape[:2])).astype(np.float32))
    picture[:, :, : shape[1] // 2] = 0.25  # flat on the left
    return cost, picture


def aggregate(*costs, picture):
    """What the fused loops find for each cost (h, w, l)."""
    height, width, levels = costs[0].shape
    found = torch.zeros(len(costs), levels // 2, height, width, 2, dtype=torch.uint8)
    evidence.aggregate(torch.stack(costs), picture, found)
    both = found.movedim(1, 3).flatten(3)
    return both[0] if len(costs) == 1 else both


@pytest.mark.parametrize("shape", [(9, 12, 6), (12, 7, 2), (1, 9, 4), (8, 1, 4), (2, 2, 34)])
def test_all_versions_agree(shape):
    cost, picture = make_cost(shape)
    expected = reference.semi_global(cost.numpy(), picture.numpy())
    np.testing.assert_array_equal(aggregation.aggregate(cost, picture).numpy(), expected)
    np.testing.assert_array_equal(aggregate(cost, picture=picture).numpy(), expected)


def test_several_costs_do_not_disturb_each_other():
    cost, picture = make_cost((7, 9, 6))
    other, _ = make_cost((7, 9, 6), seed=1)
    found = aggregate(cost, other, picture=picture)
    np.testing.assert_array_equal(found[0], aggregation.aggregate(cost, picture))
    np.testing.assert_array_equal(found[1], aggregation.aggregate(other, picture))


def test_a_frame_of_absent_pixels_is_an_edge():
    cost, picture = make_cost((8, 8, 4))
    picture[:, :, 6:] = ABSENT
    fused = aggregate(cost, picture=picture)
    np.testing.assert_array_equal(fused, aggregation.aggregate(cost, picture))


def test_jumps_cost_less_where_the_picture_has_an_edge():
    picture = torch.zeros(3, 4, 6)
    picture[:, :, 3:] = 1 / aggregation.EDGE
    penalty = aggregation.jumps(picture, 0, 1)
    halfway = (aggregation.JUMP + aggregation.STEP) // 2
    expected = [aggregation.JUMP] * 3 + [halfway + 1] + [aggregation.JUMP] * 2
    assert penalty[0].tolist() == pytest.approx(expected, abs=1)


def test_evidence_travels_along_a_stripe():
    """One end of a flat row is certain, everything else ambiguous: the row follows that end."""
    cost = torch.full((5, 30, 8), 40, dtype=torch.uint8)
    cost[:, :2] = 200
    cost[:, :2, 5] = 0
    found = aggregate(cost, picture=torch.full((3, 5, 30), 0.5))
    assert (found.argmin(-1) == 5).all()


def test_levels_that_do_not_exist_are_never_the_best():
    cost, picture = make_cost((6, 6, 2), seed=3)
    found = aggregate(cost, picture=picture)
    assert (found.amin(-1) == 0).all() and found.max() > 0
