"""`oaccdepth convert`: a light field from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import ReadOptions

ConvertedTo = Annotated[
    Path,
    typer.Argument(
        metavar="OUTPUT",
        help="A folder (HCI benchmark), .h5, .npz, _eslf.png (lenslet) or .png (mosaic).",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="FORMAT",
        help="hci, h5, npz, eslf or mosaic. Default: by the name of OUTPUT.",
    ),
]


@takes(reading=ReadOptions)
def convert(
    path: shared.Input,
    output: ConvertedTo,
    to: To = None,
    overwrite: shared.Overwrite = False,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    reading: ReadOptions,
) -> None:
    """Convert a light field to another format.

    Writes the views that are used, with their masks, camera and ground truth. Reading the result
    gives the same light field again.

    For example:
      oaccdepth convert picture_eslf.png scenes/picture
      oaccdepth convert scenes/town town.h5
    """
    from oaccdepth.pipeline import read
    from oaccdepth.readers import read_ground_truth
    from oaccdepth.writers import scenes

    shared.configure_logging(quiet, verbose)
    scenes.prepare(output, to, overwrite)
    with shared.progress_bar(quiet or as_json) as progress:
        progress("reading", 0.0)
        light_field = read(path, reading)
        truth = read_ground_truth(path, reading)
        progress("writing", 0.5)
        written = scenes.write_light_field(
            light_field, output, to=to, truth=truth, overwrite=overwrite
        )
    if as_json:
        shared.print_json(
            {
                "output": str(output),
                "format": written,
                "grid": list(light_field.grid),
                "resolution": list(light_field.resolution),
                "notes": list(light_field.notes),
            }
        )
        return
    rows, columns = light_field.grid
    height, width = light_field.resolution
    shared.print_notes(light_field.notes, quiet)
    if not quiet:
        shared.echo(f"{output}: {written}, {rows}x{columns} views of {width}x{height} px")
