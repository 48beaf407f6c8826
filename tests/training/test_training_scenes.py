"""Scenes with ground truth, and which pixels may be learnt from."""

from __future__ import annotations

import os

import cv2
import numpy as np
import pytest

from oaccdepth.errors import InvalidLightField, UnreadableFile
from oaccdepth.readers import read
from oaccdepth.training.scenes import MOST_LICENCE, find_licence, load_scenes, read_valid_mask


def test_scenes_are_loaded_with_their_masks(scene, scene_folder, tmp_path):
    scenes = load_scenes(scene_folder.parent)
    assert [s.name for s in scenes] == ["town"]
    np.testing.assert_allclose(scenes[0].truth, scene.disparity, atol=1e-6)
    assert scenes[0].valid.all()
    assert isinstance(scenes[0].views, np.memmap)  # many scenes need not fit into memory
    np.testing.assert_array_equal(scenes[0].views, read(scene_folder).views)
    with pytest.raises(InvalidLightField) as caught:
        load_scenes(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: no scene with ground truth. Expected folders in the HCI layout: "
        "input_Cam000.png …, gt_disp_lowres.pfm."
    )


def test_a_mask_of_zeros_means_everything_is_valid(tmp_path):
    assert read_valid_mask(tmp_path, (4, 5)).all()
    mask = np.zeros((4, 5, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "valid_mask.png"), mask)
    assert read_valid_mask(tmp_path, (4, 5)).all()
    mask[1, 2, 1] = 255
    cv2.imwrite(str(tmp_path / "valid_mask.png"), mask)
    assert read_valid_mask(tmp_path, (4, 5)).sum() == 1


def test_a_mask_may_be_grey_and_have_alpha(tmp_path):
    mask = np.zeros((4, 5, 4), np.uint8)
    mask[..., 3] = 255
    cv2.imwrite(str(tmp_path / "valid_mask.png"), mask)
    assert read_valid_mask(tmp_path, (4, 5)).all()  # alpha says nothing
    mask[1:3, 2] = 255
    for picture in (mask, mask[:, :, 0]):
        cv2.imwrite(str(tmp_path / "valid_mask.png"), picture)
        assert np.argwhere(read_valid_mask(tmp_path, (4, 5))).tolist() == [[1, 2], [2, 2]]


def test_a_mask_that_is_no_picture(tmp_path):
    path = tmp_path / "valid_mask.png"
    path.write_bytes(b"no picture")
    with pytest.raises(UnreadableFile) as caught:
        read_valid_mask(tmp_path, (4, 5))
    assert str(caught.value) == f"{path}: damaged or not a picture. Copy or export it again."
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UnreadableFile) as caught:
        read_valid_mask(tmp_path, (4, 5))
    assert str(caught.value) == f"{path}: is a named pipe, expected a regular file."


def test_a_licence_is_a_file_of_moderate_size(tmp_path):
    assert find_licence(tmp_path) == ""
    os.mkfifo(tmp_path / "LICENCE-a")
    (tmp_path / "licences").mkdir()
    with (tmp_path / "Licence-b").open("wb") as file:
        file.truncate(MOST_LICENCE + 1)
    assert find_licence(tmp_path) == ""
    (tmp_path / "licences" / "License.txt").write_bytes(b"CC BY 4.0 \xff\n")
    assert find_licence(tmp_path) == "CC BY 4.0 \ufffd"
