"""The pictures of the documents: what a result looks like, its page, and the page of a batch.

python tools/screenshots.py [FOLDER]: runs the demo and a batch of rendered scenes in FOLDER (by
default a temporary one), then writes picture.png, page.png, cloud.png and gallery.png to docs/,
each under 300 kB. Needs Playwright (`pip install playwright`) and Chromium.
"""

import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from oaccdepth import readers
from oaccdepth.looking import figures
from oaccdepth.writers.drawing import rasterise
from oaccdepth.writers.pictures import Picture
from oaccdepth.writers.results import VIEWER_FILE, read_result

DOCS = Path(__file__).parents[1] / "docs"
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]
WINDOW = {"width": 1440, "height": 900}
LARGEST = 290_000  # bytes of a picture
PATIENCE_MS = 120_000
GALLERY_SEEDS = (9, 18)  # of four scenes each


def take_pictures(result: Path, batch: Path) -> None:
    """Take all pictures of a result of `demo` and of one of `batch --view`."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = result / VIEWER_FILE
        with visit(browser, page, "#tool=inspect") as shown:
            store(DOCS / "page.png", screenshot(shown))
        with visit(browser, page, "#tool=cloud") as shown:
            turn(shown)
            cloud = screenshot(shown, "#viewport")
            store(DOCS / "cloud.png", screenshot(shown))
        store(DOCS / "picture.png", compose(result, cloud))
        with visit(browser, batch / "index.html", "", None) as shown:
            store(DOCS / "gallery.png", screenshot(shown, "body"))
        browser.close()


def make_results(folder: Path) -> tuple[Path, Path]:
    """Run the demo, and a batch of the scenes named in docs/gallery.md."""
    demo, scenes, gallery = (folder / name for name in ("demo", "scenes", "gallery"))
    run("demo", "-o", demo, "--overwrite")
    for seed in GALLERY_SEEDS:
        run("render", "-o", scenes, "--scenes", 4, "--seed", seed)
    run("batch", scenes, "-o", gallery, "--view")
    return demo, gallery


def run(*words: object) -> None:
    """Run one of our commands in this environment."""
    subprocess.run([sys.executable, "-m", "oaccdepth", *map(str, words)], check=True)


@contextmanager
def visit(
    browser: Browser, path: Path, link: str, ready: str | None = "html[data-state=complete]"
) -> Iterator[Page]:
    """Open a page, dark and without motion, and wait until it is complete."""
    context = browser.new_context(
        viewport=WINDOW, color_scheme="dark", reduced_motion="reduce", device_scale_factor=1
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(path.resolve().as_uri() + link)
    if ready:
        page.wait_for_selector(ready, state="attached")
    page.wait_for_timeout(1000)
    yield page
    context.close()


def turn(page: Page) -> None:
    """Drag the cloud to the side, as far as it stays when released."""
    box = page.locator("#viewport").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 0.35 * box["width"], y + 0.15 * box["height"], steps=4)
    page.mouse.up()
    page.mouse.move(2, 2)
    page.wait_for_timeout(2000)


def screenshot(page: Page, selector: str | None = None) -> Picture:
    """A screenshot, (h, w, 3)."""
    data = page.locator(selector).screenshot() if selector else page.screenshot()
    decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    return np.asarray(decoded[..., ::-1], dtype=np.uint8)


def cut_out(picture: Picture, height: int, width: int) -> Picture:
    """The largest centred part that the photo covers when seen from the front."""
    scale = min(picture.shape[0] / height, picture.shape[1] / width)
    rows, columns = round(scale * height), round(scale * width)
    top, left = (picture.shape[0] - rows) // 2, (picture.shape[1] - columns) // 2
    return picture[top : top + rows, left : left + columns]


def compose(folder: Path, cloud: Picture) -> Picture:
    """Arrange view, disparity, masks and cloud two by two."""
    light_field = readers.read(folder / "still-life")
    result = read_result(folder)
    masks = np.load(folder / "masks" / "masks.npz")["masks"]  # those of the network
    material = figures.Material(light_field, replace(result, masks=masks))
    panels = figures.make_panels(material, ["view", "disparity", "masks"])
    height, width = panels[0].picture.shape[:2]
    shown = cut_out(cloud, height, width)
    fitted = cv2.resize(shown, (width * 2, height * 2), interpolation=cv2.INTER_AREA)
    panels.append(figures.Panel("In 3D, in the page", np.asarray(fitted, dtype=np.uint8)))
    return rasterise(figures.compose(panels, columns=2, side=440))


def store(path: Path, picture: Picture) -> None:
    """Write a PNG that is small enough: if necessary with fewer colours, then with fewer pixels."""
    image = Image.fromarray(picture)
    image.save(path, optimize=True)
    while path.stat().st_size > LARGEST:
        palette = image.quantize(256, kmeans=2)
        image.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG).save(
            path, optimize=True
        )
        if (size := path.stat().st_size) > LARGEST:
            scale = 0.97 * math.sqrt(LARGEST / size)
            image = image.resize((round(image.width * scale), round(image.height * scale)))
    print(f"{path}: {image.width}x{image.height}, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as temporary:
        take_pictures(*make_results(Path(sys.argv[1] if len(sys.argv) == 2 else temporary)))
