"""`oaccdepth render`: exact output, exact errors, and resuming a stopped run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oaccdepth import readers

SMALL = ("--size", "40x56", "--grid", "3x3", "--samples", "1")


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_scenes_can_be_read_and_have_their_truth(run, tmp_path):
    result = run("render", "-o", tmp_path / "data", "--scenes", 2, "--seed", 5, *SMALL)
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'data'}: 2 scenes rendered\n")
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "scene_00005",
        "scene_00006",
    ]
    light_field = readers.read(tmp_path / "data" / "scene_00005")
    assert light_field.grid == (3, 3) and light_field.resolution == (40, 56)
    truth = readers.read_ground_truth(tmp_path / "data" / "scene_00005")
    assert truth is not None and truth.shape == (40, 56) and np.isfinite(truth).all()
    assert light_field.disparity_range is not None
    assert light_field.disparity_range[0] <= truth.min() + 0.1


def test_a_seed_gives_the_same_scene_and_what_is_there_is_skipped(run, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert run("render", "-o", first, "--scenes", 2, *SMALL).exit_code == 0
    assert run("render", "-o", second, "--scenes", 1, "--seed", 1, *SMALL).exit_code == 0
    again = {path.name: data for path, data in contents(second / "scene_00001").items()}
    before = contents(first)
    assert again == {path.name: data for path, data in before.items() if "00001" in str(path)}

    (first / "scene_00000" / "input_Cam004.png").write_bytes(b"kept")
    result = run("render", "-o", first, "--scenes", 3, *SMALL, "--json")
    assert json.loads(result.stdout) == {
        "output": str(first),
        "rendered": ["scene_00002"],
        "skipped": ["scene_00000", "scene_00001"],
    }
    assert (first / "scene_00000" / "input_Cam004.png").read_bytes() == b"kept"
    result = run("render", "-o", first, "--scenes", 3, *SMALL)
    assert result.stdout == f"{first}: 0 scenes rendered, 3 already there\n"


def test_limits_of_the_disparities(run, tmp_path):
    options = ("--scenes", 2, "--disparity-range", "-0.5:0.75", *SMALL)
    assert run("render", "-o", tmp_path, *options, "-q").exit_code == 0
    truths = [readers.read_ground_truth(path) for path in sorted(tmp_path.iterdir())]
    assert min(truth.min() for truth in truths) >= -0.501
    assert max(truth.max() for truth in truths) <= 0.751


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--samples", "9"], "--samples 9: expected 1 to 8."),
        (["--stress", "--size", "64x64", "--grid", "3x3", "--objects", "x"],
         "--stress: these scenes are fixed. Leave out --size, --objects."),
        (["--objects", "nowhere"], "--objects nowhere: no such folder."),
        (["--grid", "41x41", "-q"],
         "--grid 41x41: 1681 views, at most 1000 fit the names of a scene. Use fewer cameras."),
    ],
)  # fmt: skip
def test_options_that_cannot_be_met(run, tmp_path, words, message):
    result = run("render", "-o", tmp_path / "data", *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: {message}\n"
    assert not (tmp_path / "data").exists()


def test_cameras_that_would_look_beyond_the_walls(run, tmp_path):
    options = ("--scenes", 1, "--grid", "1x101", "--size", "16x16", "--disparity-range", "3:4")
    result = run("render", "-o", tmp_path / "data", *options, "-q")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the outermost cameras look ")
    assert result.stderr.endswith(
        " px beyond the frame, at most 96 are rendered. Use fewer cameras or smaller disparities.\n"
    )


def test_an_object_that_cannot_be_read(run, tmp_path):
    (tmp_path / "meshes").mkdir()
    path = tmp_path / "meshes" / "cup.obj"
    path.write_text("v 1 2 3\nf 1 2 3\n")
    result = run("render", "-o", tmp_path / "data", "--objects", tmp_path / "meshes", *SMALL, "-q")
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: {path}: line 2 cannot be understood: 'f 1 2 3'. Export the mesh again.\n"
    )
    assert not (tmp_path / "data").exists()


def test_a_full_disk(tmp_path):
    """In its own process: threads of compiled loops do not survive a fork."""
    program = (
        "import sys\n"
        "from trouble import fill_disk_at\n"
        "from oaccdepth import cli\n"
        "fill_disk_at(2000)\n"
        "cli.app(sys.argv[1:], prog_name='oaccdepth')\n"
    )
    words = ["render", "-o", str(tmp_path / "data"), "--scenes", "1", *SMALL, "-q"]
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([tests, *sys.path])},
    )
    assert (done.returncode, done.stdout) == (1, "")
    path = tmp_path / "data" / "scene_00000" / "input_Cam000.png"
    assert done.stderr == (
        f"error: {path}: cannot be written (File too large). Choose another place.\n"
    )
    assert not (tmp_path / "data").exists()
