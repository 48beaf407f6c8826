"""Which views of a file are used, and what is reported about missing ones."""

import shutil
import tracemalloc

import lightfield_files as files
import numpy as np
import pytest

from oaccdepth import readers
from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.options import ReadOptions


@pytest.fixture(scope="module")
def rendered():
    return files.render()


# Which views


@pytest.mark.parametrize(
    ("shape", "options", "rows", "columns", "note"),
    [
        ((9, 9), {}, range(9), range(9), None),
        ((5, 9), {}, range(5), range(9), None),
        ((8, 6), {}, range(8), range(6), None),
        ((1, 9), {}, range(1), range(9), None),
        ((2, 2), {}, range(2), range(2), None),
        (
            (11, 17),
            {},
            range(11),
            range(0, 17, 2),
            "11 x 17 views: 11 x 9, spread over all of them, are used. "
            "--use-views all takes every view.",
        ),
        (
            (17, 17),
            {},
            range(0, 17, 2),
            range(0, 17, 2),
            "17 x 17 views: 9 x 9, spread over all of them, are used. "
            "--use-views all takes every view.",
        ),
        ((17, 17), {"use_views": "all"}, range(17), range(17), None),
        (
            (9, 9),
            {"use_views": (4, 1)},
            range(2, 6),
            range(4, 5),
            "9 x 9 views: the central 4 x 1 are used.",
        ),
        (
            (9, 9),
            {"use_views": (3, 7)},
            range(3, 6),
            range(1, 8),
            "9 x 9 views: the central 3 x 7 are used.",
        ),
        (
            (9, 9),
            {"views": (5, 5)},
            range(2, 7),
            range(2, 7),
            "9 x 9 views: the central 5 x 5 are used.",
        ),
        (
            (17, 17),
            {"stride": 2},
            range(0, 17, 2),
            range(0, 17, 2),
            "17 x 17 views: 9 x 9 are used, with stride 2.",
        ),
    ],
)
def test_the_central_views_are_used(tmp_path, shape, options, rows, columns, note):
    views = np.random.default_rng(0).integers(0, 255, (*shape, 20, 24, 1), dtype=np.uint8)
    np.save(tmp_path / "a.npy", views)
    options = ReadOptions(**options, check_orientation=False)
    found = readers.read(tmp_path / "a.npy", options)
    assert np.array_equal(found.views, views[np.ix_(rows, columns)])
    assert found.notes == ((note,) if note else ())
    # disparities are per step of the file, even if not every view is used
    assert found.camera_places[0, 0].tolist() == [
        rows[0] - shape[0] // 2,
        columns[0] - shape[1] // 2,
    ]
    assert found.camera_places[-1, -1, 1] == columns[-1] - shape[1] // 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"use_views": (11, 11)}, "--use-views 11x11: {path} has 7 x 7 views."),
        ({"views": (11, 9)}, "--views 11x9: {path} has 7 x 7 views."),
        (
            {"use_views": (1, 2)},
            "--use-views 1x2: expected at least 3 views, such as 3x3 or 1x5.",
        ),
        ({"use_views": "most"}, "--use-views most: expected UxV, such as 9x9, or all."),
        (
            {"use_views": (5, 5), "stride": 2},
            "--use-views 5x5: {path} has 7 x 7 views, 3 x 3 with --stride 2.",
        ),
        (
            {"stride": 4},
            "--stride 4: leaves 1 x 1 of 7 x 7 views, at least 3 are needed. Use a smaller stride.",
        ),
    ],
)
def test_impossible_wishes(tmp_path, options, message):
    np.save(tmp_path / "a.npy", np.zeros((7, 7, 20, 24, 1), dtype=np.uint8))
    with pytest.raises(InvalidOption) as caught:
        readers.read(tmp_path / "a.npy", ReadOptions(**options))
    assert str(caught.value) == message.format(path=tmp_path / "a.npy")


@pytest.mark.parametrize("shape", [(1, 2), (2, 1)])
def test_two_views_are_refused(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.zeros((*shape, 20, 24, 3), dtype=np.uint8))
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "a.npy")
    assert str(caught.value) == (
        f"{tmp_path}/a.npy: has {shape[0]} x {shape[1]} views, at least 3 are needed. "
        "If the views lie in another grid, pass --views UxV."
    )


@pytest.mark.parametrize(
    ("name", "row", "columns", "shape"),
    [
        ("view_{}_{}.png", 1, range(1, 10), (1, 9)),
        ("{:02d}_{:02d}.png", 0, range(9), (1, 9)),
        ("view_{:02d}_{:02d}.png", 0, range(4, 13), (1, 9)),
        ("view_{1:02d}_{0:02d}.png", 3, range(4, 13), (9, 1)),
    ],
)
def test_names_of_one_row_are_believed(tmp_path, name, row, columns, shape):
    views = np.random.default_rng(0).integers(0, 255, (9, 20, 24, 3), dtype=np.uint8)
    for view, column in zip(views, columns, strict=True):
        files.write_picture(tmp_path / name.format(row, column), view)
    found = readers.read(tmp_path, ReadOptions(check_orientation=False))
    assert found.grid == shape
    assert np.array_equal(found.views.reshape(views.shape), views)


@pytest.mark.parametrize(
    ("names", "shape"),
    [
        (["view_00_04.png", "view_00_05.png", "view_00_06.png"], (1, 3)),
        (["shot1.png", "shot2.png", "shot3.png", "shot4.png", "shot5.png"], (5, 1)),
        (["v_1_1.png", "v_1_2.png", "v_2_1.png", "v_2_2.png"], (2, 2)),
    ],
)
def test_a_few_views_are_read_if_the_user_says_how_many(tmp_path, names, shape):
    views = np.random.default_rng(0).integers(0, 255, (len(names), 20, 24, 3), dtype=np.uint8)
    for view, name in zip(views, names, strict=True):
        files.write_picture(tmp_path / name, view)
    found = readers.read(tmp_path, ReadOptions(views=shape, check_orientation=False))
    assert found.grid == shape
    assert np.array_equal(found.views.reshape(views.shape), views)


def test_pictures_with_a_number_of_their_own_are_counted(tmp_path):
    views = np.zeros((1, 9, 20, 24, 3), dtype=np.uint8)
    files.numbered(tmp_path / "counted", views, "IMG_0001_{:03d}.png")
    assert readers.read(tmp_path / "counted").grid == (3, 3)


# Missing views


def test_a_missing_view_is_an_error(tmp_path, rendered):
    files.hci(tmp_path / "town", rendered[0])
    (tmp_path / "town" / "input_Cam007.png").unlink()
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "town")
    assert str(caught.value) == (
        f"{tmp_path}/town: found 24 views, expected 25 (5 x 5). Missing: input_Cam007.png. "
        "To continue without them, pass --allow-missing."
    )


@pytest.mark.parametrize(
    ("name", "base", "missing"),
    [
        ("view_{}_{}.png", 1, "view_2_3.png"),
        ("{:02d}_{:02d}.png", 0, "01_02.png"),
    ],
)
def test_missing_views_are_named_as_their_neighbours(tmp_path, rendered, name, base, missing):
    files.pairs(tmp_path / "a", rendered[0], name, base)
    for gone in (name.format(1 + base, 2 + base), name.format(4 + base, 4 + base)):
        (tmp_path / "a" / gone).unlink()
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "a")
    assert str(caught.value) == (
        f"{tmp_path}/a: found 23 views, expected 25 (5 x 5). "
        f"Missing: {missing}, {name.format(4 + base, 4 + base)}. "
        "To continue without them, pass --allow-missing."
    )


def test_missing_numbers(tmp_path, rendered):
    files.numbered(tmp_path / "a", rendered[0], "img_{:02d}.png", 1)
    for index in (9, 24, 25):
        (tmp_path / "a" / f"img_{index:02d}.png").unlink()
    found = "found 22 views, expected 25 (5 x 5). Missing: "
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "a", ReadOptions(views=(5, 5)))
    assert str(caught.value) == (
        f"{tmp_path}/a: {found}img_09.png, img_24.png, img_25.png. "
        "To continue without them, pass --allow-missing."
    )


def test_numbered_views_may_lie_in_another_grid(tmp_path):
    views, _ = files.render((5, 9), (20, 24))
    files.numbered(tmp_path / "a", views, "img_{:02d}.png", 1)
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "a")
    assert str(caught.value) == (
        f"{tmp_path}/a: found 45 views, expected 49 (7 x 7). Missing: img_46.png, img_47.png, "
        "img_48.png and 1 more. If the grid is another, pass --views UxV. "
        "To continue without them, pass --allow-missing."
    )
    found = readers.read(tmp_path / "a", ReadOptions(views=(5, 9), check_orientation=False))
    assert np.array_equal(found.views, views)


def test_other_pictures_are_counted(tmp_path, rendered):
    files.pairs(tmp_path / "a", rendered[0], "{}_{}.png")
    for name, note in (
        ("photo", "1 other picture in the folder is left out."),
        ("poster", "2 other pictures in the folder are left out."),
    ):
        shutil.copy(tmp_path / "a" / "0_0.png", tmp_path / "a" / f"{name}.png")
        assert readers.read(tmp_path / "a").notes[0] == note


def test_missing_views_can_be_allowed(tmp_path, rendered):
    views, _ = rendered
    files.hci(tmp_path / "town", views)
    (tmp_path / "town" / "input_Cam007.png").unlink()
    found = readers.read(tmp_path / "town", ReadOptions(allow_missing=True))
    assert found.missing_views == [(1, 2)]
    assert found.notes == ("1 view missing, masked out: input_Cam007.png.",)
    assert not found.views[1, 2].any()
    assert np.array_equal(found.views[0], views[0])


def test_the_centre_view_must_be_there(tmp_path, rendered):
    files.hci(tmp_path / "town", rendered[0])
    (tmp_path / "town" / "input_Cam012.png").unlink()
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "town", ReadOptions(allow_missing=True))
    assert str(caught.value) == (
        f"{tmp_path}/town: the centre view is missing, and it is the reference. "
        "Missing: input_Cam012.png."
    )


def test_a_cross_of_views_is_sparse_by_design(tmp_path, rendered):
    views, _ = rendered
    for u, v, view in files.each(views):
        if u == 2 or v == 2:
            files.write_picture(tmp_path / "a" / f"{u}_{v}.png", view)
    found = readers.read(tmp_path / "a")
    assert found.grid == (5, 5)
    assert len(found.missing_views) == 16
    assert np.array_equal(found.views[2], views[2])


def test_a_missing_view_outside_the_used_ones_does_not_matter(tmp_path):
    views, _ = files.render((11, 11), (20, 24))
    files.pairs(tmp_path / "a", views, "view_{}_{}.png")
    (tmp_path / "a" / "view_0_0.png").unlink()
    options = ReadOptions(check_orientation=False, use_views=(9, 9))
    found = readers.read(tmp_path / "a", options)
    assert np.array_equal(found.views, views[1:10, 1:10])


# Memory


def test_large_stacks_are_read_piece_by_piece(tmp_path):
    views = np.zeros((15, 15, 160, 200, 4), dtype=np.uint16)
    views[..., :3] = np.random.default_rng(0).integers(0, 65535, (160, 200, 3), dtype=np.uint16)
    views[..., 3] = 65535
    files.matlab_73(tmp_path / "a.mat", {"LF": views}, compression=None)
    whole = views.nbytes
    del views
    tracemalloc.start()
    # The check of the orientation takes a fixed amount, whatever the size of the views.
    found = readers.read(tmp_path / "a.mat", ReadOptions(check_orientation=False))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.grid == (9, 9)
    assert found.views.nbytes < peak < 1.7 * found.views.nbytes < whole / 2
