import cv2
import numpy as np
import pytest

from oaccdepth.options import COLORMAPS
from oaccdepth.writers.drawing import with_colour_bar
from oaccdepth.writers.pictures import (
    NOT_KNOWN,
    as_bytes,
    choose_range,
    choose_ticks,
    colour_difference,
    colourise,
    contact_sheet,
    write_png,
)


def ramp(low=-1.0, high=1.0):
    return np.linspace(low, high, 11, dtype=np.float32)[None]


def test_ends_of_the_range_have_the_ends_of_viridis():
    picture = colourise(ramp(), (-1, 1), "viridis")
    assert picture.shape == (1, 11, 3) and picture.dtype == np.uint8
    # Matplotlib's viridis runs from (68, 1, 84) to (253, 231, 37).
    np.testing.assert_allclose(picture[0, 0], (68, 1, 84), atol=2)
    np.testing.assert_allclose(picture[0, -1], (253, 231, 37), atol=2)


def test_values_outside_the_range_are_clipped():
    picture = colourise(ramp(-9, 9), (-1, 1))
    np.testing.assert_array_equal(picture[0, 0], colourise(ramp(), (-1, 1))[0, 0])
    np.testing.assert_array_equal(picture[0, -1], colourise(ramp(), (-1, 1))[0, -1])


def test_values_that_are_not_finite_are_grey():
    values = ramp()
    values[0, :3] = np.nan, np.inf, -np.inf
    picture = colourise(values)
    assert (picture[0, :3] == NOT_KNOWN).all()
    assert (picture[0, 3:] != NOT_KNOWN).any(axis=-1).all()


@pytest.mark.parametrize("name", COLORMAPS)
def test_every_colour_map_exists_and_gets_brighter(name):
    picture = colourise(ramp(), (-1, 1), name).astype(int)
    assert len(np.unique(picture[0], axis=0)) == 11
    if name != "turbo":  # a rainbow: not monotonic in brightness
        assert picture[0, -1].sum() > picture[0, 0].sum()


def test_difference_colours_are_blue_white_red():
    values = np.array([[-1.0, 0.0, 1.0, np.nan, np.inf]], dtype=np.float32)
    *known, nothing, infinite = colour_difference(values, 0.5)[0].tolist()
    assert known == [[11, 60, 140], [247, 244, 241], [138, 16, 32]]
    assert nothing == infinite == [128, 128, 128]


def test_the_range_ignores_a_few_outliers():
    values = np.random.default_rng(0).uniform(-1, 1, (100, 100)).astype(np.float32)
    values[0, :20] = 50
    values[1, 0] = np.nan
    low, high = choose_range(values)
    assert -1 <= low < -0.97 and 0.97 < high <= 1


def test_the_range_of_nothing_and_of_one_value():
    assert choose_range(np.full((2, 2), np.nan, np.float32)) == (0.0, 1.0)
    assert choose_range(np.full((2, 2), 3.0, np.float32)) == (2.5, 3.5)


@pytest.mark.parametrize("size", [(20, 30), (192, 256), (700, 300)])
def test_the_colour_bar_stands_right_of_the_picture(size):
    picture = np.full((*size, 3), 7, np.uint8)
    whole = with_colour_bar(picture, (-2.0, 2.0), "viridis")
    np.testing.assert_array_equal(whole[: size[0], : size[1]], picture)
    panel = whole[:, size[1] :]
    ends = colourise(ramp(), (-1, 1), "viridis")[0, [0, -1]]
    rows = [np.flatnonzero((panel == end).all(axis=-1).any(axis=1)) for end in ends]
    assert rows[1].max() < rows[0].min()  # large values at the top
    assert (panel < 100).all(axis=-1).any()  # there are numbers


@pytest.mark.parametrize(
    ("value_range", "labels"),
    [
        ((-2.0, 2.0), ["-2", "-1", "0", "1", "2"]),
        ((-1.63, 1.51), ["-1", "0", "1"]),
        ((0.01, 0.035), ["0.010", "0.015", "0.020", "0.025", "0.030", "0.035"]),
        ((-12.0, 30.0), ["-10", "0", "10", "20", "30"]),
    ],
)
def test_numbers_of_the_colour_bar_are_round(value_range, labels):
    ticks = choose_ticks(value_range, 5)
    assert [label for _, label in ticks] == labels
    assert [f"{value:.3f}" for value, _ in ticks] == [f"{float(label):.3f}" for label in labels]


def test_bytes_are_rounded_and_clipped():
    values = np.array([-1.0, 0.0, 0.5, 1.0, 2.0], np.float32)
    assert as_bytes(values).tolist() == [0, 0, 128, 255, 255]


def test_a_contact_sheet_keeps_the_grid():
    pictures = np.arange(6, dtype=np.uint8).reshape(2, 3, 1, 1) * np.ones((1, 1, 4, 5), np.uint8)
    sheet = contact_sheet(pictures, gap=1)
    assert sheet.shape == (9, 17)
    assert [int(sheet[y, x]) for y in (0, 5) for x in (0, 6, 12)] == [0, 1, 2, 3, 4, 5]
    assert (sheet[4] == 255).all() and (sheet[:, 5] == 255).all()
    assert (contact_sheet(pictures, gap=1, ground=128)[4] == 128).all()


def test_a_large_contact_sheet_is_reduced():
    pictures = np.full((9, 9, 40, 60, 3), 9, np.uint8)
    sheet = contact_sheet(pictures, gap=4, max_px=200)
    assert max(sheet.shape[:2]) <= 200 and sheet.shape[2] == 3
    assert sheet[0, 0].tolist() == [9, 9, 9]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3)])
def test_png_files_hold_the_values(tmp_path, dtype, shape):
    picture = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape).astype(dtype)
    write_png(tmp_path / "a.png", picture)
    again = cv2.imread(str(tmp_path / "a.png"), cv2.IMREAD_UNCHANGED)
    assert again.dtype == dtype
    np.testing.assert_array_equal(again[..., ::-1] if len(shape) == 3 else again, picture)
