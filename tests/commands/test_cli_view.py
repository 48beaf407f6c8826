"""`oaccdepth view`: a light field, or a result whose light field is found again, or not."""

import json
import shutil

import numpy as np
import pytest

from oaccdepth import readers
from oaccdepth.errors import UnreadableFile
from oaccdepth.files.pfm import read_pfm
from oaccdepth.looking.viewer.page import read_blocks
from oaccdepth.writers import results, scenes


def meta_of(page):
    return read_blocks(page, "none")[0]


def test_light_field(run, scene_folder, weights_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("view", scene_folder, "--weights", weights_file)
    assert (done.exit_code, done.stdout) == (0, "town.html\n")
    meta = meta_of(tmp_path / "town.html")
    assert meta["scene"] == "town" and len(meta["views"]["places"]) == 81
    assert len(meta["passes"]) == 2 and meta["masks"] and meta["evidence"]
    text = (tmp_path / "town.html").read_text(encoding="utf-8")
    assert 'id="data-truth"' in text  # gt_disp_lowres.pfm is next to the views


@pytest.mark.parametrize("command", ["view", "estimate"])
def test_pages_are_opened(run, scene_folder, weights_file, tmp_path, monkeypatch, command):
    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    output = tmp_path / ("page.html" if command == "view" else "out")
    done = run(command, scene_folder, "-o", output, "--weights", weights_file, "--open")
    assert done.exit_code == 0, done.stderr
    page = output if command == "view" else output / "view.html"
    assert opened == [page.as_uri()] and page.is_file()


def test_result_with_its_light_field_beside_it(run, scene_folder, result_folder):
    shutil.copytree(scene_folder, result_folder.parent / "town")
    done = run("view", result_folder)
    assert (done.exit_code, done.stdout) == (0, f"{result_folder / 'view.html'}\n")
    meta = meta_of(result_folder / "view.html")
    assert meta["views"]["size"] == [64, 48]
    assert meta["camera"]["baseline"] == 20.0


def test_result_with_a_named_light_field(run, scene_folder, result_folder, tmp_path):
    page = tmp_path / "page.html"
    done = run("view", result_folder, "--input", scene_folder, "-o", page)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{page}\n", "writing ...\n")
    assert len(meta_of(page)["views"]["places"]) == 81


def test_a_named_light_field_is_read_as_before(run, scene_folder, weights_file, tmp_path):
    """Before, the options in `run.json` were forgotten if the views had been moved."""
    views, out, page = tmp_path / "views", tmp_path / "out", tmp_path / "page.html"
    shutil.copytree(scene_folder, views)
    arguments = ["--scale", "0.5", "--use-views", "3x3", "--weights", weights_file, "-q"]
    assert run("estimate", views, "-o", out, *arguments).exit_code == 0
    moved = views.rename(tmp_path / "moved")
    done = run("view", out, "--input", moved, "-o", page)
    assert (done.exit_code, done.stdout) == (0, f"{page}\n")
    assert meta_of(page)["views"]["size"] == [32, 24]
    assert len(meta_of(page)["views"]["places"]) == 9


def test_result_alone(run, result_folder):
    done = run("view", result_folder)
    assert done.exit_code == 0
    assert done.stderr == (
        "writing ...\n"
        f"note: the light field town is not next to {result_folder}, so there are no views. "
        "Give it with --input.\n"
    )
    assert "views" not in meta_of(result_folder / "view.html")


def test_another_light_field_is_not_taken(run, scene, result_folder, tmp_path):
    other = tmp_path / "out" / "town"
    smaller = scene.light_field.views[:, :, :40]
    light_field = readers.LightField(smaller, camera=scene.light_field.camera)
    scenes.write_light_field(scenes.with_8_bits(light_field), other, truth=scene.disparity[:40])
    what = f"{other}: views of 64x40 px do not belong to {result_folder}, which has 64x48 px."
    done = run("view", result_folder, "--input", other)
    assert (done.exit_code, done.stderr) == (
        1,
        f"error: --input {what} Give the light field that it was estimated from.\n",
    )
    done = run("view", result_folder)
    assert done.exit_code == 0
    assert f"note: {what} Give the right one with --input.\n" in done.stderr


def test_input_without_a_result(run, scene_folder):
    done = run("view", scene_folder, "--input", scene_folder)
    assert (done.exit_code, done.stderr) == (
        1,
        f"error: --input {scene_folder}: belongs to a RESULT, but {scene_folder} is not a folder "
        "with run.json and disparity.pfm. Give a folder written by `estimate`, or leave --input "
        "out.\n",
    )


def test_results_are_read_back(scene, result_folder):
    result = results.read_result(result_folder)
    assert result.disparity.tobytes() == scene.disparity.tobytes()
    assert result.confidence == pytest.approx(np.full((48, 64), 0.6), abs=0.5 / 255)
    assert result.camera == scene.light_field.camera
    assert result.made_with.weights == "fast" and result.made_with.notes == ("a note",)
    assert result.made_with.input["source"] == "town"


def test_damaged_results_are_named(result_folder):
    run_file = result_folder / "run.json"
    run_file.write_text("[]")
    with pytest.raises(UnreadableFile) as caught:
        results.read_result(result_folder)
    assert str(caught.value) == f"{run_file}: not what `estimate` writes. Estimate again."
    run_file.write_text("{")
    with pytest.raises(UnreadableFile, match="not readable as JSON"):
        results.read_result(result_folder)
    run_file.write_text("{}")
    assert results.read_result(result_folder).camera is None
    picture = result_folder / "confidence.png"
    picture.unlink()
    with pytest.raises(UnreadableFile) as caught:
        results.read_result(result_folder)
    assert str(caught.value) == (
        f"{picture}: expected an 8-bit picture of 64x48 px. Estimate again."
    )
    assert read_pfm(result_folder / "disparity.pfm").shape == (48, 64)


def test_the_views_are_found_where_run_json_says(run, scene_folder, weights_file, tmp_path):
    """The result is in a completely different place, and only a part of each view was used."""
    out = tmp_path / "far" / "away" / "result"
    options = ("--crop", "40x36+10+6", "--weights", weights_file, "-q")
    assert run("estimate", scene_folder, "-o", out, *options).exit_code == 0
    about = json.loads((out / "run.json").read_text())["input"]
    assert (out / about["path"]).resolve() == scene_folder.resolve()
    assert about["reading"] == {"crop": "40x36+10+6"}
    result = run("view", out)
    assert result.exit_code == 0, result.stderr
    assert "no views" not in result.stderr and "do not belong" not in result.stderr
