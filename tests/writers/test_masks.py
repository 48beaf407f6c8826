import json

import cv2
import numpy as np
import pytest

from oaccdepth import DisparityMap, write
from oaccdepth.disparity import Provenance
from oaccdepth.errors import OutputExists
from oaccdepth.writers.masks import write_masks


def masks(grid=(3, 5)):
    return np.random.default_rng(0).random((*grid, 8, 10), np.float32)


def test_masks_of_one_pass(tmp_path):
    given = masks()
    written = write_masks({".": given}, tmp_path)
    assert len(written) == 15 + 4 and all(path.is_file() for path in written)
    one = cv2.imread(str(tmp_path / "mask_02_04.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_allclose(one / 255, given[2, 4], atol=0.5 / 255 + 1e-6)
    mean = cv2.imread(str(tmp_path / "visibility.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_allclose(mean / 255, given.mean(axis=(0, 1)), atol=0.5 / 255 + 1e-6)
    sheet = cv2.imread(str(tmp_path / "contact_sheet.png"), cv2.IMREAD_UNCHANGED)
    assert sheet.shape == (3 * 8 + 2 * 4, 5 * 10 + 4 * 4)
    np.testing.assert_array_equal(sheet[-8:, -10:], one)
    assert (sheet[8:12] == 128).all()  # neither visible nor hidden: separates white masks
    with np.load(tmp_path / "masks.npz") as stored:
        assert stored["masks"].dtype == np.float32
        np.testing.assert_array_equal(stored["masks"], given)


def test_masks_of_every_pass(tmp_path):
    write_masks({"pass_1": masks(), "pass_2": masks() / 2}, tmp_path, made_with=Provenance("1"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["masks.json", "pass_1", "pass_2"]
    about = json.loads((tmp_path / "masks.json").read_text())
    assert about["version"] == "1" and about["grid"] == [3, 5]
    assert about["passes"]["pass_1"]["mean_visibility"] == pytest.approx(masks().mean(), abs=1e-5)
    with np.load(tmp_path / "pass_2" / "masks.npz") as stored:
        np.testing.assert_array_equal(stored["masks"], masks() / 2)


def test_masks_are_not_replaced_without_being_told(tmp_path):
    write_masks({".": masks()}, tmp_path)
    with pytest.raises(OutputExists) as caught:
        write_masks({".": masks()}, tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: already holds contact_sheet.png and 18 more. "
        "Pass --overwrite to replace, or choose another --output."
    )
    write_masks({".": masks()}, tmp_path, overwrite=True)


def test_no_masks_of_an_earlier_run_stay_behind(tmp_path):
    write_masks({f"pass_{n}": masks((5, 5)) for n in (1, 2, 3)}, tmp_path)
    (tmp_path / "pass_2" / "mine.txt").write_text("mine")
    write_masks({"pass_1": masks()}, tmp_path, overwrite=True)
    there = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    views = [f"pass_1/mask_{u:02d}_{v:02d}.png" for u in range(3) for v in range(5)]
    others = [f"pass_1/{name}" for name in ("contact_sheet.png", "masks.npz", "visibility.png")]
    assert there == sorted([*views, *others, "masks.json", "pass_1", "pass_2", "pass_2/mine.txt"])
    write_masks({".": masks()}, tmp_path, overwrite=True)
    write_masks({"pass_1": masks()}, tmp_path, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["masks.json", "pass_1", "pass_2"]


def test_masks_beside_a_file_that_is_not_ours(tmp_path):
    for text in ("nonsense", "[]", '{"grid": [3, 5], "passes": {"../other": {}}}'):
        (tmp_path / "masks.json").write_text(text)
        write_masks({".": masks()}, tmp_path, overwrite=True)
        assert json.loads((tmp_path / "masks.json").read_text())["grid"] == [3, 5]


def test_masks_and_disparity_share_a_folder(tmp_path):
    disparity = np.zeros((8, 10), np.float32)
    write(DisparityMap(disparity, disparity), tmp_path)
    write_masks({".": masks()}, tmp_path)
    assert (tmp_path / "run.json").exists() and (tmp_path / "masks.json").exists()
