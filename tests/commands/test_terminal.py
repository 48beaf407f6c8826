"""What an 80-column terminal shows: the progress bar, the small picture, the last lines."""

import io
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from oaccdepth import cli
from oaccdepth.batch import Record
from oaccdepth.commands.batch import _Watch
from oaccdepth.commands.shared import preview
from oaccdepth.commands.shared.progress import Bar, Pace, in_words
from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidCheckpoint
from oaccdepth.files.signals import Terminated
from oaccdepth.options import WriteOptions


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def console():
    return Console(file=io.StringIO(), force_terminal=True, width=80, color_system="truecolor")


def test_the_bar_moves_from_the_first_second(clock):
    pace = Pace(clock)
    pace.report(0.0)
    clock.now += 1
    assert 0.01 < pace.fraction < 0.1
    assert pace.seconds_left is None


def test_the_bar_of_a_long_task_starts_slowly(clock):
    """Otherwise it would stop until the work has caught up."""
    pace = Pace(clock, expected=3600)
    pace.report(0.0)
    clock.now += 36
    assert pace.fraction == pytest.approx(0.01)


def test_the_bar_moves_evenly_between_reports(clock):
    pace = Pace(clock)
    pace.report(0.0)
    seen = [0.0]
    for report in (0.2, 0.4, 0.6, 0.8, 1.0):  # every four seconds
        for _ in range(4):
            clock.now += 1
            seen.append(pace.fraction)
        pace.report(report)
    clock.now += 1
    steps = np.diff([*seen, pace.fraction])
    assert (steps >= 0).all() and pace.fraction == 1.0
    assert steps[5:-1].min() > 0.03 and steps[5:-1].max() < 0.08


def test_the_bar_catches_up_without_a_jump(clock):
    pace = Pace(clock)
    pace.report(0.0)
    seen = []
    for tenth in range(40):
        clock.now += 0.1
        if tenth == 10:
            pace.report(0.4)
        seen.append(pace.fraction)
    assert np.diff(seen).max() < 0.05 and seen[-1] > 0.4


def test_the_bar_waits_for_what_hangs(clock):
    pace = Pace(clock)
    for report in (0.0, 0.25, 0.5):
        pace.report(report)
        clock.now += 5
    clock.now += 3600
    assert 0.7 < pace.fraction < 0.75


def test_the_bar_is_not_full_before_the_end(clock):
    pace = Pace(clock)
    for report in (0.0, 0.5, 0.95):
        pace.report(report)
        clock.now += 100
    assert 0.95 < pace.fraction < 0.995  # 99 %, not 100 %
    assert in_words(pace.seconds_left) != "0 s left"
    pace.report(1.0)
    clock.now += 1
    assert pace.fraction == 1.0


def test_the_bar_moves_evenly_when_an_estimate_is_repeated(console, clock):
    """Before, it ran to 99 % in the first second and stood still for the rest."""
    bar = Bar(console, clock)
    bar.report("estimating", 0.0)
    for done in (0.3, 0.6, 0.9):  # each part takes four seconds
        for _ in range(4):
            clock.now += 1
            _ = bar.pace.fraction
        bar.report("estimating", done)
    for number, start, end in ((2, 0.9, 0.9667), (3, 0.9667, 0.9889)):
        stage, seen = f"searching wider, try {number}", []
        bar.report(stage, start)
        for part in (0.02, 0.35, 0.65, 1.0):
            for _ in range(1 if part == 0.02 else 4):
                clock.now += 1
                seen.append(bar.pace.fraction)
            bar.report(stage, start + part * (end - start))
        steps = np.diff(seen) / (end - start)
        assert steps.min() > 0.015 and steps.max() < 0.2, number
    clock.now += 1
    assert bar.pace.seconds_left is not None


def test_the_time_left_when_an_estimate_is_repeated(console, clock):
    bar = Bar(console, clock)
    bar.report("estimating", 0.0)
    clock.now += 20
    bar.report("estimating", 0.9)
    clock.now += 1
    assert bar.pace.fraction > 0.9
    bar.report("searching wider, try 2", 0.9)
    assert 15 <= bar.pace.seconds_left <= 30


def test_the_time_left_is_not_negative_when_a_quick_estimate_is_repeated(console, clock):
    """The bar is still far behind, because it takes a second to catch up."""
    bar = Bar(console, clock)
    bar.report("estimating", 0.0)
    clock.now += 0.5
    bar.report("estimating", 0.9)
    for part in (0.0, 0.02, 0.4, 1.0):
        bar.report("searching wider, try 2", 0.9 + part / 15)
        clock.now += 0.2
        assert 0 <= bar.pace.seconds_left <= 2


def test_the_time_left(clock):
    pace = Pace(clock)
    pace.report(0.0)
    clock.now += 30
    pace.report(0.25)
    assert pace.seconds_left == pytest.approx(90)


def test_a_slow_start_says_nothing_about_the_rest(clock):
    """Imports and compilation take a while before the first step of a training run."""
    pace = Pace(clock)
    seen = []
    for _ in range(60):
        clock.now += 1
        seen.append(pace.fraction)
    assert (np.diff(seen) > 0).all() and seen[-1] < 0.05
    pace.report(0.05)
    clock.now += 1
    pace.report(0.1)
    assert pace.seconds_left == pytest.approx(18)


def test_the_time_left_of_a_run_that_goes_on(clock):
    pace = Pace(clock)
    pace.report(0.5)  # done by an earlier session
    assert pace.seconds_left is None
    clock.now += 30
    pace.report(0.6)
    assert pace.seconds_left == pytest.approx(120)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (4.4, "4 s left"), (150, "2 min left"), (7500, "2 h 05 min left")],
)
def test_time_in_words(seconds, text):
    assert in_words(seconds) == text


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def drawn(bar, console):
    """The lines that the bar shows now."""
    with console.capture() as capture:
        console.print(bar.get_renderable())
    return [line.rstrip() for line in plain(capture.get()).splitlines()]


def test_a_bar_fits_80_columns(console, clock):
    bar = Bar(console, clock)
    bar.report("estimating", 0.0)
    clock.now += 10
    bar.report("estimating", 0.5)
    bar.lines["numbers"] = "x" * 100
    first, second = drawn(bar, console)
    assert len(first) <= 80 and first.startswith("estimating") and first.endswith("10 s left")
    assert " 50 % " in first
    assert len(second) == 80 and second.endswith("…")


def record(scene, status):
    return Record(scene, status, "why" if status == "failed" else "")


def test_a_batch_shows_what_is_under_way(console, clock):
    bar = Bar(console, clock)
    watch = _Watch(bar, quiet=False)
    watch.start(4)
    clock.now += 1
    watch.finish(record("old", "skipped"))
    watch.advance("boxes", "reading", 0.0)
    watch.advance("town", "estimating", 0.5)
    lines = drawn(bar, console)
    assert lines[0].startswith("1 of 4 scenes ")
    assert lines[1:] == ["  boxes: reading", "  town: estimating"]
    watch.finish(record("town", "done"))
    clock.now += 9
    watch.advance("town", "writing", 1.0)  # too late
    lines = drawn(bar, console)
    assert lines[0].startswith("2 of 4 scenes ") and lines[1:] == ["  boxes: reading"]
    assert 1 / 3 <= bar.pace.fraction < 0.6  # one of the three scenes that take time


def test_a_batch_of_many_scenes_starts_slowly(console, clock):
    bar = Bar(console, clock)
    _Watch(bar, quiet=False).start(100)
    clock.now += 10
    assert bar.pace.fraction == pytest.approx(0.01)


def test_a_failed_scene_is_told_at_once(console, clock):
    bar = Bar(console, clock)
    watch = _Watch(bar, quiet=False)
    watch.start(1)
    watch.finish(record("town", "failed"))
    assert "town: failed: why" in console.file.getvalue()


def test_a_picture_of_half_blocks(console):
    left = np.zeros((40, 60, 3), np.uint8)
    left[:20] = 255, 0, 0
    preview.print_pictures([left, np.full_like(left, 7)], console, columns=30)
    lines = console.file.getvalue().splitlines()
    assert [len(plain(line)) for line in lines] == [62] * 10
    assert "38;2;255;0;0;48;2;255;0;0" in lines[0] and "38;2;0;0;0;48;2;0;0;0" in lines[-1]
    assert "38;2;7;7;7;48;2;7;7;7" in lines[0]


def stop(*arguments, **named):
    raise Terminated(signal.SIGTERM)


@pytest.mark.parametrize(
    ("settings", "is_shown"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "linux", "COLORTERM": ""}, False),
    ],
)
def test_a_picture_only_where_there_are_colours(scene, monkeypatch, settings, is_shown):
    """Without colours it would be a block of equal characters."""
    surroundings = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **settings}
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, _environ=surroundings)
    monkeypatch.setattr(preview, "messages", lambda: console)
    result = DisparityMap(scene.disparity, np.ones_like(scene.disparity))
    preview.show_preview(scene.light_field, result, WriteOptions())
    assert ("▀" in file.getvalue()) is is_shown


def test_a_signal_while_the_command_line_is_read(run, monkeypatch):
    monkeypatch.setattr(cli.Group, "make_context", stop)
    result = run("formats")
    assert (result.exit_code, result.stdout, result.stderr) == (143, "", "stopped.\n")


def test_a_signal_before_there_is_a_command(monkeypatch):
    monkeypatch.setattr(cli, "stop_cleanly", stop)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 143


def test_a_signal_of_which_a_library_made_an_error(run, monkeypatch):
    """As safetensors does: the signal would look like a damaged file."""

    def fail(*arguments, **named):
        raise InvalidCheckpoint("town.safetensors: damaged.")

    monkeypatch.setattr(cli.Group, "invoke", fail)
    assert run("formats").stderr == "error: town.safetensors: damaged.\n"
    monkeypatch.setattr(cli, "heed", lambda error: 143)
    result = run("formats")
    assert (result.exit_code, result.stdout, result.stderr) == (143, "", "stopped.\n")


# The command line; it gets a signal when it starts to import the module in the first argument. Then
# it ends at once, because Python's own cleanup crashes in libraries that were interrupted.
SIGNALLED = """
import atexit, os, runpy, sys, trouble
module, number = sys.argv[1], int(sys.argv[2])
del sys.argv[1:3]
trouble.heed_signals()
atexit.register(os.abort)

def watch(event, arguments):
    if event == "import" and arguments[0] == module:
        os.kill(os.getpid(), number)

sys.addaudithook(watch)
runpy.run_module("oaccdepth", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("typer", signal.SIGINT),
        ("numpy", signal.SIGTERM),
        ("oaccdepth.cli", signal.SIGHUP),
        ("torch", signal.SIGTERM),
        ("torch._C", signal.SIGINT),  # an exception in there would abort the program
        ("torch.nn", signal.SIGHUP),
    ],
)
def test_a_signal_during_an_import(module, number, scene_folder, tmp_path, monkeypatch):
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}:{tests}")
    words = (module, int(number), "estimate", scene_folder, "-o", tmp_path / "out", "-q")
    command = [sys.executable, "-c", SIGNALLED, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "stopped.\n")
    assert not (tmp_path / "out").exists()


# The command line; it gets a signal when Python is nearly gone.
LATE = """
import os, sys, trouble
from oaccdepth.__main__ import main

class Late:
    def __del__(self, kill=os.kill, own=os.getpid(), number=int(sys.argv.pop(1))):
        kill(own, number)

trouble.heed_signals()
late = Late()
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_work(number, monkeypatch):
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}:{tests}")
    command = [sys.executable, "-c", LATE, str(int(number)), "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
