"""`oaccdepth formats`: which formats are read and written, and how each is recognised."""

from __future__ import annotations

from typing import Any

from oaccdepth.commands import shared


def formats(as_json: shared.AsJson = False) -> None:
    """List the light-field formats that can be read and written.

    For example:
      oaccdepth formats
    """
    from oaccdepth import readers
    from oaccdepth.writers import scenes

    read: list[dict[str, Any]] = [
        {"format": reader.NAME, "recognised_by": reader.SIGN, "extra": reader.EXTRA or None}
        for reader in readers.READERS
    ]
    refused = [{"format": reader.NAME, "recognised_by": reader.SIGN} for reader in readers.REFUSED]
    written = [{"format": name, "as": text} for name, text in scenes.FORMATS.items()]
    if as_json:
        shared.print_json({"read": read, "refused": refused, "written": written})
    else:
        _print_table(read, refused, written)


def _print_table(
    read: list[dict[str, Any]], refused: list[dict[str, Any]], written: list[dict[str, Any]]
) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("", "format", "recognised by", "extra"):
        table.add_column(heading, no_wrap=heading != "recognised by")
    for row in read:
        extra = escape(f"[{row['extra']}]") if row["extra"] else "none"
        table.add_row("read", row["format"], row["recognised_by"], extra)
    for row in refused:
        table.add_row("refused", row["format"], row["recognised_by"], "")
    for row in written:
        table.add_row("written", row["format"], row["as"], "")
    shared.tables().print(table)
