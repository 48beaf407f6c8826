"""The page in a real browser: Chromium, without a screen, drives it as a user would.

Needs Playwright (`pip install playwright`; its own browsers are not used) and Chromium. Any error
on the console fails the test that caused it.
"""

import os
import shutil

import cv2
import numpy as np
import pytest

from oaccdepth.disparity import DisparityMap, Pass, Provenance
from oaccdepth.lightfield import LightField, as_float
from oaccdepth.looking.refocus import refocus
from oaccdepth.looking.viewer import write_viewer
from oaccdepth.writers.pictures import colourise

playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
        if (found := shutil.which(name))
    ),
    None,
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]

FLAGS = [
    "--no-sandbox",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SOFTWARE_GRAPHICS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
PATIENCE_MS = 60_000  # the machine may be busy


@pytest.fixture(scope="module")
def result(scene):
    rng = np.random.default_rng(4)
    truth = scene.disparity
    disparity = truth + rng.normal(0, 0.03, truth.shape).astype(np.float32)
    disparity[45, 20] = np.nan
    levels = tuple(float(level) for level in range(-4, 5))
    evidence = np.exp(-((np.array(levels)[:, None, None] - truth) ** 2)).astype(np.float32)
    return DisparityMap(
        disparity,
        rng.uniform(0, 1, truth.shape).astype(np.float32),
        masks=cv2.GaussianBlur(
            scene.visibility.reshape(81, 48, 64).astype(np.float32).transpose(1, 2, 0), (0, 0), 1
        )
        .transpose(2, 0, 1)
        .reshape(9, 9, 48, 64),
        passes=(Pass(cv2.GaussianBlur(truth, (0, 0), 2)), Pass(disparity)),
        evidence=evidence / evidence.sum(axis=0),
        levels=levels,
        camera=scene.light_field.camera,
        made_with=Provenance(version="0.1.0", weights="fast", seconds={"total": 1.5}),
    )


@pytest.fixture(scope="module")
def page_file(scene, result, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "view.html"
    write_viewer(path, scene.light_field, result, truth=scene.disparity)
    return path


@pytest.fixture(scope="module")
def launch():
    """Start browsers; all are closed at the end."""
    with playwright.sync_playwright() as driver:
        started = []

        def start(*flags):
            path = CHROMIUM
            started.append(driver.chromium.launch(executable_path=path, args=[*FLAGS, *flags]))
            return started[-1]

        yield start
        for browser in started:
            browser.close()


@pytest.fixture(scope="module")
def browser(launch):
    return launch(*SOFTWARE_GRAPHICS)


class Visit:
    """A page in the browser, and what it did."""

    def __init__(self, browser, path, viewport, **settings):
        self.context = browser.new_context(viewport=viewport, reduced_motion="reduce", **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self.listen)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.wait("html[data-state=complete], html[data-state=no-graphics]")

    def listen(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def wait(self, selector):
        self.page.wait_for_selector(selector, state="attached")

    def settle(self):
        """Let the page draw what it has to."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def close(self):
        self.context.close()
        assert self.errors == []

    # Where the picture of 64 x 48 px lies, and what is seen of it.

    def spot(self, x, y):
        """Place on the screen of the middle of a picture's pixel, in the layouts of one pane."""
        box = self.page.locator("#viewport").bounding_box()
        scale = min(box["width"] / 64, box["height"] / 48)
        left = box["x"] + (box["width"] - 64 * scale) / 2
        top = box["y"] + (box["height"] - 48 * scale) / 2
        return left + (x + 0.5) * scale, top + (y + 0.5) * scale

    def hover(self, x, y):
        self.page.mouse.move(*self.spot(x, y))
        self.settle()

    def click(self, x, y):
        self.page.mouse.click(*self.spot(x, y))
        self.settle()

    def number(self, name):
        return self.text(f"#numbers b[data-name={name}]").replace("−", "-")

    def hide_marks(self):
        self.page.evaluate(
            "() => { for (const id of ['marks', 'left', 'right', 'handle'])"
            " document.getElementById(id).style.setProperty('visibility', 'hidden') }"
        )

    def picture(self):
        """What is seen at the middle of every pixel of the picture, (48, 64, 3)."""
        self.settle()
        shot = cv2.imdecode(np.frombuffer(self.page.screenshot(), np.uint8), cv2.IMREAD_COLOR)
        (left, top), (right, bottom) = self.spot(0, 0), self.spot(63, 47)
        columns = np.linspace(left, right, 64).astype(int)
        rows = np.linspace(top, bottom, 48).astype(int)
        return shot[rows][:, columns, ::-1]


@pytest.fixture
def visit(browser, page_file):
    opened = []

    def open_page(path=page_file, viewport=WIDE, **settings):
        opened.append(Visit(browser, path, viewport, **settings))
        return opened[-1]

    yield open_page
    for one in opened:
        one.close()


def difference(a, b):
    """Mean distance of two pictures, in steps of 255."""
    return np.abs(a.astype(float) - b.astype(float)).mean()


def test_opens_without_the_network(visit, scene):
    page = visit()
    assert page.text("h1") == scene.light_field.source
    assert page.text("#facts") == "9 × 9 views · 64 × 48 px · weights fast · 1.5 s"
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_opens_quickly(visit, scene, tmp_path):
    """Under two seconds, here with graphics in software (1.1 to 1.4 s on two idle cores)."""
    if os.getloadavg()[0] > 0.8 * (os.cpu_count() or 1):
        pytest.skip("the machine is busy: nothing can be measured")
    views = np.stack(
        [
            np.stack([cv2.resize(view, (512, 512)) for view in row])
            for row in scene.light_field.views
        ]
    )
    truth = cv2.resize(scene.disparity, (512, 512))
    result = DisparityMap(
        truth,
        np.ones_like(truth),
        masks=as_float(views).mean(axis=4),
        passes=(Pass(truth + np.float32(0.1)), Pass(truth - np.float32(0.1)), Pass(truth)),
        evidence=np.stack([np.abs(np.sin(truth + level)) for level in range(9)]),
        levels=tuple(range(-4, 5)),
    )
    write_viewer(tmp_path / "large.html", LightField(views), result, truth=truth)
    times = []
    for _ in range(3):
        page = visit(tmp_path / "large.html")
        times.append(int(page.page.evaluate("document.documentElement.dataset.readyMs")))
    assert min(times) < 2000


def test_hover_shows_the_numbers_of_the_files(visit, scene, result):
    page = visit()
    depth = result.depth_mm()
    for x, y in ((0, 0), (20, 30), (38, 12), (63, 47), (11, 40)):
        page.hover(x, y)
        value = result.disparity[y, x]
        assert (page.number("x"), page.number("y")) == (str(x), str(y))
        assert page.number("disparity") == f"{value:.3f} px".replace("-0.000", "0.000")
        assert page.number("confidence") == f"{result.confidence[y, x]:.2f}"
        shown = page.number("depth")
        expected = depth[y, x]
        text = f"{expected / 1000:.2f} m" if expected >= 1000 else f"{expected:.1f} mm"
        assert shown == ("∞" if np.isinf(expected) else text)
        error = float(value - scene.disparity[y, x])
        assert float(page.number("error").split()[0]) == pytest.approx(error, abs=6e-4)
    page.hover(20, 45)
    assert page.number("disparity") == "not known"


def test_wipe(visit):
    page = visit()
    page.page.locator("#left").select_option("view")
    page.settle()
    before = page.picture()
    x, y = page.spot(31.5, 24)
    target, _ = page.spot(10, 24)
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(target, y, steps=4)
    page.page.mouse.up()
    page.page.mouse.move(5, 5)
    page.settle()
    assert page.page.locator("#handle").get_attribute("aria-valuenow") == "16"
    after = page.picture()
    assert difference(before[20:40, 14:28], after[20:40, 14:28]) > 10  # was view, is disparity
    assert difference(before[20:40, 40:60], after[20:40, 40:60]) < 1
    page.page.locator("#handle").focus()
    page.press("ArrowRight", "ArrowRight")
    assert page.page.locator("#handle").get_attribute("aria-valuenow") == "20"


def test_click_to_focus_is_the_refocusing_of_the_library(visit, scene, result):
    page = visit()
    page.press("a", "f")
    page.hide_marks()
    sharp = scene.light_field.centre * 255
    for x, y in ((38, 10), (5, 5)):  # the bar in front, the wall behind
        page.click(x, y)
        focused = page.picture()
        expected = refocus(scene.light_field, float(result.disparity[y, x])) * 255
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
    page.press("a", "l")
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
    page.page.mouse.move(box["x"] + box["width"] / 2, 5)  # away from the pictures: back
    page.settle()
    assert page.text("#camera-text") == "row 4.0, column 4.0"


def test_looking_around_moves_the_disparity_along(visit, scene, tmp_path):
    """From a corner of the grid: every point where it is seen from there, the nearest in front."""
    result = DisparityMap(scene.disparity, np.ones_like(scene.disparity))
    write_viewer(tmp_path / "page.html", scene.light_field, result)
    page = visit(tmp_path / "page.html")
    page.press("l", *["ArrowLeft", "ArrowUp"] * 4, "1", "x", "a")
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


def test_zoom_outlives_the_layout(visit):
    page = visit()
    page.hover(40, 20)
    page.page.mouse.wheel(0, -400)
    page.press("a")
    page.page.mouse.move(*page.spot(40, 20))
    page.settle()
    assert (page.number("x"), page.number("y")) == ("40", "20")
    page.page.mouse.move(*page.spot(42, 20))
    page.settle()
    assert int(page.number("x")) < 42  # still enlarged


def test_arrow_keys_move_camera_and_pixel(visit):
    page = visit()
    page.press("l", "ArrowRight", "ArrowDown")
    assert page.text("#camera-text") == "row 5.0, column 5.0"
    page.press("i")
    page.click(10, 20)
    page.press("ArrowRight", "ArrowUp", "Shift+ArrowRight")
    assert page.text("#pixel-place") == "x 16, y 19"


def test_inspector(visit, scene, result):
    """The masks by their numbers, the EPIs by their colours, the line by its slope."""
    page = visit()
    x, y = 44, 30
    page.click(x, y)
    assert page.text("#pixel-place") == f"x {x}, y {y}"
    facts = page.text("#pixel-facts")
    first, last = (f"{each.disparity[y, x]:.3f}".replace("-", "−") for each in result.passes)
    assert f"{first} → {last}" in facts
    cells = page.page.locator("#masks")
    for u, v in ((0, 0), (4, 4), (7, 2)):
        box = cells.bounding_box()
        side = box["width"] / 9
        cells.hover(position={"x": (v + 0.5) * side, "y": (u + 0.5) * side})
        text = page.text("#cell")
        assert text.startswith(f"View in row {u}, column {v}: mask ")
        assert float(text.split()[-1]) == pytest.approx(result.masks[u, v, y, x], abs=0.12)
    epi = colours_of(page, "#row-epi", 81, 9)  # x - 40 ... x + 40, one line per view
    expected = scene.light_field.views[4, :, y, x - 18 : x + 19] * 255
    away = np.abs(np.arange(-18, 19)) > 8  # the line is drawn in the middle
    assert difference(epi[:, 22:59][:, away], expected[:, away]) < 8
    assert colours_of(page, "#evidence", 40, 20).std() > 5


def colours_of(page, selector, width, height):
    """A canvas of the cards, reduced to width x height samples."""
    canvas = page.page.locator(selector)
    canvas.scroll_into_view_if_needed()
    page.page.mouse.move(5, 5)
    page.settle()
    shot = cv2.imdecode(np.frombuffer(canvas.screenshot(), np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    columns = ((np.arange(width) + 0.5) * shot.shape[1] / width).astype(int)
    rows = ((np.arange(height) + 0.5) * shot.shape[0] / height).astype(int)
    return shot[rows][:, columns]


def test_passes_and_error_are_compared(visit, scene, result):
    page = visit()
    page.press("3")
    chosen = [page.page.locator(side).input_value() for side in ("#left", "#right")]
    assert chosen == ["pass-1", "pass-2"]
    page.press("5", "x", "a")
    page.hide_marks()
    assert page.page.locator("#left").input_value() == "error"
    assert page.text("#error-key").split() == ["farther", "nearer"]
    seen = page.picture().astype(int)
    error = result.disparity - scene.disparity
    large = np.abs(error) > 0.04
    red = seen[..., 0] - seen[..., 2]
    agrees = (red > 0) == (error > 0)
    assert agrees[large & np.isfinite(error)].mean() > 0.95


def test_colours_follow_the_map_and_the_range(visit):
    page = visit()
    page.press("2", "a")
    page.hide_marks()
    first = page.picture()
    page.press("c")
    assert page.page.locator("#map").input_value() == "1"
    second = page.picture()
    assert difference(first, second) > 5
    page.page.locator("#low").fill("1")
    page.page.keyboard.press("Tab")
    page.settle()
    third = page.picture()
    assert difference(second, third) > 5
    assert len(np.unique(third.reshape(-1, 3), axis=0)) < len(
        np.unique(second.reshape(-1, 3), axis=0)
    )
    page.page.locator("#low").fill("99")  # above the upper end: not taken
    page.page.keyboard.press("Tab")
    assert page.page.locator("#low").input_value() == "1.00"
    page.page.locator("h1").click()
    page.press("r")
    assert difference(page.picture(), second) < 1


def test_mask_of_a_view(visit, scene, result):
    page = visit()
    page.page.locator("#masks").click(position={"x": 5, "y": 5})
    page.settle()
    chosen = page.page.locator("#right")
    assert chosen.input_value() == "mask"
    assert chosen.locator("option:checked").inner_text() == "Mask of view 0, 0"
    page.press("x", "a")
    page.hide_marks()
    assert difference(page.picture()[..., 0], result.masks[0, 0] * 255) < 8
    page.page.locator("#patch").click(position={"x": 5, "y": 5})
    page.settle()
    assert page.text("#camera-text") == "row 0.0, column 0.0"
    assert page.page.locator("#left").input_value() == "view"
    assert difference(page.picture(), scene.light_field.views[0, 0] * 255) < 7


def test_cloud_orbits(visit):
    page = visit()
    page.press("d")
    page.wait("#cloud canvas")
    page.page.wait_for_timeout(300)
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


def test_zoom_and_pan(visit, result):
    page = visit()
    page.hover(40, 20)
    page.page.mouse.wheel(0, -400)
    page.settle()
    page.page.mouse.move(*page.spot(40, 20))
    page.settle()
    assert (page.number("x"), page.number("y")) == ("40", "20")  # zoomed about the pointer
    page.page.mouse.move(*page.spot(42, 20))
    page.settle()
    assert int(page.number("x")) == 40 or int(page.number("x")) == 41  # pixels are larger now
    x, y = page.spot(40, 20)
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x + 120, y, steps=4)
    page.page.mouse.up()
    page.page.mouse.move(x, y)
    page.settle()
    assert int(page.number("x")) < 40
    page.press("0")
    page.hover(7, 9)
    assert (page.number("x"), page.number("y")) == ("7", "9")


def test_side_by_side_marks_both(visit):
    page = visit()
    page.press("s")
    box = page.page.locator("#viewport").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    page.settle()
    assert (page.number("x"), page.number("y")) in {("31", "24"), ("32", "24")}
    assert page.page.locator("#handle").is_hidden()


def test_help_lists_the_keys(visit):
    page = visit()
    page.press("?")
    assert page.page.locator("#keys").is_visible()
    assert "Next colour map" in page.text("#key-list")
    page.press("w")  # keys do nothing behind the list
    page.press("Escape")
    assert page.page.locator("#keys").is_hidden()


def test_light_and_dark(visit):
    colours = {}
    for scheme in ("light", "dark"):
        page = visit(color_scheme=scheme)
        assert page.page.evaluate("document.documentElement.dataset.theme") == scheme
        colours[scheme] = page.page.screenshot(clip={"x": 2, "y": 2, "width": 4, "height": 4})
        page.press("t")
        assert page.page.evaluate("document.documentElement.dataset.theme") != scheme
    assert colours["light"] != colours["dark"]


def test_phone(visit, result):
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    room = page.page.locator("#readout").bounding_box()
    page.page.touchscreen.tap(*page.spot(50, 30))
    page.settle()
    assert page.text("#pixel-place") == "x 50, y 30"
    assert page.page.locator("#readout").bounding_box() == room  # nothing below it jumps
    value = result.disparity[30, 50]
    assert page.number("disparity") == f"{value:.3f} px"  # in sight, the card is below the fold
    last = page.page.locator("#numbers span").last.bounding_box()
    assert last["x"] + last["width"] <= PHONE["width"] - 10
    page.page.locator("[data-tool=look]").tap()
    page.settle()
    assert page.text("#readout") == "Drag over the picture to move through the views."
    for layout in ("pair", "single", "cloud", "wipe"):
        button = page.page.locator(f"#layouts [data-layout={layout}]")
        button.tap()
        page.settle()
        assert button.get_attribute("aria-pressed") == "true"
    page.page.locator("[data-tool=focus]").tap()
    page.page.touchscreen.tap(*page.spot(20, 10))
    page.settle()
    shown = page.text("#focus-text").split()[0].replace("−", "-")
    assert float(shown) == pytest.approx(result.disparity[10, 20], abs=0.006)


def test_pinch(visit):
    """Two fingers that part enlarge the picture about the place between them."""
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    fingers = page.context.new_cdp_session(page.page)
    x, y = page.spot(20, 30)
    for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 80)):
        points = [{"x": x - apart / 2, "y": y, "id": 0}, {"x": x + apart / 2, "y": y, "id": 1}]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.settle()
    page.page.touchscreen.tap(x, y)
    page.settle()
    place = page.text("#pixel-place")
    assert place in {"x 20, y 30", "x 21, y 30"}  # the fingers do not move at the same moment
    right, _ = page.spot(24, 30)  # four times as large: four pixels on the screen are one
    page.page.touchscreen.tap(right, y)
    page.settle()
    assert page.text("#pixel-place") == f"x {int(place[2:4]) + 1}, y 30"


def test_travel_moves_until_it_is_stopped(visit):
    page = visit()
    start = page.text("#camera-text")
    page.press("Space")
    page.page.wait_for_function(
        "(start) => document.getElementById('camera-text').textContent !== start", arg=start
    )
    assert page.text("#play") == "Stop"
    page.press("Space")
    assert page.text("#play") == "Travel"


def test_names_are_shown_as_text(visit, scene, result, tmp_path):
    name = "<script>alert(1)</script>"
    light_field = LightField(scene.light_field.views, source=name, notes=("<img src=x onerror=1>",))
    write_viewer(tmp_path / "page.html", light_field, result)
    page = visit(tmp_path / "page.html")
    assert page.text("h1") == name
    assert page.page.title() == f"{name} · oaccdepth"
    page.page.locator("#about summary").click()
    assert "<img src=x onerror=1>" in page.text("#about-notes")
    assert page.page.locator("#about-notes img").count() == 0


def test_without_views(visit, result, tmp_path):
    write_viewer(tmp_path / "page.html", None, DisparityMap(result.disparity, result.confidence))
    page = visit(tmp_path / "page.html")
    assert page.page.locator("#camera-card").is_hidden()
    assert page.page.locator("[data-tool=focus]").is_hidden()
    page.hover(20, 30)
    assert page.number("disparity") == f"{result.disparity[30, 20]:.3f} px"
    page.click(20, 30)
    page.press("f", "l")  # nothing to focus or to look around in
    page.press("d")
    page.page.wait_for_timeout(300)
    assert page.picture().std() > 10


def test_masks_are_computed_where_none_were_kept(visit, scene, result, tmp_path):
    plain = DisparityMap(scene.disparity, result.confidence)
    write_viewer(tmp_path / "page.html", scene.light_field, plain)
    page = visit(tmp_path / "page.html")
    page.click(30, 24)
    assert page.text("#masks-origin") == "computed here"
    page.page.locator("#masks").hover(position={"x": 4, "y": 4})
    assert page.text("#cell").startswith("View in row 0, column 0: mask ")


def test_picture_is_saved(visit):
    page = visit()
    with page.page.expect_download() as waiting:
        page.press("p")
    path = waiting.value.path()
    saved = cv2.imread(str(path))
    assert saved is not None and saved.std() > 10


def test_without_webgl_it_says_so(launch, page_file):
    page = Visit(launch("--disable-3d-apis"), page_file, WIDE)
    assert page.page.locator("#trouble").is_visible()
    assert "This browser offers no WebGL 2." in page.text("#trouble")
    assert page.page.locator("#trouble-pictures canvas").count() == 2
    page.close()
