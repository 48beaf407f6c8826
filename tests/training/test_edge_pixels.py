"""Pixels on edges to learn from: those that an estimate finds, and the same for a step."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from oaccdepth.estimation.inference import estimate
from oaccdepth.evidence.edges import find_edges
from oaccdepth.lightfield import LightField
from oaccdepth.networks.fast import FastNet
from oaccdepth.options import TrainOptions
from oaccdepth.training import edges
from oaccdepth.training.edges import SCENES, EdgeBatches, costs_above_best
from oaccdepth.training.scenes import load_scenes

OPTIONS = TrainOptions(batch=2, patch=24, steps=1, iterations=2, part="edges")


@pytest.fixture(scope="module")
def scenes(scene_folder):
    return load_scenes(scene_folder)


def same(first, second):
    return torch.equal(first.signs, second.signs) and torch.equal(first.errors, second.errors)


def test_a_step_always_has_the_same_pixels(scenes, untrained):
    running = EdgeBatches(scenes, [], OPTIONS, untrained)
    total = len(running.pixels_of(0).signs)
    later = running[7]
    assert total > 50
    assert len(later.signs) == len(later.errors) == 2 * SCENES * round(total**0.5)
    assert same(EdgeBatches(scenes, [], OPTIONS, untrained)[7], later)
    assert not same(running[8], later)
    assert not same(EdgeBatches(scenes, [], OPTIONS, untrained, rank=1)[7], later)


def test_errors_are_those_of_what_can_be_chosen(scenes, untrained, monkeypatch):
    scene = scenes[0]
    known = scene.truth[scene.valid]
    whole = LightField(np.asarray(scene.views), disparity_range=(known.min(), known.max()))
    maps = {}

    def listen(network, disparity, reference):
        maps.update(disparity=disparity, reference=reference)
        return disparity, torch.zeros_like(disparity)

    with monkeypatch.context() as patched:
        patched.setattr(FastNet, "settle", listen)
        estimate(whole, network=untrained)
    found = find_edges(maps["disparity"], maps["reference"])
    truth = torch.from_numpy(scene.truth).flatten()[found.where, None]
    is_valid = torch.from_numpy(scene.valid).flatten()[found.where]
    errors = (found.places - truth)[is_valid]
    monkeypatch.setattr(edges, "LEAST_COST", 1.2)  # so that there is something to leave out
    matters = costs_above_best(errors).amax(1) > 1.2
    assert 0 < matters.sum() < len(matters)
    pixels = EdgeBatches(scenes, [], OPTIONS, untrained).pixels_of(0)
    torch.testing.assert_close(pixels.errors, errors[matters])
    torch.testing.assert_close(pixels.signs, found.signs[is_valid][matters])


def test_what_is_not_valid_or_beyond_the_frame_is_left_out(scenes, untrained):
    """Maps are filled up to a multiple of 8 px."""
    scene = scenes[0]
    height, width = (side - 3 for side in scene.truth.shape)
    valid = scene.valid[:height, :width].copy()
    valid[:, : width // 2] = False
    views, truth = scene.views[:, :, :height, :width], scene.truth[:height, :width]
    part = replace(scene, views=views, truth=truth, valid=valid)
    batches = EdgeBatches([part], [], OPTIONS, untrained)
    assert 0 < len(batches.pixels_of(0).signs) < len(batches.network.last.where) / 1.3
    nothing = EdgeBatches([replace(part, valid=~np.ones_like(valid))], [], OPTIONS, untrained)
    assert len(nothing[0].signs) == 0


def test_only_so_many_pixels_are_kept(scenes, untrained, monkeypatch):
    monkeypatch.setattr(edges, "MOST_KEPT", 20)
    assert len(EdgeBatches(scenes, [], OPTIONS, untrained).pixels_of(0).signs) == 20


def test_scenes_of_another_folder_are_drawn_as_often_as_asked(scenes, untrained):
    options = replace(OPTIONS, more_share=0.75, batch=1)
    batches = EdgeBatches(scenes, scenes, options, untrained)
    drawn = []
    batches.pixels_of = lambda number: (
        drawn.append(number) or edges.EdgeBatch(torch.empty(0, 31), torch.empty(0, 3))
    )
    for step in range(200):
        batches[step]
    assert np.mean(drawn) == pytest.approx(0.75 * len(scenes) + (len(scenes) - 1) / 2, abs=0.05)
