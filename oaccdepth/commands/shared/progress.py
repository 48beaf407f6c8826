"""A progress bar that moves evenly from the first second and shows how much time is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from oaccdepth.printable import printable
from oaccdepth.progress import AGAIN, NEXT_SHARE

LEAST_STEP = 0.2  # least distance that the bar may run ahead of the last report
EXPECTED_SECONDS = 20.0  # assumed duration of a task, if no better estimate is known
START = 0.05  # share that the bar may reach before the first report
CERTAIN = 0.02  # share that must be done before the time left is shown
ALMOST = 0.99  # the most that the bar shows before the end is reported
EASING = 1.0  # seconds that the bar takes to catch up with a report ahead of it


class Pace:
    """Reports that come in steps -> a share of the work that grows evenly.

    Between two reports the bar goes on at the speed so far, but never further than one more step
    of the usual size. It never goes back, and it does not jump ahead either.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, expected: float = EXPECTED_SECONDS
    ) -> None:
        self._clock = clock
        self.expected = expected  # seconds that the task should take; used until its speed is known
        self._start = self._at = self._drawn = clock()
        self._first: float | None = None  # not 0 if an earlier session did part of the work
        self._reported = self._shown = 0.0
        self._step = LEAST_STEP
        self._is_again = False

    def begin_again(self) -> None:
        """All so far has to be done again, in a part of what is left of the bar."""
        now, left = self._clock(), 1 - self._reported
        took = max(now - self._start, 1e-3)
        self.expected = max(1 / self._speed, took / max(NEXT_SHARE * left, 1e-3))
        self._first, self._start, self._at, self._is_again = self._reported, now, now, True

    def report(self, fraction: float) -> None:
        """Remember a report."""
        if self._first is None:  # the time to start says nothing about the rest
            self._first = self._reported = fraction
            self._start = self._at = self._clock()
        elif fraction > self._reported:
            self._step = max(LEAST_STEP, fraction - self._reported)
            self._reported, self._at = fraction, self._clock()

    @property
    def fraction(self) -> float:
        """How much is done, extrapolated from the last report."""
        now = self._clock()
        since = now - self._at
        if self._first is None:
            ahead = START * since / (since + EXPECTED_SECONDS)
        else:
            ahead = min(self._speed * since, 0.95 * self._step)
        most = max(ALMOST, self._reported)
        missing = max(0.0, min(most, self._reported + ahead) - self._shown)
        self._shown += missing * min(1.0, (now - self._drawn) / EASING)
        self._drawn = now
        return self._shown

    @property
    def _speed(self) -> float:
        """Share per second: what is expected, until enough has been done to tell."""
        taken, done = self._at - self._start, self._reported - (self._first or 0.0)
        is_known = taken > 0 and (done >= CERTAIN or not self._is_again)
        return done / taken if is_known else 1 / self.expected

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end; None until the first report of progress."""
        if self._is_again:  # what is shown may still be far behind
            return (1 - max(self.fraction, self._reported)) / self._speed
        first = self._first or 0.0
        if self._reported - first < CERTAIN:
            return None
        return (self._clock() - self._start) / (self.fraction - first) * (1 - self._shown)


def in_words(seconds: float | None) -> str:
    """'12 s left', '3 min left', '2 h 05 min left'."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s left"
    minutes = round(seconds / 60)
    return (
        f"{minutes} min left" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min left"
    )


class _TimeLeft(ProgressColumn):
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        return Text(in_words(task.fields["pace"].seconds_left).rjust(15), no_wrap=True)


class Bar(Progress):
    """One labelled bar as wide as the terminal, and lines of text below it."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.pace = Pace(clock)
        self.lines: dict[str, str] = {}  # lines below the bar, by topic
        self._stage = ""
        columns = (
            TextColumn("{task.description:<12}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            _TimeLeft(),
        )
        super().__init__(*columns, console=console, transient=True, expand=True)
        self._task = self.add_task("starting", total=1.0, pace=self.pace)

    def report(self, stage: str, fraction: float) -> None:
        """Say what is going on, and how much of the whole is done."""
        self.pace.report(fraction)
        if stage.startswith(AGAIN) and stage != self._stage:
            self.pace.begin_again()
        self._stage = stage
        self.update(self._task, description=stage)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Draw; called ten times a second."""
        for task in self.task_ids:  # empty when it is drawn for the first time
            self.update(task, completed=self.pace.fraction)
        yield from super().get_renderables()
        for line in list(self.lines.values()):
            yield Text(printable(line), no_wrap=True, overflow="ellipsis", style="dim")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, markup=False, soft_wrap=True)
