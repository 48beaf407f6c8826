"""`oaccdepth refocus`: a refocused photograph."""

import imageio.v3 as imageio
import numpy as np
import pytest

from oaccdepth import readers
from oaccdepth.commands.refocus import MASK_DECAY
from oaccdepth.estimation.inference import masks_from_disparity
from oaccdepth.looking.refocus import all_in_focus, refocus
from oaccdepth.writers.pictures import as_bytes


@pytest.fixture
def light_field(scene_folder):
    return readers.read(scene_folder)


def test_one_disparity(run, scene_folder, light_field, tmp_path):
    output = tmp_path / "near.png"
    done = run("refocus", scene_folder, "--disparity", 1.5, "-o", output)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{output}\n", "")
    assert (imageio.imread(output) == as_bytes(refocus(light_field, 1.5))).all()


def test_aperture(run, scene_folder, light_field, tmp_path):
    output = tmp_path / "far.png"
    done = run("refocus", scene_folder, "--disparity=-1.2", "--aperture", 1.5, "-o", output, "-q")
    assert (done.exit_code, done.stdout) == (0, "")
    assert (imageio.imread(output) == as_bytes(refocus(light_field, -1.2, 1.5))).all()


def test_all_in_focus(run, scene, scene_folder, light_field, tmp_path):
    output = tmp_path / "sharp.png"
    truth = scene_folder / "gt_disp_lowres.pfm"
    done = run("refocus", scene_folder, "--all-in-focus", truth, "-o", output)
    assert (done.exit_code, done.stdout) == (0, f"{output}\n")
    masks = masks_from_disparity(light_field, scene.disparity, decay=MASK_DECAY)
    expected = as_bytes(all_in_focus(light_field, scene.disparity, masks)).astype(int)
    seen = imageio.imread(output)
    assert np.abs(seen - expected).max() <= 1
    # An occluder in some views leaves no ghost: the difference to the centre view is halved.
    centre = light_field.centre * 255
    plain = all_in_focus(light_field, scene.disparity) * 255
    assert np.square(seen - centre).mean() < 0.5 * np.square(plain - centre).mean()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "a.png"], "give either --disparity PX or --all-in-focus FILE.pfm."),
        (
            ["-o", "a.png", "--disparity", "1", "--all-in-focus", "d.pfm"],
            "give either --disparity PX or --all-in-focus FILE.pfm.",
        ),
        (
            ["-o", "a.png", "--all-in-focus", "d.pfm", "--aperture", "1"],
            "--aperture has no effect with --all-in-focus: leave it out.",
        ),
        (["-o", "a.jpg", "--disparity", "1"], "a.jpg: expected a name that ends in .png."),
        (["-o", "a.png", "--all-in-focus", "d.pfm"], "d.pfm: no such file. Give a PFM file."),
    ],
)
def test_bad_settings_are_refused(run, scene_folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = run("refocus", scene_folder, *arguments)
    assert (done.exit_code, done.stderr) == (1, f"error: {message}\n")
    assert not list(tmp_path.iterdir())
