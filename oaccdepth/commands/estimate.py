"""`oaccdepth estimate`: a light field in, a disparity map out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from oaccdepth.commands.shared import (
    AsJson,
    Input,
    Open,
    Output,
    Overwrite,
    Quiet,
    Verbose,
    configure_logging,
    describe,
    echo,
    messages,
    open_page,
    print_json,
    print_message,
    print_notes,
    progress_bar,
)
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import EstimateOptions, ReadOptions, WriteOptions

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap


@takes(writing=WriteOptions, estimating=EstimateOptions, reading=ReadOptions)
def estimate(
    path: Input,
    output: Output,
    overwrite: Overwrite = False,
    opened: Open = False,
    preview: Annotated[
        bool, typer.Option("--preview/--no-preview", help="Show a small picture of the result.")
    ] = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
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
    configure_logging(quiet, verbose)
    writing = replace(writing, view=writing.view or opened)
    with progress_bar(quiet) as progress:  # it is there at once; the imports take a second
        from oaccdepth.commands.shared.preview import show_preview
        from oaccdepth.pipeline import process
        from oaccdepth.writers.results import RUN_FILE, VIEWER_FILE

        done = process(
            path, output, reading, estimating, writing, overwrite=overwrite, progress=progress
        )
    print_notes(done.notes, quiet)
    if preview and not (quiet or as_json):
        show_preview(done.light_field, done.result, writing)
    print_message(f"{describe(done.light_field)}; {_how_it_went(done.result)}", quiet)
    if as_json:
        content = json.loads((output / RUN_FILE).read_text(encoding="utf-8"))
        print_json({"written": [str(file) for file in done.files], **content})
    elif not quiet:
        echo("\n".join(str(file) for file in done.files))
        if messages().is_terminal and not writing.view:
            print_message(f"To explore it in a browser: oaccdepth view {output} --open")
    if opened:
        open_page(output / VIEWER_FILE)


def _how_it_went(result: DisparityMap) -> str:
    low, high, made = result.disparity.min(), result.disparity.max(), result.made_with
    return (
        f"disparity {low:.2f} to {high:.2f} px; "
        f"{made.seconds['total']:.1f} s on {made.device} with weights {made.weights}"
    )
