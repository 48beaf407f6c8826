"""The result where the reference view has no picture."""

from dataclasses import replace

import numpy as np
import torch
from layered import Plane, Surface, cloud_texture, render

from oaccdepth.estimation.found import fill_smoothly
from oaccdepth.estimation.inference import estimate
from oaccdepth.lightfield import LightField


def test_gaps_are_filled_between_what_is_around():
    values = torch.zeros(24, 32)
    values[:, 20:] = 1.0
    is_known = torch.ones(24, 32, dtype=torch.bool)
    is_known[4:20, 8:24] = False
    values[~is_known] = 99.0
    filled = fill_smoothly(values, is_known)
    assert torch.equal(filled[is_known], values[is_known])
    assert filled.min() >= 0 and filled.max() <= 1
    assert (filled[12].diff() >= -1e-6).all()  # from the left wall to the right one
    assert filled[12].diff().max() < 0.3


def test_nothing_known_stays_as_it_is():
    values = torch.rand(5, 7)
    assert torch.equal(fill_smoothly(values, torch.zeros(5, 7, dtype=torch.bool)), values)


def test_a_hole_in_the_centre_view_is_filled_and_not_trusted():
    texture = cloud_texture(np.random.default_rng(3), 256, 1.0)
    scene = render([Surface(Plane(0.8), texture)], (5, 5), (64, 72)).light_field
    hole = np.zeros((64, 72), bool)
    hole[24:40, 30:54] = True
    valid = np.ones((5, 5, 64, 72), bool)
    valid[2, 2, hole] = False
    views = scene.views.copy()
    views[2, 2, hole] = 0
    found = estimate(replace(LightField(views), valid=valid))
    assert found.confidence[hole].max() == 0
    assert found.confidence[~hole].mean() > 0.9
    assert np.abs(found.disparity[hole] - 0.8).max() < 0.1
