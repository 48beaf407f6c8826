"""Shears that cover a range, and grey views at a shear."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oaccdepth.estimation.sweeps import ABSENT, GreyViews, plan_shears
from oaccdepth.lightfield import LightField

CPU = torch.device("cpu")


def ramp(grid=(3, 3), size=(12, 16)):
    """Every view shows the number of each pixel, so that a value tells where it came from."""
    numbers = np.arange(size[0] * size[1], dtype=np.float32).reshape(*size, 1) / 1000
    return LightField(np.broadcast_to(numbers, (*grid, *size, 1)).copy())


def test_a_shear_moves_every_view_by_its_steps():
    light_field = ramp()
    grey = GreyViews(light_field, 2, CPU).region((slice(4, 8), slice(5, 9)))[0].numpy()
    whole = light_field.views[0, 0, :, :, 0]
    np.testing.assert_allclose(grey[1, 1], whole[4:8, 5:9], atol=1e-6)
    np.testing.assert_allclose(grey[0, 1], whole[6:10, 5:9], atol=1e-6)  # up: further down in it
    np.testing.assert_allclose(grey[1, 2], whole[4:8, 3:7], atol=1e-6)


def test_beyond_the_frame_and_in_missing_views_nothing_is_there():
    light_field = ramp()
    there = np.ones((3, 3), dtype=bool)
    there[0, 2] = False
    light_field = LightField(light_field.views, valid=there)
    grey = GreyViews(light_field, 3, CPU).region((slice(0, 12), slice(0, 16)))[0].numpy()
    assert (grey[0, 2] == ABSENT).all()
    assert (grey[1, 0, :, -3:] == ABSENT).all() and (grey[1, 0, :, :-3] >= 0).all()


def test_pixels_that_are_not_valid_are_absent():
    valid = np.ones((3, 3, 12, 16), dtype=bool)
    valid[2, 1, 3, 4] = False
    light_field = LightField(ramp().views, valid=valid)
    grey = GreyViews(light_field, 0, CPU).region((slice(0, 12), slice(0, 16)))[0].numpy()
    assert [tuple(place) for place in np.argwhere(grey == ABSENT)] == [(2, 1, 3, 4)]


@given(st.floats(-32, 32), st.floats(0.1, 40), st.integers(1, 6))
def test_shears_cover_the_range_without_gaps(low, span, reach):
    high = low + span
    shears = plan_shears((low, high), reach)
    assert shears[0] - reach <= low + 1e-9
    assert shears[-1] + reach >= high - 1e-9
    assert all(b - a < 2 * reach for a, b in itertools.pairwise(shears))


@pytest.mark.parametrize(
    ("wanted", "shears"),
    [
        ((-4.0, 4.0), (0,)),
        ((1.0, 3.5), (0,)),
        ((9.0, 14.0), (12,)),
        ((-12.0, 12.0), (-8, -3, 3, 8)),
        ((-32.0, -27.0), (-30,)),
        ((-4.5, 6.5), (-1, 3)),
    ],
)
def test_shears(wanted, shears):
    assert plan_shears(wanted, 4) == shears
