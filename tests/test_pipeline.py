"""The pipeline: one way from a path to a folder of results, for every caller."""

import json
import shutil

import numpy as np
import pytest

import oaccdepth
from oaccdepth import EstimateOptions, ReadOptions, WriteOptions, process
from oaccdepth.disparity import Provenance
from oaccdepth.errors import InvalidOption, UnknownFormat


def known(scene):
    """A stand-in for `estimate` that knows the answer, and the options that it was given."""
    seen = []

    def estimate(light_field, options, progress):
        seen.append(options)
        for fraction in (0.0, 0.5, 1.0):
            progress("estimating", fraction)
        return oaccdepth.DisparityMap(
            scene.disparity, np.ones_like(scene.disparity), made_with=Provenance(notes=("b", "a"))
        )

    return estimate, seen


def test_a_path_becomes_a_folder(scene, scene_folder, tmp_path):
    estimate, _ = known(scene)
    told = []
    done = process(
        scene_folder, tmp_path / "out", estimate=estimate, progress=lambda *at: told.append(at)
    )
    names = ["disparity.pfm", "disparity.png", "confidence.png", "run.json"]
    assert [path.name for path in done.files] == names
    assert all(path.is_file() for path in done.files)
    assert done.light_field.grid == (9, 9) and done.notes == ("b", "a")
    assert list(dict.fromkeys(stage for stage, _ in told)) == ["reading", "estimating", "writing"]
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions) and (fractions[0], fractions[-1]) == (0.0, 1.0)


def test_the_way_to_the_views_does_not_say_whose_they_are(
    scene, scene_folder, tmp_path, monkeypatch
):
    """The path starts at the folder that both share, and never passes through a home folder."""
    estimate, _ = known(scene)
    data = shutil.copytree(scene_folder, tmp_path / "alice" / "data" / "town")
    ways = {}
    for home in ("home/alice", "home/bob"):
        monkeypatch.setenv("HOME", str(tmp_path / home))
        for output in (tmp_path / "alice" / "results" / "a", tmp_path / "out"):
            process(data, output, estimate=estimate, overwrite=True)
            text = (output / "run.json").read_text()
            assert str(tmp_path) not in text
            ways[home, output.name] = json.loads(text).get("input", {}).get("path")
    assert ways == {
        ("home/alice", "a"): "../../data/town",
        ("home/alice", "out"): None,
        ("home/bob", "a"): "../../data/town",
        ("home/bob", "out"): "../alice/data/town",
    }


def test_it_is_read_estimate_write(scene_folder, weights_file, tmp_path):
    options = EstimateOptions(weights=str(weights_file))
    done = process(scene_folder, tmp_path / "a", estimating=options)
    result = oaccdepth.estimate(oaccdepth.read(scene_folder), options)
    oaccdepth.write(result, tmp_path / "b")
    np.testing.assert_array_equal(done.result.disparity, result.disparity)
    for name in ("disparity.pfm", "disparity.png", "confidence.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("use_views", [None, "all"])
def test_all_views_vote_if_all_are_asked_for(scene, scene_folder, tmp_path, use_views):
    estimate, seen = known(scene)
    process(scene_folder, tmp_path / "out", ReadOptions(use_views=use_views), estimate=estimate)
    assert seen[0].all_vote == (use_views == "all")


def test_the_page_gets_all_there_is(scene, scene_folder, tmp_path):
    estimate, seen = known(scene)
    done = process(
        scene_folder, tmp_path / "out", writing=WriteOptions(view=True), estimate=estimate
    )
    page = tmp_path / "out" / "view.html"
    assert done.files[-1] == page and 'id="data-truth"' in page.read_text(encoding="utf-8")
    assert seen[0].keep_masks and seen[0].keep_passes and seen[0].keep_evidence
    assert "view.html" in json.loads((tmp_path / "out" / "run.json").read_text())["files"]


def test_bad_ground_truth_is_only_a_note(scene, scene_folder, tmp_path):
    copy = shutil.copytree(scene_folder, tmp_path / "copy")
    (copy / "gt_disp_lowres.pfm").write_bytes(b"Pf\n1")
    done = process(
        copy, tmp_path / "out", writing=WriteOptions(view=True), estimate=known(scene)[0]
    )
    assert done.notes[-1].startswith(f"ground truth not used: {copy}/gt_disp_lowres.pfm: ")
    assert (tmp_path / "out" / "view.html").is_file()


def test_a_result_is_not_a_light_field(scene, scene_folder, tmp_path):
    process(scene_folder, tmp_path / "out", estimate=known(scene)[0])
    with pytest.raises(UnknownFormat) as caught:
        process(tmp_path / "out", tmp_path / "again")
    assert str(caught.value) == (
        f"{tmp_path}/out: holds a result, not a light field. "
        f"To look at it, run: oaccdepth view {tmp_path}/out"
    )
    assert not (tmp_path / "again").exists()


def test_nothing_is_left_of_a_failure(scene_folder, tmp_path):
    def fail(light_field, options, progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        process(scene_folder, tmp_path / "a" / "b", estimate=fail)
    assert not (tmp_path / "a").exists()


def test_a_map_of_every_view(scene, scene_folder, tmp_path):
    estimate, seen = known(scene)
    done = process(
        scene_folder, tmp_path / "out", writing=WriteOptions(all_views=True), estimate=estimate
    )
    maps = sorted((tmp_path / "out" / "views").iterdir())
    assert len(maps) == 81 and maps[10].name == "disparity_01_01.pfm"
    assert [options.reference for options in seen[1:]] == list(np.ndindex(9, 9))
    assert set(maps) <= set(done.files)


def test_the_page_is_about_the_centre_view(scene, scene_folder, tmp_path):
    estimating = EstimateOptions(reference=(0, 0))
    with pytest.raises(InvalidOption) as caught:
        process(
            scene_folder, tmp_path / "out", estimating=estimating, writing=WriteOptions(view=True)
        )
    assert str(caught.value) == "--view: the page is about the centre view. Leave out --reference."
