"""`oaccdepth batch`: every light field under a folder."""

from __future__ import annotations

import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import BatchOptions, EstimateOptions, ReadOptions, WriteOptions
from oaccdepth.printable import printable

if TYPE_CHECKING:
    from oaccdepth.batch import Job, Record, Summary
    from oaccdepth.commands.shared.progress import Bar

Root = Annotated[Path, typer.Argument(metavar="ROOT", help="Folder with light fields.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list what would be done.")]
SECONDS_PER_SCENE = 10.0  # of 9x9 views of 512x512 px, on two cores
SCORES = {"mse_100": "MSE\nx100", "badpix_0070": "BadPix\n0.07 %"}  # those in the table


@takes(options=BatchOptions, writing=WriteOptions, estimating=EstimateOptions, reading=ReadOptions)
def batch(
    root: Root,
    output: shared.Output,
    dry_run: DryRun = False,
    opened: shared.Open = False,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    options: BatchOptions,
    writing: WriteOptions,
    estimating: EstimateOptions,
    reading: ReadOptions,
) -> None:
    """Estimate every light field under a folder.

    Writes the results to the same tree under OUT, with report.csv and report.json. Scenes that
    are already done, from the same input, options and weights, are skipped, so an interrupted run
    continues when it is started again. If a scene fails, the others still run, and the exit code
    is 1.

    For example:
      oaccdepth batch scenes -o results
      oaccdepth batch scenes -o results --include 'training/*' --jobs 2
    """
    shared.configure_logging(quiet, verbose)
    writing = replace(writing, view=writing.view or opened)
    groups = (options, reading, estimating, writing)
    if dry_run:
        from oaccdepth.batch import find_unread, plan_batch

        _print_plan(plan_batch(root, output, *groups), as_json)
        for unread, reason in find_unread(root, output):
            shared.print_message(f"not read: {unread}: {reason}", quiet)
        return
    # the bar is shown at once; the imports take a second, and the scenes are not counted yet
    with shared.bar_on_terminal(quiet, expected=10 * SECONDS_PER_SCENE) as bar:
        from oaccdepth.batch import run_batch
        from oaccdepth.batch.report import INDEX_FILE

        watch = _Watch(bar, quiet)
        summary = run_batch(
            root,
            output,
            *groups,
            on_start=watch.start,
            report=watch.advance,
            on_record=watch.finish,
        )
    _print_summary(summary, as_json, quiet)
    if writing.view:
        shared.print_message(f"All pages: {output / INDEX_FILE}", quiet)
    if opened:
        shared.open_page(output / INDEX_FILE)
    if summary.not_reached:
        raise typer.Exit(summary.stopped)
    if summary.failed:
        raise typer.Exit(1)


def _print_plan(plan: list[tuple[Job, bool]], as_json: bool) -> None:
    if as_json:
        shared.print_json([{"scene": job.scene, "done": is_done} for job, is_done in plan])
        return
    for job, is_done in plan:
        shared.echo(f"{'done ' if is_done else 'to do'}  {job.scene}")
    left = sum(not is_done for _, is_done in plan)
    shared.print_message(f"{shared.plural(len(plan), 'scene')}, {left} to do")


class _Watch:
    """Shows the progress of a batch: a bar with the current scenes, or a line for each scene."""

    def __init__(self, bar: Bar | None, quiet: bool) -> None:
        self._bar, self._quiet = bar, quiet
        self._count = self._skipped = 0
        self._fractions: dict[str, float] = {}  # of every scene that has started
        self._finished: set[str] = set()
        self._lock = threading.Lock()  # scenes report from their own threads

    def start(self, count: int) -> None:
        self._count = count
        if self._bar is not None:
            self._bar.pace.expected = SECONDS_PER_SCENE * max(1, count)
        self._draw()

    def advance(self, scene: str, stage: str, fraction: float) -> None:
        with self._lock:
            if self._bar is not None and scene not in self._finished:
                self._fractions[scene] = fraction
                self._bar.lines[scene] = f"  {scene}: {stage}"
                self._draw()

    def finish(self, record: Record) -> None:
        with self._lock:
            self._finished.add(record.scene)
            self._skipped += record.status == "skipped"
            self._fractions[record.scene] = float(record.status != "skipped")
            self._draw()
        if self._bar is None:
            text = f"[{len(self._finished)}/{self._count}] {_tell(record)}"
            shared.print_message(text, self._quiet)
        else:
            self._bar.lines.pop(record.scene, None)
            if record.status == "failed":
                self._bar.say(_tell(record))

    def _draw(self) -> None:
        """Draw the bar. Skipped scenes take no time, so they do not count."""
        if self._bar is not None:
            to_do = max(1, self._count - self._skipped)
            stage = f"{len(self._finished)} of {shared.plural(self._count, 'scene')}"
            self._bar.report(stage, sum(self._fractions.values()) / to_do)


def _tell(record: Record) -> str:
    """Print one line: 'boxes: done, 4.2 s' or 'boxes: failed: why'."""
    if record.status == "failed":
        return f"{record.scene}: failed: {_why(record)}"
    seconds = f", {record.seconds:.1f} s" if record.status == "done" and record.seconds else ""
    notes = f" ({' '.join(record.notes)})" if record.status == "done" and record.notes else ""
    return f"{record.scene}: {record.status}{seconds}{notes}"


def _why(record: Record) -> str:
    """The message of a scene that failed, without its name, which stands before it."""
    return record.message.removeprefix(f"{record.scene}: ")


def _print_summary(summary: Summary, as_json: bool, quiet: bool) -> None:
    if as_json:
        scenes = [asdict(record) for record in summary.records]
        shared.print_json(
            {
                "scenes": scenes,
                "not_reached": list(summary.not_reached),
                "not_read": [{"path": path, "reason": reason} for path, reason in summary.not_read],
            }
        )
    elif summary.records and not quiet:
        shared.tables().print(_table(summary.records))
    for path, reason in summary.not_read:
        shared.print_message(f"not read: {path}: {reason}", quiet)
    for record in summary.failed:
        shared.print_message(f"error: {record.scene}: {_why(record)}")
    counts = [sum(r.status == status for r in summary.records) for status in ("done", "skipped")]
    text = f"{counts[0]} done, {counts[1]} skipped, {len(summary.failed)} failed"
    if summary.not_reached:
        text += f", {len(summary.not_reached)} not processed yet: run it again to continue"
    shared.print_message(text, quiet)


def _table(records: tuple[Record, ...]) -> Table:
    """The report as a table; score columns only if there is ground truth."""
    scores = SCORES if any(record.scores for record in records) else {}
    # No borders and little padding: with names of 20 letters it fits into 80 columns.
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("scene", min_width=10, overflow="fold")
    for title in ("format", "grid"):
        table.add_column(title, no_wrap=True)
    for title in ("time\ns", "memory\nGiB", "disparity\npx", *scores.values()):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for record in records:
        memory = record.peak_memory_bytes
        table.add_row(
            escape(printable(record.scene)),
            record.format,
            "x".join(map(str, record.grid)),
            _number(record.seconds, 1),
            _number(None if memory is None else memory / 2**30, 2),
            "..".join(_number(value, 2) for value in record.disparity_range),
            *(_number(record.scores.get(name), 3) for name in scores),
            record.status,
        )
    return table


def _number(value: Any, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
