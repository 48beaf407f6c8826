"""`oaccdepth batch`: every light field under a folder."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from oaccdepth.commands.evaluate import wide_results
from oaccdepth.commands.shared import (
    AsJson,
    Open,
    Output,
    Quiet,
    Verbose,
    configure_logging,
    messages,
    open_page,
    plural,
)
from oaccdepth.commands.shared.estimating import print_message
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import BatchOptions, EstimateOptions, ReadOptions, WriteOptions

if TYPE_CHECKING:
    from oaccdepth.batch import Job, Record, Summary

Root = Annotated[
    Path,
    typer.Argument(metavar="ROOT", help="Folder that holds light fields.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")]
SCORES = {"mse_100": "MSE\nx100", "badpix_0070": "BadPix\n0.07 %"}  # those in the table
OnRecord = Callable[["Record"], None]
Report = Callable[[str, str, float], None]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(batch)


@takes(options=BatchOptions, writing=WriteOptions, estimating=EstimateOptions, reading=ReadOptions)
def batch(
    root: Root,
    output: Output,
    dry_run: DryRun = False,
    opened: Open = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    *,
    options: BatchOptions,
    writing: WriteOptions,
    estimating: EstimateOptions,
    reading: ReadOptions,
) -> None:
    """Estimate every light field under a folder.

    Mirrors the tree of ROOT under OUT, with report.csv and report.json. What is done already, from
    the same input, options and weights, is skipped; so a run that was stopped or killed goes on
    when it is started again. One that fails does not stop the others: exit code 1 at the end.
    """
    configure_logging(quiet, verbose)
    writing = replace(writing, view=writing.view or opened)
    if dry_run:
        _plan(root, output, options, reading, estimating, writing, as_json)
    else:
        summary = _run(root, output, options, reading, estimating, writing, quiet)
        _print_summary(summary, as_json, quiet)
        if opened:
            open_page(output / "index.html")
        if summary.not_reached:
            raise typer.Exit(130)  # stopped with Ctrl-C
        if summary.failed:
            raise typer.Exit(1)


def _plan(
    root: Path,
    output: Path,
    options: BatchOptions,
    reading: ReadOptions,
    estimating: EstimateOptions,
    writing: WriteOptions,
    as_json: bool,
) -> None:
    from oaccdepth.batch import plan_batch

    _print_plan(plan_batch(root, output, options, reading, estimating, writing), as_json)


def _run(
    root: Path,
    output: Path,
    options: BatchOptions,
    reading: ReadOptions,
    estimating: EstimateOptions,
    writing: WriteOptions,
    quiet: bool,
) -> Summary:
    from oaccdepth.batch import run_batch

    with _watching(quiet) as (on_start, report, on_record):
        return run_batch(
            root,
            output,
            options,
            reading,
            estimating,
            writing,
            on_start=on_start,
            report=report,
            on_record=on_record,
        )


def _print_plan(plan: list[tuple[Job, bool]], as_json: bool) -> None:
    if as_json:
        rows = [{"scene": job.scene, "done": is_done} for job, is_done in plan]
        typer.echo(json.dumps(rows, indent=2))
        return
    for job, is_done in plan:
        typer.echo(f"{'done ' if is_done else 'to do'}  {job.scene}")
    left = sum(not is_done for _, is_done in plan)
    print_message(f"{plural(len(plan), 'scene')}, {left} to do")


@contextmanager
def _watching(quiet: bool) -> Iterator[tuple[Callable[[int], None], Report, OnRecord]]:
    """What is called as the batch begins, goes on and finishes a scene: bars, or plain lines."""
    console = messages()
    if quiet:
        yield lambda count: None, lambda *progress: None, lambda record: None
    elif not console.is_terminal:
        lines = _Lines()
        yield lines.start, lambda *progress: None, lines.finish
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            bars = _Bars(progress)
            yield bars.start, bars.advance, bars.finish


class _Lines:
    """One line for each finished scene."""

    def __init__(self) -> None:
        self._count = self._finished = 0

    def start(self, count: int) -> None:
        self._count = count

    def finish(self, record: Record) -> None:
        self._finished += 1
        print_message(f"[{self._finished}/{self._count}] {_tell(record)}")


class _Bars:
    """One bar over the scenes, and one for each scene under way."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._all = progress.add_task("scenes", total=None)
        self._scenes: dict[str, TaskID] = {}
        self._finished: set[str] = set()
        self._lock = threading.Lock()  # scenes report from threads of their own

    def start(self, count: int) -> None:
        self._progress.update(self._all, total=count)

    def advance(self, scene: str, stage: str, fraction: float) -> None:
        description = f"  {escape(scene)}: {escape(stage)}"
        with self._lock:
            if scene in self._finished:
                return
            if scene not in self._scenes:
                self._scenes[scene] = self._progress.add_task(description, total=100)
            self._progress.update(
                self._scenes[scene], description=description, completed=round(100 * fraction)
            )

    def finish(self, record: Record) -> None:
        with self._lock:
            self._finished.add(record.scene)
            if record.scene in self._scenes:
                self._progress.remove_task(self._scenes.pop(record.scene))
            self._progress.advance(self._all)
        if record.status == "failed":
            self._progress.console.print(escape(_tell(record)), soft_wrap=True)


def _tell(record: Record) -> str:
    """One line: 'boxes: done, 4.2 s' or 'boxes: failed: why'."""
    if record.status == "failed":
        return f"{record.scene}: failed: {record.message}"
    seconds = f", {record.seconds:.1f} s" if record.status == "done" and record.seconds else ""
    notes = f" ({' '.join(record.notes)})" if record.status == "done" and record.notes else ""
    return f"{record.scene}: {record.status}{seconds}{notes}"


def _print_summary(summary: Summary, as_json: bool, quiet: bool) -> None:
    if as_json:
        content = {
            "scenes": [asdict(record) for record in summary.records],
            "not_reached": list(summary.not_reached),
        }
        typer.echo(json.dumps(content, indent=2))
    elif summary.records and not quiet:
        wide_results().print(_table(summary.records))
    for record in summary.failed:
        print_message(f"error: {record.scene}: {record.message}")
    counts = [sum(r.status == status for r in summary.records) for status in ("done", "skipped")]
    text = f"{counts[0]} done, {counts[1]} skipped, {len(summary.failed)} failed"
    if summary.not_reached:
        text += f", {len(summary.not_reached)} not reached: start again to go on"
    print_message(text, quiet)


def _table(records: tuple[Record, ...]) -> Table:
    """The report as a table; columns of scores only if there is ground truth."""
    is_scored = any(record.scores for record in records)
    # No lines, and no more space than it takes: with names of 20 letters it fits into 80 columns.
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("scene", min_width=10, overflow="fold")
    for title in ("format", "grid"):
        table.add_column(title, no_wrap=True)
    for title in (
        "time\ns",
        "memory\nGiB",
        "disparity\npx",
        *(SCORES.values() if is_scored else ()),
    ):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for record in records:
        memory = record.peak_memory_bytes
        scores = [record.scores.get(name) for name in SCORES]
        table.add_row(
            escape(record.scene),
            record.format,
            "x".join(map(str, record.grid)),
            _number(record.seconds, 1),
            _number(None if memory is None else memory / 2**30, 2),
            "..".join(_number(value, 2) for value in record.disparity_range),
            *([_number(value, 3) for value in scores] if is_scored else ()),
            record.status,
        )
    return table


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
