"""What every command that estimates disparity prints, and the page that it may write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from oaccdepth.commands.shared import messages

if TYPE_CHECKING:
    from oaccdepth.lightfield import LightField


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
