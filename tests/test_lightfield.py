import numpy as np
import pytest

from oaccdepth import LightField
from oaccdepth.errors import InvalidLightField
from oaccdepth.lightfield import Camera, as_float, as_grey

CAMERA = Camera(baseline_mm=100.0, focal_mm=100.0, sensor_mm=35.0, focus_mm=7000.0)


def light_field(shape=(3, 5, 4, 6, 3), dtype=np.uint8, **settings):
    return LightField(np.zeros(shape, dtype), **settings)


def test_properties():
    views = np.zeros((3, 5, 4, 6, 3), np.uint8)
    views[1, 2] = 51
    made = LightField(views)
    assert made.grid == (3, 5)
    assert made.resolution == (4, 6)
    assert made.missing_views == []
    assert made.centre.dtype == np.float32
    np.testing.assert_allclose(made.centre, np.full((4, 6, 3), 0.2), rtol=1e-6)


def test_the_centre_of_an_even_grid_is_the_later_one():
    views = np.zeros((4, 4, 2, 2, 1), np.float32)
    views[2, 2] = 1
    assert LightField(views).centre.min() == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"shape": (3, 5, 4, 6)},
            "views have shape (3, 5, 4, 6), expected (u, v, h, w, c) with c = 1 or 3.",
        ),
        (
            {"shape": (3, 5, 4, 6, 4)},
            "views have shape (3, 5, 4, 6, 4), expected (u, v, h, w, c) with c = 1 or 3.",
        ),
        (
            {"dtype": np.float64},
            "views are float64, expected uint8, uint16 or float32 in [0, 1].",
        ),
        (
            {"valid": np.ones((5, 3), bool)},
            "the validity mask has shape (5, 3), expected (3, 5) or (3, 5, 4, 6).",
        ),
        (
            {"valid": np.zeros((3, 5), bool)},
            "the validity mask is False everywhere, so there is no picture. "
            "Correct it, or leave it out.",
        ),
        (
            {"places": np.zeros((5, 3, 2), np.float32)},
            "the camera places have shape (5, 3, 2), expected finite numbers of shape (3, 5, 2).",
        ),
        (
            {"places": np.ones((3, 5, 2), np.float32)},
            "the centre view's camera is at [1. 1.], expected (0, 0): places are relative to it.",
        ),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(InvalidLightField) as caught:
        light_field(**settings, source="town")
    assert str(caught.value) == f"town: {message}"


def test_missing_views_per_view_and_per_pixel():
    per_view = np.ones((3, 5), bool)
    per_view[0, 4] = per_view[2, 1] = False
    assert light_field(valid=per_view).missing_views == [(0, 4), (2, 1)]
    per_pixel = np.ones((3, 5, 4, 6), bool)
    per_pixel[1, 1, 0] = False  # a part of it exists
    per_pixel[2, 2] = False
    assert light_field(valid=per_pixel).missing_views == [(2, 2)]


@pytest.mark.parametrize(
    ("dtype", "largest"), [(np.uint8, 255), (np.uint16, 65535), (np.float32, 1)]
)
def test_values_become_floats_from_0_to_1(dtype, largest):
    values = np.array([[[0, 0, largest], [largest, largest, largest]]], dtype)
    assert as_float(values).dtype == as_grey(values).dtype == np.float32
    np.testing.assert_allclose(as_float(values), [[[0, 0, 1], [1, 1, 1]]])
    np.testing.assert_allclose(as_grey(values), [[1 / 3, 1]], rtol=1e-6)


def test_grey_of_one_channel():
    np.testing.assert_allclose(as_grey(np.array([[[255], [0]]], np.uint8)), [[1, 0]])


def test_disparity_zero_lies_at_the_focus():
    depth = CAMERA.depth_mm(np.zeros((1, 1), np.float32), 512)
    np.testing.assert_allclose(depth, 7000, rtol=1e-6)


def test_depth_is_the_toolkits_formula():
    # Z = beta F / (d F sensor + beta), beta = baseline * focal * larger side (formats.md, 5).
    disparity = np.array([[-3.0, -1.5, 0.0, 2.8]], np.float32)
    beta = 100.0 * 100.0 * 512
    expected = beta * 7000 / (disparity.astype(float) * 7000 * 35 + beta)
    np.testing.assert_allclose(CAMERA.depth_mm(disparity, 512), expected, rtol=1e-6)


def test_nearer_is_larger():
    depth = CAMERA.depth_mm(np.array([[-1.0, 0.0, 1.0]], np.float32), 512)[0]
    assert depth[0] > depth[1] > depth[2]


def test_depth_and_disparity_are_inverse():
    disparity = np.linspace(-3, 3, 7, dtype=np.float32)
    again = CAMERA.disparity_px(CAMERA.depth_mm(disparity, 512), 512)
    np.testing.assert_allclose(again, disparity, atol=1e-4)


def test_beyond_infinity_is_infinite():
    # The disparity of infinity is -20.898 px with this camera.
    depth = CAMERA.depth_mm(np.array([[-20.8, -20.9]], np.float32), 512)[0]
    assert np.isfinite(depth[0]) and np.isinf(depth[1])


def test_parallel_cameras_see_infinity_at_disparity_zero():
    parallel = Camera(baseline_mm=10.0, focal_mm=50.0, sensor_mm=36.0, focus_mm=0.0)
    depth = parallel.depth_mm(np.array([[0.0, 1.0]], np.float32), 360)[0]
    assert np.isinf(depth[0])
    np.testing.assert_allclose(depth[1], 10 * 50 * 360 / 36, rtol=1e-6)
    np.testing.assert_allclose(parallel.disparity_px(depth, 360), [0, 1], atol=1e-6)


def test_cameras_stand_on_a_regular_grid_around_the_centre_view():
    places = light_field().camera_places
    assert places.shape == (3, 5, 2)
    assert places.dtype == np.float32
    assert places[1, 2].tolist() == [0, 0]
    assert places[0, 4].tolist() == [-1, 2]


def test_cameras_that_stand_elsewhere():
    places = 3 * light_field().camera_places
    assert light_field(places=places).camera_places[0, 4].tolist() == [-3, 6]


def test_steps_of_the_views_that_are_used():
    every_third = light_field(
        places=3 * light_field().camera_places, camera=CAMERA, disparity_range=(-1.0, 2.0)
    )
    assert light_field().step == 1
    assert every_third.step == 3
    own = every_third.in_own_steps()
    assert (own.places, own.disparity_range, own.camera.baseline_mm) == (None, (-3.0, 6.0), 300.0)
    assert own.step == 1
    assert light_field().in_own_steps().places is None
