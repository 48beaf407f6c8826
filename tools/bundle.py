"""Weights of a training run -> bundled weights that say how good they are.

python tools/bundle.py RUN/latest.safetensors NAME SCENES [SCENES ...]

Scores the weights on every scene with ground truth below the folders (automatic range, 15 px border
left out, as `oaccdepth evaluate` does), writes weights/NAME.safetensors with these scores, and
replaces the card in weights/README.md.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from oaccdepth import readers
from oaccdepth.estimation.inference import LoadedWeights, estimate
from oaccdepth.evaluation import metrics
from oaccdepth.networks import checkpoint

WEIGHTS = Path(__file__).parents[1] / "weights"


def score(network: LoadedWeights, folder: Path) -> dict[str, dict[str, float]]:
    """MSE x100 and BadPix 0.07 of each scene below a folder."""
    scores = {}
    for path in readers.find(folder):
        truth = readers.read_ground_truth(path)
        if truth is None:
            continue
        found = estimate(readers.read(path), network=network).disparity
        inner = metrics.scored_pixels(truth)
        scores[path.name] = {
            "mse_100": metrics.mse_100(found, truth, inner),
            "badpix_0070": metrics.bad_pix(found, truth, inner, 0.07),
        }
        print(path.name, scores[path.name], flush=True)
    return scores


def main() -> None:
    """Score, save, describe."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    source, name, folders = Path(sys.argv[1]), sys.argv[2], [Path(word) for word in sys.argv[3:]]
    network, facts = checkpoint.load(source)
    loaded = LoadedWeights(network.eval(), name)
    scores = {scene: one for folder in folders for scene, one in score(loaded, folder).items()}
    path = WEIGHTS / f"{name}.safetensors"
    checkpoint.save(path, network, {**facts, "scores": json.dumps(scores)})
    write_card(name)


def write_card(name: str) -> None:
    """What the weights say of themselves, between the marks in weights/README.md."""
    command = [sys.executable, "-m", "oaccdepth", "weights", "card", name]
    card = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    readme = WEIGHTS / "README.md"
    marks = re.compile(rf"(?<=weights card {name}` -->\n).*?(?=<!-- /card -->)", re.S)
    readme.write_text(marks.sub(lambda _: card, readme.read_text(encoding="utf-8")), "utf-8")


if __name__ == "__main__":
    main()
