"""`oaccdepth refocus`: a light field in, a refocused photograph out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.errors import InvalidOption
from oaccdepth.files.atomic import check_file
from oaccdepth.options import ReadOptions

if TYPE_CHECKING:
    from oaccdepth.lightfield import FloatArray, LightField

# Steeper than the networks' masks (2): on the demo's scene the error is 5.2 grey values instead of
# 7.2 (8.6 without masks), and the noise is the same.
MASK_DECAY = 8.0
PictureFile = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE", help="Picture to write (.png)."),
]
FocusedDisparity = Annotated[
    float | None,
    typer.Option(
        "--disparity",
        metavar="PX",
        help="Disparity to focus on, in px; nearer is larger.",
    ),
]
DisparityFile = Annotated[
    Path | None,
    typer.Option(
        "--all-in-focus",
        metavar="FILE.pfm",
        help="Make everything sharp with this disparity map; less noisy than a single view.",
    ),
]
Aperture = Annotated[
    float | None,
    typer.Option(
        "--aperture",
        metavar="STEPS",
        help="Radius of the lens in view steps. Default: all views.",
    ),
]


@takes(reading=ReadOptions)
def refocus(
    path: shared.Input,
    output: PictureFile,
    disparity: FocusedDisparity = None,
    all_in_focus: DisparityFile = None,
    aperture: Aperture = None,
    overwrite: shared.Overwrite = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    reading: ReadOptions,
) -> None:
    """Refocus a light field.

    Give either --disparity or --all-in-focus.

    For example:
      oaccdepth refocus scenes/town -o near.png --disparity 1.2
      oaccdepth refocus scenes/town -o sharp.png --all-in-focus town/disparity.pfm
    """
    from oaccdepth import readers
    from oaccdepth.files.pfm import read_pfm
    from oaccdepth.looking import refocus
    from oaccdepth.writers.pictures import as_bytes, write_png

    shared.configure_logging(quiet, verbose)
    if (disparity is None) == (all_in_focus is None):
        raise InvalidOption("give either --disparity PX or --all-in-focus FILE.pfm.")
    if all_in_focus is not None and aperture is not None:
        raise InvalidOption("--aperture has no effect with --all-in-focus: leave it out.")
    if output.suffix.lower() != ".png":
        raise InvalidOption(f"{output}: expected a name that ends in .png.")
    check_file(output, overwrite)
    chosen = read_pfm(all_in_focus) if all_in_focus is not None else None
    light_field = readers.read(path, reading)
    if chosen is not None:
        picture = _sharpen(light_field, chosen)
    else:
        assert disparity is not None  # one of the two is given
        picture = refocus.refocus(light_field, disparity, aperture)
    write_png(output, as_bytes(picture if picture.shape[2] == 3 else picture[..., 0]))
    shared.print_notes(light_field.notes, quiet)
    if not quiet:
        shared.echo(str(output))


def _sharpen(light_field: LightField, disparity: FloatArray) -> FloatArray:
    """All in focus; a view in which a point is hidden hardly counts there."""
    from oaccdepth.estimation import inference
    from oaccdepth.looking import refocus

    masks = None
    if disparity.shape == light_field.resolution:  # otherwise all_in_focus raises an error
        masks = inference.masks_from_disparity(light_field, disparity, decay=MASK_DECAY)
    return refocus.all_in_focus(light_field, disparity, masks)
