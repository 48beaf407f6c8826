"""Options about the cameras; --crop and --scale."""

import lightfield_files as files
import numpy as np
import pytest

from oaccdepth import readers
from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import Camera
from oaccdepth.options import ReadOptions
from oaccdepth.rendering.rig import UNIT_MM, Rig
from oaccdepth.writers.point_cloud import points


@pytest.fixture(scope="module")
def rendered():
    return files.render()  # 5 x 5 views of 76 x 60 px


@pytest.fixture
def folder(tmp_path, rendered):
    files.pairs(tmp_path / "a", rendered[0], "view_{}_{}.png")
    return tmp_path / "a"


def test_a_camera_given_in_millimetres(folder):
    options = ReadOptions(baseline_mm=5, focal_mm=50, sensor_mm=36, focus_distance_mm=900)
    assert readers.read(folder, options).camera == Camera(5.0, 50.0, 36.0, 900.0)


def test_a_camera_given_in_pixels(folder):
    """A parallel camera: depth is focal length in pixels x baseline / disparity."""
    found = readers.read(folder, ReadOptions(baseline_mm=5, focal_px=120))
    depth = found.camera.depth_mm(np.full((60, 76), 2.0, np.float32), 76)
    assert np.allclose(depth, 120 * 5 / 2)


def test_a_scene_without_parameters_has_the_camera_that_is_given(tmp_path, rendered):
    files.hci(tmp_path / "town", rendered[0])
    (tmp_path / "town" / "parameters.cfg").unlink()
    assert readers.read(tmp_path / "town").notes == ("No parameters.cfg: the camera is not known.",)
    found = readers.read(tmp_path / "town", ReadOptions(baseline_mm=7, focal_px=90))
    assert found.camera.baseline_mm == 7.0
    assert found.notes == ()


def test_options_replace_what_the_files_say(tmp_path, rendered):
    files.hci(tmp_path / "town", rendered[0])
    found = readers.read(tmp_path / "town", ReadOptions(baseline_mm=7))
    assert found.camera == Camera(7.0, 100.0, 35.0, 8000.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"baseline_mm": 5},
            "--baseline-mm 5: a camera also needs its focal length. "
            "Add --focal-px PX, or --focal-mm MM with --sensor-mm MM.",
        ),
        (
            {"baseline_mm": 5, "focal_mm": 50},
            "--baseline-mm 5: a camera also needs its focal length. "
            "Add --focal-px PX, or --focal-mm MM with --sensor-mm MM.",
        ),
        (
            {"focal_px": 500},
            "--focal-px 500: a camera also needs the distance between views. Add --baseline-mm MM.",
        ),
        ({"baseline_mm": -5}, "--baseline-mm -5: expected more than 0."),
        ({"focus_distance_mm": -1}, "--focus-distance-mm -1: expected 0 or more."),
        ({"baseline_mm": float("nan")}, "--baseline-mm nan: expected more than 0."),
        (
            {"baseline_mm": 5, "focal_px": 500, "focal_mm": 50},
            "--focal-px 500: the focal length is also given by --focal-mm 50. Pass one of the two.",
        ),
        ({"scale": 2}, "--scale 2: expected more than 0 and at most 1, such as 0.5."),
        ({"scale": 0.1}, "--scale 0.1: leaves 7 x 6 pixels, expected 16 or more each way."),
        ({"crop": "8x8"}, "--crop 8x8: leaves 8 x 8 pixels, expected 16 or more each way."),
        (
            {"crop": "large"},
            "--crop large: expected WxH+X+Y in pixels, such as 640x480+100+50, or WxH.",
        ),
        (
            {"crop": "40x40+50+0"},
            "--crop 40x40+50+0: does not lie within the views of {folder}, "
            "which have 76 x 60 pixels.",
        ),
    ],
)
def test_wrong_cameras_and_parts(folder, given, message):
    with pytest.raises(InvalidOption) as caught:
        readers.read(folder, ReadOptions(**given))
    assert str(caught.value) == message.format(folder=folder)


def test_a_part_of_each_view(folder, tmp_path, rendered):
    views, _ = rendered
    np.save(tmp_path / "a.npy", views)  # read in slabs, not view by view
    for path in (folder, tmp_path / "a.npy"):
        options = ReadOptions(crop="40x32+20+10", check_orientation=False)
        assert np.array_equal(readers.read(path, options).views, views[:, :, 10:42, 20:60])
        middle = ReadOptions(crop="40x32", check_orientation=False)
        assert np.array_equal(readers.read(path, middle).views, views[:, :, 14:46, 18:58])


def test_smaller_views(folder, tmp_path, rendered):
    views, _ = rendered
    np.save(tmp_path / "a.npy", views)
    means = views.reshape(5, 5, 30, 2, 38, 2, 3).mean(axis=(3, 5))
    for path in (folder, tmp_path / "a.npy"):
        found = readers.read(path, ReadOptions(scale=0.5, check_orientation=False))
        assert np.abs(found.views - means).max() <= 0.75  # rounded


def test_masks_are_cut_and_scaled(tmp_path, rendered):
    valid = np.ones((5, 5, 60, 76), bool)
    valid[1, 1, 20, 30] = False
    np.savez(tmp_path / "a.npz", views=rendered[0], valid=valid)
    options = ReadOptions(crop="40x40+20+10", scale=0.5, check_orientation=False)
    found = readers.read(tmp_path / "a.npz", options)
    assert np.argwhere(~found.valid).tolist() == [[1, 1, 5, 5]]


def test_range_and_truth_follow_the_scale(tmp_path, rendered):
    views, truth = rendered
    files.hci(tmp_path / "town", views, truth)
    options = ReadOptions(crop="40x32+20+10", scale=0.5)
    assert readers.read(tmp_path / "town", options).disparity_range == (-0.6, 0.7)
    found = readers.read_ground_truth(tmp_path / "town", options)
    assert found.shape == (16, 20)
    covered = truth[10:42, 20:60].reshape(16, 2, 20, 2).transpose(0, 2, 1, 3).reshape(16, 20, 4)
    assert np.isclose(found[..., None], covered / 2).any(axis=-1).all()


def test_depth_and_points_of_a_part_are_those_of_the_whole(tmp_path, rendered):
    files.hci(tmp_path / "town", rendered[0])
    disparity = np.linspace(-1, 1, 60 * 76, dtype=np.float32).reshape(60, 76)
    whole = points(_result(disparity, readers.read(tmp_path / "town").camera))
    part = readers.read(tmp_path / "town", ReadOptions(crop="40x32+20+10"))
    assert part.camera.focal_mm == 100.0
    cut = points(_result(disparity[10:42, 20:60], part.camera))
    assert np.allclose(cut, whole[10:42, 20:60], rtol=1e-4)


def _result(disparity, camera):
    return DisparityMap(disparity, np.ones_like(disparity), camera=camera)


@pytest.mark.parametrize("in_pixels", [True, False])
def test_points_of_an_own_camera_are_where_the_renderer_put_them(folder, in_pixels):
    """Depth and points in millimetres, against the geometry of the renderer."""
    rig = Rig((60, 76), 120.0, beta=9.0, offset=1.5)
    own = {"focal_px": 120} if in_pixels else {"focal_mm": 120 * 36 / 76, "sensor_mm": 36}
    options = ReadOptions(
        baseline_mm=rig.baseline * UNIT_MM, focus_distance_mm=UNIT_MM * 9 / 1.5, **own
    )
    camera = readers.read(folder, options).camera
    y, x = np.mgrid[:60, :76]
    nearness = np.linspace(0.1, 0.4, 60 * 76).reshape(60, 76)
    placed = rig.place(x, y, nearness)
    disparity = rig.project(placed)[..., 2]
    found = points(DisparityMap(disparity, np.ones_like(disparity), camera=camera))
    assert np.allclose(found, placed * UNIT_MM * [1, -1, -1], rtol=1e-4, atol=0.01)
