"""Which views are used, how numbers and masks are read, and the way the camera axes run."""

import logging
import shutil
import tracemalloc

import cv2
import lightfield_files as files
import numpy as np
import pytest
from PIL import Image

from oaccdepth import readers
from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.options import ReadOptions


@pytest.fixture(scope="module")
def rendered():
    return files.render()


@pytest.fixture(scope="module")
def layered():
    """Views (5, 5, 200, 240, 1) of opaque squares before a wall: enough occlusion to vote on."""
    return squares_before_a_wall((200, 240), 5, -1, 2)


def squares_before_a_wall(size, count, far, near):
    rng = np.random.default_rng(3)
    (height, width), border, middle = size, 20, count // 2
    textures = [
        cv2.GaussianBlur(rng.random((height + 2 * border, width + 2 * border)), (0, 0), 1.2)
        for _ in range(9)
    ]
    views = np.empty((count, count, height, width, 1), dtype=np.uint8)
    truth = np.full((height, width), far, dtype=np.float32)
    for u, v in np.ndindex(count, count):
        down, right = u - middle, v - middle
        for layer, texture in enumerate(textures):
            disparity = far if layer == 0 else near
            picture = np.roll(texture, (-disparity * down, -disparity * right), (0, 1))
            picture = np.clip((picture - 0.5) * 900 + 128, 0, 255)[border:-border, border:-border]
            y, x = 25 + 90 * (layer % 2), 15 + 26 * layer
            rows = slice(y - near * down, y + 60 - near * down)
            columns = slice(x - near * right, x + 18 - near * right)
            place = (slice(None), slice(None)) if layer == 0 else (rows, columns)
            views[u, v][(*place, 0)] = picture[place]
            if layer and (u, v) == (middle, middle):
                truth[place] = near
    return views, truth


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
    # disparities are per step of the file, also where not every view is used
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
        ({"stride": 0}, "--stride 0: expected 1 or more."),
        ({"gamma": 0.0}, "--gamma 0.0: expected 0.1 to 10."),
        (
            {"order": "spiral"},
            "--order spiral: expected rows, columns, serpentine or serpentine-columns.",
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
        "To do without, pass --allow-missing."
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
        "To do without, pass --allow-missing."
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
        "To do without, pass --allow-missing."
    )


def test_numbered_views_may_lie_in_another_grid(tmp_path):
    views, _ = files.render((5, 9), (20, 24))
    files.numbered(tmp_path / "a", views, "img_{:02d}.png", 1)
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "a")
    assert str(caught.value) == (
        f"{tmp_path}/a: found 45 views, expected 49 (7 x 7). Missing: img_46.png, img_47.png, "
        "img_48.png and 1 more. If the grid is another, pass --views UxV. "
        "To do without, pass --allow-missing."
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
    views, truth = rendered
    files.hci(tmp_path / "town", views)
    (tmp_path / "town" / "input_Cam007.png").unlink()
    found = readers.read(tmp_path / "town", ReadOptions(allow_missing=True))
    assert found.missing_views == [(1, 2)]
    assert found.notes == ("1 view missing, masked out: input_Cam007.png.",)
    assert not found.views[1, 2].any()
    assert np.array_equal(found.views[0], views[0])
    assert files.mismatch(views, truth) == pytest.approx(files.mismatch(views, truth))


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


# Numbers


@pytest.mark.parametrize(
    ("stored", "dtype", "expected"),
    [
        (np.uint16, np.uint16, lambda views: views.astype(np.uint16) * 256),
        (np.int64, np.uint8, lambda views: views),
        (np.float64, np.float32, lambda views: np.float32(views) / np.float32(255)),
        (np.float16, np.float32, lambda views: np.float32(views) / np.float32(255)),
        (">u2", np.uint16, lambda views: views.astype(np.uint16) * 256),
        (bool, np.uint8, lambda views: np.where(views, 255, 0)),
    ],
)
def test_number_types(tmp_path, rendered, stored, dtype, expected):
    views = rendered[0]
    np.save(tmp_path / "a.npy", views.astype(stored))
    found = readers.read(tmp_path / "a.npy", ReadOptions(check_orientation=False)).views
    assert found.dtype == dtype
    assert np.allclose(found, expected(views), atol=1e-6)


def test_a_16_bit_view_among_8_bit_ones_is_scaled(tmp_path, rendered):
    views = rendered[0]
    files.pairs(tmp_path / "a", views, "view_{}_{}.png")
    files.write_picture(tmp_path / "a" / "view_1_2.png", views[1, 2].astype(np.uint16) * 257)
    found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, views)
    assert found.notes[0] == "Scaled to the bit depth of the centre view: view_1_2.png."
    files.pairs(tmp_path / "b", views.astype(np.uint16) * 257, "view_{}_{}.png")
    files.write_picture(tmp_path / "b" / "view_1_2.png", views[1, 2])
    assert np.array_equal(readers.read(tmp_path / "b").views, views.astype(np.uint16) * 257)


def test_dark_16_bit_values_are_stretched(tmp_path, rendered):
    dark = (rendered[0] // 6).astype(np.uint16)
    np.save(tmp_path / "a.npy", dark)
    found = readers.read(tmp_path / "a.npy", ReadOptions(check_orientation=False))
    assert np.array_equal(found.views, dark * 1024)
    largest = dark[2, 2].max()
    assert found.notes == (f"Values up to {largest} of 65535 are very dark: multiplied by 1024.",)


def test_a_mask_that_is_false_everywhere_is_refused(tmp_path, rendered):
    for name, mask in (("a", np.zeros((5, 5), bool)), ("b", np.zeros((5, 5, 60, 76), bool))):
        np.savez(tmp_path / f"{name}.npz", views=rendered[0], valid=mask)
        with pytest.raises(InvalidLightField) as caught:
            readers.read(tmp_path / f"{name}.npz")
        assert str(caught.value) == (
            f"{tmp_path / name}.npz: no pixel of the centre view is finite, opaque "
            "and valid, so there is nothing to estimate. Correct its mask, or export it again."
        )


def test_unit_floats_stay(tmp_path, rendered):
    views = rendered[0] / 255
    views[0, 0, 0, 0] = 1.02, -0.01, np.nan
    np.save(tmp_path / "a.npy", views)
    found = readers.read(tmp_path / "a.npy", ReadOptions(check_orientation=False))
    assert found.views[0, 0, 0, 0].tolist() == [1, 0, 0]
    assert np.argwhere(~found.valid).tolist() == [[0, 0, 0, 0]]
    assert found.notes == ("1 pixel is NaN or infinite: masked out.",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((3, 3, 9, 9, 3), -5), "values from -5 to -5, expected 0 to 1, 255 or 65535."),
        (
            np.full((3, 3, 9, 9, 3), 1e9),
            "values from 1e+09 to 1e+09, expected 0 to 1, 255 or 65535.",
        ),
        (np.zeros((3, 3, 9, 9, 3), complex), None),
    ],
)
def test_strange_numbers(tmp_path, values, message):
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "a.npy")
    if message:
        assert str(caught.value) == f"{tmp_path}/a.npy: {message}"


def test_numbers_that_grow_beyond_the_centre_view(tmp_path):
    views = np.full((3, 3, 9, 9, 3), 200)
    views[0, 0] = 300
    np.save(tmp_path / "a.npy", views)
    with pytest.raises(InvalidLightField, match="has values from 200 to 300, expected 0 to 255"):
        readers.read(tmp_path / "a.npy")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("ending", ["png", "tif"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_depth_and_channels_of_pictures(tmp_path, rendered, dtype, ending, channels):
    views = (rendered[0].astype(np.uint16) * (257 if dtype is np.uint16 else 1)).astype(dtype)
    alpha = np.full((*views.shape[:4], 1), np.iinfo(dtype).max, dtype=dtype)
    alpha[1, 1, 3:9, 5:20] = 0
    stored = np.concatenate([views, alpha], axis=-1)[..., :channels]
    for u, v, view in files.each(stored):
        files.write_picture(tmp_path / "a" / f"{u}_{v}.{ending}", view)
    found = readers.read(tmp_path / "a")
    assert found.views.dtype == dtype
    assert np.array_equal(found.views, stored[..., :3])
    assert (found.valid is None) == (channels < 4)
    if channels == 4:
        assert np.array_equal(found.valid, alpha[..., 0] > 0)


def test_grey_with_alpha_palettes_and_bits(tmp_path):
    views, _ = files.render((3, 3), (20, 24))
    folder = tmp_path / "a"
    folder.mkdir()
    for u, v, view in files.each(views):
        picture = Image.fromarray(view).convert("L")
        picture.putalpha(Image.fromarray(np.where(view[..., 0] > 128, 255, 0).astype(np.uint8)))
        picture.save(folder / f"{u}_{v}.png")
    found = readers.read(folder, ReadOptions(check_orientation=False))
    assert found.views.shape[-1] == 1
    assert np.array_equal(found.valid, views[..., 0] > 128)
    for mode, channels in (("P", 3), ("1", 1), ("CMYK", 3)):
        for u, v, view in files.each(views):
            (folder / f"{u}_{v}.png").unlink(missing_ok=True)
            picture = Image.fromarray(view).convert(mode)
            picture.save(folder / f"{u}_{v}.{'tif' if mode == 'CMYK' else 'png'}")
        found = readers.read(folder, ReadOptions(check_orientation=False))
        assert (found.views.shape[-1], found.views.dtype) == (channels, np.uint8)


def test_an_alpha_of_zeros_says_nothing(tmp_path, rendered):
    rgba = np.concatenate([rendered[0], np.zeros_like(rendered[0][..., :1])], axis=-1)
    np.save(tmp_path / "a.npy", rgba)
    found = readers.read(tmp_path / "a.npy")
    assert found.valid is None
    assert np.array_equal(found.views, rendered[0])


def test_gamma_as_asked(tmp_path, rendered):
    files.hci(tmp_path / "town", rendered[0])
    found = readers.read(tmp_path / "town", ReadOptions(gamma=2.0))
    expected = np.rint(np.sqrt(rendered[0] / 255) * 255)
    assert np.array_equal(found.views, expected)
    assert found.notes == ("Display gamma 2 applied, as asked.",)


# Orientation


TEXTS = {
    (True, False, False): "camera rows and columns are exchanged",
    (False, True, False): "one camera axis runs backwards",
    (False, False, True): "one camera axis runs backwards",
    (True, False, True): "camera rows and columns are exchanged and one camera axis runs backwards",
    (False, True, True): "both camera axes run backwards (far things hide near ones)",
    (True, True, True): "camera rows and columns are exchanged and "
    "both camera axes run backwards (far things hide near ones)",
}


def _way_out(options):
    return (
        f"If near and far come out exchanged, pass {options}; "
        "if nothing was wrong, --no-check-orientation."
    )


# What is said where only one axis was wrong: what was done, and how to get the other one.
WAYS_OUT = {
    (False, True, False): ("corrected by reversing the camera rows", _way_out("--flip-v")),
    (False, False, True): ("corrected by reversing the camera columns", _way_out("--flip-u")),
    (True, False, True): (
        "corrected by reversing the camera rows",
        _way_out("--transpose --flip-v"),
    ),
}


def arranged(views, transpose, flip_u, flip_v):
    views = views.swapaxes(0, 1) if transpose else views
    return views[:: -1 if flip_u else 1, :: -1 if flip_v else 1]


@pytest.mark.parametrize("wrong", TEXTS)
def test_wrong_axes_are_corrected_and_said(tmp_path, layered, wrong, caplog):
    views, truth = layered
    files.pairs(tmp_path / "a", arranged(views, *wrong), "cam_{}_{}.png")
    with caplog.at_level(logging.WARNING):
        found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, views)
    assert files.is_oriented(found.views, truth)
    text = TEXTS[wrong]
    done, way_out = WAYS_OUT.get(
        wrong, ("corrected", "If that is wrong, pass --no-check-orientation.")
    )
    assert caplog.messages == [f"warning: {tmp_path}/a: {text}: {done}. {way_out}"]
    assert found.notes == (f"{text[0].upper()}{text[1:]}: {done}.",)


def test_names_that_usually_run_our_way_are_corrected_by_a_clear_vote(tmp_path, layered):
    views, truth = layered
    files.pairs(tmp_path / "a", views[::-1, ::-1], "view_{}_{}.png")
    found = readers.read(tmp_path / "a")
    assert files.is_oriented(found.views, truth)
    assert found.notes == (
        "Both camera axes run backwards (far things hide near ones): corrected.",
    )


@pytest.mark.parametrize("wrong", [wrong for wrong in TEXTS if wrong[1] != wrong[2]])
def test_the_way_out_reverses_the_other_axis(tmp_path, layered, wrong):
    """The same motion, near and far exchanged: what the warning offers where it was a guess."""
    views, _ = layered
    files.pairs(tmp_path / "a", arranged(views, *wrong), "cam_{}_{}.png")
    _, way_out = WAYS_OUT[wrong]
    options = {
        name: f"--{name.replace('_', '-')}" in way_out for name in ("transpose", "flip_u", "flip_v")
    }
    found = readers.read(tmp_path / "a", ReadOptions(**options))
    assert np.array_equal(found.views, views[::-1, ::-1])


def test_right_axes_are_left_alone(tmp_path, layered, caplog):
    files.pairs(tmp_path / "a", layered[0], "cam_{}_{}.png")
    found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, layered[0])
    assert found.notes == ()
    assert caplog.messages == []


SIGN_IS_OPEN = (
    "othing in the views tells whether near and far are exchanged. If they come out "
    "exchanged, pass --flip-u --flip-v; if not, --no-check-orientation."
)


@pytest.mark.parametrize("name", ["cam_{}_{}.png", "view_{}_{}.png", "{}_{}.png"])
def test_an_open_sign_is_said(tmp_path, rendered, caplog, name):
    files.pairs(tmp_path / "a", rendered[0], name)  # nothing hides anything in it
    found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, rendered[0])
    assert found.notes == (f"N{SIGN_IS_OPEN}",)
    assert caplog.messages == [f"warning: {tmp_path / 'a'}: n{SIGN_IS_OPEN}"]
    for settled in ({"flip_u": True, "flip_v": True}, {"check_orientation": False}):
        assert readers.read(tmp_path / "a", ReadOptions(**settled)).notes == ()


def test_fine_pictures_vote_where_coarse_ones_do_not_decide(tmp_path):
    """What moves by one pixel only hides too little for a reduced picture to show it."""
    views, _ = squares_before_a_wall((400, 512), 3, 0, 1)
    np.save(tmp_path / "a.npy", np.ascontiguousarray(views[::-1, ::-1]))
    assert np.array_equal(readers.read(tmp_path / "a.npy").views, views)


def test_the_outermost_views_of_the_file_vote(tmp_path, layered):
    """The central 3x3 views of a reversed array see too little behind things to vote."""
    backwards = np.ascontiguousarray(layered[0][::-1, ::-1])
    np.save(tmp_path / "a.npy", backwards)
    found = readers.read(tmp_path / "a.npy", ReadOptions(use_views=(3, 3)))
    assert np.array_equal(found.views, layered[0][1:4, 1:4])


def test_a_row_of_views_that_runs_backwards(tmp_path, layered):
    row = layered[0][2]
    for stack, grid in ((row[None, ::-1], (1, 5)), (row[::-1, None], (1, 5))):
        np.save(tmp_path / "a.npy", stack)  # the second one is really a row, too
        found = readers.read(tmp_path / "a.npy")
        assert found.grid == grid
        assert np.array_equal(found.views[0], row)


def test_the_check_can_be_switched_off(tmp_path, layered):
    views, _ = layered
    files.pairs(tmp_path / "a", views.swapaxes(0, 1), "cam_{}_{}.png")
    kept = readers.read(tmp_path / "a", ReadOptions(check_orientation=False))
    assert np.array_equal(kept.views, views.swapaxes(0, 1))
    asked = readers.read(tmp_path / "a", ReadOptions(transpose=True))
    assert np.array_equal(asked.views, views)
    turned = readers.read(tmp_path / "a", ReadOptions(transpose=True, flip_u=True, flip_v=True))
    assert np.array_equal(turned.views, views[::-1, ::-1])


def test_axes_of_a_non_square_grid(tmp_path):
    views, _ = files.render((3, 5), (60, 76))
    files.pairs(tmp_path / "a", views.swapaxes(0, 1), "cam_{}_{}.png")
    found = readers.read(tmp_path / "a")
    assert found.grid == (3, 5)
    assert np.array_equal(found.views, views)


def test_masks_turn_with_the_views(tmp_path, rendered):
    views, _ = rendered
    files.pairs(tmp_path / "a", views.swapaxes(0, 1), "cam_{}_{}.png")
    (tmp_path / "a" / "cam_0_1.png").unlink()
    found = readers.read(tmp_path / "a", ReadOptions(allow_missing=True))
    assert found.missing_views == [(1, 0)]


def test_preset_names_in_the_usual_order(tmp_path, layered):
    # V-SENSE's names count from the right; the check notices that these do not.
    files.pairs(tmp_path / "a", layered[0], "SAI_{:02d}_{:02d}.png", 1)
    assert np.array_equal(readers.read(tmp_path / "a").views, layered[0])


@pytest.mark.parametrize("content", ["noise", "flat", "still"])
def test_nothing_is_turned_without_reason(tmp_path, content):
    rng = np.random.default_rng(4)
    views = {
        "noise": rng.integers(0, 255, (5, 5, 48, 64, 3), dtype=np.uint8),
        "flat": np.full((5, 5, 48, 64, 3), 99, dtype=np.uint8),
        "still": np.broadcast_to(files.render()[0][2, 2], (5, 5, 60, 76, 3)),
    }[content]
    np.save(tmp_path / "a.npy", views)
    found = readers.read(tmp_path / "a.npy")
    assert found.notes == (f"N{SIGN_IS_OPEN}",)
    assert np.array_equal(found.views, views)


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
