"""What the parts of the fast network are worth: the table of ablations in training.md.

python tools/ablations.py DATA [WEIGHTS]: scenes with ground truth within -4..4 px in, a Markdown
table out. The weights stay as they are: a part is taken away or replaced, not trained anew.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from oaccdepth import readers
from oaccdepth.estimation.sweeps import Views
from oaccdepth.evaluation import metrics
from oaccdepth.evidence.sweep import warp
from oaccdepth.networks import checkpoint, fast
from oaccdepth.networks.edges import Choice
from oaccdepth.networks.fast import FastNet, PassState

Score = tuple[float, float]  # MSE x100, BadPix 0.07 [%]

fast.STRIP_SAMPLES = 1 << 40  # the true disparity is for a whole picture, so no strips


class WithoutModulation(FastNet):
    """Every view that is there counts alike."""

    def visible(self, views: Tensor, samples: Tensor) -> Tensor:
        """All ones."""
        return torch.ones_like(samples)


class WithTrueMask(FastNet):
    """The mask of the ground truth, as if the last pass had been right everywhere."""

    truth: Tensor  # (1, h, w)

    def visible(self, views: Tensor, samples: Tensor) -> Tensor:
        """What the true disparity implies."""
        true = self.truth[:, None]
        return super().visible(views, warp(views.clamp(min=0), true, self.config.margin)[0])


class WithoutSurfaces(FastNet):
    """Every pixel stays with the surface it has."""

    def settle(self, views: Tensor, last: PassState, first: PassState, context: Tensor) -> Choice:
        """Nothing changes."""
        return Choice(last.disparity, last.spread, last.logits, last.candidates)


class WithoutFit(FastNet):
    """The last answer stays as the network gave it."""

    def polish(self, views: Tensor, state: PassState) -> PassState:
        """Nothing changes."""
        return state


def variants(weights: Path) -> Iterator[tuple[str, FastNet]]:
    """The networks to compare, with the same weights."""
    network, _ = checkpoint.load(weights)
    assert isinstance(network, FastNet)
    yield "as it is", network
    yield "without modulation", as_kind(WithoutModulation, network)
    yield "mask of the ground truth", as_kind(WithTrueMask, network)
    yield "without the choice of surfaces", as_kind(WithoutSurfaces, network)
    yield "without the last fit", as_kind(WithoutFit, network)
    for decay in (2.0, 4.0, 16.0):
        other = as_kind(FastNet, network)
        other.config = replace(network.config, decay=decay)
        yield f"decay q = {decay:.0f} (trained with {network.config.decay:.0f})", other


def as_kind(kind: type[FastNet], network: FastNet) -> FastNet:
    """The same weights in another network."""
    other = kind(network.config)
    other.load_state_dict(network.state_dict())
    return other.eval()


@torch.inference_mode()
def score_passes(network: FastNet, scene: Path, num_passes: int) -> list[Score]:
    """The scores of a scene after each pass."""
    truth = readers.read_ground_truth(scene)
    assert truth is not None, f"{scene}: no ground truth"
    height, width = truth.shape
    views = Views(readers.read(scene), 0, network.config.margin, torch.device("cpu"))
    if isinstance(network, WithTrueMask):
        network.truth = torch.from_numpy(truth)[None]
    grey = views.region((slice(0, height), slice(0, width)))
    passes = network(grey, num_passes)
    passes[1:-1] = [network.polish(grey, state) for state in passes[1:-1]]  # as if each were last
    inner = metrics.scored_pixels(truth)
    answers = [state.disparity[0].numpy() for state in passes]
    return [
        (metrics.mse_100(answer, truth, inner), metrics.bad_pix(answer, truth, inner, 0.07))
        for answer in answers
    ]


def main(data: Path, weights: Path, num_passes: int = 4) -> None:
    """Print the table, a line as soon as it is known."""
    scenes = readers.find(data)
    if not scenes:
        sys.exit(f"{data}: no scenes.")
    print("| mean of", ", ".join(scene.name for scene in scenes), end="")
    print("".join(f" | pass {number + 1}" for number in range(num_passes)), "|")
    print("|---" * (num_passes + 1) + "|")
    for name, network in variants(weights):
        per_scene = [score_passes(network, scene, num_passes) for scene in scenes]
        means = torch.tensor(per_scene).mean(0).tolist()  # (passes, 2)
        cells = " | ".join(f"{mse:.3f} / {bad:.2f}" for mse, bad in means)
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), checkpoint.find_weights((sys.argv[2:] or ["fast"])[0]))
