"""Weights of a training run -> bundled weights that say how good they are, and how sure.

python tools/bundle.py RUN/latest.safetensors NAME VALIDATION [STRESS]

Estimates every scene with ground truth below the folders (automatic range, 15 px border left out,
as `oaccdepth evaluate` does). Fits scale and offset of the certainty on all of them, so that the
confidence is a probability, writes weights/NAME.safetensors with the scores, replaces the card in
weights/README.md, and prints a table of the confidence's reliability.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from oaccdepth import readers
from oaccdepth.estimation.inference import LoadedWeights, estimate
from oaccdepth.evaluation import metrics
from oaccdepth.networks import checkpoint

WEIGHTS = Path(__file__).parents[1] / "weights"
BAD = 0.07  # px
BINS = 10  # of the confidence


@dataclass
class Scene:
    """What the weights made of a scene."""

    name: str
    scores: dict[str, float]
    certainty: np.ndarray  # of the scored pixels, before it is calibrated
    right: np.ndarray  # whether their error is below 0.07 px


def examine(network: LoadedWeights, folder: Path) -> list[Scene]:
    """Estimate every scene with ground truth below a folder."""
    scenes = []
    for path in readers.find(folder):
        truth = readers.read_ground_truth(path)
        if truth is None:
            continue
        found = estimate(readers.read(path), network=network)
        inner = metrics.scored_pixels(truth)
        scores = {
            "mse_100": metrics.mse_100(found.disparity, truth, inner),
            "badpix_0070": metrics.bad_pix(found.disparity, truth, inner, BAD),
        }
        sure = np.clip(found.confidence[inner].astype(np.float64), 1e-6, 1 - 1e-6)
        right = np.abs(found.disparity - truth)[inner] <= BAD
        scenes.append(Scene(path.name, scores, np.log(sure / (1 - sure)), right))
        print(path.name, {name: round(value, 3) for name, value in scores.items()}, flush=True)
    return scenes


def calibrate(scenes: list[Scene]) -> tuple[float, float]:
    """Scale and offset of the certainty that fit best; every scene counts alike."""
    x = np.concatenate([scene.certainty for scene in scenes])
    y = np.concatenate([scene.right for scene in scenes]).astype(np.float64)
    weight = np.concatenate([np.full(len(one.right), 1 / len(one.right)) for one in scenes])
    scale, offset = 1.0, 0.0
    for _ in range(30):  # Newton's method
        p = 1 / (1 + np.exp(-(scale * x + offset)))
        slope = weight * (p - y)
        bend = weight * p * (1 - p) + 1e-12
        matrix = [[(bend * x * x).sum(), (bend * x).sum()], [(bend * x).sum(), bend.sum()]]
        step = np.linalg.solve(matrix, [(slope * x).sum(), slope.sum()])
        scale, offset = scale - step[0], offset - step[1]
    return float(scale), float(offset)


def reliability(scenes: list[Scene], certainty: tuple[float, float]) -> tuple[float, list[str]]:
    """Expected calibration error, and a row for each tenth of the confidence."""
    x = np.concatenate([scene.certainty for scene in scenes])
    right = np.concatenate([scene.right for scene in scenes])
    sure = 1 / (1 + np.exp(-(certainty[0] * x + certainty[1])))
    number = np.minimum((sure * BINS).astype(int), BINS - 1)
    error, rows = 0.0, []
    for index in range(BINS):
        here = number == index
        if here.any():
            said, true, share = sure[here].mean(), right[here].mean(), here.mean()
            error += share * abs(said - true)
            rows.append(f"| {said:.2f} | {true:.2f} | {100 * share:.1f} % |")
    return float(error), rows


def write_card(name: str) -> None:
    """What the weights say of themselves, between the marks in weights/README.md."""
    command = [sys.executable, "-m", "oaccdepth", "weights", "card", name]
    card = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    readme = WEIGHTS / "README.md"
    marks = re.compile(rf"(?<=weights card {name}` -->\n).*?(?=<!-- /card -->)", re.S)
    readme.write_text(marks.sub(lambda _: card, readme.read_text(encoding="utf-8")), "utf-8")


def main() -> None:
    """Estimate, calibrate, save, describe."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    source, name, folders = Path(sys.argv[1]), sys.argv[2], [Path(word) for word in sys.argv[3:]]
    network, facts = checkpoint.load(source)
    network.config = replace(network.config, certainty=(1.0, 0.0))
    sets = [examine(LoadedWeights(network.eval(), name), folder) for folder in folders]
    certainty = calibrate([scene for scenes in sets for scene in scenes])
    network.config = replace(network.config, certainty=certainty)
    for folder, scenes in zip(folders, sets, strict=True):
        error, rows = reliability(scenes, certainty)
        print(f"{folder.name}: expected calibration error {error:.3f}", *rows, sep="\n")
    for key, scenes in zip(("scores", "stress"), sets, strict=False):
        facts[key] = json.dumps({scene.name: scene.scores for scene in scenes})
    checkpoint.save(WEIGHTS / f"{name}.safetensors", network, facts)
    write_card(name)


if __name__ == "__main__":
    main()
