"""`oaccdepth train`: scenes with ground truth in, weights out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from oaccdepth.commands.shared import Quiet, Verbose, configure_logging, messages
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import EstimateOptions, TrainOptions

Report = Callable[[dict[str, float]], None]

EVERY = 50  # steps between plain lines


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(train)


@takes(options=TrainOptions, estimating=(EstimateOptions, "device"))
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
    quiet: Quiet = False,
    verbose: Verbose = False,
    *,
    options: TrainOptions,
    estimating: EstimateOptions,
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
            device=estimating.device,
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
