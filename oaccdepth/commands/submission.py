"""`oaccdepth submission`: the zip file that the HCI benchmark takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands.shared import AsJson, Overwrite


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(submission)


def submission(
    results: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="Folder that `batch` has written.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="ZIP", help="File to write.", show_default=False),
    ],
    runtime: Annotated[
        float | None,
        typer.Option(
            "--runtime",
            metavar="SECONDS",
            min=0.0,
            help="For scenes whose run.json does not say it.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Pack results for the HCI 4D light field benchmark.

    Checks that all twelve scenes are there, 512x512 and finite; writes disp_maps/SCENE.pfm and
    runtimes/SCENE.txt into one zip file, ready to be handed in at lightfield-analysis.net.
    """
    from oaccdepth.evaluation.submission import write_submission

    runtimes = write_submission(results, output, runtime=runtime, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps({"written": str(output), "runtimes": runtimes}, indent=2))
    else:
        typer.echo(str(output))
