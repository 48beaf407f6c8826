import dataclasses

import numpy as np
import pytest

from oaccdepth import Camera, DisparityMap
from oaccdepth.disparity import Provenance


def test_without_a_camera_there_is_no_depth():
    disparity = np.zeros((2, 3), np.float32)
    assert DisparityMap(disparity, disparity).depth_mm() is None


def test_depth_uses_the_larger_side():
    camera = Camera(baseline_mm=10.0, focal_mm=50.0, sensor_mm=36.0, focus_mm=500.0)
    disparity = np.full((4, 8), 0.25, np.float32)
    depth = DisparityMap(disparity, disparity, camera=camera).depth_mm()
    np.testing.assert_allclose(depth, camera.depth_mm(disparity, 8))


def test_results_cannot_be_changed_or_compared_by_accident():
    disparity = np.zeros((2, 3), np.float32)
    first, second = (DisparityMap(disparity, disparity) for _ in range(2))
    assert first != second  # eq=False: comparing arrays has no single truth value
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.disparity = disparity  # type: ignore[misc]


def test_provenance_becomes_json():
    made = Provenance(version="1", seconds={"first": 0.5}, disparity_range=(-1.0, 2.0))
    content = dataclasses.asdict(made)
    assert content["seconds"] == {"first": 0.5}
    assert content["disparity_range"] == (-1.0, 2.0)
