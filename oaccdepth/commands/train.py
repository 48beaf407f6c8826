"""`oaccdepth train`: scenes with ground truth in, weights out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from oaccdepth.commands.shared import Device, Quiet, Verbose, configure_logging, messages
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import TrainOptions

Report = Callable[[dict[str, float]], None]

EVERY = 50  # steps between plain lines


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(train)


def train_options(
    preset: Annotated[
        str, typer.Option(metavar="fast|paper", help="Which network.")
    ] = TrainOptions.preset,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="How long, over all sessions of the run.")
    ] = TrainOptions.minutes,
    steps: Annotated[
        int | None, typer.Option(min=1, help="How many steps, instead of --minutes.")
    ] = TrainOptions.steps,
    initial: Annotated[
        str | None,
        typer.Option("--initial", metavar="NAME|FILE", help="Weights to begin with."),
    ] = TrainOptions.initial,
    batch: Annotated[int, typer.Option(min=1, help="Patches a step.")] = TrainOptions.batch,
    patch: Annotated[int, typer.Option(min=16, help="Side of a patch in px.")] = TrainOptions.patch,
    learning_rate: Annotated[
        float, typer.Option(min=0.0, help="At the end of the warm-up.")
    ] = TrainOptions.learning_rate,
    iterations: Annotated[
        int, typer.Option(min=1, help="Passes in training.")
    ] = TrainOptions.iterations,
    first_pass_share: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Share of the schedule with the first pass alone."),
    ] = TrainOptions.first_pass_share,
    synthetic: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of rendered patches.")
    ] = TrainOptions.synthetic,
    full_size: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Share of the others that are not sub-sampled, by 2 or 3."
        ),
    ] = TrainOptions.full_size,
    part: Annotated[
        str,
        typer.Option(
            metavar="edges|refinement",
            help="Train this part of `fast` alone, on what the others make of whole scenes, which "
            "is computed first: many times as many patches. Needs --initial.",
            show_default=False,
        ),
    ] = TrainOptions.part,
    freeze_norms: Annotated[
        bool,
        typer.Option("--freeze-norms", help="Leave the batch norms' statistics as --initial has."),
    ] = TrainOptions.freeze_norms,
    validate_steps: Annotated[
        int, typer.Option(min=0, help="Steps between validations; 0: only at the end.")
    ] = TrainOptions.validate_steps,
    checkpoint_minutes: Annotated[
        float, typer.Option(min=0.0, help="Minutes between checkpoints.")
    ] = TrainOptions.checkpoint_minutes,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that prepare patches.")
    ] = TrainOptions.workers,
    seed: Annotated[int, typer.Option(help="Of patches and first weights.")] = TrainOptions.seed,
) -> TrainOptions:
    """How to train, from what was typed."""
    return TrainOptions(**locals())  # the same names


@takes(options=train_options)
def train(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Folder of scenes in the HCI layout, with ground truth.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="RUN", help="Folder of the run.", show_default=False
        ),
    ],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")] = False,
    validation: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Scenes to score on; the best weights are kept."),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
    *,
    options: TrainOptions,
) -> None:
    """Train a network on scenes with ground truth.

    Stopped at any moment, even killed, a run goes on with --resume. Several processes or GPUs:
    torchrun --nproc-per-node 2 -m oaccdepth train DATA -o RUN --minutes 60
    """
    from oaccdepth.training import loop

    configure_logging(quiet, verbose)
    is_first = os.environ.get("RANK", "0") == "0"
    with training_bar(quiet or not is_first) as report:
        progress = loop.train(
            data,
            output,
            options,
            validation=validation,
            device=device,
            resume=resume,
            report=report,
        )
    if is_first and not quiet:
        messages().print(
            f"{progress.step} steps in {progress.seconds / 60:.1f} minutes. "
            f"Weights: {output / 'latest.safetensors'}"
        )


@contextmanager
def training_bar(quiet: bool) -> Iterator[Report]:
    """Loss, bad pixels, speed and time left: a bar on a terminal, a line now and then otherwise."""
    console = messages()
    if quiet:
        yield lambda row: None
    elif not console.is_terminal:
        yield lambda row: console.print(_line(row)) if row["step"] % EVERY == 0 else None
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("loading", total=1.0)
            yield lambda row: bar.update(task, description=_line(row), completed=row["done"])


def _line(row: dict[str, float]) -> str:
    return (
        f"step {row['step']:.0f}  loss {row['loss']:.3f}  L1 {row['l1']:.3f} px  "
        f"BadPix 0.07 {row['bad']:.1f} %  {row['samples_per_second']:.1f} patches/s  "
        f"{row['done']:.0%}"
    )
