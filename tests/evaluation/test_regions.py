"""Scores on regions: which files are used, at which resolution."""

import cv2
import numpy as np
import pytest
from lightfield_files import CFG as CFG_TEMPLATE

from oaccdepth.errors import InvalidPrediction
from oaccdepth.evaluation import metrics
from oaccdepth.evaluation.regions import REGIONS, score_regions
from oaccdepth.files.pfm import write_pfm

SIZE = (40, 50)
CFG = CFG_TEMPLATE.format(rows=3, columns=3, height=40, width=50)


@pytest.fixture
def maps():
    noise = np.random.default_rng(5)
    truth = noise.normal(0, 1, SIZE).astype(np.float32)
    return truth + noise.normal(0, 0.1, SIZE).astype(np.float32), truth


def write_mask(folder, name, mask, channels=1):
    picture = np.where(mask, 255, 0).astype(np.uint8)
    if channels > 1:
        picture = np.stack([picture] * channels, axis=2)
    if channels == 4:
        picture[:, :, 3] = 255  # opaque: says nothing about the region
    assert cv2.imwrite(str(folder / f"mask_{name}.png"), picture)


def random_mask(seed, size=SIZE):
    return np.random.default_rng(seed).random(size) > 0.5


def test_no_masks_no_scores(tmp_path, maps):
    assert score_regions(tmp_path, *maps) == {}


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_low_resolution(tmp_path, maps, channels):
    masks = {name: random_mask(seed) for seed, name in enumerate(("fine", "planes"))}
    for name, mask in masks.items():
        write_mask(tmp_path, f"{name}_lowres", mask, channels)
    inside = metrics.scored_pixels(maps[1], 15)
    assert score_regions(tmp_path, *maps) == {
        "bumpiness_planes_100_0050": metrics.bumpiness_100(*maps, masks["planes"] & inside),
        "fine_thinning_0150": metrics.thinning(*maps, masks["fine"] & inside),
    }


def test_high_resolution_where_it_is_meant(tmp_path, maps):
    prediction, truth = maps
    fine_truth = np.kron(truth, np.ones((10, 10), dtype=np.float32)) + np.float32(0.01)
    write_pfm(tmp_path / "gt_disp_highres.pfm", fine_truth)
    high, low = random_mask(1, fine_truth.shape), random_mask(2)
    for name in ("discontinuities", "planes"):
        write_mask(tmp_path, f"{name}_highres", high)
        write_mask(tmp_path, f"{name}_lowres", low)
    scores = score_regions(tmp_path, prediction, truth, border=3)

    bad = count = 0
    for y in range(30, 370):
        for x in range(30, 470):
            if high[y, x]:
                error = fine_truth[y, x] - prediction[y // 10, x // 10]
                bad += abs(float(error)) > 0.07
                count += 1
    assert scores["discontinuities_0070"] == pytest.approx(100 * bad / count)
    # bumpiness is meant for the low resolution
    assert scores["bumpiness_planes_100_0050"] == metrics.bumpiness_100(
        prediction, truth, low & metrics.scored_pixels(truth, 3)
    )


def test_backgammon(tmp_path, maps):
    """Nearer to the foreground (column 14) or to the background (column 11 from the right)."""
    prediction, truth = maps
    for seed, name in enumerate(("fattening", "thinning")):
        write_mask(tmp_path, f"foreground_{name}_lowres", random_mask(seed))
    fat = thin = fat_count = thin_count = 0
    for y in range(3, 37):
        for x in range(3, 47):
            value, true = float(prediction[y, x]), float(truth[y, x])
            if random_mask(0)[y, x]:
                fat += value > (float(truth[y, 14]) + true) / 2
                fat_count += 1
            if random_mask(1)[y, x]:
                thin += value < (float(truth[y, 50 - 11]) + true) / 2
                thin_count += 1
    assert score_regions(tmp_path, prediction, truth, border=3) == {
        "backgammon_fattening_0070": pytest.approx(100 * fat / fat_count),
        "backgammon_thinning_0070": pytest.approx(100 * thin / thin_count),
    }


def test_missed_dots(tmp_path):
    """Two boxes with dots of sizes 1, 2 and 9; a dot is missed if half of it is off by 0.4 px."""
    truth = np.zeros(SIZE, dtype=np.float32)
    boxes, sizes = np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
    boxes[:, :25], boxes[:, 25:] = 1, 2
    for left in (5, 30):
        sizes[4:8, left : left + 4] = 1
        sizes[14:18, left : left + 4] = 2
        sizes[24:28, left : left + 4] = 9  # too small to count
    for name, labels in {"boxes": boxes, "dots_by_size": sizes}.items():
        assert cv2.imwrite(str(tmp_path / f"mask_{name}_lowres.png"), labels)
    prediction = truth.copy()
    prediction[4:8, 5:7] = 0.5  # half of the first dot
    prediction[14:18, 5:6] = np.nan  # a quarter of the second
    prediction[24:28] = 9
    assert score_regions(tmp_path, prediction, truth) == {"missed_dots_50_0400": 25.0}


def test_angles_need_the_camera(tmp_path, maps):
    write_mask(tmp_path, "planes_lowres", random_mask(1))
    assert list(score_regions(tmp_path, *maps)) == ["bumpiness_planes_100_0050"]
    (tmp_path / "parameters.cfg").write_text(CFG)
    assert list(score_regions(tmp_path, *maps)) == ["bumpiness_planes_100_0050", "mae_planes"]
    (tmp_path / "parameters.cfg").write_text("broken")
    assert list(score_regions(tmp_path, *maps)) == ["bumpiness_planes_100_0050"]


def test_background_is_that_of_the_dots(tmp_path, maps):
    """Backgammon has a mask of the same name, and no such score."""
    write_mask(tmp_path, "background_lowres", random_mask(1))
    assert score_regions(tmp_path, *maps) == {}
    write_mask(tmp_path, "boxes_lowres", random_mask(1))
    assert list(score_regions(tmp_path, *maps)) == ["background_mse_100"]


def test_masks_are_joined(tmp_path, maps):
    names = ("pyramids", "sphere_in", "sphere_out")
    joined = np.zeros(SIZE, dtype=bool)
    for seed, name in enumerate(names):
        joined |= random_mask(seed)
        assert score_regions(tmp_path, *maps) == {}  # not until all are there
        write_mask(tmp_path, f"{name}_lowres", random_mask(seed))
    expected = metrics.bumpiness_100(*maps, joined & metrics.scored_pixels(maps[1], 15))
    assert score_regions(tmp_path, *maps) == {"bumpiness_slanted_100_0050": expected}


def test_sizes_must_agree(tmp_path, maps):
    write_mask(tmp_path, "fine_lowres", random_mask(0, (30, 20)))
    with pytest.raises(InvalidPrediction) as error:
        score_regions(tmp_path, *maps)
    assert str(error.value) == (
        f"{tmp_path}/mask_fine_lowres.png: 20x30 pixels, expected 50x40 as the ground truth."
    )


def test_high_resolution_must_be_a_multiple(tmp_path, maps):
    write_pfm(tmp_path / "gt_disp_highres.pfm", np.zeros((85, 100), dtype=np.float32))
    write_mask(tmp_path, "fine_highres", random_mask(0, (85, 100)))
    with pytest.raises(InvalidPrediction) as error:
        score_regions(tmp_path, *maps)
    assert str(error.value) == (
        f"{tmp_path}/gt_disp_highres.pfm: 100x85 pixels, "
        "expected a multiple of the prediction's 50x40."
    )


def test_every_region_has_a_score(tmp_path, maps):
    for region in REGIONS.values():
        for name in region.masks:
            write_mask(tmp_path, f"{name}_lowres", random_mask(1))
    (tmp_path / "parameters.cfg").write_text(CFG)
    assert list(score_regions(tmp_path, *maps)) == list(REGIONS)
