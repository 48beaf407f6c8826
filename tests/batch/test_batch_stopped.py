"""Batches that are stopped: what is told is there, and what is there is told."""

import json
import multiprocessing
import os
import signal
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
    """At whatever moment it comes: what is told is there, and what is there is told."""

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
    """All files of a scene are there, its record is on the way: the report has it."""
    count = min(4, jobs * IN_FLIGHT)

    def finished():  # not those that are still being written, in hidden folders that come and go
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
    """What is being written as Ctrl-C comes is finished, and told."""
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
    """A second and third Ctrl-C while the present tile is waited for: still a report, and then
    nothing is written any more."""

    pressed, first = threading.Event(), threading.Lock()

    def press(record):
        pressed.set()
        raise KeyboardInterrupt

    def open_slower(options):
        def estimate(light_field, options, progress):
            if not first.acquire(blocking=False):  # the tile that is waited for
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
    """It reaches the process, too, long before that can say that it wants none of it."""
    worker = ProcessWorker(settings, lambda *progress: None)
    (child,) = multiprocessing.active_children()
    os.kill(child.pid, signal.SIGINT)
    try:
        job = find_jobs(root, settings.output)[0]
        assert worker.submit(job).result(timeout=600).status == "done"
    finally:
        worker.close()
