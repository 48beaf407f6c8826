"""`oaccdepth submission`: the zip file for the HCI benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands import shared


def submission(
    results: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="Folder written by `batch`."),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="ZIP", help="File to write."),
    ],
    runtime: Annotated[
        float | None,
        typer.Option(
            "--runtime",
            metavar="SECONDS",
            min=0.0,
            help="Runtime of scenes whose run.json has none.",
            show_default=False,
        ),
    ] = None,
    overwrite: shared.Overwrite = False,
    as_json: shared.AsJson = False,
) -> None:
    """Pack results for the HCI 4D light field benchmark.

    Checks that all twelve scenes are there, 512x512 px and finite. Writes disp_maps/SCENE.pfm and
    runtimes/SCENE.txt to one zip file, ready to upload to lightfield-analysis.net.

    For example:
      oaccdepth submission results -o submission.zip
    """
    from oaccdepth.evaluation.submission import write_submission

    runtimes = write_submission(results, output, runtime=runtime, overwrite=overwrite)
    if as_json:
        shared.print_json({"written": str(output), "runtimes": runtimes})
    else:
        shared.echo(str(output))
