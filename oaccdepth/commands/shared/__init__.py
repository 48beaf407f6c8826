"""What the commands share: the same option has the same name, help and default everywhere."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator
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

from oaccdepth.errors import InvalidOption
from oaccdepth.options import Range

ReportProgress = Callable[[str, float], None]  # what is going on, and how much of it is done (0..1)

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
Weights = Annotated[
    str,
    typer.Option("--weights", metavar="NAME|FILE", help="Bundled weights, or a .safetensors file."),
]
Device = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:N or mps.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say what is going on.")]


def messages() -> Console:
    """Where messages and progress go: stderr, so that stdout holds results only."""
    return Console(stderr=True, highlight=False)


def results() -> Console:
    """Where results go: stdout."""
    return Console(highlight=False)


def parse_pair(text: str, option: str) -> tuple[int, int]:
    """'9x9' as (9, 9)."""
    rows, _, columns = text.lower().partition("x")
    if not (rows.isdecimal() and columns.isdecimal() and int(rows) > 0 and int(columns) > 0):
        raise InvalidOption(f"{option} {text}: expected ROWSxCOLUMNS, such as 9x9.")
    return int(rows), int(columns)


def parse_range(text: str, option: str) -> Range:
    """'-2:1.5' as (-2.0, 1.5)."""
    low, _, high = text.partition(":")
    try:
        result = float(low), float(high)
    except ValueError:
        result = (0.0, 0.0)
    if not -math.inf < result[0] < result[1] < math.inf:
        raise InvalidOption(f"{option} {text}: expected MIN:MAX, such as -2:1.5.")
    return result


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
        yield lambda stage, fraction: None
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
    seen: set[str] = set()

    def report(stage: str, fraction: float) -> None:
        if stage not in seen:
            seen.add(stage)
            console.print(f"{stage} ...")

    return report


def plural(count: int, word: str) -> str:
    """'1 view', '2 views'."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
