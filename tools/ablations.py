"""What the parts of the fast network are worth: the table of ablations in training.md.

python tools/ablations.py DATA [WEIGHTS]: scenes with ground truth within -4..4 px in, a Markdown
table out. The weights stay the same: a part is removed or replaced, but nothing is retrained.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor

from oaccdepth import evidence, readers
from oaccdepth.estimation.blocks import Wanted, cut_views, in_tiles, plan_levels
from oaccdepth.estimation.exposure import normalise_exposure
from oaccdepth.estimation.inference import TILES
from oaccdepth.evaluation import metrics
from oaccdepth.evidence import fit, plain
from oaccdepth.evidence.noise import calmed
from oaccdepth.evidence.views import Views, thin_out, voters
from oaccdepth.networks import checkpoint
from oaccdepth.networks.answers import Answer, Memory
from oaccdepth.networks.fast import MEETING, FastNet

RANGE = (-4.0, 4.0)  # px
Score = tuple[float, ...]  # MSE x100, BadPix 0.07 [%]


class WithTrueMask(FastNet):
    """The mask of the ground truth, as if the last pass had been right everywhere."""

    truth: Tensor  # (h, w)

    @torch.no_grad()
    def look(self, views: Views, candidates: Tensor) -> Tensor:
        """Gather evidence under the masks of the true disparity."""
        seen = evidence.look(calmed(views), candidates[0], self.truth, self.config.squarings)
        return seen[None]


class WithOtherVotes(FastNet):
    """Replaces some of the nine means of the votes by others."""

    means: tuple[int, ...] = tuple(range(evidence.MEANS))

    def sweep(self, views: Views, levels: Tensor) -> Tensor:
        """The chosen means and their aggregation."""
        volume = super().sweep(views, levels)
        votes = volume[:, : 2 * evidence.MEANS].unflatten(1, (evidence.MEANS, 2))
        chosen = votes[:, list(self.means)]  # (l/2, 9, 2, h, w)
        by_level = chosen.transpose(1, 2).flatten(0, 1).float() / 255
        costs = plain.as_bytes(plain.mix(by_level))  # (l, 3, h, w)
        found = self.aggregated(costs, views).unflatten(0, (-1, 2)).transpose(1, 2)
        return torch.cat([chosen, found], 1).flatten(1, 2)

    def aggregated(self, costs: Tensor, views: Views) -> Tensor:
        """Costs (l, 3, h, w), aggregated as usual."""
        by_kind = costs.permute(1, 2, 3, 0).contiguous()  # (3, h, w, l)
        found = torch.empty(3, len(costs) // 2, *costs.shape[2:], 2, dtype=torch.uint8)
        evidence.aggregate(by_kind, views.reference, found)
        return found.movedim(-1, 2).flatten(1, 2).transpose(0, 1)

    @torch.no_grad()
    def look(self, views: Views, candidates: Tensor) -> Tensor:
        """The chosen means of every candidate."""
        seen = super().look(views, candidates)
        votes = seen[:, :-1].unflatten(1, (-1, evidence.MEANS))[:, :, list(self.means)]
        return torch.cat([votes.flatten(1, 2), seen[:, -1:]], 1)


class WithoutAggregation(WithOtherVotes):
    """Uses the costs themselves instead of the aggregated ones."""

    def aggregated(self, costs: Tensor, views: Views) -> Tensor:
        """Costs above that of the best level, pixel by pixel."""
        return costs - costs.amin(0, keepdim=True)


class WithOneGain(WithOtherVotes):
    """Uses the second gain instead of all three."""

    means = (1, 1, 1, 4, 4, 4, 7, 7, 7)


class WithoutAxes(WithOtherVotes):
    """Uses half-planes instead of axes."""

    means = (0, 1, 2, 3, 4, 5, 3, 4, 5)


class WithoutShares(FastNet):
    """The refinement is not told how much of a pixel each surface covers."""

    def prepare(
        self, views: Views, answer: Answer, memory: Memory, number: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As usual, but with these shares set to 0."""
        seen, known, candidates = super().prepare(views, answer, memory, number)
        known[:, -MEETING:] = 0
        return seen, known, candidates


class WithHiddenViews(FastNet):
    """Asks all views, whether or not the map hides a point from them."""

    def polish(self, views: Views, answer: Answer, times: int) -> Answer:
        """Fit to all views."""
        with patch.object(fit, "visible", everything):
            return super().polish(views, answer, times)

    def look(self, views: Views, candidates: Tensor) -> Tensor:
        """Masks by colour alone."""
        with patch.object(evidence, "visible", everything):
            return super().look(views, candidates)


def everything(views: Views, disparity: Tensor) -> Tensor:
    """Every view sees every point."""
    return torch.ones(len(views.steps), *disparity.shape, dtype=torch.uint8)


class WithoutEdges(FastNet):
    """Leaves pixels on edges as the refinement and the fit gave them."""

    def settle(self, disparity: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
        """Change nothing."""
        return disparity, torch.zeros_like(disparity)


class WithoutFit(FastNet):
    """Leaves the answers as the network gave them."""

    def polish(self, views: Views, answer: Answer, times: int) -> Answer:
        """Change nothing."""
        return answer


def variants(weights: Path) -> Iterator[tuple[str, FastNet]]:
    """The networks to compare, with the same weights."""
    network, _ = checkpoint.load(weights)
    assert isinstance(network, FastNet)
    trained = 2**network.config.squarings
    yield "as it is", network
    yield "without modulation", as_kind(FastNet, network, squarings=-1)
    yield "mask of the ground truth", as_kind(WithTrueMask, network)
    for squarings in (1, 2, 3, 4):
        if squarings != network.config.squarings:
            name = f"decay q = {2**squarings} (trained with {trained})"
            yield name, as_kind(FastNet, network, squarings=squarings)
    yield "without aggregation", as_kind(WithoutAggregation, network)
    yield "one gain instead of three", as_kind(WithOneGain, network)
    yield "without axes", as_kind(WithoutAxes, network)
    yield "hidden views asked, too", as_kind(WithHiddenViews, network)
    yield "without shares of pixels", as_kind(WithoutShares, network)
    yield "integer levels", as_kind(FastNet, network, level_step=1.0)
    yield "edges not settled", as_kind(WithoutEdges, network)
    yield "without the last fit", as_kind(WithoutFit, network)


def as_kind(kind: type[FastNet], network: FastNet, **changes: float) -> FastNet:
    """The same weights in another kind of network, with changes to its configuration."""
    other = kind(network.config)
    other.load_state_dict(network.state_dict())
    other.config = replace(network.config, **changes)
    return other.eval()


@torch.inference_mode()
def score_passes(network: FastNet, scene: Path, num_passes: int) -> list[Score]:
    """The scores of a scene after each pass, each as if it were the last."""
    truth = readers.read_ground_truth(scene)
    assert truth is not None, f"{scene}: no ground truth"
    light_field, _ = normalise_exposure(readers.read(scene))
    levels = plan_levels(*RANGE, network.config.level_step)
    wanted = Wanted(levels, num_passes, TILES["fast"], light_field.reference_view)
    region = (slice(0, truth.shape[0]), slice(0, truth.shape[1]))
    views = cut_views(light_field, wanted, region, torch.device("cpu"), voters)
    if isinstance(network, WithTrueMask):
        height, width = truth.shape
        network.truth = torch.zeros(views.size)
        network.truth[:height, :width] = torch.from_numpy(truth)
    chosen = views.only(thin_out(views.steps, network.config.refine_views))
    passes = list(network.passes(views, levels, num_passes, in_tiles(wanted.tile, views.size)))
    passes[:-1] = [network.polish(chosen, answer, 2) for answer in passes[:-1]]
    answers = [answer.disparity[0, region[0], region[1]].numpy() for answer in passes]
    return [tuple(metrics.main_scores(answer, truth).values()) for answer in answers]


def main(data: Path, weights: Path, num_passes: int = 4) -> None:
    """Print the table, each line as soon as it is ready."""
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
