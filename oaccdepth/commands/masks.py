"""`oaccdepth masks`: the occlusion masks of every view, for inspection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.errors import InvalidOption
from oaccdepth.options import EstimateOptions, ReadOptions, with_voters
from oaccdepth.progress import ReportProgress

if TYPE_CHECKING:
    from oaccdepth.disparity import Provenance
    from oaccdepth.lightfield import FloatArray, LightField

    Masks = tuple[dict[str, FloatArray], Provenance]


@takes(estimating=EstimateOptions, reading=ReadOptions)
def masks(
    path: shared.Input,
    output: shared.Output,
    overwrite: shared.Overwrite = False,
    disparity: Annotated[
        Path | None,
        typer.Option(
            "--disparity",
            metavar="FILE.pfm",
            help="Compute the masks from this disparity map instead of estimating one.",
        ),
    ] = None,
    all_passes: Annotated[
        bool, typer.Option("--all-passes", help="Write the masks of every pass: pass_1, ...")
    ] = False,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    estimating: EstimateOptions,
    reading: ReadOptions,
) -> None:
    """Show which views see each point of the centre view.

    Writes one picture per view (white: visible, black: hidden, outside or missing), a contact
    sheet of all of them, visibility.png (the mean over the views) and masks.npz to the folder OUT.

    For example:
      oaccdepth masks scenes/town -o results/town-masks
    """
    from oaccdepth.pipeline import read
    from oaccdepth.writers.masks import prepare_masks, write_masks
    from oaccdepth.writers.results import read_run

    shared.configure_logging(quiet, verbose)
    if disparity is not None and all_passes:
        raise InvalidOption("--all-passes and --disparity: choose one of them.")
    options = with_voters(estimating, reading)
    options = replace(options, keep_masks=True, keep_passes=all_passes)
    light_field = read(path, reading)
    with shared.progress_bar(quiet) as progress:
        prepare_masks(output, light_field.grid, overwrite=overwrite)
        if disparity is not None:
            passes, made_with = _implied(light_field, disparity)
        else:
            passes, made_with = _estimated(light_field, options, progress)
        progress("writing", 1.0)
        written = write_masks(passes, output, made_with=made_with, overwrite=overwrite)
    shared.print_notes((*light_field.notes, *made_with.notes), quiet)
    shared.print_message(shared.describe(light_field), quiet)
    if as_json:
        content = read_run(written[-1])
        shared.print_json({"written": [str(file) for file in written], **content})
    elif not quiet:
        shared.echo(f"{output}: {shared.plural(len(written), 'file')}")
        for name, values in passes.items():
            shared.echo(f"{output / name / 'contact_sheet.png'}: {values.mean():.1%} seen")


def _implied(light_field: LightField, path: Path) -> Masks:
    """Masks implied by a disparity map from a file."""
    from oaccdepth.disparity import Provenance
    from oaccdepth.estimation import inference
    from oaccdepth.files.pfm import read_pfm
    from oaccdepth.version import __version__

    disparity = read_pfm(path)
    if disparity.shape != light_field.resolution:
        (height, width), (h, w) = disparity.shape, light_field.resolution
        raise InvalidOption(
            f"--disparity {path}: has {width}x{height} px, but the views have {w}x{h}. "
            "Give a disparity map of the centre view."
        )
    made_with = Provenance(version=__version__, options={"disparity": path.name})
    return {".": inference.masks_from_disparity(light_field, disparity)}, made_with


def _estimated(
    light_field: LightField, options: EstimateOptions, progress: ReportProgress
) -> Masks:
    """Masks of the last pass, or of every pass if kept."""
    from oaccdepth.estimation import inference

    result = inference.estimate(light_field, options, progress=progress)
    if options.keep_passes:
        numbered = enumerate(result.passes, start=1)
        passes = {f"pass_{n}": one.masks for n, one in numbered if one.masks is not None}
    else:
        assert result.masks is not None  # keep_masks is set
        passes = {".": result.masks}
    return passes, result.made_with
