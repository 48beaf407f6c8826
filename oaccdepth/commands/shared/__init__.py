"""What the commands share: the same option has the same name, help and default everywhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from oaccdepth.progress import ReportProgress, ignore

Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="A light field: a folder of views, an HCI scene or its parameters.cfg, a file. "
        "`oaccdepth formats` lists them.",
        show_default=False,
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT", help="Where to write.", show_default=False)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")]
Open = Annotated[bool, typer.Option("--open", help="Write the page and open it in a browser.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say what is going on.")]


def open_page(page: Path) -> None:
    """Open a page in the browser."""
    typer.launch(page.resolve().as_uri())


def messages() -> Console:
    """Where messages and progress go: stderr, so that stdout holds results only."""
    return Console(stderr=True, highlight=False)


def results() -> Console:
    """Where results go: stdout."""
    return Console(highlight=False)


class _ToStderr(logging.Handler):
    """To what stderr is when a message comes: a progress bar puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{self.format(record)}\n")


def configure_logging(quiet: bool, verbose: bool) -> None:
    """Send the library's log to stderr: warnings by default, all with -v, errors only with -q."""
    level = logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING
    handler = _ToStderr()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("oaccdepth")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[ReportProgress]:
    """A bar with the time left on a terminal, a plain line per stage otherwise."""
    console = messages()
    if quiet:
        yield ignore
    elif not console.is_terminal:
        yield _plain_lines(console)
    else:
        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=1.0)
            yield lambda stage, fraction: bar.update(task, description=stage, completed=fraction)


def _plain_lines(console: Console) -> ReportProgress:
    seen = {"reading"}  # without a line: if it fails, the error is the only one

    def report(stage: str, fraction: float) -> None:
        if stage not in seen:
            seen.add(stage)
            console.print(f"{stage} ...")

    return report


def plural(count: int, word: str) -> str:
    """'1 view', '2 views'."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
