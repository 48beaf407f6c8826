"""Weights of a training run -> bundled weights that say how good they are, and how sure.

python tools/bundle.py RUN/latest.safetensors NAME VALIDATION [STRESS [MORE ...]]
    [--licence TEXT] [--diagram PNG]

Estimates every scene with ground truth below the folders (automatic range, 15 px border left out,
as `oaccdepth evaluate` does). Calibrates the confidence on all folders but the first, so that it is
a probability; the first folder shows whether the calibration holds elsewhere.
Writes weights/NAME.safetensors with the scores, replaces the card in weights/README.md, and prints
(or draws) how reliable the confidence is.
"""

import argparse
import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from oaccdepth import readers
from oaccdepth.estimation.inference import estimate
from oaccdepth.estimation.weights import LoadedWeights
from oaccdepth.evaluation import metrics
from oaccdepth.networks import checkpoint
from oaccdepth.networks.answers import Answer, signs
from oaccdepth.networks.fast import FastNet

WEIGHTS = Path(__file__).parents[1] / "weights"
BINS = 10  # of the confidence
SIDE = 400  # px of the diagram
COLOURS = ((27, 94, 168), (200, 80, 30), (60, 140, 70), (120, 70, 150), (90, 90, 90))


class Bin(NamedTuple):
    """Pixels of about the same confidence."""

    said: float  # their mean confidence
    true: float  # share of them within 0.07 px
    share: float  # of all pixels


class Recording(FastNet):
    """Records the signs from which the confidence was computed."""

    last: tuple[Tensor, ...]  # (b, h, w) each, of the last block: signs, reach

    def confidence(self, answer: Answer) -> Tensor:
        """The usual confidence."""
        assert answer.reach is not None
        self.last = (*signs(answer), answer.reach)
        return super().confidence(answer)


@dataclass
class Scene:
    """Results of the weights on a scene."""

    name: str
    scores: dict[str, float]
    signs: np.ndarray  # (6, n) of the scored pixels: certainty, misfit, lead, baseline, doubt, 1
    reach: np.ndarray  # (n): how far information from the views reaches them
    right: np.ndarray  # (n): whether their error is below 0.07 px


def examine(network: Recording, folder: Path) -> list[Scene]:
    """Estimate every scene with ground truth below a folder; each must fit into one block."""
    scenes = []
    for path in readers.find(folder):
        truth = readers.read_ground_truth(path)
        if truth is None:
            continue
        found = estimate(readers.read(path), network=LoadedWeights(network)).disparity
        inner = metrics.scored_pixels(truth)
        scores = metrics.main_scores(found, truth)
        height, width = truth.shape
        *known, reach = (sign[0, :height, :width].double().numpy()[inner] for sign in network.last)
        right = np.abs(found - truth)[inner] <= metrics.BAD
        known = np.stack([*known, np.ones_like(reach)])
        scenes.append(Scene(path.name, scores, known, reach, right))
        print(path.name, {name: round(value, 3) for name, value in scores.items()}, flush=True)
    return scenes


def calibrate(scenes: list[Scene]) -> np.ndarray:
    """Weights of the signs that fit best, by Newton's method; every scene counts the same.

    Pixels that no information reaches count as little as their confidence will be.
    """
    x = np.concatenate([scene.signs for scene in scenes], 1)
    y = np.concatenate([scene.right for scene in scenes])
    share = np.concatenate([scene.reach / len(scene.right) for scene in scenes])
    weights = np.eye(len(x))[0]
    for _ in range(30):
        p = 1 / (1 + np.exp(-weights @ x))
        bend = (share * p * (1 - p)) * x @ x.T + 1e-9 * np.eye(len(x))
        weights -= np.linalg.solve(bend, x @ (share * (p - y)))
    return weights


def reliability(scenes: list[Scene], weights: np.ndarray) -> tuple[float, list[Bin]]:
    """Expected calibration error, and every tenth of the confidence."""
    x = np.concatenate([scene.signs for scene in scenes], 1)
    right = np.concatenate([scene.right for scene in scenes])
    reach = np.concatenate([scene.reach for scene in scenes])
    sure = reach / (1 + np.exp(-weights @ x))
    number = np.minimum((sure * BINS).astype(int), BINS - 1)
    tenths = [number == index for index in range(BINS)]
    bins = [
        Bin(float(sure[here].mean()), float(right[here].mean()), float(here.mean()))
        for here in tenths
        if here.any()
    ]
    return sum(bin.share * abs(bin.said - bin.true) for bin in bins), bins


def draw_diagram(path: Path, sets: dict[str, list[Bin]]) -> None:
    """Draw the share of good pixels (y) over confidence (x); larger dots stand for more pixels."""
    image = Image.new("RGB", (SIDE + 220, SIDE + 80), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    left, lower = 60, SIDE + 20
    for tick in range(0, 11, 2):
        at = SIDE * tick / 10
        pen.line((left, lower - at, left + SIDE, lower - at), fill=(226, 230, 234))
        pen.text((left - 8, lower - at), f"{tick / 10:g}", "black", font, anchor="rm")
        pen.text((left + at, lower + 8), f"{tick / 10:g}", "black", font, anchor="ma")
    pen.line((left, lower, left + SIDE, lower - SIDE), fill=(150, 156, 162), width=2)
    for row, (colour, (name, bins)) in enumerate(zip(COLOURS, sets.items(), strict=False)):
        places = [(left + SIDE * bin.said, lower - SIDE * bin.true) for bin in bins]
        pen.line(places, fill=colour, width=2)
        for (x, y), bin in zip(places, bins, strict=True):
            radius = 3 + 12 * bin.share**0.5
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
        pen.text((left + SIDE + 20, 30 + 24 * row), name, colour, font)
    pen.text((left + SIDE / 2, lower + 32), "confidence", "black", font, anchor="ma")
    pen.text((left + 8, 12), "share within 0.07 px", "black", font)
    image.save(path)


def write_card(name: str) -> None:
    """Write the model card of the weights between the marks in weights/README.md."""
    command = [sys.executable, "-m", "oaccdepth", "weights", "card", name]
    card = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    readme = WEIGHTS / "README.md"
    marks = re.compile(rf"(?<=weights card {name}` -->\n).*?(?=<!-- /card -->)", re.S)
    readme.write_text(marks.sub(lambda _: card, readme.read_text(encoding="utf-8")), "utf-8")


def main() -> None:
    """Estimate, calibrate, save, describe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("name")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--licence", help="NAME: WHAT THE DATA IS, instead of the data's text")
    parser.add_argument("--diagram", type=Path, help="draw how reliable the confidence is")
    options = parser.parse_args()
    name, folders = options.name, options.folders
    trained, facts = checkpoint.load(options.source)
    facts["licence"] = options.licence or facts.get("licence", "not stated")
    network = Recording(trained.config).eval()
    network.load_state_dict(trained.state_dict())
    sets = [examine(network, folder) for folder in folders]
    weights = calibrate([scene for scenes in sets[1:] or sets for scene in scenes])
    certainty, misfit, lead, baseline, doubt, offset = weights.tolist()
    trained.config = replace(
        trained.config,
        certainty=(certainty, misfit, offset),
        lead=lead,
        baseline=baseline,
        doubt=doubt,
    )
    print(trained.config)
    found = {}
    for folder, scenes in zip(folders, sets, strict=True):
        error, found[folder.name] = reliability(scenes, weights)
        print(f"{folder.name}: expected calibration error {error:.3f}")
        for bin in found[folder.name]:
            print(f"| {bin.said:.2f} | {bin.true:.2f} | {100 * bin.share:.1f} % |")
    if options.diagram:
        draw_diagram(options.diagram, found)
    for key, scenes in zip(("scores", "stress"), sets, strict=False):
        facts[key] = json.dumps({scene.name: scene.scores for scene in scenes})
    checkpoint.save(WEIGHTS / f"{name}.safetensors", trained, facts)
    write_card(name)


if __name__ == "__main__":
    main()
