"""Promises of docs/reliability.md that take minutes to test."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from batch_scenes import contents, save_tiny_weights, write_scene
from safetensors.torch import load_file

pytestmark = pytest.mark.slow


def oaccdepth(*words):
    return [sys.executable, "-m", "oaccdepth", *map(str, words)]


def test_memory_for_a_megapixel(tmp_path):
    """1024x1024 px: what `info` predicts, plus a fifth for Python and torch themselves."""
    views = np.random.default_rng(0).integers(0, 255, (9, 9, 64, 64, 3), dtype=np.uint8)
    np.save(tmp_path / "large.npy", np.kron(views, np.ones((1, 1, 16, 16, 1), np.uint8)))
    answer = subprocess.run(
        oaccdepth("info", tmp_path / "large.npy", "--json"), capture_output=True, check=True
    )
    promised = json.loads(answer.stdout)["estimate"]["memory_bytes"]
    command = oaccdepth("estimate", tmp_path / "large.npy", "-o", tmp_path / "out", "-q")
    subprocess.run(command, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    assert peak < 1.2 * promised + (1 << 30)


def test_two_jobs_write_the_same_bytes_as_one(tmp_path):
    for number in range(4):
        write_scene(tmp_path / "data" / f"scene{number}", number, truth=True)
    weights = save_tiny_weights(tmp_path / "tiny.safetensors")
    found = []
    for jobs in (1, 2):
        output = tmp_path / f"out{jobs}"
        command = oaccdepth("batch", tmp_path / "data", "-o", output, "--jobs", jobs, "-q")
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # sums depend on the number of threads
        subprocess.run([*command, "--weights", str(weights)], check=True, env=environment)
        found.append(contents(output))
    assert found[0] == found[1]


@pytest.fixture
def busy():
    """Two processes that keep the processor busy."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for process in burning:
        process.kill()
        process.wait()


def test_training_under_load_is_killed_and_goes_on(busy, scene_folder, tmp_path):
    """Three kills; in the end the weights equal those of an undisturbed run, bit for bit."""
    words = ("--steps", 12, "--batch", 1, "--patch", 16, "--checkpoint-minutes", 0, "--workers", 0)
    words = (*words, "--quiet")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole, run = tmp_path / "whole", tmp_path / "run"
    subprocess.run(
        oaccdepth("train", scene_folder, "-o", whole, *words), check=True, env=environment
    )
    for kill in range(3):
        again = ("--resume",) if kill else ()
        command = oaccdepth("train", scene_folder, "-o", run, *words, *again)
        process = subprocess.Popen(command, env=environment)
        before = (run / "state.pt").stat().st_mtime_ns if (run / "state.pt").exists() else 0
        deadline = time.monotonic() + 600
        while process.poll() is None and time.monotonic() < deadline:
            if (run / "state.pt").exists() and (run / "state.pt").stat().st_mtime_ns > before:
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    command = oaccdepth("train", scene_folder, "-o", run, *words, "--resume")
    subprocess.run(command, check=True, env=environment)
    expected = load_file(whole / "latest.safetensors")
    found = load_file(run / "latest.safetensors")
    assert all(found[name].equal(expected[name]) for name in expected)
    assert not list(run.rglob(".*"))
