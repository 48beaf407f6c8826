import re

import pytest

from oaccdepth import readers
from oaccdepth.files.pfm import read_pfm
from oaccdepth.rendering import still_life


def test_demo_writes_everything(run, tmp_path, monkeypatch):
    small = still_life.demo_scene((96, 128))
    monkeypatch.setattr(still_life, "demo_scene", lambda progress: small)
    out = tmp_path / "out"
    result = run("demo", "-o", out)
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
        "still-life",
    }
    assert len(list((out / "masks").glob("mask_*.png"))) == 81
    assert f"  {out / 'view.html'}  (in a browser)" in result.stdout.splitlines()
    assert scores(result.stdout).keys() == {"MSE x100", "BadPix 0.07", "masks correct"}
    light_field = readers.read(out / "still-life")
    assert light_field.grid == (9, 9) and light_field.camera is not None
    truth = readers.read_ground_truth(out / "still-life")
    assert truth is not None and truth.shape == read_pfm(out / "disparity.pfm").shape
    viewed = run("view", out, "-o", tmp_path / "page.html")
    assert viewed.exit_code == 0 and "no views" not in viewed.stderr
    again = run("demo", "-o", out)
    assert again.exit_code == 1
    assert again.stderr == (
        f"error: {out}: already holds confidence.png and 8 more. "
        "Pass --overwrite to replace, or choose another --output.\n"
    )


@pytest.mark.slow
def test_the_bundled_weights_are_good_at_it(run, tmp_path):
    """The measured scores (3.9, 8.5, 96.9) with some tolerance."""
    found = scores(run("demo", "-o", tmp_path / "out").stdout)
    assert found["MSE x100"] < 6
    assert found["BadPix 0.07"] < 12
    assert found["masks correct"] > 94


def scores(text):
    """The scores that are printed."""
    pattern = r"^(MSE x100|BadPix 0\.07|masks correct) +([\d.]+)(?: %)?$"
    return {name: float(score) for name, score in re.findall(pattern, text, re.M)}


def test_a_device_that_is_not_there(run, weights_file, tmp_path, monkeypatch):
    monkeypatch.delattr(still_life, "demo_scene")  # the error comes before anything is rendered
    out = tmp_path / "out"
    result = run("demo", "-o", out, "--weights", weights_file, "--device", "cuda:99", "-q")
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("error: --device cuda:99: not available.")
    assert not out.exists()
