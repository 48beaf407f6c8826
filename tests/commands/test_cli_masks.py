import json

import cv2
import numpy as np
import pytest

from oaccdepth.files.pfm import write_pfm


@pytest.fixture
def truth(scene_folder):
    return scene_folder / "gt_disp_lowres.pfm"


def test_masks_of_the_last_pass(run, scene_folder, weights_file, tmp_path):
    out = tmp_path / "out"
    result = run("masks", scene_folder, "-o", out, "--weights", weights_file)
    assert result.exit_code == 0
    assert len(list(out.glob("mask_*.png"))) == 81
    assert (out / "contact_sheet.png").is_file() and (out / "visibility.png").is_file()
    with np.load(out / "masks.npz") as stored:
        masks = stored["masks"]
    assert masks.shape == (9, 9, 48, 64) and masks.dtype == np.float32
    assert result.stdout.splitlines() == [
        f"{out}: 85 files",
        f"{out / 'contact_sheet.png'}: {masks.mean():.1%} seen",
    ]
    assert json.loads((out / "masks.json").read_text())["weights"] == "untrained"


def test_masks_of_every_pass(run, scene_folder, weights_file, tmp_path):
    out = tmp_path / "out"
    arguments = ["--all-passes", "--iterations", 3, "--json", "--weights", weights_file]
    result = run("masks", scene_folder, "-o", out, *arguments)
    assert result.exit_code == 0
    assert {path.name for path in out.iterdir()} == {"pass_1", "pass_2", "pass_3", "masks.json"}
    content = json.loads(result.stdout)
    assert list(content["passes"]) == ["pass_1", "pass_2", "pass_3"]
    assert len(content["written"]) == 3 * 84 + 1
    with np.load(out / "pass_1" / "masks.npz") as stored:  # implied by its disparity
        assert stored["masks"][4, 4].min() == 1 and stored["masks"].min() < 0.5


def test_masks_that_the_ground_truth_implies(run, scene, scene_folder, truth, tmp_path):
    out = tmp_path / "out"
    result = run("masks", scene_folder, "-o", out, "--disparity", truth, "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    with np.load(out / "masks.npz") as stored:
        masks = stored["masks"]
    assert (masks[4, 4] == 1).all()
    seen, hidden = masks[scene.visibility], masks[~scene.visibility]
    assert np.median(seen) > 0.95 and np.median(hidden) < 0.8
    corner = cv2.imread(str(out / "mask_00_08.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_allclose(corner / 255, masks[0, 8], atol=0.5 / 255 + 1e-6)


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        (
            "other.pfm",
            [],
            "--disparity {path}: has 30x20 px, but the views have 64x48. "
            "Give a disparity map of the centre view.",
        ),
        ("nothing.pfm", [], "{path}: no such file. Give a PFM file."),
        ("other.pfm", ["--all-passes"], "--all-passes and --disparity: choose one of them."),
    ],
)
def test_disparity_maps_that_do_not_fit(run, scene_folder, tmp_path, name, more, message):
    write_pfm(tmp_path / "other.pfm", np.zeros((20, 30), np.float32))
    path, out = tmp_path / name, tmp_path / "out"
    result = run("masks", scene_folder, "-o", out, "--disparity", path, *more)
    message = f"error: {message.format(path=path)}\n"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", message)
    assert not out.exists()
