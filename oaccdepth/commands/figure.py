"""`oaccdepth figure`: pictures for papers and talks, and animations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.looking import (
    LightFieldPath,
    Loading,
    ResultOrInput,
    Shown,
)
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.errors import InvalidOption
from oaccdepth.files.atomic import check_file
from oaccdepth.options import EstimateOptions, Range, ReadOptions, WriteOptions

PanelNames = Annotated[
    list[str] | None,
    typer.Option(
        "--panel",
        metavar="NAME",
        help="view, disparity, confidence, masks, truth, error or passes. Repeat for more. "
        "Default: every panel for which there is data.",
    ),
]
Animation = Annotated[
    str | None,
    typer.Option(
        "--animate",
        metavar="parallax|refocus",
        help="Make an animation that moves through the views, or the focus through the scene.",
    ),
]
FigureFile = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A .png or .pdf; with --animate a .gif or .mp4.",
    ),
]
Columns = Annotated[
    int | None,
    typer.Option("--columns", metavar="N", min=1, help="Panels per row."),
]
PanelWidth = Annotated[
    int, typer.Option("--panel-width", metavar="PX", min=64, help="Width of a panel.")
]
EndsOfErrors = Annotated[
    float, typer.Option("--error-range", metavar="PX", help="Error at the ends of its colour bar.")
]
FramesPerSecond = Annotated[
    float,
    typer.Option("--fps", metavar="N", min=1, max=60, help="Frames per second of the animation."),
]


@takes(
    writing=(WriteOptions, "colormap", "value_range"),
    estimating=EstimateOptions,
    reading=ReadOptions,
)
def figure(
    path: ResultOrInput,
    output: FigureFile,
    light_field_path: LightFieldPath = None,
    panels: PanelNames = None,
    columns: Columns = None,
    side: PanelWidth = 640,
    error_range: EndsOfErrors = 0.2,
    animate: Animation = None,
    frames_per_second: FramesPerSecond = 15,
    overwrite: shared.Overwrite = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    writing: WriteOptions,
    estimating: EstimateOptions,
    reading: ReadOptions,
) -> None:
    """Make a figure for a paper, or an animation.

    A figure shows view, disparity, confidence, masks and error side by side, with colour bars.

    For example:
      oaccdepth figure results/town -o town.pdf --panel view --panel disparity
      oaccdepth figure scenes/town -o town.gif --animate parallax
    """
    shared.configure_logging(quiet, verbose)
    _check_ending(output, animate)
    check_file(output, overwrite)
    if error_range <= 0:
        raise InvalidOption(f"--error-range {error_range}: expected more than 0 px.")
    options = replace(estimating, keep_masks=animate is None, keep_passes=animate is None)
    with shared.progress_bar(quiet) as progress:
        loading = Loading(path, light_field_path, reading, options, progress)
        if animate:
            notes = _animate(output, loading, animate, writing.value_range, frames_per_second)
        else:
            shown = _with_masks(loading.load(), panels)
            colours = Colours(writing.colormap, writing.value_range, error_range)
            _draw(output, shown, panels, colours, columns, side)
            notes = shown.notes
    shared.print_notes(notes, quiet)
    if not quiet:
        shared.echo(str(output))


class Colours(NamedTuple):
    """How values become colours."""

    colormap: str
    value_range: Range | None
    error_range: float


def _draw(
    output: Path,
    shown: Shown,
    panels: list[str] | None,
    colours: Colours,
    columns: int | None,
    side: int,
) -> None:
    from oaccdepth.looking import figures

    material = figures.Material(shown.light_field, shown.result, shown.truth, *colours)
    figures.write_figure(
        output, figures.compose(figures.make_panels(material, panels), columns, side)
    )


def _animate(
    output: Path, loading: Loading, kind: str, limits: Range | None, frames_per_second: float
) -> tuple[str, ...]:
    """Write the animation; return the notes about it."""
    from oaccdepth.looking import animations
    from oaccdepth.writers.pictures import choose_range

    if kind == "refocus" and limits is None:  # the disparity map tells the range of the scene
        shown = loading.load()
        light_field, notes = shown.light_field, shown.notes
        limits = choose_range(shown.result.disparity)
    else:
        light_field, notes = loading.light_field()
    if light_field is None:
        raise InvalidOption(f"--animate {kind}: needs the views; {' '.join(notes)}")
    frames = (
        animations.refocus_frames(light_field, limits, progress=loading.progress)
        if limits and kind == "refocus"
        else animations.parallax_frames(light_field)
    )
    animations.write_animation(output, list(frames), frames_per_second)
    return notes


def _with_masks(shown: Shown, panels: list[str] | None) -> Shown:
    """Add the masks implied by the disparity, if they are wanted and were not kept."""
    wanted = panels is None or "masks" in panels
    if not wanted or shown.light_field is None or shown.result.masks is not None:
        return shown
    from oaccdepth.estimation.inference import masks_from_disparity

    masks = masks_from_disparity(shown.light_field, shown.result.disparity)
    return replace(shown, result=replace(shown.result, masks=masks))


def _check_ending(output: Path, animate: str | None) -> None:
    """Refuse an impossible output before the long work starts."""
    from oaccdepth.looking import animations, figures

    if animate is not None and animate not in animations.ANIMATIONS:
        raise InvalidOption(
            f"--animate {animate}: no such animation. Use {' or '.join(animations.ANIMATIONS)}."
        )
    endings = animations.ANIMATION_ENDINGS if animate else figures.FIGURE_ENDINGS
    ending = output.suffix.lower()
    if ending not in endings:
        what = "an animation" if animate else "a figure"
        raise InvalidOption(f"{output}: {what} must end in {' or '.join(endings)}.")
    if ending == ".mp4":
        animations.check_video()
