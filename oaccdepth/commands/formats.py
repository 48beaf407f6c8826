"""`oaccdepth formats`: what is recognised, by what sign, and the extra that it needs."""

from __future__ import annotations

import json
from typing import Any

import typer

from oaccdepth.commands.shared import AsJson, results


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(formats)


def formats(as_json: AsJson = False) -> None:
    """List the light-field formats that are recognised, and those that can be written."""
    from oaccdepth import readers
    from oaccdepth.writers import scenes

    read: list[dict[str, Any]] = [
        {"format": reader.NAME, "recognised_by": reader.SIGN, "extra": reader.EXTRA or None}
        for reader in readers.READERS
    ]
    refused = [{"format": reader.NAME, "recognised_by": reader.SIGN} for reader in readers.REFUSED]
    written = [{"format": name, "as": text} for name, text in scenes.FORMATS.items()]
    if as_json:
        facts = {"read": read, "refused": refused, "written": written}
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
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
    results().print(table)
