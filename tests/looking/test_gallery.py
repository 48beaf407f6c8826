"""The index page: thumbnails taken from the pages, working links, names as plain text."""

import base64
import hashlib
import io
import re

import cv2
import numpy as np
import pytest
from browsing import difference
from PIL import Image

from oaccdepth.disparity import DisparityMap
from oaccdepth.lightfield import LightField
from oaccdepth.looking.gallery import Entry, read_frames, write_gallery
from oaccdepth.looking.viewer import write_viewer


@pytest.fixture(scope="module")
def folder(scene, tmp_path_factory):
    """Two results, one of them in a folder with a tricky name, and an index."""
    root = tmp_path_factory.mktemp("gallery")
    result = DisparityMap(scene.disparity, np.ones_like(scene.disparity))
    entries = []
    for name in ("town", "a <b> & 50%"):
        page = root / name / "view.html"
        page.parent.mkdir()
        write_viewer(page, scene.light_field, result)
        entries.append(Entry(name, page, scene.disparity, {"MSE x100": "0.123", "time": "1.0 s"}))
    entries.append(Entry("broken", message="<no views>"))
    write_gallery(root / "index.html", entries, "results", ["3 scenes", "mean 1 < 2"])
    return root


def test_frames_are_the_views_of_the_middle_row(folder, scene):
    frames = read_frames(folder / "town" / "view.html")
    assert len(frames) == 9
    for v in (0, 4, 8):
        assert difference(frames[v], scene.light_field.views[4, v] * 255) < 7  # JPEG


def test_frames_of_a_column_of_views_and_of_many(scene, tmp_path):
    result = DisparityMap(scene.disparity, np.ones_like(scene.disparity))
    views = scene.light_field.views
    write_viewer(tmp_path / "column.html", LightField(views[:, 4:5]), result)
    frames = read_frames(tmp_path / "column.html")
    assert difference(frames[0], views[0, 4] * 255) < 7
    wide = LightField(np.concatenate([views[4:5], views[4:5]], axis=1))
    write_viewer(tmp_path / "wide.html", wide, result)
    assert len(read_frames(tmp_path / "wide.html")) == 9
    write_viewer(tmp_path / "none.html", None, result)
    assert read_frames(tmp_path / "none.html") == []


@pytest.mark.parametrize(
    ("found", "instead"),
    [
        (r'"grid":\[9,9\]', '"grid":"all"'),
        (r'"grid":\[9,9\]', '"grid"'),
        (r'id="data-view-4-4">[^<]*', 'id="data-view-4-4">AAAA'),
        (r'id="data-view-4-4">', 'id="data-view-4">'),
        (r'id="data-view-4-4">', 'id="data-view-4-four">'),
    ],
)
def test_a_damaged_page_has_no_frames(folder, tmp_path, capfd, found, instead):
    text = (folder / "town" / "view.html").read_text(encoding="utf-8")
    damaged, count = re.subn(found, instead, text)
    assert count == 1
    (tmp_path / "view.html").write_text(damaged, encoding="utf-8")
    assert read_frames(tmp_path / "view.html") == []
    assert capfd.readouterr() == ("", "")  # no library prints anything, either


def test_a_page_with_views_of_different_sizes(folder, tmp_path):
    """They cannot be put side by side: no moving thumbnail, but there is still an index."""
    small = io.BytesIO()
    Image.new("RGB", (8, 4)).save(small, "JPEG")
    picture = base64.b64encode(small.getvalue()).decode()
    text = (folder / "town" / "view.html").read_text(encoding="utf-8")
    damaged, count = re.subn(r'(id="data-view-4-4">)[^<]*', rf"\g<1>{picture}", text)
    assert count == 1
    (tmp_path / "view.html").write_text(damaged, encoding="utf-8")
    write_gallery(tmp_path / "index.html", [Entry("town", tmp_path / "view.html")], "all", [])
    assert 'class="look"' not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_names_are_text_and_links_lead_to_the_pages(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert "<b>" not in text and "a &lt;b&gt; &amp; 50%" in text
    assert "&lt;no views&gt;" in text and "1 &lt; 2" in text
    links = re.findall(r'<a href="([^"]+)"', text)
    assert links == ["town/view.html", "a%20%3Cb%3E%20%26%2050%25/view.html"]
    assert str(folder) not in text


def test_it_loads_nothing_and_runs_only_its_own_script(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(scripts) == len(styles) == 1 and "unsafe" not in policy
    for part in scripts + styles:
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(r"\ssrc=\"(?!data:)", text)


@pytest.mark.browser
def test_hovering_looks_around(visit, folder, scene):
    page = visit(folder / "index.html", link="", waits=False)
    card = page.page.locator(".card").first
    look = card.locator(".look")
    seen = {}
    for name, part in (("left", 0.02), ("right", 0.98)):
        box = card.bounding_box()
        page.page.mouse.move(box["x"] + part * box["width"], box["y"] + 20)
        page.settle()
        shot = cv2.imdecode(np.frombuffer(look.screenshot(), np.uint8), cv2.IMREAD_COLOR)
        seen[name] = cv2.resize(shot, (64, 48), interpolation=cv2.INTER_AREA)[..., ::-1]
    views = scene.light_field.views[4] * 255
    assert difference(seen["left"], views[0]) < difference(seen["left"], views[8])
    assert difference(seen["right"], views[8]) < difference(seen["right"], views[0])
    page.page.locator(".card a").nth(1).click()
    page.wait("html[data-state=complete]")
    assert page.page.title().endswith("· oaccdepth")
