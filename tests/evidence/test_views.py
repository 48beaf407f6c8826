"""Cameras in sectors around the reference, and fewer of them spread over the aperture."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
import torch

from oaccdepth.evidence.packing import packed
from oaccdepth.evidence.views import Views, sectors_of, thin_out, thinned, voters


def steps_of(grid):
    """Steps (k, 2) of all views but the centre."""
    rows, columns = grid
    places = [
        (rows // 2 - u, columns // 2 - v) for u, v in itertools.product(range(rows), range(columns))
    ]
    return torch.tensor([place for place in places if place != (0, 0)], dtype=torch.float32)


def test_views_on_the_axes_lie_in_the_middle_of_their_sectors():
    # a view to the left of the reference sees points further to the right: a step of +1 column
    steps = torch.tensor([[0, 1], [1, 1], [1, 0], [1, -1], [0, -1], [-1, -1], [-1, 0], [-1, 1]])
    assert sectors_of(steps.float()).tolist() == list(range(0, 16, 2))
    near = torch.tensor([[0.05, 1], [-0.05, 1], [0.19, 1], [-0.19, 1]])
    assert sectors_of(near).tolist() == [0] * 4


@pytest.mark.parametrize("grid", [(3, 3), (9, 9), (5, 9), (1, 5), (5, 1)])
def test_sectors_are_those_of_the_literal_version(grid):
    steps = steps_of(grid)
    assert sectors_of(steps).tolist() == [reference.sector(step) for step in steps.tolist()]


def test_opposite_views_lie_in_opposite_sectors():
    steps = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32))
    assert ((sectors_of(steps) - sectors_of(-steps)) % 16 == 8).all()


def test_thinned_out_views_are_spread_over_the_aperture():
    steps = steps_of((9, 9))
    assert sorted(thin_out(steps, 80).tolist()) == list(range(80))
    chosen = steps[thin_out(steps, 16)]
    assert len({tuple(step) for step in chosen.tolist()}) == 16
    assert {4.0, -4.0} <= set(chosen[:, 0].tolist()) & set(chosen[:, 1].tolist())
    assert {sector // 2 for sector in sectors_of(chosen).tolist()} == set(range(8))
    between = torch.cdist(chosen, chosen) + 99 * torch.eye(16)
    assert between.min() >= 2
    assert torch.cdist(steps, chosen).amin(1).max() < 2.5  # no hole


def test_of_a_large_grid_every_other_view_votes():
    steps = steps_of((9, 9))
    chosen = steps[voters(steps)]
    assert len(chosen) == 48
    there = {(int(u), int(v)) for u, v in chosen.tolist()}
    assert there == {(-u, -v) for u, v in there} == {(v, u) for u, v in there}
    assert {(0, v) for v in range(-4, 5) if v} <= there
    assert set(sectors_of(chosen).tolist()) == set(range(16))


@pytest.mark.parametrize("grid", [(3, 3), (7, 7), (1, 9), (5, 9)])
def test_all_views_of_a_small_grid_vote(grid):
    steps = steps_of(grid)
    assert voters(steps).tolist() == list(range(len(steps)))


def test_all_views_vote_where_there_is_no_grid():
    steps = steps_of((9, 9)) + 0.25 * torch.rand(80, 2)
    assert len(voters(steps)) == 80


def test_some_of_the_views():
    views = Views(torch.rand(4, 3, 6, 8), torch.rand(3, 4, 6), torch.rand(4, 2), margin=1)
    some = views.only(torch.tensor([0, 3]))
    assert torch.equal(some.pictures, views.pictures[[0, 3]])
    assert torch.equal(some.steps, views.steps[[0, 3]])
    assert some.margin == 1 and some.size == views.size == (4, 6)


def views_of(steps):
    """Random views that stand there."""
    return Views(torch.rand(len(steps), 3, 6, 8), torch.rand(3, 4, 6), steps, margin=1)


@pytest.mark.parametrize("steps", [steps_of((9, 9)), steps_of((5, 5)), torch.zeros(30, 2)])
def test_fewer_of_the_thinned_out_are_the_first(steps):
    many = views_of(steps)
    some = many.only(thin_out(steps, 28))
    fewer = thinned(some, 20)
    assert torch.equal(fewer.pictures, many.only(thin_out(steps, 20)).pictures)
    assert fewer.pictures.data_ptr() == some.pictures.data_ptr()
    assert np.shares_memory(packed(fewer)[0], packed(some)[0])
    assert len(packed(fewer)[0]) == 20
    assert len(set(thin_out(steps, 28).tolist())) == min(28, len(steps))


def test_views_that_were_not_thinned_out_before_are_copied():
    views = views_of(steps_of((9, 9)))
    fewer = thinned(views, 20)
    assert torch.equal(fewer.steps, views.steps[thin_out(views.steps, 20)])
    assert not np.shares_memory(packed(fewer)[0], packed(views)[0])
    np.testing.assert_array_equal(packed(fewer)[0], packed(views)[0][thin_out(views.steps, 20)])


def test_views_are_packed_once():
    views = views_of(steps_of((3, 3)))
    assert packed(views)[0] is not None and np.shares_memory(packed(views)[0], packed(views)[0])
    assert thinned(views, 8).steps.shape == (8, 2)
