"""Seconds, memory and arithmetic of the networks. Every time waits for the device.

All presets process the same light field in the same run, so their times are comparable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from oaccdepth.batch.memory import PeakMemory
from oaccdepth.errors import InvalidOption
from oaccdepth.estimation.blocks import plan_levels
from oaccdepth.estimation.device import choose_device, synchronize
from oaccdepth.estimation.inference import estimate
from oaccdepth.estimation.weights import LoadedWeights
from oaccdepth.lightfield import LightField
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastNet
from oaccdepth.networks.onnx import example_of_first_pass, example_of_refinement
from oaccdepth.networks.paper import OACCNet
from oaccdepth.progress import ReportProgress, ignore, share

RANGE = (-4.0, 4.0)  # px, of the disparities
MACS_SIDE = 32  # px: arithmetic is proportional to the area, so a small picture is enough


@dataclass(frozen=True)
class Benchmark:
    """Time, memory and arithmetic of one preset on one light field."""

    preset: str
    device: str
    threads: int
    grid: tuple[int, int]
    side: int  # px
    seconds: float  # a whole estimate, without reading and writing
    peak_bytes: int  # of the process; on CUDA, of the device
    macs: float  # multiply-adds
    parameters: int
    stages: dict[str, float]  # seconds of each, as in run.json


def run_benchmark(
    presets: Sequence[str],
    side: int = 512,
    device: str = "auto",
    progress: ReportProgress = ignore,
) -> list[Benchmark]:
    """Time presets on a random light field of 9x9 views of side x side px."""
    torch_device = choose_device(device)
    light_field = random_light_field(side)
    results = []
    for number, preset in enumerate(presets):
        loaded = load_preset(preset, torch_device)
        report = share(progress, number / len(presets), (number + 1) / len(presets))
        results.append(measure(preset, loaded, light_field, torch_device, report))
    return results


def random_light_field(side: int) -> LightField:
    """Noise, which takes longest: it has an edge at every pixel, and is smoothed."""
    views = np.random.default_rng(0).integers(0, 256, (9, 9, side, side, 3), dtype=np.uint8)
    return LightField(views, source="noise", disparity_range=RANGE)


def load_preset(preset: str, device: torch.device) -> LoadedWeights:
    """The bundled weights of this name, or else untrained ones: times do not depend on weights."""
    if preset not in checkpoint.KINDS:
        known = ", ".join(checkpoint.KINDS)
        raise InvalidOption(f"--preset {preset}: no such network. Known: {known}.")
    named = {path.stem: path for path in checkpoint.bundled()}
    if preset in named:
        network, _ = checkpoint.load(named[preset])
    else:
        network = checkpoint.create(preset).eval()
    return LoadedWeights(network.to(device), preset)


def measure(
    preset: str,
    loaded: LoadedWeights,
    light_field: LightField,
    device: torch.device,
    progress: ReportProgress,
) -> Benchmark:
    """One estimate as a user would run it, timed in total and by stage."""
    network = loaded.network
    estimate(random_light_field(64), network=loaded)  # the first run prepares kernels
    memory = PeakMemory()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    made_with = estimate(light_field, network=loaded, progress=progress).made_with
    is_cuda = device.type == "cuda"
    peak = torch.cuda.max_memory_allocated(device) if is_cuda else memory.read() or 0
    stages = dict(made_with.seconds)
    seconds = stages.pop("total")
    stages["everything else"] = max(0.0, round(seconds - sum(stages.values()), 3))
    side = light_field.resolution[0]
    return Benchmark(
        preset=preset,
        device=str(device),
        threads=torch.get_num_threads(),
        grid=light_field.grid,
        side=side,
        seconds=seconds,
        peak_bytes=peak,
        macs=count_macs(network, device) * side * side,
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        stages=stages,
    )


def count_macs(network: FastNet | OACCNet, device: torch.device) -> float:
    """Multiply-adds per pixel of the layers, counted on a small picture.

    Gradients are enabled, because the counter does not know the operation that is used without
    them. Evidence and aggregation of the fast network (sums, comparisons) are not counted.
    """
    side, counter = MACS_SIDE, FlopCounterMode(display=False)
    with counter:
        if isinstance(network, FastNet):
            levels = len(plan_levels(*RANGE, network.config.level_step))
            network.first_pass(*(maps.to(device) for maps in example_of_first_pass(side, levels)))
            given = [maps.to(device) for maps in example_of_refinement(network, side)]
            for _ in range(network.config.iterations - 1):
                network.refinement(*given)
        else:
            network(torch.rand(1, *network.config.grid, side, side, device=device))
    return counter.get_total_flops() / 2 / MACS_SIDE**2


@torch.inference_mode()
def compare_cost_construction(side: int = 128, device: str = "auto") -> dict[str, float]:
    """Seconds of the paper's last table: shift-and-concat against the cost constructor.

    Both turn features of 9x9 views of side x side px into the volume to be aggregated.
    Shift-and-concat shifts every view for every disparity, concatenates the results and maps
    them to the same number of channels.
    """
    torch_device = choose_device(device)
    network = checkpoint.create("paper").eval().to(torch_device)
    assert isinstance(network, OACCNet)
    views = torch.rand(1, *network.config.grid, side, side, device=torch_device)
    features = network.extract_features(views)
    weight, bias = network.fused_weight(network.config.grid)

    def constructed() -> Tensor:
        return network.construct_cost(features, torch.ones_like(views), torch.ones_like(views))

    def shifted() -> Tensor:
        return shift_and_concat(features, network.config.levels, weight, bias)

    return {
        "cost constructor": _seconds(constructed, torch_device),
        "shift-and-concat": _seconds(shifted, torch_device),
    }


def shift_and_concat(features: Tensor, levels: range, weight: Tensor, bias: Any) -> Tensor:
    """The usual way (Eq. 2 and 3): a copy of every view's features for every disparity."""
    _, rows, columns, _, h, w = features.shape
    margin = max(abs(level) for level in levels) * (rows // 2)
    padded = F.pad(features, (margin,) * 4)
    volume = []
    for level in levels:
        shifted = []
        for u in range(rows):
            for v in range(columns):
                top, left = margin + (rows // 2 - u) * level, margin + (columns // 2 - v) * level
                shifted.append(padded[:, u, v, :, top : top + h, left : left + w])
        joined = torch.cat(shifted, 1)  # (b, u*v*c, h, w)
        volume.append(F.conv2d(joined, weight[:, :, None, None], bias))
    return torch.stack(volume, 2)


def _seconds(function: Callable[[], Tensor], device: torch.device, runs: int = 3) -> float:
    """The best of a few runs, after a warm-up."""
    function()
    synchronize(device)
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        function()
        synchronize(device)
        times.append(time.perf_counter() - started)
    return min(times)
