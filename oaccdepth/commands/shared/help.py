"""Help pages that fit 80 columns, with the options grouped by purpose."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any

import typer.core

COLUMN = 27  # column where the explanations begin


def _write_page(command: Any, ctx: Any, formatter: Any, sections: dict[str, list[Any]]) -> None:
    """Usage, description, then a section of (name, explanation) under each heading."""
    command.format_usage(ctx, formatter)
    for paragraph in (command.help or "").split("\n\n"):
        formatter.write(f"\n{_fill(paragraph, formatter.width)}\n")
    for title, rows in sections.items():
        formatter.write(f"\n{typer.style(title, bold=True)}\n")
        column = COLUMN if title != "Commands" else 2 + max(len(name) for name, _ in rows) + 2
        for name, text in rows:
            formatter.write(_row(name, text, formatter.width, column))


def _write_usage(command: Any, ctx: Any, formatter: Any, rest: str) -> None:
    pieces = [piece for parameter in command.params if (piece := _needed(parameter))]
    usage = " ".join([ctx.command_path, *pieces, rest])
    formatter.write(f"{typer.style('Usage:', bold=True)} {usage}\n")


def _fill(paragraph: str, width: int) -> str:
    """Wrap a paragraph, unless it has indented lines."""
    if any(line.startswith("  ") for line in paragraph.splitlines()):
        return paragraph.rstrip()
    return textwrap.fill(paragraph, width, break_on_hyphens=False)


def _row(name: str, text: str, width: int, column: int) -> str:
    lines = textwrap.wrap(text, width - column, break_on_hyphens=False) or [""]
    first = f"  {name}".ljust(column)
    if not first.endswith(" "):  # a long name gets its own line
        lines, first = ["", *lines], f"  {name}"
    return "\n".join([first + lines[0], *(" " * column + line for line in lines[1:])]) + "\n"


def _needed(parameter: Any) -> str:
    """An argument or a required option, as it is typed."""
    if parameter.param_type_name == "argument":
        metavar = str(parameter.metavar)
        return metavar if parameter.required or metavar.startswith("[") else f"[{metavar}]"
    return f"{parameter.opts[-1]} {parameter.metavar}" if parameter.required else ""


def _explained(parameter: Any) -> tuple[str, str]:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar).strip("[]"), parameter.help or ""
    names = sorted((*parameter.opts, *parameter.secondary_opts), key=len)
    value = "" if parameter.is_flag else f" {parameter.metavar}"
    text = parameter.help or ""
    if parameter.required:
        text += " Required."
    elif parameter.is_flag and parameter.secondary_opts:
        text += f" Default: {'on' if parameter.default else 'off'}."
    elif parameter.show_default and not parameter.is_flag and parameter.default is not None:
        text += f" Default: {parameter.default}."
    return ", ".join(names) + value, text


def _by_panel(parameters: Iterable[Any]) -> dict[str, list[tuple[str, str]]]:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in parameters:
        is_argument = parameter.param_type_name == "argument"
        panel = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None)
        sections.setdefault(panel or "Options", []).append(_explained(parameter))
    return {title: rows for title, rows in sections.items() if rows}


class Command(typer.core.TyperCommand):
    """A command with our help page."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the first line, which is also shown with an error."""
        _write_usage(self, ctx, formatter, "[OPTIONS]")

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        _write_page(self, ctx, formatter, _by_panel(self.get_params(ctx)))


class Group(typer.core.TyperGroup):
    """A group of commands with our help page."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the first line, which is also shown with an error."""
        _write_usage(self, ctx, formatter, "COMMAND [OPTIONS]")

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page: the commands, each with its first sentence."""
        commands = [
            (name, re.split(r"\n\n|(?<=\.)\s", command.help or "")[0])
            for name, command in self.commands.items()
        ]
        sections = {"Commands": commands, **_by_panel(self.get_params(ctx))}
        _write_page(self, ctx, formatter, sections)
