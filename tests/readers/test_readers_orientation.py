"""Direction of the camera axes: what is corrected, and what is reported."""

import logging

import cv2
import lightfield_files as files
import numpy as np
import pytest

from oaccdepth import readers
from oaccdepth.options import ReadOptions
from oaccdepth.rendering.rig import camera_places
from oaccdepth.rendering.scenes import random_scene, render


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


# The note if only one axis was wrong: what was done, and how to reverse the other one instead.
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
    """The same motion with near and far swapped: what the warning offers after a guess."""
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


AXES_ARE_OPEN = (
    "Nothing in the views tells which way the camera axes run, nor whether near and far are "
    "exchanged. If the map is wrong, try --flip-u, --flip-v, both, and --transpose; if it is "
    "right, pass --no-check-orientation."
)
SIGN_IS_OPEN = (
    "othing in the views tells whether near and far are exchanged. If they come out "
    "exchanged, pass --flip-u --flip-v; if not, --no-check-orientation."
)


@pytest.mark.parametrize("name", ["cam_{}_{}.png", "view_{}_{}.png", "{}_{}.png"])
def test_an_open_sign_is_said(tmp_path, rendered, caplog, name):
    files.pairs(tmp_path / "a", rendered[0], name)  # without any occlusion
    found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, rendered[0])
    assert found.notes == (f"N{SIGN_IS_OPEN}",)
    assert caplog.messages == [f"warning: {tmp_path / 'a'}: n{SIGN_IS_OPEN}"]
    for settled in ({"flip_u": True, "flip_v": True}, {"check_orientation": False}):
        assert readers.read(tmp_path / "a", ReadOptions(**settled)).notes == ()


def test_an_open_sign_of_exchanged_axes(tmp_path, rendered, caplog):
    """An option takes the place of the whole check: those that are offered exchange the axes."""
    views = rendered[0]
    files.pairs(tmp_path / "a", views.swapaxes(0, 1), "cam_{}_{}.png")
    found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, views)
    text = SIGN_IS_OPEN.replace("--flip-u", "--transpose --flip-u")
    assert found.notes[-1] == "N" + text.replace("--no-check-orientation", "--transpose")
    turned = readers.read(tmp_path / "a", ReadOptions(transpose=True, flip_u=True, flip_v=True))
    assert np.array_equal(turned.views, views[::-1, ::-1])


def test_a_guess_which_axis_runs_backwards_is_said_to_be_one(tmp_path, rendered, caplog):
    files.pairs(tmp_path / "a", rendered[0][::-1], "cam_{}_{}.png")  # without any occlusion
    found = readers.read(tmp_path / "a")
    assert found.notes == (
        "One camera axis runs backwards: corrected by reversing the camera rows. Nothing in the "
        f"views tells which of the two it is. {_way_out('--flip-v')}",
    )
    assert caplog.messages == [f"warning: {tmp_path / 'a'}: o{found.notes[0][1:]}"]


@pytest.fixture(scope="module")
def misleading():
    """Views (3, 3, 96, 96, 3) in which shadows on a table look like occlusions to two of them."""
    scene, finish = random_scene(121, size=(96, 96), disparity_range=(0.6, 7.2))
    return render(scene, finish, camera_places((3, 3)), samples=2).light_field.views


@pytest.mark.parametrize("wrong", [(False, True), (True, False), (True, True), (False, False)])
def test_a_few_misled_views_decide_nothing(tmp_path, misleading, wrong):
    """Before, near and far came out exchanged in the first three, without a word."""
    flip_u, flip_v = wrong
    views = misleading[:: -1 if flip_u else 1, :: -1 if flip_v else 1]
    np.save(tmp_path / "a.npy", np.ascontiguousarray(views))
    (note,) = readers.read(tmp_path / "a.npy").notes
    assert "othing in the views tells" in note and "pass " in note


def test_fine_pictures_vote_where_coarse_ones_do_not_decide(tmp_path):
    """Motion by only one pixel hides too little to show in a reduced picture."""
    views, _ = squares_before_a_wall((400, 512), 3, 0, 1)
    np.save(tmp_path / "a.npy", np.ascontiguousarray(views[::-1, ::-1]))
    assert np.array_equal(readers.read(tmp_path / "a.npy").views, views)


def test_the_outermost_views_of_the_file_vote(tmp_path, layered):
    """The central 3x3 views of a reversed array see too little behind objects to vote."""
    backwards = np.ascontiguousarray(layered[0][::-1, ::-1])
    np.save(tmp_path / "a.npy", backwards)
    found = readers.read(tmp_path / "a.npy", ReadOptions(use_views=(3, 3)))
    assert np.array_equal(found.views, layered[0][1:4, 1:4])


def test_a_row_of_views_that_runs_backwards(tmp_path, layered, caplog):
    """There is no other axis to reverse, so the way out is to keep the order."""
    row = layered[0][2]
    exchanged = "camera rows and columns are exchanged and "
    for stack, also, way_out in (
        (row[None, ::-1], "", "--no-check-orientation"),
        (row[::-1, None], exchanged, "--transpose"),  # really a row, too
    ):
        np.save(tmp_path / "a.npy", stack)
        caplog.clear()
        found = readers.read(tmp_path / "a.npy")
        assert found.grid == (1, 5)
        assert np.array_equal(found.views[0], row)
        assert caplog.messages == [
            f"warning: {tmp_path / 'a.npy'}: {also}the cameras are in reverse order (far things "
            "hide near ones): corrected by reversing the camera columns. "
            f"If that is wrong, pass {way_out}."
        ]
        kept = {"transpose": True} if also else {"check_orientation": False}
        asked = readers.read(tmp_path / "a.npy", ReadOptions(**kept))
        assert np.array_equal(asked.views[0], row[::-1])


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
    assert found.notes == (AXES_ARE_OPEN,)
    assert np.array_equal(found.views, views)
