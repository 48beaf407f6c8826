"""Real light fields from ../shared/samples, if available."""

from pathlib import Path

import numpy as np
import pytest

from oaccdepth import readers
from oaccdepth.options import ReadOptions

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="no ../shared/samples")


def best_disparity(views, rows, columns):
    """Disparity of a part of the centre view: smallest difference to all views around it."""
    count_u, count_v = views.shape[:2]
    grey = views.astype(np.float32).mean(axis=-1)
    candidates = np.arange(-3, 3.01, 0.1)
    costs = []
    for disparity in candidates:
        cost = 0.0
        for u, v in np.ndindex(count_u, count_v):
            du, dv = u - count_u // 2, v - count_v // 2
            y = np.arange(rows.start, rows.stop)[:, None] - disparity * du
            x = np.arange(columns.start, columns.stop)[None] - disparity * dv
            y0, x0 = np.floor(y).astype(int), np.floor(x).astype(int)
            fy, fx = y - y0, x - x0
            view = grey[u, v]
            moved = (
                view[y0, x0] * (1 - fy) * (1 - fx)
                + view[y0 + 1, x0] * fy * (1 - fx)
                + view[y0, x0 + 1] * (1 - fy) * fx
                + view[y0 + 1, x0 + 1] * fy * fx
            )
            cost += float(np.abs(moved - grey[count_u // 2, count_v // 2][rows, columns]).mean())
        costs.append(cost)
    return float(candidates[int(np.argmin(costs))])


def test_lytro_illum(caplog):
    found = readers.read(SAMPLES / "lytro-illum-2067")
    assert (found.grid, found.resolution, found.format) == ((9, 9), (383, 552), "view-folder")
    assert found.notes == () and caplog.messages == []


def test_lytro_f01_in_three_layouts(caplog):
    views = readers.read(SAMPLES / "lytro-f01-5x5" / "views")
    assert (views.grid, views.resolution, views.notes) == ((5, 5), (256, 256), ())
    mosaic = readers.read(SAMPLES / "lytro-f01-5x5" / "IMG_0001_adownsampled_uvst.png")
    assert mosaic.notes[0] == "The views lie in serpentine-columns order: corrected."
    assert "near and far" in mosaic.notes[1]  # the picture does not tell, and a note says so
    assert np.array_equal(mosaic.views, views.views)
    lenslet = readers.read(
        SAMPLES / "lytro-f01-5x5" / "IMG_0001_adownsampled_stuv.png", ReadOptions(views=(5, 5))
    )
    assert lenslet.notes[0] == "Camera rows and columns are exchanged: corrected."
    assert np.array_equal(lenslet.views, views.views)
    assert len(caplog.messages) == len(mosaic.notes) + len(lenslet.notes)
    flower = best_disparity(views.views, slice(90, 140), slice(120, 200))
    meadow = best_disparity(views.views, slice(30, 80), slice(10, 50))
    assert meadow < flower - 0.1 < 0  # both are behind the focus; nearer is larger


def test_stanford_knights(caplog):
    found = readers.read(SAMPLES / "knights-3x3")
    assert (found.grid, found.notes, caplog.messages) == ((3, 3), (), [])
    knight = best_disparity(found.views, slice(100, 180), slice(70, 150))
    wall = best_disparity(found.views, slice(100, 180), slice(195, 240))
    assert wall < -1 < 1 < knight


def test_matlab_5(caplog):
    found = readers.read(SAMPLES / "mat-v5-3x3" / "lightField.mat")
    assert (found.grid, found.resolution, found.format) == ((3, 3), (558, 758), "matlab")
    assert found.views.dtype == np.float32
    assert found.notes == () and caplog.messages == []


def test_all_are_found():
    found = [str(path.relative_to(SAMPLES)) for path in readers.find(SAMPLES)]
    assert found == [
        "knights-3x3",
        "lytro-f01-5x5/views",
        "lytro-illum-2067",
        "mat-v5-3x3/lightField.mat",
    ]
