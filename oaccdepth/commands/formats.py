"""`oaccdepth formats`: which formats are read and written, and how each is recognised."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from oaccdepth.commands import shared


def formats(as_json: shared.AsJson = False) -> None:
    """List the light-field formats that can be read and written.

    For example:
      oaccdepth formats
    """
    from oaccdepth import readers
    from oaccdepth.writers import scenes

    read = [{"format": reader.NAME, "recognised_by": reader.SIGN} for reader in readers.READERS]
    refused = [{"format": reader.NAME, "recognised_by": reader.SIGN} for reader in readers.REFUSED]
    written = [{"format": name, "as": text} for name, text in scenes.FORMATS.items()]
    groups = {"read": read, "refused": refused, "written": written}
    if as_json:
        shared.print_json(groups)
        return
    table = Table("", "format", "recognised by", box=None, pad_edge=False, show_edge=False)
    for title, rows in groups.items():
        for row in rows:
            table.add_row(title, *map(escape, row.values()))
    shared.tables().print(table)
