"""Views of different brightness are equalised, and nothing else is changed."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from layered import scene_between

from oaccdepth.estimation import disparity_range, exposure
from oaccdepth.estimation.exposure import measure_gains, normalise_exposure
from oaccdepth.lightfield import LightField

ROWS = (0.97, 0.98, 1.0, 1.02, 1.03)  # brightness of the camera rows


@pytest.fixture(scope="module")
def light_field():
    views = scene_between(-1.5, 2.0, grid=(5, 5)).light_field.views
    return LightField(0.1 + np.float32(0.7) * views)


@pytest.fixture(scope="module")
def uneven(light_field):
    factors = np.array(ROWS, np.float32)[:, None, None, None, None]
    return replace(light_field, views=light_field.views * factors)


def test_gains_of_views_that_are_alike(light_field):
    assert np.abs(measure_gains(light_field) - 1).max() < 0.006
    assert normalise_exposure(light_field) == (light_field, "")  # the same object


def test_gains_of_camera_rows(uneven):
    expected = 1 / np.array(ROWS)[:, None]
    assert np.abs(measure_gains(uneven) - expected).max() < 0.006


def test_a_known_range_is_not_searched_for(uneven, monkeypatch):
    monkeypatch.setattr(disparity_range, "_search_everywhere", None)
    expected = 1 / np.array(ROWS)[:, None]
    assert np.abs(measure_gains(uneven, (-1.6, 2.1)) - expected).max() < 0.006


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.uint16])
def test_views_are_made_alike(light_field, uneven, dtype):
    largest = 1.0 if dtype == np.float32 else np.iinfo(dtype).max
    stored = (uneven.views * largest).round().astype(dtype) if largest > 1 else uneven.views
    found, note = normalise_exposure(LightField(stored))
    assert found.views.dtype == dtype
    assert np.abs(found.views / largest - light_field.views).mean() < 0.004
    assert np.abs(stored / largest - light_field.views).mean() > 0.006  # unchanged
    assert note.startswith("Views differ in brightness by up to 3.")
    assert note.endswith(" %: corrected for the estimate.")


def test_missing_views_and_views_without_texture_are_left_alone(uneven):
    valid = np.ones((5, 5), bool)
    valid[0, 3] = False
    assert measure_gains(replace(uneven, valid=valid))[0, 3] == 1
    black = LightField(np.zeros((5, 5, 64, 64, 3), np.uint8))
    assert normalise_exposure(black) == (black, "")


def test_noise_makes_no_view_brighter():
    """With few pixels and much noise, the median is off by more than real views differ."""
    rng = np.random.default_rng(4)
    medians = [rng.normal(1.0, 0.2, 400).astype(np.float32) for _ in range(50)]
    assert max(abs(np.median(ratio) - 1) for ratio in medians) > 0.02
    assert {exposure.gain_of(ratio) for ratio in medians} == {1.0}
    brighter = rng.normal(1.03, 0.02, 400).astype(np.float32)
    assert exposure.gain_of(brighter) == pytest.approx(1 / 1.03, abs=0.004)


def test_noise_is_no_exposure():
    """Not even that of the worst of many views."""
    rng = np.random.default_rng(5)
    noise = rng.normal(0, 0.3, (2000, 60, 60)).astype(np.float32)
    ratios = [1 + cv2.blur(picture, (exposure.WINDOW, exposure.WINDOW)) for picture in noise]
    assert {exposure.gain_of(ratio.ravel()) for ratio in ratios} == {1.0}
