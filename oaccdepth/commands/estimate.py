"""`oaccdepth estimate`: a light field in, a disparity map out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oaccdepth.commands import (
    AsJson,
    Device,
    Input,
    Output,
    Overwrite,
    Quiet,
    Verbose,
    Weights,
    configure_logging,
    parse_range,
    progress_bar,
)
from oaccdepth.commands.estimating import (
    DisparityRange,
    Iterations,
    Precision,
    Tile,
    describe,
    estimate_options,
    print_message,
    print_notes,
    write_page,
)
from oaccdepth.commands.reading import takes_read_options
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
        help="Disparities at the ends of the colour bar. [default: what occurs]",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(estimate)


@takes_read_options
def estimate(
    path: Input,
    output: Output,
    overwrite: Overwrite = False,
    formats: Formats = None,
    colormap: Colormap = "viridis",
    colour_range: ColourRange = None,
    view: Annotated[bool, typer.Option("--view", help="Also write an interactive page.")] = False,
    weights: Weights = EstimateOptions.weights,
    device: Device = EstimateOptions.device,
    iterations: Iterations = EstimateOptions.iterations,
    tile: Tile = EstimateOptions.tile,
    precision: Precision = EstimateOptions.precision,
    disparity_range: DisparityRange = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    *,
    reading: ReadOptions,
) -> None:
    """Estimate the disparity of a light field's centre view.

    Writes disparity.pfm, disparity.png, confidence.png and run.json to the folder OUT.
    """
    from oaccdepth import inference, readers, writers

    configure_logging(quiet, verbose)
    options = estimate_options(
        weights=weights,
        device=device,
        iterations=iterations,
        tile=tile,
        precision=precision,
        disparity_range=disparity_range,
        keep_masks=view,
        keep_evidence=view,
    )
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
        print_message(describe(light_field), quiet)
        result = inference.estimate(light_field, options, progress=progress)
        progress("writing", 0.0)
        beside = write_page(output, light_field, result) if view else {}
        written = writers.write(
            result,
            output,
            value_range=value_range,
            centre=light_field.centre,
            beside=beside,
            **settings,
        )
    print_notes((*light_field.notes, *result.made_with.notes), quiet)
    _print_result(result, [*written, *(output / name for name in beside)], as_json, quiet)


def _print_result(result: DisparityMap, written: list[Path], as_json: bool, quiet: bool) -> None:
    """Print the files to stdout, or all of run.json; how it went, to stderr."""
    if as_json:
        run = next(path for path in written if path.name == "run.json")
        content = json.loads(run.read_text(encoding="utf-8"))
        typer.echo(json.dumps({"written": [str(path) for path in written], **content}, indent=2))
    elif not quiet:
        for path in written:
            typer.echo(str(path))
    made = result.made_with
    print_message(
        f"disparity {result.disparity.min():.2f} to {result.disparity.max():.2f} px, "
        f"{sum(made.seconds.values()):.1f} s on {made.device} with weights {made.weights}",
        quiet,
    )
