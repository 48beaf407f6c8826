"""The README's pictures: all are written, small, and show what they should."""

import importlib.util
from pathlib import Path

import cv2
import numpy as np
import pytest

from oaccdepth.batch.report import INDEX_FILE
from oaccdepth.disparity import DisparityMap
from oaccdepth.looking.gallery import Entry, write_gallery
from oaccdepth.looking.viewer import write_viewer
from oaccdepth.writers import masks, results, scenes

pytestmark = pytest.mark.browser
TOOL = Path(__file__).parents[2] / "tools" / "screenshots.py"


@pytest.fixture(scope="module")
def tool():
    pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    specification = importlib.util.spec_from_file_location("screenshots", TOOL)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    if not Path(module.CHROMIUM).exists():
        pytest.skip("needs Chromium")
    return module


def test_all_pictures(tool, scene, tmp_path, monkeypatch):
    camera = scene.light_field.camera
    result = DisparityMap(scene.disparity, np.ones_like(scene.disparity), camera=camera)
    folder = tmp_path / "demo"
    results.write(result, folder)
    write_viewer(folder / "view.html", scene.light_field, result)
    scenes.write_light_field(
        scenes.with_8_bits(scene.light_field), folder / "scene", truth=scene.disparity
    )
    masks.write_masks({".": scene.visibility.astype(np.float32)}, folder / "masks")
    entry = Entry("demo", folder / "view.html", scene.disparity)
    write_gallery(folder / INDEX_FILE, [entry], "scenes", {})
    monkeypatch.setattr(tool, "DOCS", tmp_path)
    tool.main(folder, folder)
    for name in ("picture", "page", "cloud", "gallery"):
        path = tmp_path / f"{name}.png"
        assert path.stat().st_size < 300_000
        assert cv2.imread(str(path)).std() > 10
    picture = cv2.imread(str(tmp_path / "picture.png"))
    assert picture.shape[1] > 2 * 440
