"""`oaccdepth convert`: exact output, exact errors, exit codes."""

import json

import lightfield_files as files
import numpy as np
import pytest

from oaccdepth import readers


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    folder = tmp_path_factory.mktemp("convert") / "town"
    files.hci(folder, *files.render((5, 5), (24, 30)))
    return folder


@pytest.mark.parametrize(
    ("name", "kind"),
    [("out", "hci"), ("a.h5", "h5"), ("a.npz", "npz"), ("a_eslf.png", "eslf"), ("a.png", "mosaic")],
)
def test_convert_and_back(run, tmp_path, town, name, kind):
    result = run("convert", town, tmp_path / name)
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path}/{name}: {kind}, 5x5 views of 30x24 px\n"
    silent = run("convert", town, tmp_path / name, "-q", "--overwrite")
    assert (silent.exit_code, silent.stdout, silent.stderr) == (0, "", "")
    back = run("convert", tmp_path / name, tmp_path / "back", "--json")
    assert json.loads(back.stdout) == {
        "output": str(tmp_path / "back"),
        "format": "hci",
        "grid": [5, 5],
        "resolution": [24, 30],
        "notes": [],
    }
    first, last = readers.read(town), readers.read(tmp_path / "back")
    assert np.array_equal(first.views, last.views)
    assert (first.camera, first.disparity_range) == (last.camera, last.disparity_range)


def test_convert_takes_the_reading_options(run, tmp_path, town):
    result = run("convert", town, tmp_path / "a.npz", "--use-views", "3x5", "--to", "npz")
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path}/a.npz: npz, 3x5 views of 30x24 px\n"
    assert "note: 5 x 5 views: the central 3 x 5 are used." in result.stderr.splitlines()
    assert readers.read(tmp_path / "a.npz").grid == (3, 5)


def test_a_correction_is_a_warning(run, tmp_path):
    views, _ = files.render()
    files.pairs(tmp_path / "in", views.swapaxes(0, 1), "cam_{}_{}.png")
    result = run("convert", tmp_path / "in", tmp_path / "out")
    assert result.exit_code == 0
    assert (
        f"warning: {tmp_path}/in: camera rows and columns are exchanged: corrected. "
        "If that is wrong, pass --no-check-orientation."
    ) in result.stderr.splitlines()
    assert result.stderr.count("rows and columns are exchanged") == 1  # not once more as a note
    assert np.array_equal(readers.read(tmp_path / "out").views, views)
