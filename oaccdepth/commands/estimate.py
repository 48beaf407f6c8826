"""`oaccdepth estimate`: a light field in, a disparity map out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import EstimateOptions, ReadOptions, WriteOptions

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap


@takes(writing=WriteOptions, estimating=EstimateOptions, reading=ReadOptions)
def estimate(
    path: shared.Input,
    output: shared.Output,
    overwrite: shared.Overwrite = False,
    opened: shared.Open = False,
    preview: Annotated[
        bool, typer.Option("--preview/--no-preview", help="Show a small picture of the result.")
    ] = True,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    writing: WriteOptions,
    estimating: EstimateOptions,
    reading: ReadOptions,
) -> None:
    """Estimate the disparity of a light field's centre view.

    Writes disparity.pfm, disparity.png, confidence.png and run.json to the folder OUT.

    For example:
      oaccdepth estimate scenes/town -o results/town --view
      oaccdepth estimate picture_eslf.png -o results/picture --format ply
    """
    shared.configure_logging(quiet, verbose)
    writing = replace(writing, view=writing.view or opened)
    with shared.progress_bar(quiet) as progress:  # shown at once; the imports take a second
        from oaccdepth.commands.shared.preview import show_preview
        from oaccdepth.pipeline import process
        from oaccdepth.writers.results import RUN_FILE, VIEWER_FILE, read_run

        done = process(
            path, output, reading, estimating, writing, overwrite=overwrite, progress=progress
        )
    shared.print_notes(done.notes, quiet)
    if preview and not (quiet or as_json):
        show_preview(done.light_field, done.result, writing)
    shared.print_message(shared.describe(done.light_field), quiet)
    shared.print_message(_how_it_went(done.result), quiet)
    if as_json:
        content = read_run(output / RUN_FILE)
        shared.print_json({"written": [str(file) for file in done.files], **content})
    elif not quiet:
        shared.echo(*map(str, done.files))
        if shared.messages().is_terminal and not writing.view:
            shared.print_message(f"To explore it in a browser: oaccdepth view {output} --open")
    if opened:
        shared.open_page(output / VIEWER_FILE)


def _how_it_went(result: DisparityMap) -> str:
    low, high, made = result.disparity.min(), result.disparity.max(), result.made_with
    return (
        f"disparity {low:.2f} to {high:.2f} px; "
        f"{made.seconds['total']:.1f} s on {made.device} with weights {made.weights}"
    )
