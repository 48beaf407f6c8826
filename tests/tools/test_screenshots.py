"""The README's pictures: all are written, small, and show what they should."""

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from browsing import CHROMIUM

from oaccdepth.batch.report import INDEX_FILE
from oaccdepth.disparity import DisparityMap
from oaccdepth.looking.gallery import Entry, write_gallery
from oaccdepth.looking.viewer import write_viewer
from oaccdepth.writers import masks, results, scenes

pytestmark = pytest.mark.browser
TOOLS = Path(__file__).parents[2] / "tools"


PROGRAM = """
import sys
from pathlib import Path
import screenshots
folder = Path(sys.argv[1])
screenshots.DOCS = folder.parent
screenshots.take_pictures(folder, folder)
"""


def test_all_pictures(scene, tmp_path):
    """In its own process: other tests have a browser open; Playwright runs once per process."""
    pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    camera = scene.light_field.camera
    result = DisparityMap(scene.disparity, np.ones_like(scene.disparity), camera=camera)
    folder = tmp_path / "demo"
    results.write(result, folder)
    write_viewer(folder / "view.html", scene.light_field, result)
    scenes.write_light_field(
        scenes.with_8_bits(scene.light_field), folder / "still-life", truth=scene.disparity
    )
    masks.write_masks({".": scene.visibility.astype(np.float32)}, folder / "masks")
    entry = Entry("demo", folder / "view.html", scene.disparity)
    write_gallery(folder / INDEX_FILE, [entry], "scenes", [])
    paths = {"PYTHONPATH": os.pathsep.join([str(TOOLS), *sys.path])}
    subprocess.run([sys.executable, "-c", PROGRAM, folder], check=True, env=os.environ | paths)
    for name in ("picture", "page", "cloud", "gallery"):
        path = tmp_path / f"{name}.png"
        assert path.stat().st_size < 300_000
        assert cv2.imread(str(path)).std() > 10
    picture = cv2.imread(str(tmp_path / "picture.png"))
    assert picture.shape[1] > 2 * 440
