"""A batch that is killed at any moment and started again ends as if nothing had happened."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from batch_scenes import contents, toy_estimate, write_scene
from trouble import fill_disk_at, kill_at_write, run_child

from oaccdepth.batch import find_jobs, run_jobs
from oaccdepth.batch.job import Settings
from oaccdepth.files.signals import stop_cleanly

NUM_SCENES = 6

# A batch with a network that takes 0.05 s, in its own process; prints a line when it starts.
PROGRAM = """
import sys, time
from pathlib import Path
from batch_scenes import toy_estimate
from oaccdepth.batch import find_jobs, run_jobs
from oaccdepth.batch.job import Settings
from oaccdepth.options import BatchOptions

def open_network(options):
    def estimate(light_field, options, progress):
        time.sleep(0.05)
        return toy_estimate(light_field, options, progress)
    return estimate

if __name__ == "__main__":
    root, output = map(Path, sys.argv[1:3])
    print("begins", flush=True)
    settings = Settings(open_network=open_network, weights_sha256="1", output=output)
    summary = run_jobs(find_jobs(root, output), settings, BatchOptions(jobs=int(sys.argv[3])))
    print({record.scene: record.status for record in summary.records})
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Scenes that no test changes."""
    folder = tmp_path_factory.mktemp("data") / "root"
    for index in range(NUM_SCENES):
        write_scene(folder / f"scene{index}", index)
    return folder


@pytest.fixture(scope="module")
def expected(root, tmp_path_factory):
    """What an undisturbed batch writes."""
    whole = tmp_path_factory.mktemp("undisturbed") / "out"
    assert run_child(run_until, 0, root, whole) == 0
    return contents(whole)


@pytest.fixture
def program(tmp_path, monkeypatch):
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}:{tests}")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def start(*words):
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*words):
    process = start(*words)
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    return stdout


def kill_after(process, seconds):
    time.sleep(seconds)
    process.kill()
    process.communicate()


def finished_scenes(output):
    return {path.parent.name for path in output.glob("*/run.json")}


def check_after_kill(output, expected):
    """Every file under its final name is complete."""
    for name, content in contents(output).items():
        if not any(part.startswith(".") for part in Path(name).parts):
            assert content == expected[name], name


def check_at_the_end(output, expected, finished, statuses):
    assert contents(output) == expected
    assert {scene for scene, status in statuses.items() if status == "skipped"} == finished
    assert len(statuses) == NUM_SCENES


def run_until(moment, root, output, with_signal=signal.SIGKILL):
    """Run a batch in this process; a signal ends it at its n-th access to a file being written."""
    stop_cleanly()
    kill_at_write(moment, with_signal)
    settings = Settings(
        open_network=lambda options: toy_estimate, weights_sha256="1", output=output
    )
    summary = run_jobs(find_jobs(root, output), settings)
    raise SystemExit(130 if summary.not_reached else 0)


@pytest.mark.parametrize("moment", [1, 20, 40, 60])  # of about a hundred
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_killed_at_a_write_and_started_again(root, expected, tmp_path, number, moment):
    """Every file is complete, and the next run ends as if nothing had happened."""
    output = tmp_path / "out"
    end = run_child(run_until, moment, root, output, number)
    check_after_kill(output, expected)
    if number == signal.SIGKILL:
        assert end == -signal.SIGKILL
    else:  # cleaned up and reported
        assert end in (130, 0)  # 0: everything was done before the main thread noticed
        assert not list(output.rglob(".*"))
        report = json.loads((output / "report.json").read_text())
        assert len(report["scenes"]) + len(report["not_reached"]) == NUM_SCENES
    assert run_child(run_until, 0, root, output) == 0
    assert contents(output) == expected


def test_a_full_disk(root, tmp_path):
    """Every scene fails with one of our errors and leaves no files, and the batch goes on."""

    def fill(size):
        fill_disk_at(size)
        run_until(0, root, tmp_path / "out")

    assert run_child(fill, 4000) == 0  # enough for the report
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert len(report["scenes"]) == NUM_SCENES
    for scene in report["scenes"]:
        assert scene["status"] == "failed"
        assert scene["message"] == (
            f"{scene['scene']}/disparity.pfm: cannot be written (File too large). "
            "Choose another place."
        )
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.csv", "report.json"}


@pytest.mark.slow
def test_killed_and_started_again(root, program, tmp_path):
    """Two processes, killed at random moments."""
    jobs = 2
    finish(program, root, tmp_path / "whole", jobs)
    expected = contents(tmp_path / "whole")
    output = tmp_path / "out"
    source = random.Random(jobs)
    for _ in range(3):
        process = start(program, root, output, jobs)
        assert process.stdout.readline() == "begins\n"
        kill_after(process, source.uniform(0, 0.5))
        check_after_kill(output, expected)
    finished = finished_scenes(output)
    lines = finish(program, root, output, jobs).splitlines()
    check_at_the_end(output, expected, finished, json.loads(lines[-1].replace("'", '"')))


@pytest.mark.slow
def test_killed_twenty_times(root, tmp_path):
    """The command itself, with the bundled network."""
    command = ("-m", "oaccdepth", "batch", root, "-q", "--json", "-o")
    began = time.monotonic()
    finish(*command, tmp_path / "whole")
    whole_run = time.monotonic() - began
    expected = contents(tmp_path / "whole")
    output = tmp_path / "out"
    source = random.Random(20)
    for _ in range(20):
        process = start(*command, output)
        kill_after(process, source.uniform(0.3 * whole_run, whole_run))
        check_after_kill(output, expected)
        if len(finished_scenes(output)) == NUM_SCENES:  # nothing left to interrupt: start again
            shutil.rmtree(output)
    finished = finished_scenes(output)
    records = json.loads(finish(*command, output))["scenes"]
    statuses = {record["scene"]: record["status"] for record in records}
    check_at_the_end(output, expected, finished, statuses)
