"""Progress of long tasks: one kind of callback for all of them."""

from __future__ import annotations

from collections.abc import Callable

# What is going on ("reading"), and how much of the whole task is done, 0 to 1.
ReportProgress = Callable[[str, float], None]

# Stages that begin with this repeat an estimate, because its range was too narrow. Nobody knows
# beforehand whether that happens, so the first attempt leaves some of its share for others.
AGAIN = "searching wider"
FIRST_SHARE = 0.9  # of an estimate that may have to be repeated
NEXT_SHARE = 2 / 3  # of what is left: each repetition


def ignore(stage: str, fraction: float) -> None:
    """Report to nobody."""


def share(report: ReportProgress, start: float, end: float) -> ReportProgress:
    """A callback for the part of a task that takes its progress from `start` to `end`."""

    def report_part(stage: str, fraction: float) -> None:
        report(stage, start + (end - start) * fraction)

    return report_part
