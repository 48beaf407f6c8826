"""Batches that are stopped: the report lists exactly the scenes that were written."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from batch_scenes import open_slow, run, statuses, toy_estimate

from oaccdepth.batch import find_jobs
from oaccdepth.batch.crew import IN_FLIGHT, ProcessWorker
from oaccdepth.options import BatchOptions
from oaccdepth.writers.results import RUN_FILE as RUN


@pytest.mark.parametrize("jobs", [1, 2])
def test_stopped(root, settings, jobs):
    """Whenever the signal comes, the report lists exactly the scenes that were written."""

    def stop(record):
        raise KeyboardInterrupt

    slow = replace(settings, open_network=open_slow)
    summary = run(root, slow, BatchOptions(jobs=jobs), on_record=stop)
    told = set(statuses(summary))
    assert len(told) >= 1
    assert {settings.output / scene for scene in told} == {
        path.parent for path in settings.output.rglob("run.json")
    }
    assert told.isdisjoint(summary.not_reached) and len(told) + len(summary.not_reached) == 4
    assert not list(settings.output.rglob(".*"))
    report = json.loads((settings.output / "report.json").read_text())
    assert report["not_reached"] == list(summary.not_reached)
    again = statuses(run(root, slow))
    assert {scene for scene, status in again.items() if status == "skipped"} == told
    assert {scene for scene, status in again.items() if status == "done"} == {*summary.not_reached}


@pytest.mark.parametrize("jobs", [1, 2])
def test_finished_but_not_told(root, settings, jobs):
    """All files of a scene are written, but its record has not arrived: it is still reported."""
    count = min(4, jobs * IN_FLIGHT)

    def finished():  # not those still being written to temporary hidden folders
        folders = [Path(folder) for folder, _, names in os.walk(settings.output) if RUN in names]
        return [folder for folder in folders if not folder.name.startswith(".")]

    def stop_when_all_is_written(record):
        deadline = time.monotonic() + 600
        while len(finished()) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        raise KeyboardInterrupt

    summary = run(root, settings, BatchOptions(jobs=jobs), on_record=stop_when_all_is_written)
    assert list(statuses(summary).values()) == ["done"] * count
    assert len(summary.not_reached) == 4 - count
    report = json.loads((settings.output / "report.json").read_text())
    assert [scene["scene"] for scene in report["scenes"]] == list(statuses(summary))


def test_of_an_earlier_run_is_not_told_as_done_again(root, settings):
    def stop(record):
        raise KeyboardInterrupt

    slow = replace(settings, open_network=open_slow)
    run(root, slow)
    before = {path: path.stat().st_ino for path in settings.output.rglob("run.json")}
    assert len(before) == 4
    summary = run(root, slow, BatchOptions(redo=True), on_record=stop)
    written = {path for path, inode in before.items() if path.stat().st_ino != inode}
    assert {settings.output / scene / "run.json" for scene in statuses(summary)} == written


def test_written_while_stopping(root, settings):
    """A scene that is being written at Ctrl-C is finished and reported."""
    writing, stopping = threading.Event(), threading.Event()

    def hold_up(scene, stage, fraction):
        if stage == "writing" and scene != "test/origami":
            writing.set()
            assert stopping.wait(600)
            time.sleep(0.2)

    def stop(record):
        assert writing.wait(600)
        stopping.set()
        raise KeyboardInterrupt

    summary = run(root, settings, report=hold_up, on_record=stop)
    written = {path.parent for path in settings.output.rglob("run.json")}
    assert len(written) > 1
    assert {settings.output / record.scene for record in summary.records} == written


def test_impatient_ctrl_c(root, settings):
    """A second and third Ctrl-C while waiting for the current tile: there is still a report, and
    nothing is written after it."""

    pressed, first = threading.Event(), threading.Lock()

    def press(record):
        pressed.set()
        raise KeyboardInterrupt

    def open_slower(options):
        def estimate(light_field, options, progress):
            if not first.acquire(blocking=False):  # the tile that the batch waits for
                assert pressed.wait(600)
                for _ in range(2):
                    time.sleep(0.2)
                    os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
            return toy_estimate(light_field, options, progress)

        return estimate

    summary = run(root, replace(settings, open_network=open_slower), on_record=press)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("scene")]
    assert (settings.output / "report.json").is_file()
    assert summary.not_reached


def test_ctrl_c_while_a_process_starts(root, settings):
    """The signal also reaches the new process, long before it can ignore signals."""
    worker = ProcessWorker(settings, lambda *progress: None)
    (child,) = multiprocessing.active_children()
    os.kill(child.pid, signal.SIGINT)
    try:
        job = find_jobs(root, settings.output)[0]
        assert worker.submit(job).result(timeout=600).status == "done"
    finally:
        worker.close()


# A batch of two processes. A signal arrives when the function in the first argument starts: here,
# or in a worker if it is the network. Reported as on the command line.
SIGNALLED = """
import os, sys, trouble
from pathlib import Path
from batch_scenes import toy_estimate
from oaccdepth.batch import find_jobs, run_jobs
from oaccdepth.batch.job import Settings
from oaccdepth.files.signals import heed, stop_cleanly
from oaccdepth.options import BatchOptions

place, number, root, output = sys.argv[1], int(sys.argv[2]), *map(Path, sys.argv[3:5])

def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_name == place:
        sys.setprofile(None)
        os.killpg(0, number)

def open_network(options):
    sys.setprofile(watch)
    return toy_estimate

if __name__ == "__main__":
    trouble.heed_signals()
    stop_cleanly()
    settings = Settings(open_network=open_network, weights_sha256="1", output=output)
    jobs = find_jobs(root, output)
    try:
        sys.setprofile(watch)
        summary = run_jobs(jobs, settings, BatchOptions(jobs=2))
    except KeyboardInterrupt as error:
        sys.exit(heed(error))
    sys.exit(summary.stopped)
"""


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("make_crew", signal.SIGINT),
        ("_send_bytes", signal.SIGHUP),  # while a worker receives its settings
        ("submit", signal.SIGTERM),
        ("_collect", signal.SIGINT),
        ("write_report", signal.SIGHUP),
        ("toy_estimate", signal.SIGTERM),
    ],
)
def test_a_signal_to_all_processes(root, tmp_path, monkeypatch, place, number):
    """Only our own messages, the signal's exit code, a report, and no process left behind."""
    tests, output = Path(__file__).parents[1], tmp_path / "out"
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}:{tests}")
    program = tmp_path / "program.py"
    program.write_text(SIGNALLED)
    command = [sys.executable, *map(str, (program, place, int(number), root, output))]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        stderr = process.stderr.read()  # until the last process has closed it
    assert process.returncode == 128 + number, stderr
    said = "stopping: scenes under way are cancelled at the end of their tile.\n"
    assert stderr in ("", said)
    assert not list(output.rglob(".*"))
    report = json.loads((output / "report.json").read_text())
    told = {scene["scene"] for scene in report["scenes"]}
    assert told == {path.parent.relative_to(output).as_posix() for path in output.rglob(RUN)}
    assert len(told) + len(report["not_reached"]) == 4
