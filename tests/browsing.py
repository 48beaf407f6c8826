"""A page in a real browser: headless Chromium. Any error on its console fails a test."""

import shutil

import cv2
import numpy as np

CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
        if (found := shutil.which(name))
    ),
    None,
)
FLAGS = [
    "--no-sandbox",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SOFTWARE_GRAPHICS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
PATIENCE_MS = 60_000  # the machine may be busy


class Visit:
    """A page in the browser, and what it did."""

    def __init__(self, browser, path, viewport=WIDE, link="#tool=inspect", waits=True, **settings):
        settings = {"reduced_motion": "reduce", **settings}
        self.context = browser.new_context(viewport=viewport, **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self.listen)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri() + link)
        if waits:
            self.wait("html[data-state=complete], html[data-state=no-graphics]")

    def listen(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def wait(self, selector):
        self.page.wait_for_selector(selector, state="attached")

    def settle(self):
        """Wait until the page has drawn everything."""
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

    # Where the picture of 64 x 48 px is on the screen, and what it shows.

    def spot(self, x, y):
        """Screen position of the centre of a pixel, in layouts with one pane."""
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
            "document.querySelectorAll('#marks, .pill, #handle, .scale')"
            ".forEach((part) => part.style.setProperty('visibility', 'hidden'))"
        )

    def picture(self):
        """The colours on the screen at the centre of every pixel, (48, 64, 3)."""
        self.settle()
        shot = cv2.imdecode(np.frombuffer(self.page.screenshot(), np.uint8), cv2.IMREAD_COLOR)
        (left, top), (right, bottom) = self.spot(0, 0), self.spot(63, 47)
        columns = np.linspace(left, right, 64).astype(int)
        rows = np.linspace(top, bottom, 48).astype(int)
        return shot[rows][:, columns, ::-1]


def difference(a, b):
    """Mean distance of two pictures, in steps of 255."""
    return np.abs(a.astype(float) - b.astype(float)).mean()
