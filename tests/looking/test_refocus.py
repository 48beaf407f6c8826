"""Refocusing against a literal loop over pixels and views."""

import math

import numpy as np
import pytest

from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import LightField, as_float
from oaccdepth.looking.refocus import all_in_focus, refocus


def a_light_field(valid=None, dtype=np.uint8, channels=3, grid=(3, 5), size=(7, 8)):
    rng = np.random.default_rng(5)
    views = rng.integers(0, 256, (*grid, *size, channels)).astype(np.uint8)
    if dtype is np.float32:
        views = views.astype(np.float32) / 255
    return LightField(views, valid=valid)


def literal(light_field, disparity_at, aperture=math.inf, masks=None):
    """Mean over views of the bilinear sample at p - d * step; the centre view if there is none."""
    views = as_float(light_field.views).astype(float)
    rows, columns, height, width, channels = views.shape
    valid = np.ones((rows, columns, height, width))
    if light_field.valid is not None:
        shape = light_field.valid.shape
        valid = valid * light_field.valid.reshape(shape + (1,) * (4 - len(shape)))
    result = np.zeros((height, width, channels))
    for y in range(height):
        for x in range(width):
            total, weight = np.zeros(channels), 0.0
            for u in range(rows):
                for v in range(columns):
                    down, right = u - rows // 2, v - columns // 2
                    if math.hypot(down, right) > aperture:
                        continue
                    d = disparity_at(y, x)
                    share = 1.0 if masks is None else masks[u, v, y, x]
                    value, counted = bilinear(views[u, v], valid[u, v], y - d * down, x - d * right)
                    total += value * share
                    weight += counted * share
            result[y, x] = total / weight if weight > 0 else views[rows // 2, columns // 2, y, x]
    return result


def bilinear(picture, valid, y, x):
    height, width = valid.shape
    if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
        return 0.0, 0.0
    value, weight = np.zeros(picture.shape[2]), 0.0
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            share = (1 - abs(y - row)) * (1 - abs(x - column))
            if share > 0:
                value = value + share * valid[row, column] * picture[row, column]
                weight += share * valid[row, column]
    return value, weight


@pytest.mark.parametrize("disparity", [0.0, 1.0, -0.7, 2.35])
@pytest.mark.parametrize("aperture", [None, 0.0, 1.0, 1.5])
def test_refocus_is_the_literal_loop(disparity, aperture):
    light_field = a_light_field()
    expected = literal(
        light_field, lambda y, x: disparity, math.inf if aperture is None else aperture
    )
    assert refocus(light_field, disparity, aperture) == pytest.approx(expected, abs=2e-5)


def test_missing_views_and_pixels_do_not_count():
    rng = np.random.default_rng(2)
    for valid in (rng.random((3, 5)) > 0.4, rng.random((3, 5, 7, 8)) > 0.4):
        light_field = a_light_field(valid)
        expected = literal(light_field, lambda y, x: 0.6)
        assert refocus(light_field, 0.6) == pytest.approx(expected, abs=2e-5)


def test_all_in_focus_is_the_literal_loop():
    rng = np.random.default_rng(8)
    light_field = a_light_field(dtype=np.float32, channels=1)
    disparity = rng.uniform(-2, 2, (7, 8)).astype(np.float32)
    masks = rng.uniform(0, 1, (3, 5, 7, 8)).astype(np.float32)
    for chosen in (None, masks):
        expected = literal(light_field, lambda y, x: float(disparity[y, x]), masks=chosen)
        assert all_in_focus(light_field, disparity, chosen) == pytest.approx(expected, abs=2e-5)


def test_one_row_of_pixels_works():
    light_field = a_light_field(size=(1, 6))
    expected = literal(light_field, lambda y, x: 0.5)
    assert refocus(light_field, 0.5) == pytest.approx(expected, abs=2e-5)
    flat = np.full((1, 6), 0.5, dtype=np.float32)
    assert all_in_focus(light_field, flat) == pytest.approx(expected, abs=2e-5)


def test_aperture_zero_is_the_centre_view():
    light_field = a_light_field()
    assert refocus(light_field, 1.3, 0.0) == pytest.approx(light_field.centre, abs=1e-6)


def test_a_scene_is_sharp_where_it_is_focused(scene):
    """Focused on the wall, the wall differs least from the centre view; all-in-focus beats both."""
    light_field, disparity = scene.light_field, scene.disparity
    wall = disparity < -1.0
    near = np.abs(refocus(light_field, 1.5) - light_field.centre).mean(axis=2)
    far = np.abs(refocus(light_field, -1.2) - light_field.centre).mean(axis=2)
    sharp = np.abs(all_in_focus(light_field, disparity) - light_field.centre).mean(axis=2)
    assert far[wall].mean() < 0.6 * near[wall].mean()
    assert sharp.mean() < 0.6 * min(far.mean(), near.mean())


def test_bad_settings_are_refused():
    light_field = a_light_field()
    with pytest.raises(InvalidOption) as caught:
        refocus(light_field, math.nan)
    assert str(caught.value) == "--disparity nan: expected a finite number of pixels."
    with pytest.raises(InvalidOption) as caught:
        refocus(light_field, 0.0, -1.0)
    assert str(caught.value) == "--aperture -1.0: expected a radius of 0 or more view steps."
    with pytest.raises(InvalidOption) as caught:
        all_in_focus(light_field, np.zeros((8, 7), np.float32))
    assert str(caught.value) == (
        "the disparity map has 7x8 pixels, the views 8x7: expected the same size."
    )
