"""A range that the map reaches beyond is widened, and the user is told."""

import numpy as np
import pytest
import torch

from oaccdepth.estimation import inference, widening
from oaccdepth.estimation.disparity_range import Coverage
from oaccdepth.estimation.inference import estimate
from oaccdepth.estimation.widening import widen
from oaccdepth.options import EstimateOptions

FOUND = Coverage((-0.5, 1.0), "estimated")
LEVELS = torch.arange(-4, 8) * 0.25  # -1 to 1.75


def a_map(beyond, disparity, confidence=0.5):
    """100 pixels, of which so many have another disparity."""
    whole = torch.zeros(10, 10)
    whole.flatten()[:beyond] = disparity
    return whole, torch.full((10, 10), confidence)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (a_map(0, 0.0), None),
        (a_map(50, 1.4), None),
        (a_map(1, 1.7), None),
        (a_map(2, -0.8), (-1.5, 1.0)),
        (a_map(2, 1.6), (-0.5, 2.0)),
        (a_map(100, 1.75), (-0.5, 2.0)),
        (a_map(50, 1.7, confidence=0.1), None),  # continued from the surroundings
    ],
)
def test_an_end_is_moved_if_enough_is_surely_beyond_it(found, expected):
    wider = widen(FOUND, LEVELS, *found)
    assert (wider and wider.disparity_range) == expected


def test_every_further_step_is_twice_as_long():
    """Before, an object 7 px beyond the range was not reached in three steps."""
    coverage = FOUND
    for attempt in range(widening.MOST_TIMES):
        levels = torch.tensor([-1.0, coverage.disparity_range[1] + 0.5])
        wider = widen(coverage, levels, *a_map(50, float(levels[-1])), attempt)
        assert wider is not None
        coverage = wider
    assert coverage.disparity_range == (-0.5, 8.0)


@pytest.mark.parametrize("source", ["option", "file", "none"])
def test_a_range_that_was_given_is_kept(source):
    assert widen(Coverage((-0.5, 1.0), source), LEVELS, *a_map(50, 1.7)) is None


@pytest.fixture
def missing(scene, untrained, monkeypatch):
    """Estimate with a range that holds next to nothing of the scene; -1.4 to 1.5 px is true."""

    def run(low, high, source="estimated", progress=None):
        narrow = Coverage((low, high), source)
        monkeypatch.setattr(inference, "choose_coverage", lambda light_field, wanted: narrow)
        options = EstimateOptions()
        return estimate(scene.light_field, options, network=untrained, progress=progress)

    return run


def test_a_range_that_missed_the_front_is_mended(scene, missing):
    """Before, the bar in front was at the end of what was searched."""
    result = missing(-1.6, 0.2)
    bad = np.abs(result.disparity - scene.disparity)[8:-8, 8:-8] > 0.25
    assert result.made_with.disparity_range == pytest.approx((-1.6, 3.2))
    assert bad.mean() < 0.1
    assert result.made_with.notes == (
        "The map reaches beyond the disparities that were found first (-1.6 to 0.2 px): "
        "-1.6 to 3.2 px were searched.",
    )


def test_a_range_that_stays_too_narrow_is_said_to_be(missing, monkeypatch):
    monkeypatch.setattr(widening, "STEP", 0.1)
    result = missing(-1.6, 0.2)
    assert result.made_with.disparity_range == pytest.approx((-1.6, 0.9))
    assert result.made_with.notes == (
        "The map reaches beyond the disparities that were found first (-1.6 to 0.2 px), "
        "and beyond -1.6 to 0.9 px, which were searched then. "
        "Give --disparity-range if you know it.",
    )


def test_a_range_that_holds_the_scene_is_searched_once(scene, missing):
    result = missing(-1.6, 1.7)
    assert result.made_with.disparity_range == (-1.6, 1.7) and result.made_with.notes == ()


def test_repetitions_are_told_and_never_go_back(missing):
    """Before, the bar went from 1 back to 0 and said nothing else."""
    told = []
    missing(-1.6, 0.2, progress=lambda stage, fraction: told.append((stage, fraction)))
    stages = dict.fromkeys(stage for stage, _ in told)
    assert list(stages) == ["estimating", "searching wider, try 2", "searching wider, try 3"]
    done = [fraction for _, fraction in told]
    assert done == sorted(done)
    ends = [max(done for stage, done in told if stage == one) for one in stages]
    assert ends == pytest.approx([0.9, 0.9 + 0.2 / 3, 1 - 0.1 / 9])


def test_a_range_that_was_given_takes_the_whole_bar(missing):
    told = []
    missing(-1.6, 0.2, "file", progress=lambda stage, fraction: told.append((stage, fraction)))
    assert told[-1] == ("estimating", 1.0)
