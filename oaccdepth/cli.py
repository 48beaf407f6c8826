"""The command line: `oaccdepth COMMAND`. Each command is one file in `commands/`."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer

from oaccdepth.commands.shared.help import Command, Group
from oaccdepth.errors import (
    ADVICE_ON_MEMORY,
    OaccDepthError,
    UnreadableFile,
    is_out_of_memory,
)
from oaccdepth.files.signals import heed, stop_cleanly
from oaccdepth.printable import printable
from oaccdepth.version import __version__

# In the order of the help page. A command is a function with the name of its module. It imports
# heavy packages only when it is called, so that `--help` answers at once. `weights` is a group of
# commands, which Typer lists last.
COMMANDS = (
    "estimate",
    "masks",
    "view",
    "figure",
    "refocus",
    "info",
    "demo",
    "batch",
    "convert",
    "formats",
    "evaluate",
    "submission",
    "render",
    "train",
    "benchmark",
    "export",
    "weights",
)


USAGE_ERROR: Any = typer.BadParameter.__base__  # Click's own, which Typer may bundle
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Commands(Group):
    """Turn errors that a user can cause, and signals, into one line and an exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the command line."""
        with _told():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the one place where our errors are caught."""
        with _told():
            _check_current_folder()
            return super().invoke(ctx)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        code = heed(error)  # even if a library has turned the signal into another error
        reason = str(error) if isinstance(error, OaccDepthError) else _lack(error)
        if code is not None:
            typer.echo("stopped.", err=True)
        elif reason is not None:
            typer.echo(f"error: {reason}", err=True)
        else:
            if isinstance(error, USAGE_ERROR):  # its message quotes the command line
                error.message = printable(error.message)
            raise
        raise typer.Exit(code or 1) from error


def _lack(error: BaseException) -> str | None:
    """The message if memory or disk is full; None for any other error."""
    if is_out_of_memory(error):
        return ADVICE_ON_MEMORY
    if isinstance(error, OSError) and error.errno in FULL:  # stdout may be a file
        return printable(f"{error.filename or 'the output'}: {error.strerror}. Free some space.")
    return None


def _check_current_folder() -> None:
    """Refuse to run in a folder that was deleted: libraries would crash."""
    try:
        os.getcwd()
    except OSError as error:
        raise UnreadableFile(
            "the current folder no longer exists. Change to another one."
        ) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oaccdepth {__version__}")
        raise typer.Exit


@app.callback()
def oaccdepth(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Disparity maps and occlusion masks from light fields.

    For example:
      oaccdepth demo
      oaccdepth estimate FOLDER -o OUT
    """


for _name in COMMANDS:
    _command = getattr(import_module(f"oaccdepth.commands.{_name}"), _name)
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        app.command(cls=Command)(_command)


def _print_any_name() -> None:
    """Print characters that the terminal's encoding lacks as escape codes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command that `sys.argv` names, and exit with its code."""
    try:
        stop_cleanly()
        _print_any_name()
        app(prog_name="oaccdepth")
    except (KeyboardInterrupt, SystemExit) as error:  # a signal while no command was running
        if isinstance(error, SystemExit) and not error.code:
            raise
        code = heed(error)
        if code is None:
            raise
        typer.echo("stopped.", err=True)
        sys.exit(code)
