"""The result where the reference view has no picture, or the views say nothing."""

from dataclasses import replace

import numpy as np
import torch
from layered import Plane, Surface, cloud_texture, render

from oaccdepth.estimation import inference
from oaccdepth.estimation.found import BESIDE, Found, FoundPass, fill_smoothly, fill_unknown
from oaccdepth.estimation.inference import NO_INFORMATION, estimate
from oaccdepth.lightfield import LightField
from oaccdepth.options import EstimateOptions


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


def test_where_nothing_is_known_the_surroundings_are_continued():
    """Before, a dark wall in faint noise had any disparity, down to the end of the range."""
    texture = cloud_texture(np.random.default_rng(3), 256, 1.0)
    views = render([Surface(Plane(0.8), texture)], (5, 5), (64, 96)).light_field.views.copy()
    views[..., 48:, :] = np.random.default_rng(4).integers(14, 27, (5, 5, 64, 48, 3), np.uint8)
    found = estimate(LightField(views), EstimateOptions(disparity_range=(-2, 3)))
    assert found.confidence[:, 56:].mean() < 0.05 and found.confidence[:, :40].mean() > 0.9
    farther = slice(48 + BESIDE, None)  # confidence fades so far
    assert np.abs(found.disparity[:, farther] - 0.8).mean() < 0.05


def test_what_is_known_is_kept():
    disparity, confidence = torch.rand(16, 16), torch.ones(16, 16)
    confidence[4:8, 4:8] = 0.01
    found = Found([FoundPass(disparity.clone()), FoundPass(disparity.clone())], confidence)
    assert fill_unknown(found)
    first, last = (one.disparity for one in found.passes)
    assert torch.equal(first, disparity)
    is_known = confidence > 0.5
    assert torch.equal(last[is_known], disparity[is_known])
    assert not torch.isclose(last[~is_known], disparity[~is_known]).any()


def test_a_map_of_which_nothing_is_known_is_flat_and_said_to_be(scene, untrained, monkeypatch):
    def lost(task, clock, report):
        known_nothing = torch.full(task.light_field.resolution, 0.001)
        return task, Found([FoundPass(torch.rand(task.light_field.resolution))], known_nothing), []

    monkeypatch.setattr(inference, "search", lost)
    found = estimate(scene.light_field, network=untrained)
    assert found.made_with.notes == (NO_INFORMATION,)
    assert np.ptp(found.disparity) == 0 and found.confidence.max() == 0
