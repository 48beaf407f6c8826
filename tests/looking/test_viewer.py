"""The page as a file: what is in it, what is not, and that all data decode correctly."""

import base64
import hashlib
import html
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from oaccdepth.disparity import DisparityMap, Pass, Provenance
from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import LightField
from oaccdepth.looking.viewer import pack, page, write_viewer


@pytest.fixture
def text(page_file):
    return page_file.read_text(encoding="utf-8")


def meta_of(text):
    return json.loads(re.search(r'id="meta">(.*?)</script>', text, re.DOTALL)[1])


def block(text, name):
    found = re.search(rf'id="data-{name}">([^<]*)</script>', text)
    return None if found is None else base64.b64decode(found[1], validate=True)


def unpack_floats(data, shape):
    planes = np.frombuffer(zlib.decompress(data), np.uint8).reshape(4, *shape)
    steps = np.ascontiguousarray(planes.transpose(1, 2, 0)).view("<u4")[..., 0]
    return np.cumsum(steps, axis=1, dtype=np.uint32).view("<f4")


def picture(data):
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]


def test_disparities_are_kept_exactly(text, scene, rich_result):
    shape = rich_result.disparity.shape
    for name, expected in (
        ("disparity", np.nan_to_num(rich_result.disparity, nan=pack.NOT_A_NUMBER)),
        ("pass-1", rich_result.passes[0].disparity),
        ("truth", scene.disparity),
    ):
        assert unpack_floats(block(text, name), shape).tobytes() == expected.tobytes()


def test_the_last_pass_is_not_stored_twice(text):
    assert meta_of(text)["passes"] == ["pass-1", "disparity"]
    assert block(text, "pass-2") is None


def test_what_is_not_finite_has_a_mark():
    values = np.array([[1.5, np.nan, -2.25], [np.inf, 0.0, -np.inf]], dtype=np.float32)
    stored = unpack_floats(pack.pack_floats(values), (2, 3))
    known = np.isfinite(values)
    assert stored[known].tolist() == values[known].tolist()
    assert (stored[~known] == pack.NOT_A_NUMBER).all()


def test_confidence_masks_and_evidence_are_close(text, rich_result):
    meta = meta_of(text)
    confidence = np.frombuffer(zlib.decompress(block(text, "confidence")), np.uint8) / 255
    assert confidence == pytest.approx(rich_result.confidence.ravel(), abs=0.5 / 255 + 1e-6)
    evidence = np.frombuffer(zlib.decompress(block(text, "evidence")), np.uint8).reshape(9, 48, 64)
    assert meta["evidence"]["step"] == 1
    assert evidence / meta["evidence"]["largest"] == pytest.approx(rich_result.evidence, abs=0.01)
    mask = picture(block(text, "mask-2-6"))[..., 0] / 255
    assert np.abs(mask - rich_result.masks[2, 6]).mean() < 0.05


def test_every_view_is_there(text, scene):
    meta = meta_of(text)
    assert meta["views"]["size"] == [64, 48]
    assert len(meta["views"]["places"]) == 81
    for u, v in ((0, 0), (4, 4), (8, 3)):
        difference = picture(block(text, f"view-{u}-{v}")) / 255 - scene.light_field.views[u, v]
        assert np.abs(difference).mean() < 0.03
    centre = picture(block(text, "centre")) / 255 - scene.light_field.centre
    assert np.abs(centre).mean() < 0.03


def test_it_says_what_was_done(text):
    assert meta_of(text)["notes"] == [
        "Disparity is exact (float32); confidence has 256 steps.",
        "Masks as JPEG of quality 80, 64 x 48 px: a value may be off by a few %.",
        "Evidence has 64 steps, every pixel.",
        "81 views as JPEG of quality 92, 64 x 48 px; the centre view in full size.",
    ]


def test_only_its_own_scripts_may_run(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy
    scripts = re.findall(r"<script(?: type=\"module\")?>(.*?)</script>", text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(scripts) == 1 and len(styles) == 1
    for part in scripts + styles:
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_nothing_is_loaded(text):
    """No addresses except XML namespaces; no reference to another file."""
    without_data = re.sub(r'<script type="application/octet-stream".*?</script>', "", text)
    addresses = set(re.findall(r"https?://[\w./-]+", without_data))
    assert addresses <= {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}
    assert not re.search(
        r"<(?:script|link|img|iframe)[^>]*\s(?:src|href)=\"(?!data:)", without_data
    )


def test_names_are_text(scene, rich_result, tmp_path):
    name = '<script>alert("1")</script> & <!-- {{script}} \u2028'
    light_field = LightField(scene.light_field.views, source=name, notes=("</script><b>",))
    write_viewer(tmp_path / "page.html", light_field, rich_result)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text and "<b>" not in text
    assert meta_of(text)["scene"] == name
    assert f"<title>{html.escape(name)} · oaccdepth</title>" in text
    assert "</script><b>" in meta_of(text)["remarks"]


def test_no_path_of_this_machine(scene, rich_result, tmp_path):
    made_with = Provenance(
        weights="/home/zaphod/secret/w.safetensors",
        options={"weights": "/home/zaphod/secret/w.safetensors"},
        notes=("read /home/zaphod/scenes/town: as asked", r"C:\Users\zaphod\x.h5"),
    )
    light_field = LightField(scene.light_field.views, source="/home/zaphod/scenes/town")
    write_viewer(tmp_path / "page.html", light_field, replace(rich_result, made_with=made_with))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "zaphod" not in text and str(tmp_path) not in text
    meta = meta_of(text)
    assert meta["scene"] == "town" and meta["made"]["weights"] == "w.safetensors"
    assert meta["remarks"] == ["read town: as asked", "x.h5"]


def test_without_a_light_field(rich_result, tmp_path):
    write_viewer(tmp_path / "page.html", None, rich_result)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "views" not in meta_of(text) and block(text, "centre") is None
    assert meta_of(text)["scene"] == "light field"
    assert block(text, "disparity") is not None


def test_grey_and_other_types_and_missing_views(scene, rich_result, tmp_path):
    views = np.rint(scene.light_field.views[..., :1] * 65535).astype(np.uint16)
    valid = np.ones((9, 9), dtype=bool)
    valid[0, 0] = valid[8, 2] = False
    write_viewer(tmp_path / "page.html", LightField(views, valid=valid), rich_result)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(meta_of(text)["views"]["places"]) == 79
    assert block(text, "view-0-0") is None
    grey = picture(block(text, "view-4-4"))[..., :1] / 255
    difference = grey - scene.light_field.views[4, 4, ..., :1]
    assert np.abs(difference).mean() < 0.03


def test_views_are_made_smaller_if_there_are_too_many(scene, rich_result, tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "MAX_VIEW_PIXELS", 81 * 48 * 64 - 1)
    write_viewer(tmp_path / "page.html", scene.light_field, rich_result)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert meta_of(text)["views"]["size"] == [32, 24]
    assert meta_of(text)["notes"][-1] == (
        "81 views as JPEG of quality 92, 32 x 24 px (made 2 times smaller); "
        "the centre view in full size."
    )
    assert picture(block(text, "centre")).shape == (48, 64, 3)


def test_a_scene_of_the_benchmark_s_size_fits(tmp_path):
    """9x9 views of 512x512 px, as detailed as its hardest scenes: under 12 MB with everything."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (600, 600, 3), dtype=np.uint8)
    texture = cv2.addWeighted(noise, 0.35, cv2.GaussianBlur(noise, (0, 0), 6), 0.65, 0)
    views = np.stack(
        [np.stack([texture[2 * u :, 2 * v :][:512, :512] for v in range(9)]) for u in range(9)]
    )
    disparity = rng.normal(0, 1, (512, 512)).astype(np.float32)
    blurred = cv2.GaussianBlur(rng.random((512, 512), dtype=np.float32), (0, 0), 1)
    result = DisparityMap(
        disparity,
        confidence=rng.random((512, 512), dtype=np.float32),
        masks=np.broadcast_to(blurred, (9, 9, 512, 512)),
        passes=(Pass(disparity[::-1]), Pass(disparity)),
    )
    write_viewer(tmp_path / "page.html", LightField(views), result, truth=disparity + 1)
    assert (tmp_path / "page.html").stat().st_size < 12_000_000


def test_parts_of_different_sizes_are_refused(scene, rich_result, tmp_path):
    with pytest.raises(InvalidOption) as caught:
        write_viewer(tmp_path / "page.html", None, rich_result, truth=scene.disparity[:40])
    assert str(caught.value) == (
        "ground truth: 64x40 px, but the disparity map has 64x48. "
        "They must belong to the same light field."
    )
    assert not list(tmp_path.iterdir())


def test_scripts_become_one_module():
    folder = Path(page.__file__).parent / "js"
    assert sorted(path.name for path in folder.iterdir()) == sorted(page.SCRIPTS)
    script = page._script()
    assert not re.search(r"^\s*(?:import|export)\b", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)), "one name for two things of two files"
