import json
import re

import cv2
import numpy as np
import pytest

from oaccdepth.estimation import forecast
from oaccdepth.lightfield import LightField
from oaccdepth.networks import checkpoint
from oaccdepth.networks.paper import OACCNet, OACCNetConfig
from oaccdepth.writers.scenes import write_light_field


def test_info_says_what_it_is(run, scene_folder, weights_file):
    result = run("info", scene_folder, "--weights", weights_file, "-q")
    assert result.exit_code == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == "source        town"
    assert lines[1].startswith("format        hci: ")
    assert lines[2:7] == [
        "grid          9x9 views",
        "resolution    64x48 px, 8 bit, colour",
        "camera        baseline 20 mm, focal length 50 mm, sensor 36 mm, focus at 600 mm",
        "disparity     -1.4 to 1.5 px, given by the files",
        "missing       none",
    ]
    assert re.fullmatch(
        r"estimate      (about [1-9]\d*|less than 1) s and \d+\.\d GiB on cpu "
        "with weights untrained",
        lines[7],
    )


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.2, "less than 1 s"), (1.2, "about 1 s"), (80.0, "about 80 s")]
)
def test_seconds_are_foreseen(run, scene_folder, weights_file, monkeypatch, seconds, expected):
    """Before, small scenes took about 0 s."""
    monkeypatch.setattr(forecast, "foresee_seconds", lambda task: seconds)
    result = run("info", scene_folder, "--weights", weights_file, "-q")
    assert result.stdout.splitlines()[7].startswith(f"estimate      {expected} and ")


def test_info_for_machines(run, scene_folder, weights_file):
    result = run("info", scene_folder, "--weights", weights_file, "--json")
    facts = json.loads(result.stdout)
    assert facts["grid"] == [9, 9] and facts["resolution"] == [48, 64]
    assert (facts["channels"], facts["bits"], facts["missing_views"]) == (3, 8, [])
    assert facts["camera"]["baseline_mm"] == 20.0
    assert facts["disparity_range"] == {"min": -1.4, "max": 1.5, "from": "file"}
    assert facts["estimate"]["seconds"] > 0 and facts["estimate"]["memory_bytes"] > 1e8


def test_without_a_configuration_the_range_is_estimated(run, copy, weights_file):
    (copy / "parameters.cfg").unlink()
    result = run("info", copy, "--weights", weights_file)
    camera = "camera        unknown, so there is no depth in millimetres"
    assert camera in result.stdout.splitlines()
    found = re.search(
        r"^disparity     (-?[\d.]+) to (-?[\d.]+) px, estimated$", result.stdout, re.M
    )
    assert found is not None
    low, high = map(float, found.groups())
    assert -3 < low < -1 and 1 < high < 3


def test_missing_views_are_named(run, copy, weights_file):
    (copy / "input_Cam008.png").unlink()
    result = run("info", copy, "--weights", weights_file, "--allow-missing")
    assert "missing       1 view: (0, 8)" in result.stdout.splitlines()


def test_corrections_are_named(run, copy, weights_file):
    views = {path.name: path.read_bytes() for path in copy.glob("*.png")}
    for u in range(9):
        for v in range(9):  # camera rows and columns swapped
            path = copy / f"input_Cam{9 * u + v:03d}.png"
            path.write_bytes(views[f"input_Cam{9 * v + u:03d}.png"])
    parameters = copy / "parameters.cfg"  # as if written by another program, which is not trusted
    parameters.write_text(parameters.read_text().replace("written_by = oaccdepth\n", ""))
    result = run("info", copy, "--weights", weights_file)
    assert result.exit_code == 0
    notes = [line for line in result.stdout.splitlines() if line.startswith("note ")]
    assert any("exchanged" in note or "transposed" in note for note in notes)


def test_what_cannot_be_estimated_is_still_described(run, scene_folder, weights_file, tmp_path):
    path = tmp_path / "tiny"
    path.mkdir()
    for view in scene_folder.glob("*.png"):
        cv2.imwrite(str(path / view.name), cv2.imread(str(view))[:12, :14])
    result = run("info", path, "--weights", weights_file)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "resolution    14x12 px, 8 bit, colour" in lines
    assert (
        "estimate      not possible: tiny: views are 14x12 px, smaller than the smallest tile, "
        "16x16. Use larger pictures."
    ) in lines


def test_converted_weights_search_all_they_can(run, scene, tmp_path):
    small = tmp_path / "small.npz"
    write_light_field(LightField(scene.light_field.views[3:6, 3:6]), small)
    network = OACCNet(
        OACCNetConfig(
            grid=(3, 3),
            feature_blocks=1,
            matching_channels=4,
            cost_channels=24,
            volume_channels=6,
            attention_channels=2,
        )
    )
    path = tmp_path / "converted.safetensors"
    checkpoint.save(path, network, {"compat": "authors"})
    result = run("info", small, "--weights", path, "-v")
    assert result.exit_code == 0 and result.stderr == "measuring ...\n"
    expected = "disparity     -4.0 to 4.0 px, the whole range of the converted weights"
    assert expected in result.stdout.splitlines()


def test_weights_that_are_not_there(run, scene_folder, tmp_path):
    path = tmp_path / "nothing.safetensors"
    result = run("info", scene_folder, "--weights", path)
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith(f"error: {path}: no such weights file. Bundled: ")
    assert len(result.stderr.splitlines()) == 1


def test_views_that_tell_nothing(run, tmp_path, weights_file):
    np.save(tmp_path / "black.npy", np.zeros((5, 5, 64, 64, 3), np.uint8))
    result = run("info", tmp_path / "black.npy", "--weights", weights_file)
    assert result.exit_code == 0
    assert (
        "-0.5 to 0.5 px, a guess: nothing in the views matches (black, constant or only noise?)"
        in result.stdout
    )
