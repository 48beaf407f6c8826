"""The scores against hand-computed cases, literal loops and another program's numbers."""

import math

import numpy as np
import pytest

from oaccdepth.evaluation import metrics
from oaccdepth.lightfield import Camera

EVERYWHERE = np.ones((2, 2), dtype=bool)


def array(*rows):
    return np.array(rows, dtype=np.float32)


def test_mse_by_hand():
    # errors 0, 1, 2, -3: (0 + 1 + 4 + 9) / 4 = 3.5
    assert metrics.mse_100(array([0, 2], [4, -3]), array([0, 1], [2, 0]), EVERYWHERE) == 350


def test_bad_pix_is_strict():
    truth = array([0, 0], [0, 0])
    prediction = array([0.5, -0.5], [0.50001, -2])
    assert metrics.bad_pix(prediction, truth, EVERYWHERE, 0.5) == 50


def test_bad_pix_compares_in_float32():
    # 0.07 has no exact float32; an error of float32(0.07) is not greater than the threshold
    prediction = array([0.07, 0.07], [0.07, 0.0700001])
    assert metrics.bad_pix(prediction, array([0, 0], [0, 0]), EVERYWHERE, 0.07) == 25


def test_q25_takes_the_element_at_a_quarter():
    truth = np.zeros((1, 9), dtype=np.float32)
    prediction = array([9, -1, 5, 3, -2, 8, 7, 4, 6])
    # |errors| ascending 1 2 3 4 5 6 7 8 9, index int(0.25 * 9) = 2
    assert metrics.q25_100(prediction, truth, np.ones((1, 9), dtype=bool)) == 300


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_bad(value):
    truth = array([0, 0], [0, 0])
    prediction = array([0, 0], [0, value])
    assert metrics.bad_pix(prediction, truth, EVERYWHERE, 0.07) == 25
    assert metrics.mse_100(prediction, truth, EVERYWHERE) == math.inf
    assert metrics.q25_100(prediction, truth, EVERYWHERE) == 0
    assert metrics.q25_100(np.full_like(truth, value), truth, EVERYWHERE) == math.inf


def test_outside_the_mask_nothing_counts():
    truth = array([0, 0], [0, 0])
    prediction = array([1, np.nan], [9, 9])
    mask = np.array([[True, False], [False, False]])
    assert metrics.mse_100(prediction, truth, mask) == 100
    assert metrics.bad_pix(prediction, truth, mask, 0.07) == 100


def test_nothing_to_score():
    nothing = np.zeros((2, 2), dtype=bool)
    zero = array([0, 0], [0, 0])
    assert math.isnan(metrics.mse_100(zero, zero, nothing))
    assert math.isnan(metrics.bad_pix(zero, zero, nothing, 0.07))
    assert math.isnan(metrics.q25_100(zero, zero, nothing))


def test_scored_pixels():
    truth = np.zeros((8, 10), dtype=np.float32)
    truth[4, 4] = np.nan
    mask = metrics.scored_pixels(truth, border=3)
    assert mask.sum() == 2 * 4 - 1
    assert mask[3, 3] and not mask[2, 3] and not mask[3, 7] and not mask[4, 4]
    assert metrics.scored_pixels(truth, border=0).sum() == 79
    assert metrics.scored_pixels(truth, border=15).sum() == 0
    assert metrics.scored_pixels(np.zeros((512, 512), dtype=np.float32)).sum() == 482 * 482


def test_prediction_and_truth_are_left_alone():
    prediction = array([np.nan, 1], [2, 3])
    truth = array([1, 1], [np.nan, 1])
    before = prediction.copy(), truth.copy()
    metrics.mse_100(prediction, truth, metrics.scored_pixels(truth, 0))
    np.testing.assert_array_equal(prediction, before[0])
    np.testing.assert_array_equal(truth, before[1])


def test_against_awk():
    r"""Numbers computed by another program (mawk 1.3.4, double precision) from the formula below.

    awk 'BEGIN { for (i = 0; i < 400; i++) { e = 0.2*sin(i)*sin(i)*sin(i); if (e < 0) e = -e;
         s += e*e; if (e > 0.07) b++; if (e > 0.01) c++; print e > "errors" }
         printf "%.6f %.2f %.2f\n", 100*s/400, 100*b/400, 100*c/400 }'
    sort -g errors | sed -n 101p      # index int(0.25 * 400) = 100, counted from 0
    """
    steps = np.arange(400).reshape(20, 20)
    prediction = (0.2 * np.sin(steps) ** 3).astype(np.float32)
    truth = np.zeros_like(prediction)
    mask = np.ones(truth.shape, dtype=bool)
    assert metrics.mse_100(prediction, truth, mask) == pytest.approx(1.246908, abs=2e-6)
    assert metrics.bad_pix(prediction, truth, mask, 0.07) == pytest.approx(50.00)
    assert metrics.bad_pix(prediction, truth, mask, 0.01) == pytest.approx(76.00)
    assert metrics.q25_100(prediction, truth, mask) == pytest.approx(1.16625, abs=1e-4)


def literal_bumpiness(prediction, truth, mask):
    """Scharr's 3x3 filters applied twice, pixel by pixel, with plain Python numbers."""
    height, width = truth.shape
    error = [
        [float(prediction[y, x]) - float(truth[y, x]) for x in range(width)] for y in range(height)
    ]

    def scharr(values, dy, dx):
        result = [[0.0] * width for _ in range(height)]
        for y in range(1, height - 1):
            for x in range(1, width - 1):
                total = 0.0
                for step, weight in ((-1, 3), (0, 10), (1, 3)):
                    # one step along the axis, `step` across it
                    after = values[y + dy + step * dx][x + dx + step * dy]
                    before = values[y - dy + step * dx][x - dx + step * dy]
                    total += weight * (after - before)
                result[y][x] = total / 16
        return result

    down, across = scharr(error, 1, 0), scharr(error, 0, 1)
    second = [scharr(first, *axis) for first in (down, across) for axis in ((1, 0), (0, 1))]
    norms = [
        min(0.05, math.sqrt(sum(values[y][x] ** 2 for values in second)))
        for y in range(height)
        for x in range(width)
        if mask[y, x]
    ]
    return 100 * sum(norms) / len(norms)


def test_bumpiness_against_literal_loops():
    noise = np.random.default_rng(3)
    truth = noise.normal(0, 1, (14, 17)).astype(np.float32)
    prediction = truth + noise.normal(0, 0.01, truth.shape).astype(np.float32)
    mask = noise.random(truth.shape) > 0.4
    expected = literal_bumpiness(prediction, truth, mask)
    assert 0.5 < expected < 5
    assert metrics.bumpiness_100(prediction, truth, mask) == pytest.approx(expected, rel=1e-4)


def test_bumpiness_counts_what_is_missing_as_bumpy():
    prediction = np.zeros((9, 9), dtype=np.float32)
    prediction[4, 4] = np.nan
    everywhere = np.ones((9, 9), dtype=bool)
    # Filters applied twice reach two pixels: 25 pixels see the missing one.
    assert metrics.bumpiness_100(prediction, np.zeros_like(prediction), everywhere) == (
        pytest.approx(100 * 0.05 * 25 / 81)
    )


def test_fattening_and_thinning_by_hand():
    truth = array([0, 0], [0, 0])
    prediction = array([0.2, 0.1], [-0.2, np.nan])
    assert metrics.fattening(prediction, truth, EVERYWHERE) == 50  # 0.2, and the missing one
    assert metrics.thinning(prediction, truth, EVERYWHERE) == 50  # -0.2, and the missing one
    assert metrics.fattening(array([0.15, 0], [0, 0]), truth, EVERYWHERE) == 0


def test_fattening_and_thinning_between():
    truth, near, far = array([0, 0], [0, 0]), array([1], [1]), array([-1], [-1])
    prediction = array([0.5, 0.51], [np.nan, -0.51])
    assert metrics.fattening_between(prediction, truth, EVERYWHERE, near) == 50  # 0.51 and NaN
    assert metrics.thinning_between(prediction, truth, EVERYWHERE, far) == 50  # -0.51 and NaN


def test_missed():
    labels = np.array([[0, 1, 1], [3, 3, 3]])
    truth = array([0, 0, 0], [0, 0, 0])
    assert metrics.missed(array([9, 0.5, 0], [0, 0, 0.5]), truth, labels) == 50  # half of 1
    assert metrics.missed(array([9, 0.4, 0], [0, 0, 0]), truth, labels) == 0
    assert math.isnan(metrics.missed(truth, truth, labels * 0))


def slanted(camera: Camera, slope: float, size=(20, 24)):
    """Disparity of a plane through (0, 0, 2 m) that falls away to the right by `slope`."""
    x = np.linspace(0, 0.5 * camera.sensor_mm / camera.focal_mm, size[1])
    depth = np.broadcast_to(2000 / (1 - slope * x), size)  # z = 2000 + slope * (x z)
    return camera.disparity_px(depth.astype(np.float64), max(size))


@pytest.mark.parametrize("slope", [0.0, 0.5, -1.5])
def test_median_angle(slope):
    """A plane of a known slope against one that faces the camera."""
    camera = Camera(baseline_mm=30, focal_mm=100, sensor_mm=35, focus_mm=3000)
    truth, prediction = slanted(camera, 0), slanted(camera, slope)
    mask = np.ones(truth.shape, dtype=bool)  # the edge, which has no normals, is left out
    expected = math.degrees(math.atan(abs(slope)))
    found = metrics.median_angle(prediction, truth, mask, camera)
    assert found == pytest.approx(expected, abs=0.1)
    assert metrics.median_angle(truth, prediction, mask, camera) == pytest.approx(found)


def test_median_angle_of_what_is_not_finite():
    camera = Camera(baseline_mm=30, focal_mm=100, sensor_mm=35, focus_mm=3000)
    truth = slanted(camera, 0)
    prediction = np.where(np.arange(24) < 14, np.nan, truth).astype(np.float32)
    mask = np.ones(truth.shape, dtype=bool)
    assert metrics.median_angle(prediction, truth, mask, camera) == 180
    assert math.isnan(metrics.median_angle(truth, truth, ~mask, camera))
