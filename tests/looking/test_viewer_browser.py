"""The page in a real browser, driven as a user would: values, pictures, colours, small screens.

Needs Playwright (`pip install playwright`; its own browsers are not used) and Chromium. Any error
on the console fails the test that caused it.
"""

import os

import cv2
import numpy as np
import pytest
from browsing import PHONE, Visit, difference

from oaccdepth.disparity import DisparityMap, Pass
from oaccdepth.lightfield import LightField, as_float
from oaccdepth.looking.viewer import write_viewer

pytestmark = pytest.mark.browser


def test_opens_without_the_network(visit, scene):
    page = visit()
    assert page.text("h1") == scene.light_field.source
    assert page.text("#facts") == "9 × 9 views · 64 × 48 px · weights fast"
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_opens_quickly(visit, scene, tmp_path):
    """Under two seconds, here with software rendering (1.1 to 1.4 s on two idle cores)."""
    if os.getloadavg()[0] > 0.8 * (os.cpu_count() or 1):
        pytest.skip("the machine is busy: nothing can be measured")
    views = np.stack(
        [
            np.stack([cv2.resize(view, (512, 512)) for view in row])
            for row in scene.light_field.views
        ]
    )
    truth = cv2.resize(scene.disparity, (512, 512))
    rich_result = DisparityMap(
        truth,
        np.ones_like(truth),
        masks=as_float(views).mean(axis=4),
        passes=(Pass(truth + np.float32(0.1)), Pass(truth - np.float32(0.1)), Pass(truth)),
        evidence=np.stack([np.abs(np.sin(truth + level)) for level in range(9)]),
        levels=tuple(range(-4, 5)),
    )
    write_viewer(tmp_path / "large.html", LightField(views), rich_result, truth=truth)
    times = []
    for _ in range(3):
        page = visit(tmp_path / "large.html")
        times.append(int(page.page.evaluate("document.documentElement.dataset.readyMs")))
    assert min(times) < 2000


def test_hover_shows_the_numbers_of_the_files(visit, scene, rich_result):
    page = visit()
    depth = rich_result.depth_mm()
    for x, y in ((0, 0), (20, 30), (38, 12), (63, 47), (11, 40)):
        page.hover(x, y)
        value = rich_result.disparity[y, x]
        assert (page.number("x"), page.number("y")) == (str(x), str(y))
        assert page.number("disparity") == f"{value:.3f} px".replace("-0.000", "0.000")
        assert page.number("confidence") == f"{rich_result.confidence[y, x]:.2f}"
        shown = page.number("depth")
        expected = depth[y, x]
        text = f"{expected / 1000:.2f} m" if expected >= 1000 else f"{expected:.1f} mm"
        assert shown == ("∞" if np.isinf(expected) else text)
        error = float(value - scene.disparity[y, x])
        assert float(page.number("error").split()[0]) == pytest.approx(error, abs=6e-4)
    page.hover(20, 45)
    assert page.number("disparity") == "unknown"


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


def test_wipe_is_as_long_as_the_picture(visit):
    page = visit(viewport={"width": 1000, "height": 1600})
    (_, top), (_, bottom) = page.spot(0, 0), page.spot(0, 47)
    handle = page.page.locator("#handle").bounding_box()
    assert handle["y"] == pytest.approx(top, abs=8)
    assert handle["y"] + handle["height"] == pytest.approx(bottom, abs=8)


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


def test_inspector(visit, scene, rich_result):
    """The masks by their numbers, the EPIs by their colours, the line by its slope."""
    page = visit()
    x, y = 44, 30
    page.click(x, y)
    assert page.text("#pixel-place") == f"x {x}, y {y}"
    facts = page.text("#pixel-facts")
    first, last = (f"{each.disparity[y, x]:.3f}".replace("-", "−") for each in rich_result.passes)
    assert f"{first} → {last}" in facts
    cells = page.page.locator("#masks")
    for u, v in ((0, 0), (4, 4), (7, 2)):
        box = cells.bounding_box()
        side = box["width"] / 9
        cells.hover(position={"x": (v + 0.5) * side, "y": (u + 0.5) * side})
        text = page.text("#cell")
        assert text.startswith(f"View in row {u}, column {v}: mask ")
        assert float(text.split()[-1]) == pytest.approx(rich_result.masks[u, v, y, x], abs=0.12)
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


def test_passes_and_error_are_compared(visit, scene, rich_result):
    page = visit()
    page.press("3")
    chosen = [page.page.locator(side).input_value() for side in ("#left", "#right")]
    assert chosen == ["pass-1", "pass-2"]
    page.press("5", "x", "a")
    assert page.page.locator("#left").input_value() == "error"
    assert " ".join(page.text("#legend-left").split()) == "−0.20 px farther 0 0.20 px nearer"
    page.hide_marks()
    seen = page.picture().astype(int)
    error = rich_result.disparity - scene.disparity
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
    page.page.locator("#low").fill("99")  # above the upper end: rejected
    page.page.keyboard.press("Tab")
    assert page.page.locator("#low").input_value() == "1.00"
    page.page.locator("h1").click()
    page.press("r")
    assert difference(page.picture(), second) < 1


def test_mask_of_a_view(visit, scene, rich_result):
    page = visit()
    page.page.locator("#masks").click(position={"x": 5, "y": 5})
    page.settle()
    chosen = page.page.locator("#right")
    assert chosen.input_value() == "mask"
    assert chosen.locator("option:checked").inner_text() == "Mask: row 0, column 0"
    page.press("x", "a")
    page.hide_marks()
    assert difference(page.picture()[..., 0], rich_result.masks[0, 0] * 255) < 8
    page.page.locator("#patch").click(position={"x": 5, "y": 5})
    page.settle()
    assert page.text("#camera-text") == "row 0.0, column 0.0"
    assert page.page.locator("#left").input_value() == "view"
    assert difference(page.picture(), scene.light_field.views[0, 0] * 255) < 7


def test_zoom_and_pan(visit, rich_result):
    page = visit()
    page.hover(40, 20)
    page.page.mouse.wheel(0, -400)
    page.settle()
    page.page.mouse.move(*page.spot(40, 20))
    page.settle()
    assert (page.number("x"), page.number("y")) == ("40", "20")  # zoomed around the pointer
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
    page.press("w")  # keys do nothing while the list is open
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


def test_phone(visit, rich_result):
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    room = page.page.locator("#readout").bounding_box()
    page.page.touchscreen.tap(*page.spot(50, 30))
    page.settle()
    assert page.text("#pixel-place") == "x 50, y 30"
    assert page.page.locator("#readout").bounding_box() == room  # nothing below it moves
    value = rich_result.disparity[30, 50]
    assert page.number("disparity") == f"{value:.3f} px"  # visible; the card is below the fold
    last = page.page.locator("#numbers span").last.bounding_box()
    assert last["x"] + last["width"] <= PHONE["width"] - 10
    page.page.locator("#tools [data-tool=move]").tap()
    page.settle()
    assert page.text("#readout") == "Drag over the picture to move through the views."
    stage = page.page.locator("#viewport").bounding_box()
    assert stage["width"] / stage["height"] == pytest.approx(64 / 48, rel=0.01)  # no scroll bars
    for layout in ("pair", "single", "wipe"):
        button = page.page.locator(f"#layouts [data-layout={layout}]")
        button.tap()
        page.settle()
        assert button.get_attribute("aria-pressed") == "true"
    page.page.locator("#tools [data-tool=focus]").tap()
    page.page.touchscreen.tap(*page.spot(20, 10))
    page.settle()
    shown = page.text("#focus-text").split()[0].replace("−", "-")
    assert float(shown) == pytest.approx(rich_result.disparity[10, 20], abs=0.006)


def test_everything_is_large_enough_for_a_finger(visit):
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    small = """() => [...document.querySelectorAll("button, select, input, label.check, summary")]
        .filter((part) => part.type !== "checkbox" && part.checkVisibility())
        .map((part) => [part.id || part.textContent, part.getBoundingClientRect()])
        .filter(([, box]) => Math.min(box.width, box.height) < 44).map(([name]) => name)"""
    for tool in ("inspect", "move", "focus", "cloud"):
        page.page.locator(f"#tools [data-tool={tool}]").tap()
        page.settle()
        assert page.page.evaluate(small) == []
    page = visit(viewport=PHONE, link="", has_touch=True, is_mobile=True)
    assert page.page.evaluate(small) == []
    assert page.page.evaluate("document.documentElement.scrollHeight") <= PHONE["height"]


def test_pinch(visit):
    """Spreading two fingers enlarges the picture around the point between them."""
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
    assert place in {"x 20, y 30", "x 21, y 30"}  # the fingers do not move simultaneously
    right, _ = page.spot(24, 30)  # four times as large: four pixels on the screen are one
    page.page.touchscreen.tap(right, y)
    page.settle()
    assert page.text("#pixel-place") == f"x {int(place[2:4]) + 1}, y 30"


def test_names_are_shown_as_text(visit, scene, rich_result, tmp_path):
    name = "<script>alert(1)</script>"
    light_field = LightField(scene.light_field.views, source=name, notes=("<img src=x onerror=1>",))
    write_viewer(tmp_path / "page.html", light_field, rich_result)
    page = visit(tmp_path / "page.html")
    assert page.text("h1") == name
    assert page.page.title() == f"{name} · oaccdepth"
    page.page.locator("#about summary").click()
    assert "<img src=x onerror=1>" in page.text("#about-notes")
    assert page.page.locator("#about-notes img").count() == 0


def test_without_views(visit, rich_result, tmp_path):
    write_viewer(
        tmp_path / "page.html", None, DisparityMap(rich_result.disparity, rich_result.confidence)
    )
    page = visit(tmp_path / "page.html")
    assert page.page.locator("#move-card").is_hidden()
    assert page.page.locator("#tools [data-tool=focus]").is_hidden()
    page.hover(20, 30)
    assert page.number("disparity") == f"{rich_result.disparity[30, 20]:.3f} px"
    page.click(20, 30)
    page.press("f", "m")  # nothing to focus or to look around in
    page.press("d")
    page.page.wait_for_timeout(300)
    assert page.picture().std() > 10


def test_masks_are_computed_where_none_were_kept(visit, scene, rich_result, tmp_path):
    plain = DisparityMap(scene.disparity, rich_result.confidence)
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
    page = Visit(launch("--disable-3d-apis"), page_file, link="")
    assert page.page.locator("#trouble").is_visible()
    assert "This browser does not support WebGL 2." in page.text("#trouble")
    assert page.page.locator("#trouble-pictures canvas").count() == 3
    visible = page.page.locator("button:visible, input:visible, select:visible")
    assert visible.evaluate_all("(parts) => parts.map((part) => part.id)") == ["theme"]
    page.close()
