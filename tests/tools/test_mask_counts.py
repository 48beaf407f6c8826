"""tools/masks.py counts the same as a loop over all points."""

import layered
import masks
import numpy as np
import pytest
from layered import Plane, Surface, bars, cloud_texture

from oaccdepth.estimation.weights import LoadedWeights


@pytest.fixture(scope="module")
def small():
    textures = [cloud_texture(np.random.default_rng(seed), 64, 1.0) for seed in (1, 2)]
    wall, bar = (
        Surface(Plane(-1.0), textures[0]),
        Surface(Plane(1.5), textures[1], bars(99, 4, 0.2, 9)),
    )
    return layered.render([wall, bar], (3, 3), (12, 16))


def bilinear(picture, y, x):
    top, left = int(y), int(x)
    below, right = min(top + 1, picture.shape[0] - 1), min(left + 1, picture.shape[1] - 1)
    part_y, part_x = y - top, x - left
    upper = picture[top, left] * (1 - part_x) + picture[top, right] * part_x
    lower = picture[below, left] * (1 - part_x) + picture[below, right] * part_x
    return upper * (1 - part_y) + lower * part_y


def test_counts(small):
    grey = small.light_field.views.mean(axis=-1)
    expected = np.zeros(1 + 2 * len(masks.POWERS))
    for u, v, y, x in np.ndindex(grey.shape):
        disparity = small.disparity[y, x]
        in_y, in_x = y - disparity * (u - 1), x - disparity * (v - 1)
        if not (0 <= in_y <= 11 and 0 <= in_x <= 15):
            continue
        residual = abs(bilinear(grey[u, v], in_y, in_x) - grey[1, 1, y, x])
        hidden = not small.visibility[u, v, y, x]
        expected[0] += hidden
        for k, q in enumerate(masks.POWERS):
            called = (1 - residual) ** q < 0.5
            expected[1 + 2 * k] += called
            expected[2 + 2 * k] += called and hidden
    counted = masks.count(small)
    assert expected[0] > 30 and expected[-1] > 10
    np.testing.assert_allclose(counted, expected, atol=2)  # remap rounds positions to 1/32 px


def test_a_row():
    numbers = np.array([10, 4, 3, 4, 4, 8, 5, 10, 10, 20, 10, 0, 0], float)
    assert masks.row("x", numbers) == (
        "| x | 75 / 30 | 100 / 40 | 62 / 50 | 100 / 100 | 50 / 100 | 0 / 0 |"
    )


@pytest.mark.parametrize("kind", masks.DISTURBANCES)
def test_disturbed_views(small, kind):
    """All but the undisturbed ones differ, by a little."""
    views = small.light_field.views
    away = np.abs(masks.disturb(views, kind) - views)
    assert (away == 0).all() if kind == "none" else 0 < away.mean() < 0.05


def test_masks_of_an_estimate(scene, untrained):
    hidden, called, both = masks.count_estimated(scene, "none", LoadedWeights(untrained))
    assert hidden == masks.count(scene)[0]
    assert both > 0.6 * hidden and both > 0.6 * called


def test_the_picture(small, tmp_path):
    import cv2

    masks.draw(small, tmp_path / "a.png")
    assert cv2.imread(str(tmp_path / "a.png")).shape == (12, 5 * 16, 3)
