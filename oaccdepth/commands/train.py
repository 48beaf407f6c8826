"""`oaccdepth train`: scenes with ground truth in, weights out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import EstimateOptions, TrainOptions

if TYPE_CHECKING:
    from oaccdepth.commands.shared.progress import Bar

EVERY = 50  # steps between printed lines
Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="Folder of scenes in the HCI layout, with ground truth."),
]
Run = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="RUN", help="Folder of the run: weights, numbers, state."
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")]
Validation = Annotated[
    Path | None,
    typer.Option(metavar="DATA", help="Scenes to score on; the best weights are kept."),
]


@takes(options=TrainOptions, estimating=(EstimateOptions, "device"))
def train(
    data: Data,
    output: Run,
    resume: Resume = False,
    validation: Validation = None,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    options: TrainOptions,
    estimating: EstimateOptions,
) -> None:
    """Train a network on scenes with ground truth.

    A run that was stopped at any moment, even killed, continues with --resume. For several
    processes or GPUs, start it with torchrun.

    For example:
      oaccdepth train scenes -o runs/first --minutes 60
      oaccdepth train scenes -o runs/first --minutes 60 --resume
      torchrun --nproc-per-node 2 -m oaccdepth train scenes -o runs/two --steps 5000
    """
    shared.configure_logging(quiet, verbose)
    quiet = quiet or os.environ.get("RANK", "0") != "0"  # only the first process prints
    expected = 60 * options.minutes if options.minutes else float(options.steps or 0)
    with shared.bar_on_terminal(quiet, max(expected, 1.0)) as bar:  # importing torch takes seconds
        from oaccdepth.training import loop

        progress = loop.train(
            data,
            output,
            options,
            validation=validation,
            device=estimating.device,
            resume=resume,
            report=lambda row: _show(row, bar, quiet),
        )
    shared.print_message(
        f"{shared.plural(progress.step, 'step')} in {progress.seconds / 60:.1f} minutes. "
        f"Weights: {output / 'latest.safetensors'}",
        quiet,
    )


def _show(row: dict[str, float], bar: Bar | None, quiet: bool) -> None:
    """Show the latest numbers below the bar, or print a line now and then."""
    text = (
        f"step {row['step']:.0f}  loss {row['loss']:.3f}  L1 {row['l1']:.3f} px  "
        f"BadPix 0.07 {row['bad']:.1f} %  {row['samples_per_second']:.1f} patches/s"
    )
    if bar is not None:
        bar.report("training", row["done"])
        bar.lines["numbers"] = text
    elif row["step"] % EVERY == 0:
        shared.print_message(f"{text}  {row['done']:.0%}", quiet)
