"""Masks of Eq. 8 against true visibility: precision and recall over q, on rendered scenes.

    python tools/masks.py [--scenes 8] [--picture masks.png] [--estimate]

A mask below one half means "hidden". Precision: the share of these points that are really hidden;
recall: the share of hidden points that are found. Points outside a view's frame are ignored. The
true disparity is used; with --estimate, the masks are those of `estimate`, of disturbed views too.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from oaccdepth.estimation.inference import estimate
from oaccdepth.estimation.weights import LoadedWeights, load_network
from oaccdepth.lightfield import FloatArray, as_float, as_grey
from oaccdepth.options import EstimateOptions
from oaccdepth.rendering import scenes, still_life, stress
from oaccdepth.rendering.rig import camera_places
from oaccdepth.rendering.scenes import RenderedScene

POWERS = (1, 2, 4, 8, 16, 32)
SIZE = (256, 256)
FIRST_SEED = 1000  # far from the seeds of the training scenes
NOISE, EXPOSURE, MOVE = 0.02, 0.05, 0.05  # deviations; the last in px
DISTURBANCES = ("none", "noise", "exposure", "moved")


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


def disturb(views: FloatArray, kind: str) -> FloatArray:
    """Views (u, v, h, w, c) as a real camera may have them."""
    rng = np.random.default_rng(1)
    rows, columns, height, width, _ = views.shape
    if kind == "noise":
        views = views + rng.normal(0, NOISE, views.shape)
    elif kind == "exposure":
        views = views * (1 + rng.normal(0, EXPOSURE, (rows, columns, 1, 1, 1)))
    elif kind == "moved":
        views = views.copy()
        for view in np.ndindex(rows, columns):
            matrix = np.array([[1, 0, rng.normal(0, MOVE)], [0, 1, rng.normal(0, MOVE)]])
            views[view] = cv2.warpAffine(
                views[view],
                matrix,
                (width, height),
                flags=cv2.INTER_CUBIC,
                borderMode=cv2.BORDER_REPLICATE,
            )
    return np.asarray(np.clip(views, 0, 1), np.float32)


def count_estimated(rendered: RenderedScene, kind: str, network: LoadedWeights) -> np.ndarray:
    """Count hidden points, points called hidden, and both, in the masks of `estimate`: (3,)."""
    light_field = rendered.light_field
    disturbed = replace(light_field, views=disturb(as_float(light_field.views), kind))
    masks = estimate(disturbed, EstimateOptions(keep_masks=True), network=network).masks
    assert masks is not None
    _, framed = residuals(rendered)
    hidden, called = ~rendered.visibility & framed, (masks < 0.5) & framed
    return np.array([hidden.sum(), called.sum(), (called & hidden).sum()], float)


def show_estimated(scenes: int) -> None:
    """Print a table of the masks of `estimate`."""
    network = load_network("fast", "cpu")
    print("| scene | " + " | ".join(DISTURBANCES) + " |")
    print("|---" * (1 + len(DISTURBANCES)) + "|")
    total = np.zeros(1 + 2 * len(DISTURBANCES))
    for name, rendered in rendered_scenes(scenes):
        counts = [count_estimated(rendered, kind, network) for kind in DISTURBANCES]
        numbers = np.concatenate([counts[0][:1], *(each[1:] for each in counts)])
        total += numbers
        print(row(name, numbers), flush=True)
    print(row("all", total))


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
    parser.add_argument("--estimate", action="store_true", help="the masks of estimate")
    wanted = parser.parse_args()
    if wanted.estimate:
        show_estimated(wanted.scenes)
        return
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
