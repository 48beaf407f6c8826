"""`oaccdepth estimate`: a light field in, a disparity map out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oaccdepth.commands.shared import (
    AsJson,
    Input,
    Output,
    Overwrite,
    Quiet,
    Verbose,
    configure_logging,
    progress_bar,
)
from oaccdepth.commands.shared.estimating import (
    describe,
    print_message,
    print_notes,
    write_page,
)
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import EstimateOptions, ReadOptions, WriteOptions

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(estimate)


@takes(writing=WriteOptions, estimating=EstimateOptions, reading=ReadOptions)
def estimate(
    path: Input,
    output: Output,
    overwrite: Overwrite = False,
    view: Annotated[bool, typer.Option("--view", help="Also write an interactive page.")] = False,
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
    """
    from oaccdepth import readers, writers
    from oaccdepth.estimation import inference

    configure_logging(quiet, verbose)
    options = replace(estimating, keep_masks=view, keep_passes=view, keep_evidence=view)
    light_field = readers.read(path, reading)
    settings: dict[str, Any] = {
        "formats": writing.formats,
        "colormap": writing.colormap,
        "overwrite": overwrite,
    }
    with progress_bar(quiet) as progress:
        pages = [writers.VIEWER_FILE] if view else []
        writers.prepare(output, camera=light_field.camera, beside=pages, **settings)
        result = inference.estimate(light_field, options, progress=progress)
        progress("writing", 1.0)
        truth = readers.read_ground_truth(path, reading) if view else None
        written = writers.write(
            result,
            output,
            value_range=writing.value_range,
            centre=light_field.centre,
            write_beside=lambda stage: (
                write_page(stage, light_field, result, truth) if view else {}
            ),
            **settings,
        )
    print_notes((*light_field.notes, *result.made_with.notes), quiet)
    print_message(f"{describe(light_field)}; {_how_it_went(result)}", quiet)
    if as_json:
        content = json.loads((output / writers.RUN_FILE).read_text(encoding="utf-8"))
        typer.echo(json.dumps({"written": [str(file) for file in written], **content}, indent=2))
    elif not quiet:
        typer.echo("\n".join(str(file) for file in written))


def _how_it_went(result: DisparityMap) -> str:
    low, high, made = result.disparity.min(), result.disparity.max(), result.made_with
    return (
        f"disparity {low:.2f} to {high:.2f} px; "
        f"{made.seconds['total']:.1f} s on {made.device} with weights {made.weights}"
    )
