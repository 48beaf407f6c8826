import json
import re

import pytest

from oaccdepth import checkpoint, readers
from oaccdepth.pfm import read_pfm

needs_weights = pytest.mark.skipif(
    "fast" not in [path.stem for path in checkpoint.bundled()], reason="no bundled weights"
)


def test_demo_writes_everything(run, weights_file, tmp_path):
    out = tmp_path / "out"
    result = run("demo", "-o", out, "--weights", weights_file)
    assert result.exit_code == 0
    assert {path.name for path in out.iterdir()} == {
        "disparity.pfm",
        "disparity.png",
        "confidence.png",
        "disparity.npy",
        "disparity_16bit.png",
        "depth.pfm",
        "points.ply",
        "view.html",
        "run.json",
        "masks",
        "scene",
    }
    assert len(list((out / "masks").glob("mask_*.png"))) == 81
    assert re.search(r"^MSE x100 +\d+\.\d{3}$", result.stdout, re.M)
    assert re.search(r"^BadPix 0\.07 +\d+\.\d\d %$", result.stdout, re.M)
    assert f"  {out / 'view.html'}  (in a browser)" in result.stdout.splitlines()
    light_field = readers.read(out / "scene")
    assert light_field.grid == (9, 9) and light_field.camera is not None
    truth = readers.read_ground_truth(out / "scene")
    assert truth is not None and truth.shape == read_pfm(out / "disparity.pfm").shape
    again = run("demo", "-o", out, "--weights", weights_file)
    assert again.exit_code == 1
    assert again.stderr == (
        f"error: {out}: already holds confidence.png and 8 more. "
        "Pass --overwrite to replace, or choose another --output.\n"
    )


@needs_weights
def test_the_bundled_weights_are_good_at_it(run, tmp_path):
    result = run("demo", "-o", tmp_path / "out", "--json", "-q")
    assert result.exit_code == 0 and result.stderr == ""
    scores = json.loads(result.stdout)
    # What weights of the first hour reach, with room; to be lowered with better ones.
    assert scores["badpix_007"] < 25
    assert scores["mse_100"] < 25
    assert scores["masks_right_percent"] > 93


def test_a_device_that_is_not_there(run, weights_file, tmp_path):
    out = tmp_path / "out"
    result = run("demo", "-o", out, "--weights", weights_file, "--device", "cuda:99", "-q")
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("error: --device cuda:99: not there.")
    assert not out.exists()


def test_an_output_below_a_file(run, weights_file, tmp_path):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "out"
    result = run("demo", "-o", path, "--weights", weights_file, "-q")
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: {path}: cannot be created (Not a directory). Choose another --output.\n"
    )
