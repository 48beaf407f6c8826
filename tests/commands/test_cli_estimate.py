import json
import re

import numpy as np

from oaccdepth.files.pfm import read_pfm
from oaccdepth.networks import checkpoint

USUAL = {"disparity.pfm", "disparity.png", "confidence.png", "run.json"}


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_estimate_writes_a_disparity_map(run, scene, scene_folder, weights_file, tmp_path):
    out = tmp_path / "results" / "town"
    result = run("estimate", scene_folder, "-o", out, "--weights", weights_file)
    assert result.exit_code == 0
    assert names(out) == USUAL
    assert result.stdout.split() == [
        str(out / name) for name in ("disparity.pfm", "disparity.png", "confidence.png", "run.json")
    ]
    disparity = read_pfm(out / "disparity.pfm")
    inner = np.s_[8:-8, 8:-8]
    assert np.median(np.abs(disparity - scene.disparity)[inner]) < 0.3
    about = json.loads((out / "run.json").read_text())
    assert about["weights"] == "untrained"
    assert about["weights_sha256"] == checkpoint.sha256(weights_file)
    assert about["input"]["source"] == "town" and about["input"]["grid"] == [9, 9]
    assert about["device"] == "cpu" and about["seconds"]["total"] > 0
    assert str(tmp_path) not in (out / "run.json").read_text()


def test_messages_go_to_stderr(run, scene_folder, weights_file, tmp_path):
    result = run("estimate", scene_folder, "-o", tmp_path / "out", "--weights", weights_file)
    lines = result.stderr.splitlines()
    assert "estimating ..." in lines  # not a terminal: plain lines
    assert lines[-2] == "town: 9x9 views of 64x48 px, hci"
    assert re.fullmatch(r"disparity -.* px; .* s on cpu with weights untrained", lines[-1])


def test_parameters_cfg_stands_for_its_scene(run, scene_folder, weights_file, tmp_path):
    path = scene_folder / "parameters.cfg"
    result = run("estimate", path, "-o", tmp_path / "out", "--weights", weights_file, "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert names(tmp_path / "out") == USUAL


def test_json_is_all_there_is_on_stdout(run, scene_folder, weights_file, tmp_path):
    out = tmp_path / "out"
    result = run("estimate", scene_folder, "-o", out, "--weights", weights_file, "--json")
    content = json.loads(result.stdout)
    assert content["written"][0] == str(out / "disparity.pfm")
    assert content["result"]["resolution"] == [48, 64]


def test_every_option_arrives(run, scene_folder, weights_file, tmp_path):
    out = tmp_path / "out"
    arguments = (
        "--format npy --format png16 --format depth --format ply --colormap magma --range -2:2 "
        "--view --iterations 1 --tile 32 --precision fp32 --disparity-range -2:2.5 --device cpu"
    )
    result = run("estimate", scene_folder, "-o", out, "--weights", weights_file, *arguments.split())
    assert result.exit_code == 0
    assert names(out) == USUAL | {
        "disparity.npy",
        "disparity_16bit.png",
        "depth.pfm",
        "points.ply",
        "view.html",
    }
    about = json.loads((out / "run.json").read_text())
    assert about["options"]["iterations"] == 1 and about["options"]["tile"] == 32
    assert about["disparity_range"] == [-2.0, 2.5]
    assert about["colours"] == {"colormap": "magma", "range": [-2.0, 2.0]}
    assert "view.html" in about["files"] and about["png16"]["scale"] > 0
    depth = read_pfm(out / "depth.pfm")
    assert np.isfinite(depth).any() and depth.min() > 0


def test_reading_options_arrive(run, scene_folder, weights_file, tmp_path):
    out = tmp_path / "out"
    arguments = ["--weights", weights_file, "--use-views", "5x3"]
    assert run("estimate", scene_folder, "-o", out, *arguments).exit_code == 0
    assert json.loads((out / "run.json").read_text())["input"]["grid"] == [5, 3]


def assert_refused(result, message, tmp_path):
    """One line on stderr, exit code 1, and no output."""
    assert result.stderr == f"error: {message}\n"
    assert result.stdout == ""
    assert result.exit_code == 1
    assert not (tmp_path / "out").exists()


def estimate(run, path, tmp_path, weights, *more):
    return run("estimate", path, "-o", tmp_path / "out", "--weights", weights, *more)


# The tests of each stage check the exact messages; here we check that each is printed as one line.


def test_a_truncated_view(run, copy, weights_file, tmp_path):
    path = copy / "input_Cam047.png"
    path.write_bytes(path.read_bytes()[:500])
    message = f"{path}: damaged or not a picture. Copy or export it again."
    assert_refused(estimate(run, copy, tmp_path, weights_file), message, tmp_path)


def test_a_setting_that_cannot_be_met(run, scene_folder, weights_file, tmp_path):
    result = estimate(run, scene_folder, tmp_path, weights_file, "--use-views", "9")
    message = "--use-views 9: expected ROWSxCOLUMNS, such as 9x9."
    assert_refused(result, message, tmp_path)


def test_wrong_usage_is_exit_code_2(run, scene_folder, tmp_path):
    assert run("estimate", scene_folder).exit_code == 2  # no --output
    assert run("estimate", scene_folder, "-o", tmp_path, "--tile", "big").exit_code == 2
