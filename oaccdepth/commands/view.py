"""`oaccdepth view`: a result or a light field in, one interactive page out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.looking import LightFieldPath, Loading, ResultOrInput
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.files.atomic import check_file
from oaccdepth.options import EstimateOptions, ReadOptions


@takes(estimating=EstimateOptions, reading=ReadOptions)
def view(
    path: ResultOrInput,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PAGE.html",
            help="Page to write. Default: view.html in the result, or NAME.html here.",
            show_default=False,
        ),
    ] = None,
    light_field_path: LightFieldPath = None,
    opened: shared.Open = False,
    overwrite: shared.Overwrite = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    estimating: EstimateOptions,
    reading: ReadOptions,
) -> None:
    """Make an interactive page to explore a result.

    Writes a single HTML file that works offline.

    For example:
      oaccdepth view results/town --open
      oaccdepth view scenes/town -o town.html
    """
    from oaccdepth.looking.viewer import write_viewer

    shared.configure_logging(quiet, verbose)
    page = output or _default_page(path)
    check_file(page, overwrite)
    options = replace(estimating, keep_masks=True, keep_passes=True, keep_evidence=True)
    with shared.progress_bar(quiet) as progress:
        shown = Loading(path, light_field_path, reading, options, progress).load()
        progress("writing", 1.0)
        write_viewer(page, shown.light_field, shown.result, truth=shown.truth, overwrite=overwrite)
    shared.print_notes(shown.notes, quiet)
    if not quiet:
        shared.echo(str(page))
    if opened:
        shared.open_page(page)


def _default_page(path: Path) -> Path:
    from oaccdepth.writers.results import VIEWER_FILE, is_result

    if is_result(path):
        return path / VIEWER_FILE
    name = path.resolve().parent.name if path.name == "parameters.cfg" else path.resolve().stem
    return Path(f"{name}.html")
