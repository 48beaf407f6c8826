"""The point cloud: it projects back onto the pixels, and the file's header is correct."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import Camera
from oaccdepth.writers.point_cloud import points, write_ply

CAMERA = Camera(baseline_mm=20.0, focal_mm=50.0, sensor_mm=36.0, focus_mm=600.0)


def a_map(height=6, width=10, camera=CAMERA, disparity=None):
    rng = np.random.default_rng(3)
    if disparity is None:
        disparity = rng.uniform(-0.4, 1, (height, width)).astype(np.float32)
    confidence = np.linspace(0, 1, disparity.size, dtype=np.float32).reshape(disparity.shape)
    return DisparityMap(disparity, confidence, camera=camera)


def read_ply(path):
    """The header's lines, and the vertices as a structured array."""
    header, _, body = path.read_bytes().partition(b"end_header\n")
    lines = header.decode("ascii").splitlines()
    kinds = {"float": "<f4", "uchar": "u1"}
    fields = [line.split()[1:] for line in lines if line.startswith("property")]
    return lines, np.frombuffer(body, dtype=[(name, kinds[kind]) for kind, name in fields])


@given(st.integers(2, 9), st.integers(2, 9), st.integers(-4, 4))
def test_points_project_onto_the_pixels_of_every_view(height, width, step):
    """A camera `step` baselines to the right sees each point at x - step * disparity.

    Cameras with a focus distance are sheared so that disparity is zero there; without it, they are
    parallel and disparity is what the pinhole formula gives. Also for pictures that are not square.
    """
    camera = Camera(baseline_mm=20.0, focal_mm=50.0, sensor_mm=36.0, focus_mm=0.0)
    disparity = np.random.default_rng(1).uniform(0.5, 3, (height, width)).astype(np.float32)
    cloud = points(a_map(camera=camera, disparity=disparity)).astype(np.float64)
    pixels_per_mm = max(height, width) / camera.sensor_mm
    x = (cloud[..., 0] - step * camera.baseline_mm) / -cloud[..., 2] * camera.focal_mm
    y = cloud[..., 1] / -cloud[..., 2] * camera.focal_mm
    columns = x * pixels_per_mm + (width - 1) / 2
    rows = (height - 1) / 2 - y * pixels_per_mm
    assert columns == pytest.approx(np.arange(width) - step * disparity, abs=1e-3)
    assert rows == pytest.approx(np.arange(height)[:, None] + np.zeros(width), abs=1e-3)


def test_depth_is_the_camera_s():
    result = a_map()
    assert points(result)[..., 2] == pytest.approx(-result.depth_mm())


def seen_from_afar(cloud):
    """Where a camera 1.62 larger sides away sees points: px right and up from the middle."""
    distance = 10 / (2 * np.tan(0.3))
    return cloud[..., :2] * distance / (distance - cloud[..., 2:])


def test_without_a_camera_the_cloud_seen_from_the_front_is_the_picture():
    cloud = points(a_map(camera=None)).astype(np.float64)
    seen = seen_from_afar(cloud)
    assert seen[..., 0] == pytest.approx(np.arange(10) - 4.5 + np.zeros((6, 1)), abs=1e-5)
    assert seen[..., 1] == pytest.approx((2.5 - np.arange(6))[:, None] + np.zeros(10), abs=1e-5)


def test_without_a_camera_a_pixel_of_disparity_is_a_sixteenth():
    disparity = np.zeros((3, 10), dtype=np.float32)
    disparity[0, 0], disparity[2, 9] = 0.01, -0.01
    cloud = points(a_map(camera=None, disparity=disparity))
    assert cloud[1, 3].tolist() == [-1.5, 0.0, 0.0]  # the median: in pixels
    assert cloud[0, 0, 2] == pytest.approx(0.01 * 10 / 16, rel=1e-3)
    assert cloud[2, 9, 2] == pytest.approx(-0.01 * 10 / 16, rel=1e-3)


def test_without_a_camera_moved_views_see_what_they_saw():
    """Planes stay planar: for a camera to the side, points move in proportion to disparity."""
    result = a_map(camera=None, disparity=np.linspace(-3, 3, 60, dtype=np.float32).reshape(6, 10))
    cloud = points(result).astype(np.float64)
    moved = seen_from_afar(cloud - [0.5, 0, 0])
    shift = (moved - seen_from_afar(cloud))[..., 0]
    slope = np.polyfit(result.disparity.ravel(), shift.ravel(), 1)
    assert shift == pytest.approx(np.polyval(slope, result.disparity), abs=1e-5)
    assert slope[0] < -0.01


def test_without_a_camera_the_farthest_point_stays_in_sight():
    disparity = np.zeros((3, 10), dtype=np.float32)
    disparity[0, 0] = -100.0
    distance = 10 / (2 * np.tan(0.3))
    assert points(a_map(camera=None, disparity=disparity))[0, 0, 2] == pytest.approx(-4 * distance)


def test_points_beyond_infinity_are_left_out(tmp_path):
    disparity = np.zeros((2, 3), dtype=np.float32)
    disparity[0, 0] = -100.0  # beyond infinity for this camera
    disparity[1, 1] = np.nan
    result = a_map(disparity=disparity)
    assert np.isnan(points(result)[0, 0]).all()
    assert write_ply(tmp_path / "cloud.ply", result) == 4


def test_ply_holds_places_colours_and_confidence(tmp_path):
    result = a_map()
    colour = np.random.default_rng(0).integers(0, 256, (6, 10, 3), dtype=np.uint8)
    count = write_ply(tmp_path / "cloud.ply", result, colour)
    lines, vertices = read_ply(tmp_path / "cloud.ply")
    assert count == len(vertices) == 60
    assert np.stack([vertices[axis] for axis in "xyz"], -1).reshape(6, 10, 3).tobytes() == (
        points(result).tobytes()
    )
    for channel, name in enumerate(("red", "green", "blue")):
        assert vertices[name].reshape(6, 10).tolist() == colour[..., channel].tolist()
    assert vertices["confidence"].tolist() == result.confidence.ravel().tolist()
    assert lines[:6] == [
        "ply",
        "format binary_little_endian 1.0",
        "comment made by oaccdepth",
        "comment axes: x right, y up, z towards the viewer",
        "comment unit: millimetre; the centre camera is at the origin and looks along -z",
        "element vertex 60",
    ]


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_colours_of_other_types_and_grey(tmp_path, dtype):
    largest = 1.0 if dtype is np.float32 else 65535
    colour = np.full((6, 10, 1), largest, dtype=dtype)
    write_ply(tmp_path / "cloud.ply", a_map(), colour)
    _, vertices = read_ply(tmp_path / "cloud.ply")
    assert {tuple(v) for v in vertices[["red", "green", "blue"]].tolist()} == {(255, 255, 255)}


def test_without_colour_and_camera_the_header_says_so(tmp_path):
    write_ply(tmp_path / "cloud.ply", a_map(camera=None))
    lines, vertices = read_ply(tmp_path / "cloud.ply")
    assert vertices.dtype.names == ("x", "y", "z", "confidence")
    assert lines[4] == (
        "comment unit: pixel at the median disparity, z = 0; "
        "the centre camera is at z = 16.2 and looks along -z"
    )


def test_colour_of_another_size_is_refused(tmp_path):
    with pytest.raises(InvalidOption) as caught:
        write_ply(tmp_path / "cloud.ply", a_map(), np.zeros((10, 6, 3), np.uint8))
    assert str(caught.value) == (
        "the picture has 6x10 pixels, the disparity map 10x6: expected the same size."
    )
    assert not list(tmp_path.iterdir())
