"""The plot of a run: curves are where the tables say."""

import numpy as np
import pytest

from oaccdepth.training import curves


@pytest.fixture
def runs(tmp_path):
    """Two runs of an hour each; the first was killed after step 40 and went on from step 20."""
    tables = {
        "first/metrics.csv": "step,seconds,bad\n20,900,50\n40,1800,40\n40,1900,30\n60,3600,20\n",
        "first/validation.csv": "step,seconds,badpix_0070\n60,3600,25\n",
        "second/metrics.csv": "step,seconds,bad\n20,1800,15\n40,3600,10\n",
    }
    for name, text in tables.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return [tmp_path / "first", tmp_path / "second"]


def test_repeated_steps_count_once_and_runs_follow_each_other(runs):
    curve = curves.collect(runs, "metrics.csv")
    assert curve.hours == pytest.approx([0.25, 1900 / 3600, 1.0, 1.5, 2.0])
    assert list(curve.bad) == [50, 30, 20, 15, 10]
    assert list(curves.collect(runs, "validation.csv").bad) == [25]


def test_a_validation_is_a_dot_at_its_hour_and_score(runs):
    picture = curves.draw(runs)
    left, top, right, bottom = curves.FRAME
    ys, xs = np.nonzero((picture[top:] == curves.VALIDATION).all(-1))
    assert xs.mean() == pytest.approx((left + right) / 2, abs=1)  # hour 1 of 2
    assert ys.mean() + top == pytest.approx((top + bottom) / 2, abs=1)  # 25 of at most 50 %


def test_a_run_without_tables_is_an_empty_plot(tmp_path):
    picture = curves.draw([tmp_path])
    _, top, _, bottom = curves.FRAME
    assert not (picture[top:bottom] == curves.TRAINING).all(-1).any()


def test_lines_that_were_cut_short_are_left_out(tmp_path):
    (tmp_path / "metrics.csv").write_text(
        "step,seconds,bad\n20,3600,50\n40,72\n40,740,7200,40\n60,10800,nan\nx,y,z\n80,14400,20\n"
    )
    curve = curves.collect([tmp_path], "metrics.csv")
    assert list(curve.hours) == [1, 4] and list(curve.bad) == [50, 20]
