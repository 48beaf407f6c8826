"""Read, write, read again: the same light field, for every pair of formats."""

import logging
from dataclasses import replace
from itertools import product

import cv2
import h5py
import lightfield_files as files
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from trouble import fill_disk_at, kill_at_write, run_child

from oaccdepth import readers
from oaccdepth.errors import InvalidOption, OutputExists, UnwritableOutput
from oaccdepth.files.atomic import remove_leftovers
from oaccdepth.files.pfm import read_pfm
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.writers.scenes import FORMATS, choose_format, with_8_bits, write_light_field

NAMES = {"hci": "scene", "h5": "a.h5", "npz": "a.npz", "eslf": "a_eslf.png", "mosaic": "a.png"}


@pytest.fixture(scope="module")
def plain():
    views, _ = files.render((3, 5), (20, 28))
    return LightField(views, camera=Camera(50.1, 99.9, 35.0, 1234.567), disparity_range=(-1.3, 1.7))


def masked(light_field):
    valid = np.ones(light_field.views.shape[:4], dtype=bool)
    valid[0, 1, :4, 5:9] = False
    valid[2, 2] = False
    return replace(light_field, valid=valid)


def variants(light_field):
    views = light_field.views
    deep = (views.astype(np.uint16) << 8) + views[..., ::-1]
    present = np.ones(views.shape[:2], dtype=bool)
    present[1, 0] = False
    return {
        "colour": light_field,
        "deep": replace(light_field, views=deep),
        "grey": replace(light_field, views=views[..., :1]),
        "grey, deep": replace(light_field, views=deep[..., 1:2]),
        "masked": masked(light_field),
        "deep, masked": masked(replace(light_field, views=deep)),
        "grey, masked": masked(replace(light_field, views=views[..., :1])),
        "a view missing": replace(light_field, valid=present),
        "no camera": replace(light_field, camera=None, disparity_range=None),
        "parallel cameras": replace(light_field, camera=Camera(1 / 3, 2e-7, 35.0, 0.0)),
    }


def assert_same(found, expected):
    assert found.views.dtype == expected.views.dtype
    assert np.array_equal(found.views, expected.views)
    assert (found.valid is None) == (expected.valid is None)
    if expected.valid is not None:
        assert np.array_equal(found.valid, expected.valid)
    assert (found.camera, found.disparity_range) == (expected.camera, expected.disparity_range)


@pytest.mark.parametrize("kind", variants(LightField(np.zeros((3, 5, 9, 9, 3), np.uint8))))
@pytest.mark.parametrize("first", NAMES)
def test_every_pair_of_formats_is_the_identity(tmp_path, plain, first, kind):
    light_field = variants(plain)[kind]
    write_light_field(light_field, tmp_path / "1" / NAMES[first])
    once = readers.read(tmp_path / "1" / NAMES[first])
    assert_same(once, light_field)
    for second in NAMES:
        write_light_field(once, tmp_path / second / NAMES[second])
        assert_same(readers.read(tmp_path / second / NAMES[second]), light_field)


@pytest.mark.parametrize("name", ["h5", "npz"])
def test_floating_point_is_kept(tmp_path, plain, name):
    views = np.random.default_rng(1).random(plain.views.shape, dtype=np.float32)
    light_field = masked(replace(plain, views=views))
    write_light_field(light_field, tmp_path / NAMES[name])
    assert_same(readers.read(tmp_path / NAMES[name]), light_field)


def test_floating_point_is_rounded_in_pictures(tmp_path, plain, caplog):
    views = np.random.default_rng(1).random(plain.views.shape, dtype=np.float32)
    with caplog.at_level(logging.WARNING):
        write_light_field(replace(plain, views=views), tmp_path / "a.png")
    assert caplog.messages == [
        f"warning: {tmp_path}/a.png: floating-point values are rounded to 16 bits; "
        ".h5 and .npz keep them."
    ]
    found = readers.read(tmp_path / "a.png")
    assert found.views.dtype == np.uint16
    assert np.abs(found.views / 65535 - views).max() < 1e-5


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    views=st.sampled_from([np.uint8, np.uint16]).flatmap(
        lambda dtype: arrays.arrays(
            dtype,
            st.tuples(
                st.sampled_from([3, 5]),
                st.sampled_from([3, 5, 7]),
                st.integers(1, 12),
                st.integers(1, 12),
                st.sampled_from([1, 3]),
            ),
        )
    ),
    name=st.sampled_from(sorted(NAMES)),
)
def test_any_values_survive(tmp_path_factory, views, name):
    # Noise, too: the orientation check must not "correct" what we wrote ourselves.
    path = tmp_path_factory.mktemp("any") / NAMES[name]
    write_light_field(LightField(views), path)
    assert_same(readers.read(path), LightField(views))


@pytest.mark.parametrize("name", ["hci", "h5", "npz"])
def test_ground_truth_goes_along(tmp_path, name):
    views, truth = files.render((3, 3), (20, 28))
    write_light_field(LightField(views), tmp_path / NAMES[name], truth=truth)
    assert np.array_equal(readers.read_ground_truth(tmp_path / NAMES[name]), truth)


def test_other_programs_see_the_usual_layouts(tmp_path):
    views, _ = files.render((3, 3), (20, 28))
    light_field = LightField(views)
    write_light_field(light_field, tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["LF"][()], views)
    write_light_field(light_field, tmp_path / "a_eslf.png")
    picture = readers.decoding.decode(tmp_path / "a_eslf.png")
    assert np.array_equal(picture[1::3, 2::3], views[1, 2])
    write_light_field(light_field, tmp_path / "a.png")
    picture = readers.decoding.decode(tmp_path / "a.png")
    assert np.array_equal(picture[20:40, 56:84], views[1, 2])


def test_what_is_there_is_kept(tmp_path, plain):
    for name in NAMES.values():
        write_light_field(plain, tmp_path / name)
    for name in ("a.h5", "a.npz", "a_eslf.png", "a.png"):
        with pytest.raises(OutputExists) as caught:
            write_light_field(plain, tmp_path / name)
        message = f"{tmp_path}/{name}: already exists. Pass --overwrite to replace it."
        assert str(caught.value) == message
        write_light_field(plain, tmp_path / name, overwrite=True)
    with pytest.raises(OutputExists, match=r"already holds input_Cam000\.png and 15 more"):
        write_light_field(plain, tmp_path / "scene")


def test_a_smaller_grid_replaces_a_larger_one(tmp_path, plain):
    larger, _ = files.render((5, 5), (20, 28))
    write_light_field(LightField(larger), tmp_path / "a", truth=np.zeros((20, 28), np.float32))
    (tmp_path / "a" / "mine.txt").write_text("kept")
    write_light_field(plain, tmp_path / "a", overwrite=True)
    assert_same(readers.read(tmp_path / "a"), plain)
    assert len(list((tmp_path / "a").iterdir())) == 15 + 2
    assert readers.read_ground_truth(tmp_path / "a") is None


def test_no_leftovers(tmp_path, plain):
    for first, second in product(NAMES.values(), NAMES.values()):
        write_light_field(plain, tmp_path / first, overwrite=True)
        write_light_field(plain, tmp_path / second, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES.values())


def test_formats_are_chosen_by_name(tmp_path):
    expected = {"scene": "hci", "a.H5": "h5", "b.hdf5": "h5", "c.npz": "npz", "d.png": "mosaic"}
    for name, format_name in expected.items():
        assert choose_format(tmp_path / name) == format_name
    assert (
        choose_format(tmp_path / "x_eslf.png") == choose_format(tmp_path / "y.eslf.png") == "eslf"
    )
    (tmp_path / "scene.v2").mkdir()
    assert choose_format(tmp_path / "scene.v2") == "hci"
    assert set(NAMES) == set(FORMATS)


def test_wrong_names(tmp_path, plain):
    with pytest.raises(InvalidOption) as caught:
        write_light_field(plain, tmp_path / "a.jpg")
    assert str(caught.value) == (
        f"{tmp_path}/a.jpg: no format is written as .jpg. "
        "Use .h5, .npz, _eslf.png or .png, or pass --to hci for a folder of that name."
    )
    with pytest.raises(InvalidOption) as caught:
        write_light_field(plain, tmp_path / "a.mat", to="matlab")
    assert str(caught.value) == "--to matlab: expected hci, h5, npz, eslf or mosaic."
    for name, endings in (("h5", ".h5 or .hdf5"), ("npz", ".npz"), ("mosaic", ".png")):
        with pytest.raises(InvalidOption) as caught:
            write_light_field(plain, tmp_path / "a.jpg", to=name)
        assert str(caught.value) == (
            f"{tmp_path}/a.jpg: {name} is written to a file that ends in {endings}, "
            "or it could not be read back. Choose another name."
        )
    assert not list(tmp_path.iterdir())
    (tmp_path / "b.h5").mkdir()
    with pytest.raises(UnwritableOutput) as caught:
        write_light_field(plain, tmp_path / "b.h5", to="h5")
    assert str(caught.value) == (
        f"{tmp_path}/b.h5: is a folder, expected a file. Choose another name."
    )


def test_pictures_that_could_not_be_read_back_are_not_written(tmp_path):
    one = np.zeros((1, 1, 1, 1, 3), dtype=np.uint8)
    views = np.broadcast_to(one, (9, 9, 3000, 3000, 3))  # no memory
    with pytest.raises(InvalidOption) as caught:
        write_light_field(LightField(views), tmp_path / "a.png")
    assert str(caught.value) == (
        f"{tmp_path}/a.png: 27000 x 27000 pixels are too many for one picture. "
        "Write a folder, .h5 or .npz."
    )


def test_more_views_than_names(tmp_path):
    views = np.broadcast_to(np.uint8(0), (1, 1001, 8, 8, 3))
    with pytest.raises(InvalidOption) as caught:
        write_light_field(LightField(views), tmp_path / "a")
    assert str(caught.value) == (
        f"{tmp_path}/a: 1 x 1001 views, at most 1000 fit the names of an HCI scene. "
        "Write .h5 or .npz, or use fewer views."
    )


def test_a_picture_beyond_the_limit_of_pillow_is_read_back(tmp_path, plain, monkeypatch):
    write_light_field(plain, tmp_path / "a.png")
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 1000)
    assert_same(readers.read(tmp_path / "a.png"), plain)


def test_a_scene_is_written_as_in_the_benchmark(scene, tmp_path):
    light_field = with_8_bits(scene.light_field)
    write_light_field(light_field, tmp_path, truth=scene.disparity)
    views = [f"input_Cam{index:03d}.png" for index in range(81)]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["gt_disp_lowres.pfm", *views, "parameters.cfg"]
    first_of_second_row = cv2.imread(str(tmp_path / "input_Cam009.png"))[..., ::-1]
    np.testing.assert_array_equal(first_of_second_row, light_field.views[1, 0])
    np.testing.assert_allclose(
        light_field.views / 255, scene.light_field.views, atol=0.5 / 255 + 1e-6
    )
    np.testing.assert_array_equal(read_pfm(tmp_path / "gt_disp_lowres.pfm"), scene.disparity)
    low, high = readers.read(tmp_path).disparity_range
    assert low <= scene.disparity.min() < low + 0.1 and high - 0.1 < scene.disparity.max() <= high


@pytest.mark.parametrize("name", ["scene", "scene.h5", "scene.npz", "scene_eslf.png", "scene.png"])
def test_a_disk_that_is_full_sooner_or_later(scene, tmp_path, name):
    """One of our errors and no files left; HDF5 itself would abort the process."""

    def fill(size):
        fill_disk_at(size)
        with pytest.raises(UnwritableOutput, match=r"cannot be written \(File too large\)"):
            write_light_field(scene.light_field, tmp_path / name, truth=scene.disparity)

    for size in (0, 100, 2000):
        assert run_child(fill, size) == 0
        assert list(tmp_path.iterdir()) == []


def test_a_scene_that_is_replaced_stays_until_the_new_one_is_whole(scene, tmp_path):
    write_light_field(scene.light_field, tmp_path, truth=scene.disparity)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def kill(moment):
        kill_at_write(moment)
        write_light_field(scene.light_field, tmp_path, overwrite=True)

    for moment in (1, 50, 243):  # three accesses to a view, 81 views
        assert run_child(kill, moment) == -9
        remove_leftovers(tmp_path)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
