"""Scenes with ground truth, and where it may be learnt."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from oaccdepth.errors import InvalidLightField
from oaccdepth.training.scenes import load_scenes, read_valid_mask


def test_scenes_are_loaded_with_their_masks(scene, scene_folder, tmp_path):
    scenes = load_scenes(scene_folder.parent)
    assert [s.name for s in scenes] == ["town"]
    np.testing.assert_allclose(scenes[0].truth, scene.disparity, atol=1e-6)
    assert scenes[0].valid.all()
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
