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
    parse_range,
    progress_bar,
)
from oaccdepth.commands.shared.estimating import (
    describe,
    estimate_options,
    print_message,
    print_notes,
    write_page,
)
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.commands.shared.reading import read_options
from oaccdepth.options import EstimateOptions, ReadOptions

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap

Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="npy|png16|depth|ply",
        help="A further file, besides PFM and pictures; repeat for more.",
        show_default=False,
    ),
]
Colormap = Annotated[
    str, typer.Option("--colormap", metavar="NAME", help="Colours of disparity.png.")
]
ColourRange = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="MIN:MAX",
        help="Disparities at the ends of the colour bar, in px. Default: what occurs.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(estimate)


@takes(estimating=estimate_options, reading=read_options)
def estimate(
    path: Input,
    output: Output,
    overwrite: Overwrite = False,
    formats: Formats = None,
    colormap: Colormap = "viridis",
    colour_range: ColourRange = None,
    view: Annotated[bool, typer.Option("--view", help="Also write an interactive page.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    *,
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
    value_range = parse_range(colour_range, "--range") if colour_range else None
    light_field = readers.read(path, reading)
    settings: dict[str, Any] = {
        "formats": formats or (),
        "colormap": colormap,
        "overwrite": overwrite,
    }
    with writers.not_left_empty(output), progress_bar(quiet) as progress:
        pages = [writers.VIEWER_FILE] if view else []
        writers.prepare(output, camera=light_field.camera, beside=pages, **settings)
        result = inference.estimate(light_field, options, progress=progress)
        progress("writing", 1.0)
        truth = readers.read_ground_truth(path, reading) if view else None
        beside = write_page(output, light_field, result, truth) if view else {}
        written = writers.write(
            result,
            output,
            value_range=value_range,
            centre=light_field.centre,
            beside=beside,
            **settings,
        )
    print_notes((*light_field.notes, *result.made_with.notes), quiet)
    print_message(f"{describe(light_field)}; {_how_it_went(result)}", quiet)
    written += [output / name for name in beside]
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
