"""What every command that estimates disparity prints, and the page that it may write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from oaccdepth.commands.shared import messages
from oaccdepth.writers import VIEWER_FILE

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap
    from oaccdepth.lightfield import FloatArray, LightField


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
