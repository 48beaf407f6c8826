"""`oaccdepth view`: a result or a light field in, one interactive page out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands.shared import (
    Open,
    Overwrite,
    Quiet,
    Verbose,
    configure_logging,
    open_page,
    progress_bar,
)
from oaccdepth.commands.shared.estimating import print_notes
from oaccdepth.commands.shared.looking import LightFieldPath, Loading, ResultOrInput, check_output
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import EstimateOptions, ReadOptions


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(view)


@takes(estimating=EstimateOptions, reading=ReadOptions)
def view(
    path: ResultOrInput,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PAGE.html",
            help="The page. Default: view.html in the RESULT, or NAME.html here.",
            show_default=False,
        ),
    ] = None,
    light_field_path: LightFieldPath = None,
    opened: Open = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    *,
    estimating: EstimateOptions,
    reading: ReadOptions,
) -> None:
    """Look at a disparity map in the browser.

    Writes one HTML page with everything inside: it works from disk, without a network.
    """
    from oaccdepth.looking.viewer import write_viewer

    configure_logging(quiet, verbose)
    page = output or _default_page(path)
    check_output(page, overwrite)
    options = replace(estimating, keep_masks=True, keep_passes=True, keep_evidence=True)
    with progress_bar(quiet) as progress:
        shown = Loading(path, light_field_path, reading, options, progress).load()
        progress("writing", 1.0)
        write_viewer(page, shown.light_field, shown.result, truth=shown.truth, overwrite=overwrite)
    print_notes(shown.notes, quiet)
    if not quiet:
        typer.echo(str(page))
    if opened:
        open_page(page)


def _default_page(path: Path) -> Path:
    from oaccdepth.writers.results import VIEWER_FILE, is_result

    if is_result(path):
        return path / VIEWER_FILE
    name = path.resolve().parent.name if path.name == "parameters.cfg" else path.resolve().stem
    return Path(f"{name}.html")
