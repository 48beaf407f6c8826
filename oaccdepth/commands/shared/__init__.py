"""What the commands share: options of the same name, messages, tables and the progress bar."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from oaccdepth.commands.shared.progress import EXPECTED_SECONDS, Bar
from oaccdepth.printable import printable, printable_lines
from oaccdepth.progress import ReportProgress, ignore

if TYPE_CHECKING:
    from oaccdepth.lightfield import LightField

Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="A light field: a folder of views, or a file. `oaccdepth formats` lists what can be "
        "read.",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Folder to write to.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
Open = Annotated[bool, typer.Option("--open", help="Write the page and open it in a browser.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print details.")]


def open_page(page: Path) -> None:
    """Open a page in the browser."""
    typer.launch(page.resolve().as_uri())


class PrintableConsole(Console):
    """Shows names and values from files as plain text; escape sequences in them have no effect."""

    def render_str(self, text: str, **settings: Any) -> Text:
        """Make a line, or a cell of a table, printable before it is laid out."""
        return super().render_str(printable_lines(text), **settings)


def messages() -> Console:
    """Where messages and progress go: stderr, so that stdout holds results only."""
    return PrintableConsole(stderr=True, highlight=False)


def tables() -> Console:
    """Where tables go: stdout. A file has no width, so nothing is wrapped there."""
    console = PrintableConsole(highlight=False)
    if not console.is_terminal:
        console.width = 200
    return console


def print_json(content: Any) -> None:
    """A result for machines, to stdout."""
    echo(*json.dumps(content, indent=2, ensure_ascii=False).split("\n"))


def echo(*lines: str) -> None:
    """Print lines of a result for people to stdout; a line break in a name does not add lines."""
    for line in lines:
        typer.echo(printable(line))


class _ToStderr(logging.Handler):
    """Writes to the current stderr, because a progress bar replaces it while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        sys.stderr.write(f"{printable_lines(self.format(record))}\n")


def configure_logging(quiet: bool, verbose: bool) -> None:
    """Send the library's log to stderr: warnings by default, everything with -v, errors with -q."""
    level = logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING
    handler = _ToStderr()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("oaccdepth")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


@contextmanager
def bar_on_terminal(
    quiet: bool = False, expected: float = EXPECTED_SECONDS
) -> Iterator[Bar | None]:
    """A progress bar for a task of about so many seconds; None if quiet or without a terminal."""
    console = messages()
    if quiet or not console.is_terminal:
        yield None
        return
    with Bar(console) as bar:
        bar.pace.expected = expected
        yield bar


@contextmanager
def progress_bar(
    quiet: bool = False, expected: float = EXPECTED_SECONDS
) -> Iterator[ReportProgress]:
    """A bar with the time left on a terminal; otherwise a line per stage."""
    with bar_on_terminal(quiet, expected) as bar:
        yield bar.report if bar else ignore if quiet else _plain_lines()


def _plain_lines() -> ReportProgress:
    seen = {"reading"}  # print nothing yet: if the task fails, the error should be the only line

    def report(stage: str, fraction: float) -> None:
        if stage not in seen:
            seen.add(stage)
            print_message(f"{stage} ...")

    return report


def plural(count: int, word: str) -> str:
    """'1 view', '2 views'."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def describe(light_field: LightField) -> str:
    """'town: 9x9 views of 512x512 px, hci'."""
    rows, columns = light_field.grid
    height, width = light_field.resolution
    return (
        f"{light_field.source}: {rows}x{columns} views of {width}x{height} px, {light_field.format}"
    )


def print_message(text: str, quiet: bool = False) -> None:
    """Print a message to stderr: on one line, or wrapped between words on a terminal."""
    if not quiet:
        console = messages()
        console.print(printable(text), markup=False, soft_wrap=not console.is_terminal)


def print_notes(notes: Iterable[str], quiet: bool) -> None:
    """Print each note once, to stderr, unless a warning has said it already."""
    handlers = logging.getLogger("oaccdepth").handlers
    said = [text for handler in handlers if isinstance(handler, _ToStderr) for text in handler.said]
    for note in dict.fromkeys(notes):
        if not any(note[1:] in text for text in said):  # a warning begins with the source's name
            print_message(f"note: {note}", quiet)
