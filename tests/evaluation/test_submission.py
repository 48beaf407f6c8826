"""The benchmark's zip file: its layout, and what is refused."""

import json
import zipfile

import justpfm
import numpy as np
import pytest

from oaccdepth.errors import InvalidPrediction, OutputExists, UnreadableFile
from oaccdepth.evaluation.submission import SCENES, write_submission
from oaccdepth.files.pfm import write_pfm

PLANE = np.full((512, 512), 0.25, dtype=np.float32)


@pytest.fixture
def results(tmp_path):
    """What `batch` writes, in the benchmark's three folders."""
    output = tmp_path / "out"
    for index, scene in enumerate(SCENES):
        folder = output / ("stratified", "training", "test")[index // 4] / scene
        write_pfm(folder / "disparity.pfm", PLANE)
        (folder / "run.json").write_text(json.dumps({"seconds": {"total": index + 0.5}}))
    return output


def test_layout(results, tmp_path):
    runtimes = write_submission(results, tmp_path / "submission.zip")
    assert runtimes["backgammon"] == 0.5 and runtimes["origami"] == 11.5
    with zipfile.ZipFile(tmp_path / "submission.zip") as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == sorted(
            [f"disp_maps/{scene}.pfm" for scene in SCENES]
            + [f"runtimes/{scene}.txt" for scene in SCENES]
        )
        archive.extractall(tmp_path / "unpacked")
    unpacked = tmp_path / "unpacked"
    np.testing.assert_array_equal(
        justpfm.read_pfm(unpacked / "disp_maps" / "herbs.pfm")[:, :, 0], PLANE
    )
    assert float((unpacked / "runtimes" / "dots.txt").read_text()) == 1.5


def test_the_same_results_give_the_same_bytes(results, tmp_path):
    for name in ("a.zip", "b.zip"):
        write_submission(results, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def refused(results, tmp_path, **options):
    with pytest.raises(InvalidPrediction) as error:
        write_submission(results, tmp_path / "submission.zip", **options)
    assert not (tmp_path / "submission.zip").exists()
    return str(error.value)


def test_missing_scenes(results, tmp_path):
    for scene in ("bedroom", "herbs"):
        (results / "test" / scene / "disparity.pfm").unlink()
    assert refused(results, tmp_path) == (
        f"{results}: 2 of the twelve scenes are missing: bedroom, herbs. "
        "Expected SCENE/disparity.pfm or SCENE.pfm; `oaccdepth batch` writes them."
    )


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (PLANE[:, :500], "not 512x512 pixels"),
        (np.where(np.eye(512), np.float32(np.nan), PLANE), "not finite everywhere"),
    ],
)
def test_maps_that_are_not_accepted(results, tmp_path, values, fault):
    write_pfm(results / "test" / "bedroom" / "disparity.pfm", values)
    assert refused(results, tmp_path) == (
        f"the benchmark does not accept disparity maps that are {fault}: bedroom. "
        "Estimate the whole scenes again."
    )


def test_runtimes(results, tmp_path):
    (results / "training" / "dino" / "run.json").unlink()
    (results / "training" / "boxes" / "run.json").write_text("{}")
    assert refused(results, tmp_path) == (
        "no runtime in run.json: boxes, dino. Pass --runtime SECONDS."
    )
    runtimes = write_submission(results, tmp_path / "submission.zip", runtime=3.0)
    assert (runtimes["dino"], runtimes["dots"]) == (3.0, 1.5)


def test_flat_folder_of_maps(tmp_path):
    for scene in SCENES:
        write_pfm(tmp_path / "maps" / f"{scene}.pfm", PLANE)
    assert set(write_submission(tmp_path / "maps", tmp_path / "s.zip", runtime=1.0)) == set(SCENES)


def test_does_not_overwrite(results, tmp_path):
    path = tmp_path / "submission.zip"
    path.write_bytes(b"precious")
    with pytest.raises(OutputExists) as error:
        write_submission(results, path)
    assert str(error.value) == f"{path}: already exists. Pass --overwrite to replace it."
    assert path.read_bytes() == b"precious"
    write_submission(results, path, overwrite=True)
    assert zipfile.is_zipfile(path)


def test_no_such_folder(tmp_path):
    with pytest.raises(UnreadableFile) as error:
        write_submission(tmp_path / "nowhere", tmp_path / "s.zip")
    assert str(error.value) == (
        f"{tmp_path}/nowhere: no such folder. Give a folder that `batch` has written."
    )
