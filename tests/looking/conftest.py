"""A result, its page, and a browser to look at it with."""

import cv2
import numpy as np
import pytest
from browsing import CHROMIUM, FLAGS, SOFTWARE_GRAPHICS, WIDE, Visit

from oaccdepth.disparity import DisparityMap, Pass, Provenance
from oaccdepth.looking.viewer import write_viewer


@pytest.fixture(scope="session")
def rich_result(scene):
    """A result with everything that a page can show."""
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


@pytest.fixture(scope="session")
def page_file(scene, rich_result, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "view.html"
    write_viewer(path, scene.light_field, rich_result, truth=scene.disparity)
    return path


@pytest.fixture(scope="session")
def launch():
    """Start browsers; all are closed at the end."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as driver:
        started = []

        def start(*flags):
            if CHROMIUM is None:
                pytest.skip("needs Chromium")
            started.append(driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags]))
            return started[-1]

        yield start
        for browser in started:
            browser.close()


@pytest.fixture(scope="session")
def browser(launch):
    return launch(*SOFTWARE_GRAPHICS)


@pytest.fixture
def visit(browser, page_file):
    opened = []

    def open_page(path=page_file, viewport=WIDE, **settings):
        opened.append(Visit(browser, path, viewport, **settings))
        return opened[-1]

    yield open_page
    for one in opened:
        one.close()
