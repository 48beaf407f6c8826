"""Scores of scenes: which files belong together, the tables, and the published methods."""

import csv
import io
import json
import math

import numpy as np
import pytest

from oaccdepth.errors import InvalidPrediction, UnreadableFile
from oaccdepth.evaluation import scores
from oaccdepth.evaluation.scores import Evaluation, Score
from oaccdepth.files.pfm import write_pfm
from oaccdepth.writers.pictures import write_png

SIZE = (40, 50)
VALUES = {
    "mse_100": 1.0,
    "badpix_0070": 2.0,
    "badpix_0030": 3.0,
    "badpix_0010": 4.0,
    "q25_100": 0.5,
}


def plane(value: float, size=SIZE):
    return np.full(size, value, dtype=np.float32)


@pytest.fixture
def dataset(tmp_path):
    """Three scenes in two parts, each with ground truth."""
    root = tmp_path / "dataset"
    for name, value in (("training/boxes", 0.5), ("training/cotton", 1.0), ("test/origami", -1.0)):
        write_pfm(root / name / "gt_disp_lowres.pfm", plane(value))
    return root


def test_published_scores_are_complete():
    methods = scores.published_scores()
    assert len(methods) == 9
    scenes = set(methods["OACC-Net"])
    assert scenes == {
        "backgammon",
        "dots",
        "pyramids",
        "stripes",
        "boxes",
        "cotton",
        "dino",
        "sideboard",
    }
    for by_scene in methods.values():
        assert set(by_scene) == scenes
        assert all(list(values) == list(scores.METRICS) for values in by_scene.values())


def test_published_means():
    """Means printed in the published tables, computed there from unrounded scores."""
    means = {
        method: scores.mean(list(by_scene.values()))
        for method, by_scene in scores.published_scores().items()
    }
    assert means["OACC-Net"] == pytest.approx(
        {
            "mse_100": 0.823,
            "badpix_0070": 2.618,
            "badpix_0030": 5.309,
            "badpix_0010": 20.646,
            "q25_100": 0.190,
        },
        abs=1.1e-3,
    )
    assert means["EPINASNet-B"]["badpix_0010"] == pytest.approx(54.618, abs=1.1e-3)


def test_evaluate_maps():
    prediction = plane(1.1)
    prediction[20, 20] = np.nan
    score = scores.evaluate_maps("boxes", prediction, plane(1.0))
    assert score.scene == "boxes"
    assert score.missing == 1
    assert score.values["badpix_0070"] == 100
    assert math.isinf(score.values["mse_100"])


def test_sizes_must_agree():
    with pytest.raises(InvalidPrediction) as error:
        scores.evaluate_maps("boxes", plane(0, (20, 30)), plane(0))
    assert str(error.value) == (
        "boxes: the prediction is 30x20 pixels, the ground truth 50x40. "
        "Estimate at the ground truth's size."
    )


def test_border_must_leave_something():
    with pytest.raises(InvalidPrediction) as error:
        scores.evaluate_maps("boxes", plane(0), plane(0), border=20)
    assert str(error.value) == (
        "boxes: a border of 20 px leaves nothing of 50x40 pixels to score. "
        "Use evaluate with a smaller --border."
    )
    with pytest.raises(InvalidPrediction) as error:
        scores.evaluate_maps("boxes", plane(0), plane(np.nan))
    assert str(error.value) == "boxes: the ground truth has no finite value. Copy it again."


def test_evaluate_files(tmp_path, dataset):
    truth = dataset / "training" / "boxes"
    write_pfm(tmp_path / "out" / "disparity.pfm", plane(0.6))
    expected = scores.evaluate_files(
        tmp_path / "out" / "disparity.pfm", truth / "gt_disp_lowres.pfm"
    )
    assert expected.scenes == ["boxes"]
    assert expected.scores[0].values["mse_100"] == pytest.approx(1.0)
    assert scores.evaluate_files(tmp_path / "out", truth) == expected


@pytest.mark.parametrize(
    "place", ["training/boxes/disparity.pfm", "boxes/disparity.pfm", "boxes.pfm", "x/y/boxes.pfm"]
)
def test_predictions_are_found(tmp_path, dataset, place):
    write_pfm(tmp_path / "out" / place, plane(0.5))
    scored = scores.evaluate_folder(tmp_path / "out", dataset)
    assert scored.scenes == ["boxes"]
    assert scored.mean["mse_100"] == 0
    assert scored.without_prediction == ("origami", "cotton")


def test_ambiguous_prediction(tmp_path, dataset):
    out = tmp_path / "out"
    write_pfm(out / "a" / "boxes.pfm", plane(0.5))
    write_pfm(out / "b" / "boxes.pfm", plane(0.5))
    with pytest.raises(InvalidPrediction) as error:
        scores.evaluate_folder(out, dataset)
    assert str(error.value) == (
        f"{out}: 2 predictions for boxes: {out}/a/boxes.pfm, {out}/b/boxes.pfm. "
        "Keep one, or give the folder that holds it."
    )


def test_scenes_of_the_same_name(tmp_path, dataset):
    write_pfm(dataset / "test" / "boxes" / "gt_disp_lowres.pfm", plane(0.7))
    write_pfm(tmp_path / "out" / "test" / "boxes" / "disparity.pfm", plane(0.7))
    write_pfm(tmp_path / "out" / "training" / "boxes.pfm", plane(0.5))
    scored = scores.evaluate_folder(tmp_path / "out", dataset)
    assert scored.scenes == ["test/boxes", "training/boxes"]
    assert scored.mean["mse_100"] == 0


def test_damaged_ground_truth_does_not_stop_the_others(tmp_path, dataset):
    (dataset / "test" / "origami" / "gt_disp_lowres.pfm").write_bytes(b"Pf\n50")
    for name in ("boxes", "origami"):
        write_pfm(tmp_path / "out" / f"{name}.pfm", plane(0.5))
    assert scores.evaluate_folder(tmp_path / "out", dataset).scenes == ["boxes"]


def test_regions_and_error_maps(tmp_path, dataset):
    scene = dataset / "training" / "boxes"
    write_png(scene / "mask_planes_lowres.png", np.full(SIZE, 255, dtype=np.uint8))
    for name in ("boxes", "cotton"):
        write_pfm(tmp_path / "out" / f"{name}.pfm", plane(0.5))
    scored = scores.evaluate_folder(tmp_path / "out", dataset, error_maps=tmp_path / "maps")
    assert scored.regions == {"bumpiness_planes_100_0050": "Planes"}
    assert scored.scores[0].regions == {"bumpiness_planes_100_0050": 0.0}
    assert (tmp_path / "maps" / "boxes" / "error.png").exists()
    assert (tmp_path / "maps" / "cotton" / "badpix.png").exists()
    rows = list(csv.DictReader(io.StringIO(scores.as_csv(scored, "ours"))))
    assert [row["bumpiness_planes_100_0050"] for row in rows[:2]] == ["0.0", ""]
    assert "| scene | Planes |\n| --- | ---: |\n| boxes | 0.000 |\n" in scores.as_markdown(
        scored, "ours"
    )
    content = scores.as_json(scored, "ours")
    assert content["scenes"]["boxes"]["bumpiness_planes_100_0050"] == 0.0


def test_no_prediction_at_all(tmp_path, dataset):
    (tmp_path / "out").mkdir()
    with pytest.raises(UnreadableFile) as error:
        scores.evaluate_folder(tmp_path / "out", dataset)
    assert str(error.value) == (
        f"{tmp_path}/out: holds no prediction for the 3 scenes with ground truth under {dataset}. "
        "Expected SCENE/disparity.pfm or SCENE.pfm."
    )
    with pytest.raises(UnreadableFile, match=r"nowhere: no such folder\.$"):
        scores.evaluate_folder(tmp_path / "nowhere", dataset)


def test_comparison_covers_the_scenes_at_hand():
    scored = Evaluation((Score("cotton", VALUES), Score("town", {**VALUES, "mse_100": 9.0})))
    scenes, methods = scores.compare(scored, "ours")
    assert scenes == ["cotton"]
    assert methods["ours"] == VALUES  # town is not published
    assert methods["OACC-Net"]["mse_100"] == 0.162
    assert next(iter(methods)) == "OACC-Net" and list(methods)[-1] == "ours"  # best MSE first


def test_another_border_is_not_compared():
    scored = Evaluation((Score("cotton", VALUES),), border=0)
    assert scores.compare(scored, "ours") == ([], {})


def test_json_has_no_infinity():
    scored = Evaluation((Score("cotton", {**VALUES, "mse_100": math.inf}, missing=3),))
    content = json.loads(json.dumps(scores.as_json(scored, "ours"), allow_nan=False))
    assert content["scenes"]["cotton"]["mse_100"] is None
    assert content["scenes"]["cotton"]["missing"] == 3
    assert content["published"]["mean"]["ours"]["mse_100"] is None
    assert content["published"]["mean"]["OACC-Net"]["badpix_0070"] == 0.312


def test_csv():
    scored = Evaluation((Score("cotton", VALUES), Score("town", VALUES)))
    rows = list(csv.DictReader(io.StringIO(scores.as_csv(scored, "ours"))))
    assert len(rows) == 2 + 9
    assert rows[0] == {
        "method": "ours",
        "scene": "cotton",
        **{k: str(v) for k, v in VALUES.items()},
    }
    assert {row["scene"] for row in rows[2:]} == {"cotton"}


def test_markdown():
    scored = Evaluation((Score("town", VALUES), Score("tomb", VALUES)))
    assert scores.as_markdown(scored, "ours") == (
        "| scene | MSE x100 | BadPix 0.07 | BadPix 0.03 | BadPix 0.01 | Q25 x100 |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| town | 1.000 | 2.000 | 3.000 | 4.000 | 0.500 |\n"
        "| tomb | 1.000 | 2.000 | 3.000 | 4.000 | 0.500 |\n"
        "| **mean** | 1.000 | 2.000 | 3.000 | 4.000 | 0.500 |\n"
    )
    compared = scores.as_markdown(Evaluation((Score("cotton", VALUES),)), "ours")
    assert "\nMean over cotton, with published methods:\n\n| method |" in compared
    assert "| **ours** | 1.000 |" in compared


def test_mean_of_regions():
    """Over the scenes that have one."""
    values = dict.fromkeys(scores.METRICS, 1.0)
    scored = scores.Evaluation(
        (
            scores.Score("a", values, regions={"fine_thinning_0150": 1.0, "mae_planes": 5.0}),
            scores.Score("b", values, regions={"fine_thinning_0150": 2.0}),
            scores.Score("c", values),
        )
    )
    assert scored.region_mean == {"mae_planes": 5.0, "fine_thinning_0150": 1.5}
    assert "| **mean** | 5.000 | 1.500 |" in scores.as_markdown(scored, "ours")
    assert scores.as_json(scored, "ours")["mean"]["fine_thinning_0150"] == 1.5
