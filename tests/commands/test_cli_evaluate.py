"""`oaccdepth evaluate`: what it prints, where, and its errors."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from oaccdepth.cli import app
from oaccdepth.files.pfm import write_pfm


def run(*arguments):
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["evaluate", *map(str, arguments)])


def plane(value: float):
    return np.full((40, 50), value, dtype=np.float32)


@pytest.fixture
def files(tmp_path):
    prediction, truth = tmp_path / "prediction.pfm", tmp_path / "cotton" / "gt_disp_lowres.pfm"
    write_pfm(prediction, plane(1.1))
    write_pfm(truth, plane(1.0))
    return prediction, truth


def test_two_files(files):
    result = run(*files)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "│ cotton │    1.000 │     100.000 │" in result.stdout
    assert "Mean over cotton, with published methods" in result.stdout
    assert "│ OACC-Net    │    0.162 │" in result.stdout
    assert "│ this result │    1.000 │" in result.stdout


def test_json(files):
    result = run(*files, "--json")
    content = json.loads(result.stdout)
    assert content["border"] == 15
    assert content["scenes"]["cotton"]["badpix_0070"] == 100


def test_csv_and_markdown(files):
    assert run(*files, "--csv").stdout.startswith("method,scene,mse_100,badpix_0070,badpix_0030,")
    assert run(*files, "--markdown").stdout.startswith("| scene | MSE x100 | BadPix 0.07 |")


def test_dataset(files, tmp_path):
    (tmp_path / "out").mkdir()
    files[0].rename(tmp_path / "out" / "cotton.pfm")
    write_pfm(tmp_path / "data" / "tomb" / "gt_disp_lowres.pfm", plane(0))
    files[1].parent.rename(tmp_path / "data" / "cotton")
    result = run(tmp_path / "out", "--dataset", tmp_path / "data")
    assert result.exit_code == 0
    assert result.stderr == "no prediction for: tomb\n"


def test_one_bad_prediction_does_not_stop_the_others(tmp_path):
    out, data = tmp_path / "out", tmp_path / "data"
    for scene in ("cotton", "dino", "[x]"):
        write_pfm(data / scene / "gt_disp_lowres.pfm", plane(0))
        write_pfm(out / f"{scene}.pfm", plane(0.1))
    write_pfm(out / "dino.pfm", plane(0)[:, :30])
    (out / "[x].pfm").write_bytes(b"Pf\n50 40\n-1\n")
    result = run(out, "--dataset", data)
    assert result.exit_code == 1
    assert "│ cotton │" in result.stdout
    first, second, last = result.stderr.splitlines()
    assert first.startswith(f"not scored: {out}/[x].pfm: not a readable PFM file")
    assert second == (
        "not scored: dino: the prediction is 30x40 pixels, the ground truth 50x40. "
        "Estimate at the ground truth's size."
    )
    assert last == "not scored: [x], dino"
    assert json.loads(run(out, "--dataset", data, "--json").stdout)["not_scored"] == ["[x]", "dino"]
    (out / "cotton.pfm").write_bytes(b"")
    result = run(out, "--dataset", data)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == (
        f"error: {out}: none of its predictions can be scored."
    )


def test_dataset_without_ground_truth(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "data").mkdir()
    result = run(tmp_path / "out", "--dataset", tmp_path / "data")
    assert result.stderr == (
        f"error: {tmp_path}/data: holds no scene with ground truth. "
        "Expected gt_disp_lowres.pfm beside the views.\n"
    )


def test_error_maps_are_explained(files, tmp_path):
    result = run(*files, "--error-maps", tmp_path / "maps")
    assert sorted(path.name for path in (tmp_path / "maps" / "cotton").iterdir()) == [
        "badpix.png",
        "error.png",
    ]
    assert result.stderr.startswith(f"error maps: {tmp_path}/maps: error.png: red is too near, ")


def test_what_is_not_finite_is_said(files):
    prediction = plane(1.0)
    prediction[20:22, 20] = np.nan
    write_pfm(files[0], prediction)
    result = run(*files)
    assert result.stderr == "cotton: 2 pixels without a finite prediction, counted as bad.\n"
    assert "│ cotton │      inf │" in result.stdout


def test_usage_errors(files):
    result = run(files[0])
    assert result.exit_code == 1
    assert result.stderr == (
        "error: evaluate: give either GROUND_TRUTH (a PFM file) or --dataset ROOT, and not both.\n"
    )
    result = run(*files, "--json", "--csv")
    assert result.stderr == ("error: --json, --csv and --markdown: choose one of them.\n")
