"""The forecast of `info`: quick, and close to what an estimate takes."""

import time

import numpy as np
import pytest
import torch
from layered import scene_between

from oaccdepth.estimation import forecast
from oaccdepth.estimation.disparity_range import Coverage
from oaccdepth.estimation.inference import Task, estimate
from oaccdepth.estimation.weights import LoadedWeights
from oaccdepth.lightfield import LightField
from oaccdepth.networks.fast import FastNet
from oaccdepth.networks.paper import OACCNet
from oaccdepth.options import EstimateOptions

USUAL = Coverage((-4.0, 4.0), "option")


@pytest.fixture(scope="module")
def untrained():
    torch.manual_seed(0)
    return LoadedWeights(FastNet().eval())


def blank(side, grid=(9, 9)):
    """Views that take no memory themselves."""
    return LightField(np.broadcast_to(np.uint8(0), (*grid, side, side, 3)))


def test_foreseeing_costs_a_fraction_of_estimating(untrained):
    """Measured in processor time, which varies on a busy machine, so the test may retry."""
    light_field = scene_between(-1.0, 1.5, size=(160, 176), grid=(5, 5)).light_field
    options = EstimateOptions(disparity_range=(-1.5, 2.0))
    forecast.plan(light_field, options, network=untrained)  # kernels are compiled

    def seconds(work):
        started = time.process_time()
        work(light_field, options, network=untrained)
        return time.process_time() - started

    # the picture is so small that much of it is measured
    assert any(seconds(forecast.plan) < seconds(estimate) for _ in range(5))


def test_a_plan(scene, untrained):
    plan = forecast.plan(scene.light_field, network=untrained)
    assert plan.seconds > 0
    assert plan.memory_bytes > scene.light_field.views.nbytes
    assert plan.coverage.source == "estimated"


def test_pictures_that_say_nothing_take_no_time(untrained, monkeypatch):
    monkeypatch.setattr(forecast, "run", None)  # the network is not run
    plan = forecast.plan(blank(64, (3, 3)), network=untrained)
    assert plan.coverage.source == "none"
    assert plan.memory_bytes > 4e8


def test_the_middle_of_pictures_without_corners(untrained):
    """The part that is timed may contain no valid pixels."""
    valid = np.ones((3, 3, 64, 64), bool)
    valid[:, :, 8:56, 8:56] = False
    views = np.random.default_rng(0).integers(0, 256, (3, 3, 64, 64, 3), dtype=np.uint8)
    options = EstimateOptions(disparity_range=(-1.0, 1.0))
    assert forecast.plan(LightField(views, valid=valid), options, network=untrained).seconds > 0


def task(side, loaded, coverage=USUAL, **options):
    """An estimate of views that take no memory themselves."""
    return Task(blank(side), loaded, EstimateOptions(**options), coverage)


def test_work_counts_what_tiles_and_blocks_overlap(untrained):
    assert forecast.work_px(task(512, untrained)) == 512 * 512
    assert forecast.work_px(task(512, untrained, tile=256)) == (2 * (256 + 64)) ** 2
    wide = Coverage((-30.0, 30.0), "option")
    assert forecast.work_px(task(512, untrained, wide)) > 512 * 512
    converted = LoadedWeights(OACCNet().eval(), compat="authors")
    assert forecast.work_px(task(130, converted)) == 9 * 128 * 128


def test_memory_is_bounded(untrained):
    """Larger pictures need more blocks, not larger ones; smaller tiles need less memory."""
    foresee = [
        forecast.foresee_memory(task(side, untrained)) - blank(side).views.nbytes
        for side in (512, 2048, 4096)
    ]
    assert foresee[0] < foresee[1] < foresee[2] < foresee[1] + 4096**2 * 200
    small = forecast.foresee_memory(task(512, untrained, tile=128))
    assert small < forecast.foresee_memory(task(512, untrained))


@pytest.mark.parametrize(
    ("side", "tile", "measured"), [(256, 576, 0.577), (512, 576, 1.186), (512, 256, 1.013)]
)
def test_the_memory_foreseen_is_what_was_measured(side, tile, measured, untrained):
    """Peak resident memory of `estimate` in GiB on a CPU, 9x9 colour views, 36 levels."""
    given = task(side, untrained, tile=tile)
    assert len(given.levels) == 36
    assert forecast.foresee_memory(given) / 2**30 == pytest.approx(measured, rel=0.1)
