"""File names that hold more than a row and a column."""

import lightfield_files as files
import numpy as np
import pytest

from oaccdepth import readers
from oaccdepth.options import ReadOptions

UNCHECKED = ReadOptions(check_orientation=False)


@pytest.fixture
def views():
    return np.random.default_rng(1).integers(0, 255, (5, 5, 20, 24, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "form", ["Camera_{:02d}_{:02d}_{}_{}.png", "out_{:02d}_{:02d}_{}.0_{}_.png"]
)
def test_coordinates_in_names_sort_the_views(tmp_path, views, form):
    """Rows are counted from below, columns from the right; the coordinates say so."""
    for u, v, view in files.each(views):
        name = form.format(4 - u, 4 - v, -20 + 10 * u, 100 + 10 * v)
        files.write_picture(tmp_path / name, view)
    found = readers.read(tmp_path, UNCHECKED)
    assert np.array_equal(found.views, views)
    assert found.places is None  # they are all one step apart


def test_uneven_coordinates_are_camera_places(tmp_path, views):
    at = (0, 10, 20, 33, 40)
    for u, v, view in files.each(views):
        files.write_picture(tmp_path / f"Camera_{u:02d}_{v:02d}_{at[u]}_{10 * v}.png", view)
    found = readers.read(tmp_path, UNCHECKED)
    assert np.allclose(found.camera_places[:, 0, 0], [-2, -1, 0, 1.3, 2])
    assert np.allclose(found.camera_places[0, :, 1], [-2, -1, 0, 1, 2])


@pytest.mark.parametrize("options", [{}, {"views": (5, 5)}])
@pytest.mark.parametrize("form", ["cam_{}_{}_f28.png", "set3_{}_of_5_{}_20.png"])
def test_a_constant_in_the_names_is_no_counter(tmp_path, views, form, options):
    for u, v, view in files.each(views):
        files.write_picture(tmp_path / form.format(u, v), view)
    found = readers.read(tmp_path, ReadOptions(check_orientation=False, **options))
    assert found.grid == (5, 5)
    assert np.array_equal(found.views, views)


@pytest.mark.parametrize("form", ["cam2024_{:03d}_v3.png", "{:03d}_f28.png"])
def test_constants_around_the_one_number_that_counts(tmp_path, views, form):
    for u, v, view in files.each(views):
        files.write_picture(tmp_path / form.format(5 * u + v), view)
    found = readers.read(tmp_path, UNCHECKED)
    assert found.grid == (5, 5)
    assert np.array_equal(found.views, views)
