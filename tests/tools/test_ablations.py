"""tools/ablations.py measures what it says, and its unchanged network is what `estimate` runs."""

import re
from pathlib import Path

import pytest

from oaccdepth import readers
from oaccdepth.estimation.inference import estimate
from oaccdepth.evaluation import metrics
from oaccdepth.networks import checkpoint
from oaccdepth.options import EstimateOptions

TOOLS = Path(__file__).parents[2] / "tools"
LATER = (
    "without modulation",
    "mask of the ground truth",
    "decay q = 2 (trained with 8)",
    "decay q = 4 (trained with 8)",
    "decay q = 16 (trained with 8)",
    "without shares of pixels",
)
FIRST = (
    "edges not settled",
    "hidden views asked, too",
    "without aggregation",
    "one gain instead of three",
    "without axes",
    "integer levels",
)


@pytest.fixture
def ablations(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import ablations

    return ablations


def test_the_table(ablations, scene_folder, capsys):
    ablations.main(scene_folder, checkpoint.find_weights("fast"), num_passes=2)
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == f"| mean of {scene_folder.name} | pass 1 | pass 2 |"
    scores = {row.split(" | ")[0][2:]: re.findall(r"([\d.]+) / ([\d.]+)", row) for row in rows}
    assert sorted(scores) == sorted(["as it is", *LATER, *FIRST, "without the last fit"])
    whole = scores["as it is"]
    assert all(scores[name][0] == whole[0] for name in LATER)
    assert all(scores[name][0] != whole[0] for name in (*FIRST, "without the last fit"))
    same = [name for name, row in scores.items() if row[1] == whole[1]]
    # The map says most of what is hidden: to three digits, a decay may change nothing on its own.
    assert "as it is" in same and all(name.startswith("decay") for name in same[1:])
    assert len(same) < 4

    truth = readers.read_ground_truth(scene_folder)
    options = EstimateOptions(iterations=2, disparity_range=(-4, 4), precision="fp32")
    answer = estimate(readers.read(scene_folder), options).disparity
    inner = metrics.scored_pixels(truth)
    found = tuple(map(float, whole[1]))
    assert found[0] == pytest.approx(metrics.mse_100(answer, truth, inner), abs=0.01)
    assert found[1] == pytest.approx(metrics.bad_pix(answer, truth, inner, 0.07), abs=0.03)
