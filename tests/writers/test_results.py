import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from trouble import fill_disk_at, kill_at_write, run_child

from oaccdepth import DisparityMap, write
from oaccdepth.disparity import Provenance
from oaccdepth.errors import InvalidOption, OutputExists, UnwritableOutput
from oaccdepth.files.atomic import remove_leftovers
from oaccdepth.files.pfm import read_pfm
from oaccdepth.options import WriteOptions
from oaccdepth.writers.results import FORMATS, output_names, prepare

USUAL = ["disparity.pfm", "disparity.png", "confidence.png", "run.json"]


@pytest.fixture
def result(scene):
    made_with = Provenance(
        version="0.1.0",
        weights="fast",
        options={"weights": "/home/ada/my weights/fast.safetensors", "tile": 64},
        device="cpu",
        seconds={"first": 1.5},
        notes=("/home/ada/scenes/town: 2 views are missing.",),
    )
    confidence = np.linspace(0, 1, scene.disparity.size, dtype=np.float32)
    return DisparityMap(
        scene.disparity,
        confidence.reshape(scene.disparity.shape),
        camera=scene.light_field.camera,
        made_with=made_with,
    )


def read_run(folder):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads((folder / "run.json").read_text(encoding="utf-8"), parse_constant=refuse)


def test_the_usual_files(result, tmp_path):
    written = write(result, tmp_path / "out")
    assert [path.name for path in written] == USUAL
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(USUAL)
    np.testing.assert_array_equal(read_pfm(tmp_path / "out" / "disparity.pfm"), result.disparity)
    confidence = cv2.imread(str(tmp_path / "out" / "confidence.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_allclose(confidence / 255, result.confidence, atol=0.5 / 255 + 1e-6)
    picture = cv2.imread(str(tmp_path / "out" / "disparity.png"))
    assert picture.shape[1] > result.disparity.shape[1]  # there is a colour bar


def test_the_colours_follow_range_and_map(result, tmp_path):
    write(result, tmp_path / "a", WriteOptions(value_range=(-10.0, 10.0), colormap="gray"))
    picture = cv2.imread(str(tmp_path / "a" / "disparity.png"))[:48, :64]
    np.testing.assert_allclose(picture[..., 0] / 255 * 20 - 10, result.disparity, atol=0.05)
    assert read_run(tmp_path / "a")["colours"] == {"colormap": "gray", "range": [-10.0, 10.0]}


def test_run_json_says_how_it_was_made(result, tmp_path):
    write(result, tmp_path, WriteOptions(formats=("npy",)))
    run = read_run(tmp_path)
    assert run["weights"] == "fast" and run["seconds"] == {"first": 1.5}
    assert list(run["files"]) == [
        "disparity.pfm",
        "disparity.png",
        "confidence.png",
        "disparity.npy",
    ]
    assert run["result"]["resolution"] == [48, 64]
    assert run["result"]["max_px"] == pytest.approx(float(result.disparity.max()), abs=1e-5)


def test_run_json_names_no_folder_of_the_user(result, tmp_path):
    write(result, tmp_path)
    run = read_run(tmp_path)
    assert run["options"] == {"weights": "fast.safetensors", "tile": 64}
    assert run["notes"] == ["town: 2 views are missing."]
    assert "/home" not in (tmp_path / "run.json").read_text()
    assert str(tmp_path) not in (tmp_path / "run.json").read_text()


def test_every_format(result, scene, tmp_path):
    options = WriteOptions(formats=tuple(FORMATS))
    written = write(result, tmp_path, options, centre=scene.light_field.centre)
    assert [path.name for path in written] == output_names(list(FORMATS))
    assert all(path.stat().st_size > 0 for path in written)
    np.testing.assert_array_equal(np.load(tmp_path / "disparity.npy"), result.disparity)
    np.testing.assert_array_equal(read_pfm(tmp_path / "depth.pfm"), result.depth_mm())
    assert (tmp_path / "points.ply").read_bytes().startswith(b"ply\n")


def test_16_bit_png_can_be_read_with_scale_and_offset(result, tmp_path):
    disparity = result.disparity.copy()
    disparity[0, :2] = np.nan, np.inf
    write(replace(result, disparity=disparity), tmp_path, WriteOptions(formats=("png16",)))
    about = read_run(tmp_path)["png16"]
    stored = cv2.imread(str(tmp_path / about["file"]), cv2.IMREAD_UNCHANGED)
    assert stored.dtype == np.uint16
    assert stored[0, :2].tolist() == [0, 0]
    finite = np.isfinite(disparity)
    assert stored[finite].min() == 1 and stored[finite].max() == 65535
    again = stored * about["scale"] + about["offset"]
    np.testing.assert_allclose(again[finite], disparity[finite], atol=about["scale"] / 2 + 1e-6)


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_map_of_one_value_or_none(tmp_path, value):
    flat = np.full((20, 30), value, np.float32)
    write(DisparityMap(flat, flat), tmp_path, WriteOptions(formats=("npy", "png16")))
    np.testing.assert_array_equal(read_pfm(tmp_path / "disparity.pfm"), flat)
    assert read_run(tmp_path)["result"]["mean_px"] == (None if np.isnan(value) else 0.0)


def test_depth_needs_a_camera(result, tmp_path):
    with pytest.raises(InvalidOption) as caught:
        write(replace(result, camera=None), tmp_path / "out", WriteOptions(formats=("depth",)))
    assert str(caught.value) == (
        "--format depth: the input says nothing about its camera, so disparity cannot become "
        "depth. Give --baseline-mm and --focal-px, add a parameters.cfg, or leave "
        "this format out."
    )
    assert not (tmp_path / "out").exists()


def test_an_unknown_format(result, tmp_path):
    with pytest.raises(InvalidOption) as caught:
        write(result, tmp_path / "out", WriteOptions(formats=("tiff",)))
    assert str(caught.value) == "--format tiff: no such format. Use npy, png16, depth or ply."
    assert not (tmp_path / "out").exists()


def test_a_result_is_not_replaced_without_being_told(result, tmp_path):
    write(result, tmp_path)
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(OutputExists) as caught:
        write(replace(result, disparity=result.disparity + 1), tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: already holds confidence.png and 3 more. "
        "Pass --overwrite to replace, or choose another --output."
    )
    assert (tmp_path / "run.json").read_bytes() == before


def page(folder):
    (folder / "view.html").write_text("page")
    return {"view.html": "a page"}


def test_nothing_of_an_earlier_run_stays_behind(result, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    write(result, tmp_path, WriteOptions(formats=("npy", "ply")), write_beside=page)
    write(result, tmp_path, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*USUAL, "notes.txt"])


def test_files_beside_are_kept_and_named(result, tmp_path):
    for _ in range(2):
        written = write(result, tmp_path, overwrite=True, write_beside=page)
    assert written[-1] == tmp_path / "view.html"
    assert (tmp_path / "view.html").read_text() == "page"
    assert read_run(tmp_path)["files"]["view.html"] == "a page"


def test_a_run_file_that_is_not_ours_is_replaced(result, tmp_path):
    for content in ("not json", "[1, 2]", '{"files": 3}'):
        (tmp_path / "run.json").write_text(content)
        write(result, tmp_path, overwrite=True)
        assert read_run(tmp_path)["weights"] == "fast"


def test_what_is_there_stays_until_the_new_is_whole(result, tmp_path, monkeypatch):
    write(result, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("oaccdepth.writers.results.write_png", fail)
    with pytest.raises(KeyboardInterrupt):
        write(replace(result, disparity=result.disparity + 1), tmp_path, overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_disk_that_is_full_sooner_or_later(result, tmp_path):
    """Whichever file does not fit, there is no result, only one of our errors."""
    sizes = {path.stat().st_size for path in write(result, tmp_path / "whole")}

    def fill(size):
        fill_disk_at(size)
        with pytest.raises(UnwritableOutput, match=r"cannot be written \(File too large\)"):
            write(result, tmp_path / "out" / "deep")

    for size in (0, *(size - 1 for size in sizes)):
        assert run_child(fill, size) == 0
        assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_killed_at_every_write(result, tmp_path):
    def kill(moment):
        kill_at_write(moment)
        write(result, tmp_path / "out")

    moment = 1
    while run_child(kill, moment) != 0:
        assert not (tmp_path / "out").exists()
        remove_leftovers(tmp_path)
        moment += 1
    assert moment > 10
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(USUAL)


def test_preparing_leaves_nothing(tmp_path):
    prepare(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").mkdir()
    prepare(tmp_path / "a")
    assert (tmp_path / "a").is_dir()
