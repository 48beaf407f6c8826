"""Masks of Eq. 8 against true visibility: precision and recall over q, on rendered scenes.

    python tools/masks.py [--scenes 8] [--picture masks.png]

A mask below one half means "hidden". Precision: the share of these points that are really hidden;
recall: the share of hidden points that are found. Points outside a view's frame are ignored. The
true disparity is used.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from oaccdepth.lightfield import as_grey
from oaccdepth.rendering import scenes, still_life, stress
from oaccdepth.rendering.rig import camera_places
from oaccdepth.rendering.scenes import RenderedScene

POWERS = (1, 2, 4, 8, 16, 32)
SIZE = (256, 256)
FIRST_SEED = 1000  # far from the seeds of the training scenes


def rendered_scenes(count: int) -> Iterator[tuple[str, RenderedScene]]:
    """Render the still life, the stress scenes and random scenes of simple shapes."""
    places = camera_places((9, 9))
    yield "demo", still_life.demo_scene((192, 256))
    for name in stress.SCENES:
        scene, finish = stress.stress_scene(name)
        yield name, scenes.render(scene, finish, places, with_visibility=True)
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        scene, finish = scenes.random_scene(seed, size=SIZE)
        yield str(seed), scenes.render(scene, finish, places, with_visibility=True)


def residuals(rendered: RenderedScene) -> tuple[np.ndarray, np.ndarray]:
    """|warped - centre| of every view, (u, v, h, w), and where the sample lies in the frame."""
    grey = as_grey(rendered.light_field.views)
    rows, columns, height, width = grey.shape
    y, x = np.mgrid[:height, :width].astype(np.float32)
    result, framed = np.empty(grey.shape, np.float32), np.empty(grey.shape, bool)
    for u, v in np.ndindex(rows, columns):
        in_y = y - rendered.disparity * (u - rows // 2)
        in_x = x - rendered.disparity * (v - columns // 2)
        warped = cv2.remap(grey[u, v], in_x, in_y, cv2.INTER_LINEAR)
        result[u, v] = np.abs(warped - grey[rows // 2, columns // 2])
        framed[u, v] = (in_y >= 0) & (in_y <= height - 1) & (in_x >= 0) & (in_x <= width - 1)
    return result, framed


def count(rendered: RenderedScene) -> np.ndarray:
    """Count hidden points and, for each q, points called hidden, and both: (1 + 2q,)."""
    residual, framed = residuals(rendered)
    hidden = ~rendered.visibility & framed
    numbers = [hidden.sum()]
    for q in POWERS:
        called = ((1 - residual) ** q < 0.5) & framed
        numbers += [called.sum(), (called & hidden).sum()]
    return np.array(numbers, float)


def row(name: str, numbers: np.ndarray) -> str:
    """One line of the table: precision / recall [%] for each q."""
    called, both = numbers[1::2], numbers[2::2]
    cells = [
        f"{100 * b / max(c, 1):.0f} / {100 * b / max(numbers[0], 1):.0f}"
        for c, b in zip(called, both, strict=True)
    ]
    return f"| {name} | {' | '.join(cells)} |"


def draw(rendered: RenderedScene, path: Path) -> None:
    """Draw the reference view, true visibility in the top left view, and masks of three powers."""
    residual, framed = residuals(rendered)
    panels = [np.where(framed[0, 0], rendered.visibility[0, 0], 0.5)]
    panels += [np.where(framed[0, 0], (1 - residual[0, 0]) ** q, 0.5) for q in (2, 8, 32)]
    grey = [np.repeat((255 * panel).astype(np.uint8)[..., None], 3, axis=-1) for panel in panels]
    reference = (255 * rendered.light_field.centre).round().astype(np.uint8)
    whole = Image.fromarray(np.hstack([reference, *grey]))
    whole.quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)  # a small file


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=8)
    parser.add_argument("--picture", type=Path)
    wanted = parser.parse_args()
    print("| scene | " + " | ".join(f"q = {q}" for q in POWERS) + " |")
    print("|---" * (1 + len(POWERS)) + "|")
    total = np.zeros(1 + 2 * len(POWERS))
    for name, rendered in rendered_scenes(wanted.scenes):
        if wanted.picture is not None and name == "demo":
            draw(rendered, wanted.picture)
        numbers = count(rendered)
        total += numbers
        print(row(name, numbers), flush=True)
    print(row("all", total))


if __name__ == "__main__":
    main()
