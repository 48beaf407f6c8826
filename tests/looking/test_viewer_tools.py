"""The tools of the page in a real browser: cover, move, focus, 3D, clip and link."""

import os

import cv2
import numpy as np
import pytest
from browsing import difference
from layered import Plane, Surface, bars, cloud_texture, render

from oaccdepth.disparity import DisparityMap
from oaccdepth.lightfield import LightField
from oaccdepth.looking.refocus import refocus
from oaccdepth.looking.viewer import write_viewer
from oaccdepth.looking.viewer.page import script_of
from oaccdepth.writers.pictures import colourise
from oaccdepth.writers.point_cloud import points

pytestmark = pytest.mark.browser


def test_click_to_focus_is_the_refocusing_of_the_library(visit, scene, rich_result):
    page = visit()
    page.press("a", "f")
    page.hide_marks()
    sharp = scene.light_field.centre * 255
    for x, y in ((38, 10), (5, 5)):  # the bar in front, the wall behind
        page.click(x, y)
        focused = page.picture()
        expected = refocus(scene.light_field, float(rich_result.disparity[y, x])) * 255
        assert difference(focused, expected) < 4
        assert difference(focused, sharp) > difference(focused, expected) * 2
    assert page.page.locator("#left").input_value() == "refocused"


def test_focus_slider_and_aperture(visit, scene):
    page = visit()
    page.press("a")
    page.hide_marks()
    page.page.locator("#aperture").fill("0")
    page.settle()
    assert page.text("#aperture-text") == "1 view"
    assert difference(page.picture(), scene.light_field.centre * 255) < 7  # JPEG of a tiny view
    page.page.locator("#aperture").fill("2")
    page.page.locator("#focus").evaluate(
        "(slider) => { slider.value = 1.2; slider.dispatchEvent(new Event('input')) }"
    )
    page.settle()
    assert page.text("#aperture-text") == "13 views"
    assert difference(page.picture(), refocus(scene.light_field, 1.2, 2) * 255) < 4


def test_looking_around_shows_the_views(visit, scene):
    page = visit()
    page.press("a", "m")
    page.hide_marks()
    box = page.page.locator("#viewport").bounding_box()
    for right, down in ((0, 0), (1, 0), (1, 1)):  # corners of the grid
        page.page.mouse.move(
            box["x"] + 8 + right * (box["width"] - 16), box["y"] + 8 + down * (box["height"] - 16)
        )
        page.settle()
        assert page.text("#camera-text") == f"row {8.0 * down}, column {8.0 * right}"
        view = scene.light_field.views[8 * down, 8 * right] * 255
        assert difference(page.picture(), view) < 7
    page.page.mouse.move(box["x"] + box["width"] / 2, 5)  # off the pictures: back to the centre
    page.settle()
    assert page.text("#camera-text") == "row 4.0, column 4.0"


def test_looking_around_moves_the_disparity_along(visit, scene, tmp_path):
    """From a corner of the grid, every point is where that camera sees it, the nearest in front."""
    rich_result = DisparityMap(scene.disparity, np.ones_like(scene.disparity))
    write_viewer(tmp_path / "page.html", scene.light_field, rich_result)
    page = visit(tmp_path / "page.html")
    page.press("m", *["ArrowLeft", "ArrowUp"] * 4, "1", "x", "a")
    page.page.locator("#full").click()
    page.page.mouse.move(5, 5)
    page.hide_marks()
    assert page.text("#camera-text") == "row 0.0, column 0.0"
    moved = np.full((48, 64), -np.inf, np.float32)
    for y, x in np.ndindex(48, 64):
        d = scene.disparity[y, x]
        place = round(y + 4 * d), round(x + 4 * d)
        if 0 <= place[0] < 48 and 0 <= place[1] < 64:
            moved[place] = max(moved[place], d)
    limits = float(scene.disparity.min()), float(scene.disparity.max())
    expected = colourise(moved, limits, "viridis").astype(int)
    wrong = np.abs(page.picture() - expected).max(axis=2) > 60
    assert wrong[np.isfinite(moved)].mean() < 0.05


def test_arrow_keys_move_camera_and_pixel(visit):
    page = visit()
    page.press("m", "ArrowRight", "ArrowDown")
    assert page.text("#camera-text") == "row 5.0, column 5.0"
    page.press("i")
    page.click(10, 20)
    page.press("ArrowRight", "ArrowUp", "Shift+ArrowRight")
    assert page.text("#pixel-place") == "x 16, y 19"


def test_cloud_orbits(visit):
    page = visit()
    page.press("d")
    page.page.wait_for_timeout(300)
    assert page.page.locator("#layouts").is_hidden()
    assert page.page.locator("#backdrop").is_visible()  # not black next to the cloud
    start = page.picture()
    assert start.std() > 10
    x, y = page.spot(32, 24)
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x + 160, y + 40, steps=5)
    page.page.mouse.up()
    page.page.wait_for_timeout(300)
    turned = page.picture()
    assert difference(start, turned) > 5
    page.page.locator("#cloud-colour").select_option("disparity")
    page.page.wait_for_timeout(300)
    assert difference(page.picture(), turned) > 5
    page.page.locator("#cloud-reset").click()
    page.page.locator("#cloud-colour").select_option("view")
    page.page.wait_for_timeout(300)
    assert difference(page.picture(), start) < 3
    page.press("ArrowRight")
    page.page.wait_for_timeout(300)
    assert difference(page.picture(), start) > 1


def test_travel_moves_until_it_is_stopped(visit):
    page = visit()
    start = page.text("#camera-text")
    page.press("Space")
    page.page.wait_for_function(
        "(start) => document.getElementById('camera-text').textContent !== start", arg=start
    )
    assert page.text("#move-card .play") == "Stop"
    page.press("Space")
    assert page.text("#move-card .play") == "Play"


def test_cover_moves_until_it_is_touched(visit):
    page = visit(link="", reduced_motion="no-preference")
    assert page.page.locator("#cover").is_visible()
    assert page.page.locator("#cards").is_hidden()
    page.hide_marks()
    before = page.picture()
    page.page.wait_for_timeout(1200)
    assert difference(before, page.picture()) > 1
    page.page.locator("#cover [data-tool=focus]").click()
    page.settle()
    assert page.page.locator("#cover").is_hidden()
    assert page.page.locator("#tools [data-tool=focus]").get_attribute("aria-pressed") == "true"
    assert page.page.locator("#left").input_value() == "refocused"


def test_cover_wipes_the_disparity_over_the_view(visit, rich_result):
    page = visit(link="", reduced_motion="no-preference")
    page.hide_marks()
    coloured = colourise(rich_result.disparity)
    off = []  # it may still be moving if the machine is busy
    while len(off) < 60 and not (off and min(off) < 25 < max(off)):
        page.page.wait_for_timeout(200)
        off.append(difference(page.picture()[:36], coloured[:36]))  # above the buttons
    assert min(off) < 25 < max(off)
    page.press("i")
    assert page.page.locator("#handle").get_attribute("aria-valuenow") == "50"


def test_cover_stands_still_with_reduced_motion(visit, scene):
    page = visit(link="")
    assert page.page.locator("#cover").is_visible()
    page.page.locator("#cover").evaluate("(cover) => cover.style.setProperty('opacity', '0')")
    box = page.page.locator("#viewport").bounding_box()
    before = page.page.screenshot(clip=box)
    page.page.wait_for_timeout(1200)
    assert page.page.screenshot(clip=box) == before
    page.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 40)  # the picture itself
    page.settle()
    assert page.page.locator("#tools [data-tool=move]").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize(
    ("key", "card"), [("m", "move"), ("f", "focus"), ("d", "cloud"), ("i", "pixel")]
)
def test_the_card_of_the_tool_comes_first(visit, key, card):
    page = visit()
    page.press("f" if key == "i" else "i", key)
    first = page.page.locator("#cards > :not([hidden])").first
    assert first.get_attribute("id") == f"{card}-card"


def test_focus_starts_on_the_subject(visit, rich_result):
    page = visit()
    page.press("f")
    x, y = (int(part.split()[1]) for part in page.text("#pixel-place").split(", "))
    assert rich_result.disparity[y, x] > -0.5  # the wall behind is at -1.4 to -0.8
    focus = float(page.text("#focus-text").split()[0].replace("−", "-"))
    assert focus == pytest.approx(rich_result.disparity[y, x], abs=0.006)


def lattice(with_bars):
    """A wall, and in front of it bars of 3 px that cover a fifth of it."""
    rng = np.random.default_rng(2)
    wall = cloud_texture(rng, 128, 0.9)
    front = np.ones_like(wall)
    surfaces = [Surface(Plane(-0.5), wall)]
    if with_bars:
        surfaces.append(Surface(Plane(1.5), front, bars(16.0, 3.0, 0.1, 4.0)))
    return render(surfaces, (9, 9), (48, 64))


def test_moving_shows_no_rims(visit, tmp_path):
    """Estimated edges are blurred; from the side, nothing must appear between two surfaces."""
    scene = lattice(True)
    blurred = cv2.GaussianBlur(scene.disparity, (0, 0), 0.6)
    result = DisparityMap(blurred, np.ones_like(blurred))
    write_viewer(tmp_path / "page.html", scene.light_field, result)
    link = "#tool=move&layout=single&left=disparity&camera=3,2&range=-0.5,1.5"
    page = visit(tmp_path / "page.html", link=link)
    page.hide_marks()
    ends = colourise(np.array([[-0.5, 1.5]], dtype=np.float32), (-0.5, 1.5))[0].astype(int)
    seen = page.picture().astype(int)
    off = np.abs(seen[:, :, None] - ends).max(axis=3).min(axis=2)  # from the nearer of the two
    assert (off > 60).mean() < 0.03
    page.press("i")  # back at the centre: the map as estimated
    off = np.abs(page.picture().astype(int)[:, :, None] - ends).max(axis=3).min(axis=2)
    assert (off > 60).mean() > 0.1


def test_seeing_through_a_lattice(visit, tmp_path):
    scene, wall = lattice(True), lattice(False).light_field.centre * 255
    result = DisparityMap(scene.disparity, np.ones_like(scene.disparity))
    write_viewer(tmp_path / "page.html", scene.light_field, result)
    page = visit(tmp_path / "page.html", link="#tool=focus&focus=-0.5")
    page.hide_marks()
    blurred = page.picture()
    page.press("v")
    assert page.page.locator("#through").is_checked()
    inner = np.s_[8:-8, 8:-8]
    assert difference(blurred[inner], wall[inner]) > 12
    assert difference(page.picture()[inner], wall[inner]) < 6


def test_cloud_from_the_front_is_the_picture(visit, scene, tmp_path):
    """With and without a camera."""
    centre = scene.light_field.centre * 255
    for camera in (scene.light_field.camera, None):
        light_field = LightField(scene.light_field.views, camera=camera)
        result = DisparityMap(scene.disparity, np.ones_like(scene.disparity), camera=camera)
        write_viewer(tmp_path / "page.html", light_field, result, overwrite=True)
        page = visit(tmp_path / "page.html", link="#tool=cloud")
        page.hide_marks()
        assert difference(page.picture(), centre) < 7  # JPEG of a tiny view


@pytest.mark.parametrize("has_camera", [True, False])
def test_cloud_stands_where_the_ply_has_it(visit, scene, tmp_path, has_camera):
    """In a turned cloud, every point appears where that of the file would."""
    camera = scene.light_field.camera if has_camera else None
    result = DisparityMap(scene.disparity, np.ones_like(scene.disparity), camera=camera)
    light_field = LightField(scene.light_field.views, camera=camera)
    write_viewer(tmp_path / "page.html", light_field, result)
    angle = 0.12 if has_camera else 0.3
    page = visit(tmp_path / "page.html", link=f"#tool=cloud&orbit={angle},0,1,0,0")
    page.hide_marks()
    cloud = points(result).astype(np.float64).reshape(-1, 3)
    colours = (scene.light_field.centre * 255).reshape(-1, 3)
    distance = np.median(-cloud[:, 2]) if has_camera else 64 / (2 * np.tan(0.3))
    offset = cloud - [0, 0, -distance if has_camera else 0]  # from the centre of rotation
    right = offset[:, 0] * np.cos(angle) - offset[:, 2] * np.sin(angle)
    away = distance - offset[:, 0] * np.sin(angle) - offset[:, 2] * np.cos(angle)
    pixels = 50 / 36 * 64 if has_camera else distance  # focal length
    columns = np.rint(pixels * right / away + 31.5).astype(int)
    rows = np.rint(23.5 - pixels * offset[:, 1] / away).astype(int)
    expected = np.full((48, 64, 3), np.nan)
    for i in np.argsort(-away):  # from far to near
        if 0 <= rows[i] < 48 and 0 <= columns[i] < 64:
            expected[rows[i], columns[i]] = colours[i]
    off = np.abs(page.picture() - expected).mean(axis=2)
    unturned = np.abs(scene.light_field.centre * 255 - expected).mean(axis=2)
    assert np.nanmedian(off) < 8
    assert np.nanmean(off) < 0.6 * np.nanmean(unturned)


MAKE_POINTS = """
([width, height, disparity, photo]) => {
  const solid = snapEdges({ width, height, extent, disparity: Float32Array.from(disparity) });
  const confidence = new Uint8Array(width * height);
  const grid = { rows: 1, columns: 1, middle: {} };
  const scene = { width, height, solid, extent, confidence, grid, meta: {} };
  const space = { isPlaced: (d) => d > NOT_KNOWN, slope: 1, pitch: 1, median: 0 };
  const made = makePoints(scene, space, Uint8Array.from(photo), null, 30);
  const every = (array, size, first) => [...array].filter((_, i) => i % size === first);
  return {
    disparities: every(made.places, 3, 2), greys: every(made.paints, 4, 0),
    shares: [...made.shares], pixels: [...made.pixels],
  };
}"""


def make_points(browser, disparity, grey=0):
    """All points that the page's script makes from a disparity map and a picture."""
    photo = np.broadcast_to(grey, disparity.shape).repeat(4)
    names = ("scene.js", "space.js", "rims.js", "hidden.js", "points.js")
    scripts = "".join(script_of(name) for name in names)
    page = browser.new_page()
    height, width = disparity.shape
    low, high = float(disparity.min()), float(disparity.max())
    page.evaluate(f"window.extent = {{ usual: [{low}, {high}], full: [{low}, {high}] }}")
    made = page.evaluate(
        f"(of) => {{ {scripts}; return ({MAKE_POINTS})(of) }}",
        [width, height, disparity.ravel().tolist(), photo.tolist()],
    )
    page.close()
    return {name: np.array(values) for name, values in made.items()}


def test_what_is_hidden_is_stretched_between_its_surroundings(browser):
    """Behind a board on a floor that rises towards the viewer: no step where its sides meet."""
    floor = np.linspace(-2, 1, 60, dtype=np.float32)[:, None].repeat(60, axis=1)
    board = floor.copy()
    board[20:40, 20:40] = 2
    made = make_points(browser, board)
    hidden = np.full(board.size, np.nan)
    # after those that the centre view sees
    hidden[made["pixels"][3600:]] = made["disparities"][3600:]
    behind = hidden.reshape(board.shape)[20:40, 20:40]
    assert np.isfinite(behind).all()
    assert np.abs(behind - floor[20:40, 20:40]).max() < 0.15


def test_one_wrong_pixel_does_not_fly(browser):
    wall = np.zeros((20, 20), dtype=np.float32)
    wall[:4] = 1.0  # something in front
    speck = wall.copy()
    speck[12, 9] = 0.9
    disparities = make_points(browser, speck)["disparities"]
    assert np.array_equal(disparities[:400].reshape(20, 20), wall)


def test_the_rim_of_a_thing_goes_with_it(browser):
    """Where the estimate is a pixel too small, the picture shows what belongs to the object."""
    thing, estimate = (np.zeros((20, 20), dtype=np.float32) for _ in range(2))
    thing[7:13, 7:13] = 1.0
    estimate[8:12, 8:12] = 1.0
    disparities = make_points(browser, estimate, (50 + 150 * thing).astype(np.uint8))["disparities"]
    assert np.array_equal(disparities[:400].reshape(20, 20), thing)


def test_a_mixed_pixel_is_a_part_of_both_surfaces(browser):
    """Half object, half wall: the object's colour, half opaque, in front of the wall's colour."""
    estimate, grey = np.zeros((20, 20), dtype=np.float32), np.full((20, 20), 50)
    estimate[:, 10:] = 1.0
    grey[:, 10:], grey[:, 9] = 200, 125
    made = make_points(browser, estimate, grey)
    at = made["pixels"] == 10 * 20 + 9
    columns = [made[name][at].tolist() for name in ("disparities", "greys", "shares")]
    points = sorted(zip(*columns, strict=True))
    assert points[0] == (0, 50, 1)
    assert points[-1] == (1, 200, 0.5)


def test_what_is_hidden_has_the_texture_of_its_surroundings(browser):
    """Behind a board in front of a striped wall there are stripes, not their mean."""
    estimate = np.zeros((60, 60), dtype=np.float32)
    grey = np.broadcast_to(np.where(np.arange(60)[:, None] % 4 < 2, 60, 120), (60, 60)).copy()
    estimate[10:50, 20:40], grey[10:50, 20:40] = 2, 200
    made = make_points(browser, estimate, grey)
    hidden = np.zeros(estimate.size)
    behind = made["disparities"] < 1
    hidden[made["pixels"][behind]] = made["greys"][behind]
    expected = grey[:, :1].repeat(60, axis=1)
    inner = np.s_[16:44, 22:38]
    assert np.abs(hidden.reshape(60, 60) - expected)[inner].mean() < 12  # of 60


def test_a_click_on_a_point_inspects_it(visit):
    page = visit(link="#tool=cloud")
    page.click(50, 12)
    x, y = (int(part.split()[1]) for part in page.text("#pixel-place").split(", "))
    assert abs(x - 50) <= 1 and abs(y - 12) <= 1


def test_the_orbit_is_limited_and_turns_back(visit):
    page = visit(link="#tool=cloud")
    for _ in range(40):
        page.press("ArrowRight")
    limited = page.picture()
    page.press("ArrowRight")
    assert difference(limited, page.picture()) < 0.5
    page.page.locator("#cloud-free").check()
    page.page.locator("h1").click()  # keys go to the field that has the focus
    page.press("ArrowRight")
    assert difference(limited, page.picture()) > 2


def test_a_link_brings_back_what_was_shown(visit):
    page = visit()
    page.press("4", "c", "m", "s", "ArrowRight", "ArrowDown", "i")
    page.click(12, 30)
    page.press("l")
    link = page.page.evaluate("location.hash")
    assert "layout=pair" in link and "map=1" in link
    again = visit(link=link)
    for selector in ("#camera-text", "#pixel-place", "#range-text"):
        assert again.text(selector) == page.text(selector)
    for side in ("#left", "#right"):
        assert again.page.locator(side).input_value() == page.page.locator(side).input_value()
    assert again.page.locator("#map").input_value() == "1"
    page.page.evaluate("location.hash = '#tool=cloud&pixel=900,-1&map=x&left=nonsense&orbit=1'")
    page.settle()  # invalid parts are ignored
    assert page.page.locator("#tools [data-tool=cloud]").get_attribute("aria-pressed") == "true"
    assert page.text("#pixel-place") == again.text("#pixel-place")


@pytest.mark.parametrize("tool", ["move", "focus", "cloud"])
def test_clips_are_saved(visit, tool):
    if os.getloadavg()[0] > 3 * (os.cpu_count() or 1):
        pytest.skip("the machine is busy: nothing is encoded in time")
    page = visit(link=f"#tool={tool}")
    with page.page.expect_download() as waiting:
        page.press("k")
    assert waiting.value.suggested_filename.endswith(".webm")
    clip = cv2.VideoCapture(str(waiting.value.path()))
    frames = []
    while (read := clip.read())[0]:
        frames.append(read[1])
    clip.release()
    assert len(frames) > 1  # a busy machine drops most of them
    assert min(frames[0].shape[:2]) > 300
    assert max(difference(frames[0], frame) for frame in frames) > 2
