"""Maps of 3x3 arrays are corrected by what opposite views say of each other."""

from dataclasses import replace

import numpy as np
import pytest
from layered import Plane, Surface, bars, cloud_texture, render

from oaccdepth.estimation.inference import estimate
from oaccdepth.estimation.opposite import correct
from oaccdepth.rendering.rig import camera_places
from oaccdepth.rendering.scenes import random_scene
from oaccdepth.rendering.scenes import render as render_scene

SIZE = (48, 64)
TRUTH = 0.3
SURE = np.ones(SIZE, np.float32)


def views_of(grid=(3, 3), *more):
    rng = np.random.default_rng(3)
    wall = Surface(Plane(TRUTH), cloud_texture(rng, 128, 1.0))
    return render([wall, *more], grid, SIZE).light_field


def inner(values):
    return values[8:-8, 8:-8]


@pytest.mark.parametrize("grid", [(3, 3), (1, 3), (3, 1)])
@pytest.mark.parametrize("error", [-0.06, 0.06])
def test_a_map_goes_halfway_to_what_opposite_views_say(grid, error):
    wrong = np.full(SIZE, TRUTH + error, np.float32)
    corrected = correct(views_of(grid), wrong, SURE)
    assert 0.1 < (inner(corrected).mean() - TRUTH) / error < 0.7


def test_a_right_map_stays():
    right = np.full(SIZE, TRUTH, np.float32)
    assert np.abs(inner(correct(views_of(), right, SURE)) - TRUTH).max() < 0.03


def test_edges_and_what_is_not_sure_stay():
    bar = Surface(
        Plane(1.5), cloud_texture(np.random.default_rng(4), 128, 1.0), bars(500, 8, 0, 32)
    )
    light_field = views_of((3, 3), bar)
    wrong = np.full(SIZE, TRUTH + 0.06, np.float32)
    wrong[:, 28:36] = 1.5
    corrected = correct(light_field, wrong, SURE)
    assert np.array_equal(corrected[:, 24:40], wrong[:, 24:40])
    assert not np.array_equal(corrected[:, :20], wrong[:, :20])
    assert np.array_equal(correct(light_field, wrong, 0.2 * SURE), wrong)


def test_larger_arrays_and_those_with_gaps_stay():
    wrong = np.full(SIZE, TRUTH + 0.06, np.float32)
    light_field = views_of()
    valid = np.ones((3, 3, *SIZE), bool)
    corner = replace(light_field, reference=(0, 0))
    assert np.array_equal(correct(views_of((5, 5)), wrong, SURE), wrong)
    assert np.array_equal(correct(replace(light_field, valid=valid), wrong, SURE), wrong)
    assert np.array_equal(correct(corner, wrong, SURE), wrong)


def test_faint_surfaces_in_a_small_array():
    """Before, 67 % of the pixels were wrong by more than 0.07 px, most of them surely."""
    scene, finish = random_scene(8001, size=(192, 192))
    rendered = render_scene(scene, finish, camera_places((3, 3)))
    found = estimate(rendered.light_field)
    error = np.abs(found.disparity - rendered.disparity)[15:-15, 15:-15]
    is_sure = found.confidence[15:-15, 15:-15] > 0.8
    assert (error > 0.07).mean() < 0.45 and ((error > 0.07) & is_sure).mean() < 0.35
