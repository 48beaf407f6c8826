"""Which disparities are searched: given, from the files, or found by the coarse sweep."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from conftest import scene_between
from hypothesis import given
from hypothesis import strategies as st

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.estimation.disparity_range import REACH, choose_coverage, estimate_range, plan_shears


@given(st.floats(-32, 32), st.floats(0.1, 40))
def test_shears_cover_the_range_without_gaps(low, span):
    high = low + span
    shears = plan_shears((low, high))
    assert shears[0] - REACH <= low + 0.5
    assert shears[-1] + REACH >= high - 0.5
    assert all(b - a <= 2 * REACH for a, b in itertools.pairwise(shears))


@pytest.mark.parametrize(
    ("wanted", "shears"),
    [
        ((-4.0, 4.0), (0,)),
        ((1.0, 3.5), (0,)),
        ((9.0, 14.0), (12,)),
        ((-12.0, 12.0), (-8, -3, 3, 8)),
        ((-32.0, -27.0), (-30,)),
    ],
)
def test_shears(wanted, shears):
    assert plan_shears(wanted) == shears


@pytest.mark.parametrize(
    ("between", "size"),
    [
        ((-1.0, 1.5), (96, 128)),
        ((9.0, 14.0), (96, 128)),
        ((-12.0, 12.0), (96, 128)),
        ((20.0, 24.0), (240, 320)),
    ],
)
def test_coarse_sweep_finds_the_range(between, size):
    low, high = estimate_range(scene_between(*between, size=size, grid=(5, 5)).light_field)
    assert low == pytest.approx(between[0], abs=1.5)
    assert high == pytest.approx(between[1], abs=1.5)


def test_coarse_sweep_of_a_small_array():
    low, high = estimate_range(scene_between(-3.0, 6.0, grid=(3, 3)).light_field)
    assert low == pytest.approx(-3, abs=1.5)
    assert high == pytest.approx(6, abs=1.5)


def test_disparities_larger_than_the_picture_make_no_sense():
    light_field = scene_between(-1.0, 1.0, size=(24, 32), grid=(3, 3)).light_field
    with pytest.raises(InvalidOption) as caught:
        choose_coverage(light_field, (-1000.0, 1.0))
    assert str(caught.value) == (
        "--disparity-range -1000:1: the views are only 32 px long, and no point moves further "
        "between neighbours. Use a smaller range."
    )
    with pytest.raises(InvalidLightField) as refused:
        choose_coverage(replace(light_field, disparity_range=(-1.0, 1e6)), None)
    assert str(refused.value) == (
        "synthetic scene: its files give disparities from -1 to 1e+06 px, but the views are only "
        "32 px long. Correct disp_min and disp_max, or pass --disparity-range MIN:MAX."
    )


def test_what_the_user_says_comes_before_the_file_and_that_before_the_sweep():
    light_field = scene_between(-1.0, 1.0, size=(32, 32), grid=(3, 3)).light_field
    in_file = replace(light_field, disparity_range=(-2.0, 2.0))
    assert choose_coverage(in_file, (0.0, 1.0)).source == "option"
    assert choose_coverage(in_file, None).disparity_range == (-2.0, 2.0)
    assert choose_coverage(in_file, None).source == "file"
    assert choose_coverage(light_field, None).source == "estimated"
