"""The options of every command that estimates disparity, and what such a command says meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oaccdepth.commands.shared import Device, Weights, messages, parse_range
from oaccdepth.errors import InvalidOption
from oaccdepth.options import EstimateOptions
from oaccdepth.writers import VIEWER_FILE

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap
    from oaccdepth.lightfield import FloatArray, LightField

PANEL = "Estimating"
PRECISIONS = ("fp32", "fp16", "bf16")

Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations",
        metavar="N",
        min=1,
        help="Passes; every pass after the first knows what is hidden. "
        "Default: what the weights were made for.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
Tile = Annotated[
    int | None,
    typer.Option(
        "--tile",
        metavar="PX",
        min=16,
        help="Side of the tiles; smaller needs less memory. Default: what suits the device.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        "--precision", help="fp32, fp16 or bf16; the last two on GPUs.", rich_help_panel=PANEL
    ),
]
DisparityRange = Annotated[
    str,
    typer.Option(
        "--disparity-range",
        metavar="auto|MIN:MAX",
        help="Disparities to search, in px; auto: what the files say, or else estimated.",
        rich_help_panel=PANEL,
    ),
]


def estimate_options(
    weights: Weights = EstimateOptions.weights,
    device: Device = EstimateOptions.device,
    iterations: Iterations = EstimateOptions.iterations,
    tile: Tile = EstimateOptions.tile,
    precision: Precision = EstimateOptions.precision,
    disparity_range: DisparityRange = "auto",
) -> EstimateOptions:
    """How to estimate, from what was typed."""
    if precision not in PRECISIONS:
        raise InvalidOption(f"--precision {precision}: expected {', '.join(PRECISIONS)}.")
    searched = (
        None if disparity_range == "auto" else parse_range(disparity_range, "--disparity-range")
    )
    return EstimateOptions(
        weights=weights,
        device=device,
        iterations=iterations,
        tile=tile,
        precision=precision,
        disparity_range=searched,
    )


def describe(light_field: LightField) -> str:
    """'town: 9x9 views of 512x512 px, hci'."""
    rows, columns = light_field.grid
    height, width = light_field.resolution
    return (
        f"{light_field.source}: {rows}x{columns} views of {width}x{height} px, {light_field.format}"
    )


def print_message(text: str, quiet: bool = False) -> None:
    """One line to stderr, as it is, however wide the terminal."""
    if not quiet:
        messages().print(text, markup=False, soft_wrap=True)


def print_notes(notes: Iterable[str], quiet: bool) -> None:
    """Each note once, to stderr."""
    for note in dict.fromkeys(notes):
        print_message(f"note: {note}", quiet)


def write_page(
    folder: Path, light_field: LightField, result: DisparityMap, truth: FloatArray | None = None
) -> dict[str, str]:
    """Write the interactive page; return its name and what it is, for `writers.write`."""
    from oaccdepth.looking.viewer import write_viewer

    # `writers.prepare` has refused already if there is a page that must not be replaced.
    write_viewer(folder / VIEWER_FILE, light_field, result, truth=truth, overwrite=True)
    return {VIEWER_FILE: "interactive page; open it in a browser"}
