"""train(): scenes with ground truth to weights. Resumable to the exact step, in one readable loop.

A run is a folder: `state.pt` (all it takes to continue), `latest.safetensors` and
`best.safetensors` (averaged weights: the newest, and those that did best on the validation
scenes), `metrics.csv`, `validation.csv`, `curve.png`, `options.json`, `samples/` (pictures of the
validation scenes).
"""

from __future__ import annotations

import copy
import csv
import io
import json
import logging
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from oaccdepth import readers
from oaccdepth.errors import InvalidCheckpoint, InvalidOption, OutputExists
from oaccdepth.estimation.device import choose_device, half_is_quick
from oaccdepth.estimation.inference import estimate
from oaccdepth.evaluation import metrics
from oaccdepth.files import signals
from oaccdepth.files.atomic import remove_leftovers, told, write_bytes, write_json
from oaccdepth.files.regular import open_regular
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastNet
from oaccdepth.options import EstimateOptions, TrainOptions
from oaccdepth.training import curves
from oaccdepth.training.edges import EdgeBatch, EdgeBatches
from oaccdepth.training.losses import loss_module
from oaccdepth.training.pieces import GreyBatch, GreyBatches, PatchBatch, PatchBatches
from oaccdepth.training.prepared import PreparedBatch, PreparedBatches
from oaccdepth.training.scenes import Scene, describe_data, load_scenes
from oaccdepth.version import __version__
from oaccdepth.writers import pictures

log = logging.getLogger(__name__)

Batch = GreyBatch | PatchBatch | PreparedBatch | EdgeBatch
PARTS = ("first", "refinement", "edges")  # of the fast network, to be trained alone
NEEDED = {"refinement": "a trained first pass", "edges": "a trained network"}
ReportStep = Callable[[dict[str, float]], None]


@dataclass
class Progress:
    """How far a run has come."""

    step: int = 0
    seconds: float = 0.0  # of training, over all its sessions
    best: float = math.inf  # BadPix 0.07 on the validation scenes
    recent: dict[str, float] = field(default_factory=dict)  # running means of the loss's parts
    earlier_steps: int = 0  # of the weights that the run began with
    earlier_hours: float = 0.0


class Trainer:
    """The network, its average, its optimiser and how far they have come."""

    def __init__(self, options: TrainOptions, device: torch.device) -> None:
        torch.manual_seed(options.seed)
        self.progress = Progress()
        if options.initial:
            self.network, facts = checkpoint.load(checkpoint.find_weights(options.initial))
            self.progress.earlier_steps = int(facts.get("steps", 0))
            self.progress.earlier_hours = float(facts.get("hours", 0))
        else:
            self.network = checkpoint.create(options.preset)
        if options.part == "edges" and isinstance(self.network, FastNet):
            self.network.add_edges()
        # what it is trained with is what it is used with, unless the user says otherwise
        self.network.config = replace(self.network.config, iterations=options.iterations)
        self.initial = copy.deepcopy(self.network).eval()
        self.network.to(device)
        self.average = copy.deepcopy(self.network).eval()
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), options.learning_rate, weight_decay=options.weight_decay
        )
        self.options = options
        self.about: dict[str, str] = {}  # the data, for the weights' metadata

    def share_done(self) -> float:
        """How much of the schedule is done, 0 to 1."""
        if self.options.steps is not None:
            return min(1.0, self.progress.step / self.options.steps)
        assert self.options.minutes is not None
        return min(1.0, self.progress.seconds / (60 * self.options.minutes))

    def learning_rate(self) -> float:
        """Warm-up, then half a cosine down to a hundredth."""
        rise = min(1.0, (self.progress.step + 1) / self.options.warm_up)
        fall = 0.5 + 0.5 * math.cos(math.pi * self.share_done())
        return self.options.learning_rate * rise * (0.01 + 0.99 * fall)

    def update(self, loss: Tensor) -> float:
        """One step of the optimiser and of the average; returns the gradient's norm."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.options.clip)
        self.optimiser.step()
        self._move_average()
        return float(norm)

    @torch.no_grad()
    def _move_average(self) -> None:
        # young averages follow quickly, or they would remember the random start
        rate = 1 - min(self.options.average, (1 + self.progress.step) / (10 + self.progress.step))
        for mean, value in zip(
            self.average.state_dict().values(), self.network.state_dict().values(), strict=True
        ):
            if mean.is_floating_point():
                mean.lerp_(value, rate)
            else:
                mean.copy_(value)

    def save(self, run: Path) -> None:
        """Save all it takes to continue, and the averaged weights, each whole or not at all."""
        state = {
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "progress": asdict(self.progress),
        }
        buffer = io.BytesIO()  # torch has errors of its own for a full disk
        torch.save(state, buffer)
        write_bytes(run / "state.pt", buffer.getvalue())
        self.save_weights(run / "latest.safetensors", {})

    def save_weights(self, path: Path, scores: dict[str, Any]) -> None:
        """Save the averaged weights, with a description."""
        progress = self.progress
        described = {
            "version": __version__,
            "steps": str(progress.earlier_steps + progress.step),
            "hours": f"{progress.earlier_hours + progress.seconds / 3600:.2f}",
            "training": json.dumps(without_folders(self.options)),
            "scores": json.dumps(scores),
            **self.about,
        }
        checkpoint.save(path, self.average, described)

    def restore(self, run: Path) -> None:
        """Continue from the last `save`."""
        try:
            with open_regular(run / "state.pt") as file:
                state = torch.load(file, weights_only=True)
            self.network.load_state_dict(state["network"])
            self.average.load_state_dict(state["average"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.progress = Progress(**state["progress"])
        except (OSError, EOFError, UnpicklingError, RuntimeError, LookupError, TypeError) as error:
            raise InvalidCheckpoint(
                f"{run / 'state.pt'}: does not fit this run ({type(error).__name__}). "
                "Give the options it was begun with, or another --output."
            ) from error


def without_folders(options: TrainOptions) -> dict[str, Any]:
    """The options as a dictionary; paths are cut down to names, which is all others need."""
    paths = {
        name: Path(value).name
        for name in ("initial", "more")
        if (value := getattr(options, name)) is not None
    }
    return asdict(options) | paths


def train(
    data: Path,
    run: Path,
    options: TrainOptions,
    *,
    validation: Path | None = None,
    device: str = "auto",
    resume: bool = False,
    report: ReportStep | None = None,
) -> Progress:
    """Train on every scene with ground truth below `data`; leave weights in the folder `run`.

    Under `torchrun` all processes train the same run, each on its own patches.
    """
    check_options(options)
    rank, world = join_processes()
    torch_device = own_device(device)
    prepare_run(run, options, resume)
    scenes, more = load_scenes(data), load_scenes(Path(options.more)) if options.more else []
    checks = readers.find(validation) if validation else []
    trainer = Trainer(options, torch_device)
    trainer.about = describe_data(data, [*scenes, *more])
    if resume and (run / "state.pt").exists():
        trainer.restore(run)
    patches = choose_patches(trainer, scenes, more, rank)
    module = trained_module(trainer, world)
    saved = started = time.monotonic()
    earlier = trainer.progress.seconds
    with MetricsLog(run, rank) as table, flushed_denormals():
        for batch in batches(patches, options, trainer.progress.step):
            if trainer.share_done() >= 1:
                break
            alone = trainer.share_done() < options.first_pass_share
            with torch.autocast(torch_device.type, torch.bfloat16, enabled=half_is_quick()):
                moved = on_device(batch, torch_device)
                loss, parts = module(moved, 1 if alone else passes_of(options))
            parts["gradient"] = trainer.update(loss)
            trainer.progress.step += 1
            trainer.progress.seconds = agree(earlier + time.monotonic() - started, world)
            row = follow(trainer, {"loss": float(loss.detach()), **parts}, world)
            if report is not None and rank == 0:
                report(row)
            table.add(row)
            due = options.validate_steps and trainer.progress.step % options.validate_steps == 0
            if rank == 0 and due and checks:
                table.add_scores(validate(trainer, checks, run, device))
            if rank == 0 and time.monotonic() - saved > 60 * options.checkpoint_minutes:
                trainer.save(run)
                saved = time.monotonic()
        if rank == 0:
            if checks:
                table.add_scores(validate(trainer, checks, run, device))
            trainer.save(run)
    return trainer.progress


def check_options(options: TrainOptions) -> None:
    """Refuse settings that make no sense."""
    if (options.steps is None) == (options.minutes is None):
        raise InvalidOption("train: give either --minutes or --steps, to say how long.")
    if options.preset not in checkpoint.KINDS:
        known = ", ".join(checkpoint.KINDS)
        raise InvalidOption(f"--preset {options.preset}: no such network. Known: {known}.")
    if options.part and options.part not in PARTS:
        raise InvalidOption(f"--part {options.part}: no such part. Known: {', '.join(PARTS)}.")
    if options.part and options.preset != "fast":
        raise InvalidOption("--part: only for --preset fast.")
    needed = NEEDED.get(options.part)
    if needed and not options.initial:
        raise InvalidOption(f"--part {options.part}: give {needed} with --initial.")
    if options.part == "refinement" and options.iterations < 2:
        raise InvalidOption("--part refinement: use --iterations 2 or more.")
    if options.patch % 8:
        raise InvalidOption(f"--patch {options.patch}: expected a multiple of 8.")


def join_processes() -> tuple[int, int]:
    """Number of this process and how many there are, under torchrun; else 0 and 1."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        # the clocks that processes agree on stay on the CPU, whatever the network is on
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    return int(os.environ.get("RANK", "0")), world


def own_device(name: str) -> torch.device:
    """The device of this name; without a number, each process gets a GPU of its own."""
    device = choose_device(name)
    if device.type == "cuda" and device.index is None and dist.is_initialized():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device


def choose_patches(
    trainer: Trainer, scenes: Sequence[Scene], more: Sequence[Scene], rank: int
) -> Dataset[Batch]:
    """What the network at hand is trained on."""
    options, network = trainer.options, trainer.initial
    if not isinstance(network, FastNet):
        return GreyBatches(scenes, more, options, rank=rank)
    if options.part == "edges":
        return EdgeBatches(scenes, more, options, network, rank)
    if options.part == "refinement":
        return PreparedBatches(scenes, more, options, network, rank)
    refine_views = network.config.refine_views if passes_of(options) > 1 else 0
    return PatchBatches(scenes, more, options, refine_views, rank)


def passes_of(options: TrainOptions) -> int:
    """How many passes are trained."""
    return 1 if options.part == "first" else options.iterations


def trained_module(trainer: Trainer, world: int) -> nn.Module:
    """The network with its loss, ready to train; with frozen norms, if that is asked for.

    A frozen norm does in training what it does in use: the statistics of small batches differ.
    """
    network, options = trainer.network, trainer.options
    module = loss_module(network, options.part).to(next(network.parameters()).device).train()
    for layer in module.modules():
        if options.freeze_norms and isinstance(layer, nn.BatchNorm2d | nn.BatchNorm3d):
            layer.eval()
    if world > 1:
        return nn.parallel.DistributedDataParallel(module, find_unused_parameters=True)
    return module


def agree(seconds: float, world: int) -> float:
    """The first process's clock, for all of them: their schedules must not drift apart."""
    if world == 1:
        return seconds
    value = torch.tensor([seconds], dtype=torch.float64)
    dist.broadcast(value, 0)
    return float(value)


def prepare_run(run: Path, options: TrainOptions, resume: bool) -> None:
    """Refuse to write over another run; clean up after one that was killed; record the options."""
    if (run / "state.pt").exists() and not resume:
        raise OutputExists(f"{run}: already holds a run. Pass --resume to go on with it.")
    if int(os.environ.get("RANK", "0")) == 0:
        remove_leftovers(run)
        write_json(run / "options.json", asdict(options))


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Take vanishing gradients for zero, which is much faster; afterwards, as before."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def batches(patches: Dataset[Batch], options: TrainOptions, step: int) -> Iterator[Batch]:
    """Batches from this step on, prepared by other processes while the network works."""
    last = options.steps if options.steps is not None else 1 << 40
    with warnings.catch_warnings(), signals.uninterrupted():  # while processes start
        # Torch finds more processes than processors unwise, but the user asked for them.
        warnings.simplefilter("ignore", UserWarning)
        loader = DataLoader(
            patches,
            sampler=range(step, last),
            batch_size=None,
            num_workers=options.workers,
            prefetch_factor=4 if options.workers else None,
            multiprocessing_context="fork" if options.workers and hasattr(os, "fork") else None,
            worker_init_fn=signals.ignore,  # or torch tells of every process that a signal ends
        )
        return iter(loader)


def on_device(batch: Batch, device: torch.device) -> Batch:
    """The same batch on a device."""
    fields: dict[str, Any] = {
        name: [one.to(device) for one in value] if isinstance(value, list) else value.to(device)
        for name, value in vars(batch).items()
    }
    return replace(batch, **fields)


def follow(trainer: Trainer, parts: dict[str, Any], world: int) -> dict[str, float]:
    """Update the running means; what the bar and the table show of this step."""
    progress, recent = trainer.progress, trainer.progress.recent
    for name, value in parts.items():
        recent[name] = 0.98 * recent.get(name, float(value)) + 0.02 * float(value)
    return {
        "step": progress.step,
        "seconds": progress.seconds,
        "done": trainer.share_done(),
        "learning_rate": trainer.learning_rate(),
        "samples_per_second": progress.step * trainer.options.batch * world / progress.seconds,
        **recent,
    }


class MetricsLog:
    """metrics.csv, a line every few steps, and a TensorBoard log if that is installed."""

    EVERY = 20  # steps

    def __init__(self, run: Path, rank: int) -> None:
        self.run, self.rank = run, rank
        self.board: Any = None

    def __enter__(self) -> MetricsLog:
        if self.rank == 0:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                return self
            self.board = SummaryWriter(self.run / "tensorboard")
        return self

    def __exit__(self, *error: object) -> None:
        if self.board is not None:
            self.board.close()

    def add(self, row: dict[str, float]) -> None:
        """Record a step of training."""
        if self.rank == 0 and row["step"] % self.EVERY == 0:
            self._append("metrics.csv", row)

    def add_scores(self, row: dict[str, float]) -> None:
        """Record a validation."""
        self._append("validation.csv", row)
        pictures.write_png(self.run / "curve.png", curves.draw([self.run]))

    def _append(self, name: str, row: dict[str, float]) -> None:
        path = self.run / name
        is_new = not path.exists()
        with told(path), path.open("a", newline="") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(row)
            writer.writerow(f"{value:.6g}" for value in row.values())
        if self.board is not None:
            for label, value in row.items():
                self.board.add_scalar(label, value, int(row["step"]))


def validate(trainer: Trainer, scenes: Sequence[Path], run: Path, device: str) -> dict[str, float]:
    """Score the averaged weights on whole scenes; keep them if they are the best so far."""
    scores: dict[str, dict[str, float]] = {}
    for path in scenes:
        truth = readers.read_ground_truth(path)
        if truth is None:
            continue
        result = estimate(
            readers.read(path), EstimateOptions(device=device), network=trainer.average
        )
        scores[path.name] = metrics.main_scores(result.disparity, truth)
        picture = pictures.colourise(result.disparity, (float(truth.min()), float(truth.max())))
        pictures.write_png(run / "samples" / f"{path.name}_{trainer.progress.step}.png", picture)
    row = {"step": float(trainer.progress.step), "seconds": trainer.progress.seconds}
    for kind in checkpoint.SCORES:
        row[kind] = float(np.mean([score[kind] for score in scores.values()]))
        row |= {f"{name}_{kind}": score[kind] for name, score in scores.items()}
    log.info("validation: MSE x100 %.3f, BadPix 0.07 %.2f", row["mse_100"], row["badpix_0070"])
    if row["badpix_0070"] < trainer.progress.best:
        trainer.progress.best = row["badpix_0070"]
        trainer.save_weights(run / "best.safetensors", scores)
    return row
