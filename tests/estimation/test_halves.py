"""What halves of the aperture have in common."""

import numpy as np
import pytest
from layered import scene_between

from oaccdepth.estimation.halves import compare_halves
from oaccdepth.estimation.matching import Matcher
from oaccdepth.lightfield import LightField


@pytest.fixture(scope="module")
def light_field():
    """A wall at 1 px, 64 px wide: nothing is reduced, and levels are 1/8 px apart."""
    return scene_between(1.0, 1.0, size=(64, 64)).light_field


def test_they_share_most_at_the_disparity_even_in_noise(light_field):
    noise = np.random.default_rng(0).normal(0, 0.1, light_field.views.shape)
    noisy = LightField(np.clip(light_field.views + noise, 0, 1).astype(np.float32))
    levels, common = compare_halves(Matcher(noisy), (-1.0, 3.0))
    assert levels[1] - levels[0] == pytest.approx(0.125)
    best = levels[common.argmax(axis=0)][8:-8, 8:-8]
    assert np.mean(np.abs(best - 1.0) <= 0.126) > 0.95


def test_noise_has_nothing_in_common():
    views = np.random.default_rng(0).uniform(0, 1, (9, 9, 64, 64, 1)).astype(np.float32)
    _, common = compare_halves(Matcher(LightField(views)), (-1.0, 1.0))
    assert abs(common.mean()) < 0.1 * common.std()


def test_a_literal_version_agrees(light_field):
    """At an integer disparity, views are moved by whole pixels."""
    matcher = Matcher(light_field)
    levels, common = compare_halves(matcher, (1.0, 1.0))
    moved = {
        (u, v): np.roll(matcher.detail((u, v), 1.0)[0], (u - 4, v - 4), axis=(0, 1))
        for u, v in np.ndindex(9, 9)
    }
    left, right, above, below = (
        np.mean([picture for place, picture in moved.items() if is_there(*place)], axis=0)
        for is_there in (
            lambda u, v: v < 4,
            lambda u, v: v > 4,
            lambda u, v: u < 4,
            lambda u, v: u > 4,
        )
    )
    product = left * right + above * below
    assert levels[0] == 1.0
    assert common[0, 32, 32] == pytest.approx(product[27:38, 27:38].mean(), rel=1e-4)


def test_few_views_are_not_compared(light_field):
    assert len(compare_halves(Matcher(LightField(light_field.views[3:6, 3:6])), (0.0, 2.0))[0]) == 0
