"""Training one part of the fast network alone, on what the others make of whole scenes.

The others run once over every scene, turned and disturbed a few times, and what the part begins
with is kept in files. Then a patch costs what its part costs, and patches can be taken where
there is something to learn.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import Dataset

from oaccdepth.errors import InvalidOption
from oaccdepth.files.atomic import replacing
from oaccdepth.networks.edges import otherness, surfaces_around
from oaccdepth.networks.fast import ALIGNMENT, FastNet
from oaccdepth.options import TrainOptions
from oaccdepth.training.patches import (
    LARGEST_DISPARITY,
    Patch,
    Scene,
    augment,
    choose_tones,
    crop_views,
    turn,
)

log = logging.getLogger(__name__)

PARTS = ("edges", "refinement")
VARIANTS = 5  # of each scene
DISTURBED = 2  # of them: noise, often missing views and so on
HARD_SHARE = 0.75  # of the patches, around a pixel with something to learn
NOT_YET_EXACT = (0.05, 0.6)  # px of error that a refinement can still mend
KEPT = ("views", "truth", "valid", "logits", "summary", "context", "disparity", "spread")
Inputs = dict[str, Tensor]


def parameters_of(network: FastNet, part: str) -> list[torch.nn.Parameter]:
    """What is trained of a part."""
    if part == "edges":
        return list(network.edges.parameters())
    modules = (
        network.refine_project,
        network.mask_project,
        network.link,
        network.refine_enter,
        network.refine_detail,
        network.refine_hourglass,
        network.certain,
    )
    alone = [network.belief, network.place, network.refine_beta]
    return [*(value for module in modules for value in module.parameters()), *alone]


def collect_inputs(
    network: FastNet,
    scenes: Sequence[Scene],
    folder: Path,
    options: TrainOptions,
    rank: int,
    world: int,
) -> list[Path]:
    """One file for each variant of each scene; those that are there already stay."""
    names = [(scene, variant) for variant in range(VARIANTS) for scene in scenes]
    paths = [folder / f"{scene.name}_{variant}.safetensors" for scene, variant in names]
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(rank, len(names), world):
        if not paths[index].exists():
            rng = np.random.default_rng((options.seed, index))
            inputs = begin(network, vary(*names[index], network.config.margin, rng), options)
            with replacing(paths[index]) as temporary:
                safetensors.torch.save_file(inputs, temporary)
            log.info("%s: ready", paths[index])
    if world > 1:
        dist.barrier()
    return paths


def vary(scene: Scene, variant: int, margin: int, rng: np.random.Generator) -> Patch:
    """The largest square of a scene as one large patch, in random tones, turned."""
    shape = scene.truth.shape
    side = min(shape) // ALIGNMENT * ALIGNMENT
    top, left = (int(rng.integers(length - side + 1)) for length in shape)
    whole = np.zeros(2, int)
    views = crop_views(scene.views, (top, left), side, margin, 1, whole, 0, choose_tones(rng))
    window = np.s_[top : top + side, left : left + side]
    truth, valid = scene.truth[window], scene.valid[window]
    patch = Patch(views, truth, valid & (np.abs(truth) <= LARGEST_DISPARITY))
    if variant >= VARIANTS - DISTURBED:
        return augment(patch, rng, noisy=1)
    return Patch(*turn(patch, rng))


@torch.inference_mode()
def begin(network: FastNet, patch: Patch, options: TrainOptions) -> Inputs:
    """What the part begins with in each of its runs over a picture."""
    device = network.beta.device
    views = torch.from_numpy(np.ascontiguousarray(patch.views))[None].to(device)
    first, context = network.first_pass(views)
    truth = torch.from_numpy(np.ascontiguousarray(patch.truth)).to(device)
    last, starts, hard = first, [], []
    for _ in range(options.iterations - 1):
        choice = network.settle(views, last, first, context)
        start = last if options.part == "edges" else choice
        starts.append(torch.cat([start.disparity, start.spread]))  # (2, h, w)
        if options.part == "edges":
            hard.append(otherness(surfaces_around(last.disparity)).amax(1)[0] > 0.5)
        else:
            error = (start.disparity[0] - truth).abs()
            hard.append((error > NOT_YET_EXACT[0]) & (error < NOT_YET_EXACT[1]))
        last = network.look_again(views, choice, first, context)
    valid = torch.from_numpy(np.ascontiguousarray(patch.valid)).to(device)
    found = {
        "views": views[0].half(),
        "truth": truth,
        "valid": valid,
        "logits": first.logits[0].half(),
        "summary": first.summary[0].half(),
        "context": context[0].half(),
        "disparity": torch.stack([start[0] for start in starts]),  # (runs, h, w)
        "spread": torch.stack([start[1] for start in starts]),
        "hard": torch.stack(hard) & valid,
    }
    return {name: value.cpu().contiguous() for name, value in found.items()}


class PartBatches(Dataset[tuple[Tensor, ...]]):
    """Batch number n of a process is always the same, as everywhere in training."""

    def __init__(
        self, paths: Sequence[Path], options: TrainOptions, margin: int, rank: int, world: int
    ) -> None:
        self.inputs = [safetensors.torch.load_file(path) for path in paths]  # mapped, not read
        smallest = min(min(inputs["truth"].shape) for inputs in self.inputs)
        if options.patch > smallest:
            raise InvalidOption(
                f"--patch {options.patch}: larger than a scene. Use at most {smallest}."
            )
        self.hard = [torch.nonzero(inputs["hard"]).to(torch.int16) for inputs in self.inputs]
        self.options, self.margin, self.rank, self.world = options, margin, rank, world

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        count = self.options.batch
        first = (step * self.world + self.rank) * count
        patches = [self.draw(first + index) for index in range(count)]
        return tuple(torch.stack([patch[name] for patch in patches]) for name in KEPT)

    def draw(self, number: int) -> Inputs:
        """The patch of this number."""
        rng = np.random.default_rng((self.options.seed, number))
        while True:
            index = int(rng.integers(len(self.inputs)))
            inputs, hard = self.inputs[index], self.hard[index]
            run = int(rng.integers(len(inputs["disparity"])))
            size, sides = self.options.patch, inputs["truth"].shape
            place = rng.integers([side - size + 1 for side in sides])
            if len(hard) and rng.random() < HARD_SHARE:
                run, *pixel = hard[int(rng.integers(len(hard)))].tolist()
                place = np.array(pixel) - rng.integers(size, size=2)
            top, left = (
                min(max(int(at), 0), side - size) // ALIGNMENT * ALIGNMENT
                for at, side in zip(place, sides, strict=True)
            )
            patch = self._cut(inputs, run, top, left)
            if patch["valid"].any():
                return patch

    def _cut(self, inputs: Inputs, run: int, top: int, left: int) -> Inputs:
        size, around = self.options.patch, self.options.patch + 2 * self.margin
        window = (..., slice(top, top + size), slice(left, left + size))
        wide = (..., slice(top, top + around), slice(left, left + around))
        patch = {name: inputs[name][wide if name == "views" else window] for name in KEPT}
        patch |= {name: patch[name][run] for name in ("disparity", "spread")}
        valid = patch.pop("valid")
        return {name: value.float() for name, value in patch.items()} | {"valid": valid}
