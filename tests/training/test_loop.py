"""Training: it learns, resumes to the exact step, survives a kill, and runs in two processes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from trouble import fill_disk_at, run_child

from oaccdepth.errors import InvalidCheckpoint, InvalidOption, OutputExists, UnwritableOutput
from oaccdepth.files.signals import ENDING, stop_cleanly
from oaccdepth.lightfield import LightField
from oaccdepth.networks import checkpoint
from oaccdepth.options import TrainOptions
from oaccdepth.training.loop import MetricsLog, Trainer, batches, train
from oaccdepth.writers import scenes

TINY = TrainOptions(
    steps=4,
    batch=1,
    patch=16,
    iterations=2,
    workers=0,
    validate_steps=0,
    warm_up=2,
    checkpoint_minutes=0.0,
)


@pytest.fixture(scope="module")
def scene_folder(scene, tmp_path_factory):
    """The middle 3x3 views of the scene: a step takes a tenth of the time."""
    folder = tmp_path_factory.mktemp("training") / "town"
    light_field = scenes.with_8_bits(LightField(scene.light_field.views[3:6, 3:6]))
    scenes.write_light_field(light_field, folder, truth=scene.disparity)
    return folder


class Signalled(torch.utils.data.Dataset):
    """Patches that send every signal to the process that prepares them."""

    def __getitem__(self, index):
        for number in ENDING:
            os.kill(os.getpid(), number)
        return index


def test_signals_are_left_to_the_program_itself(capfd):
    """Sent to all processes, they ended the loader's first, and torch printed long errors.

    On a machine with one processor, too, where torch warns of two processes.
    """

    def act():
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        stop_cleanly()
        found = list(batches(Signalled(), replace(TINY, workers=2), 0))
        assert found == [0, 1, 2, 3]

    assert run_child(act) == 0
    assert capfd.readouterr() == ("", "")


def weights(run):
    return load_file(run / "latest.safetensors")


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def with_steps(steps):
    return TrainOptions(**{**vars(TINY), "steps": steps})


def test_frozen_norms_keep_their_statistics(scene_folder, tmp_path):
    train(scene_folder, tmp_path / "first", with_steps(2))
    initial = tmp_path / "first" / "latest.safetensors"
    for freeze in (True, False):
        options = TrainOptions(
            **{**vars(TINY), "steps": 2, "initial": str(initial), "freeze_norms": freeze}
        )
        train(scene_folder, tmp_path / f"second {freeze}", options)
        before, after = load_file(initial), weights(tmp_path / f"second {freeze}")
        statistics = {name: after[name] for name in after if "running_" in name}
        assert same(statistics, before) == freeze
        assert not same({name: after[name] for name in after.keys() - statistics.keys()}, before)


def changed(first, second):
    """Names of the tensors that differ, except counters."""
    names = {name for name in first if not torch.equal(first[name], second[name])}
    return {name for name in names if "num_batches" not in name}


@pytest.mark.parametrize("part", ["first", "refinement", "edges"])
def test_a_part_is_trained_alone(scene_folder, tmp_path, weights_file, part):
    options = {**vars(TINY), "steps": 2, "part": part, "initial": str(weights_file)}
    train(scene_folder, tmp_path / "run", TrainOptions(**options))
    before, after = load_file(weights_file), weights(tmp_path / "run")
    added = {name: value for name, value in after.items() if name.startswith("edges.")}
    assert bool(added) == (part == "edges")
    names = changed(before, {name: after[name] for name in before})
    is_later = {name.startswith("refinement.") for name in names}
    assert is_later == {"first": {False}, "refinement": {True}, "edges": set()}[part]


def test_edges_are_trained_further(scene_folder, tmp_path, weights_file):
    """They are added where they are missing; from then on they are part of the weights."""
    options = replace(TINY, steps=2, part="edges")
    train(scene_folder, tmp_path / "run", replace(options, initial=str(weights_file)))
    trained = tmp_path / "run" / "latest.safetensors"
    train(scene_folder, tmp_path / "further", replace(options, initial=str(trained)))
    names = changed(load_file(trained), weights(tmp_path / "further"))
    assert names
    assert all(name.startswith("edges.") for name in names)


def test_the_papers_network_is_trained(scene_folder, tmp_path, monkeypatch):
    small = {"feature_blocks": 1, "matching_channels": 4, "cost_channels": 8, "volume_channels": 4}
    create = checkpoint.create
    monkeypatch.setattr(checkpoint, "create", lambda kind: create(kind, json.dumps(small)))
    options = TrainOptions(**{**vars(TINY), "steps": 2, "preset": "paper"})
    train(scene_folder, tmp_path, options)
    metadata = checkpoint.read_metadata(tmp_path / "latest.safetensors")
    assert metadata["network"] == "paper" and metadata["steps"] == "2"
    assert all(torch.isfinite(x).all() for x in weights(tmp_path).values())


def test_a_second_folder_of_scenes(scene_folder, tmp_path):
    options = {**vars(TINY), "steps": 1, "more": str(scene_folder), "more_share": 1.0}
    train(scene_folder, tmp_path, TrainOptions(**options))
    assert checkpoint.read_metadata(tmp_path / "latest.safetensors")["data"] == "town, town"


def test_resumed_training_is_the_uninterrupted_one(scene_folder, tmp_path):
    train(scene_folder, tmp_path / "whole", TINY)
    train(scene_folder, tmp_path / "parts", with_steps(4))
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))

    class Stop(Exception):
        pass

    def stop_after_two(row):
        if row["step"] == 3:  # the third step is done but not yet saved
            raise Stop

    with pytest.raises(Stop):
        train(scene_folder, tmp_path / "broken", TINY, report=stop_after_two)
    progress = train(scene_folder, tmp_path / "broken", TINY, resume=True)
    assert progress.step == 4
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "broken"))


# Train again and again in forked processes; the n-th one is killed at its n-th access to a file
# being written. Prints how many were killed.
KILLED_AT_EVERY_WRITE = """
import os, sys
from pathlib import Path
from oaccdepth.options import TrainOptions
from oaccdepth.training.loop import train
from oaccdepth.training import curves, losses, pieces
from trouble import kill_at_write, run_child

data, runs = map(Path, sys.argv[1:])
options = TrainOptions(
    steps=1, batch=1, patch=16, workers=0, validate_steps=0, checkpoint_minutes=0.0, iterations=1
)
train(data, runs / "once", options)  # kernels are there, for all processes to come


def killed(moment):
    kill_at_write(moment)
    train(data, runs / str(moment), options)


moment = 1
while (status := run_child(killed, moment)) != 0:
    assert status == -9, status
    moment += 1
print(moment - 1)
"""


def test_a_killed_run_goes_on(scene_folder, tmp_path):
    """kill -9 at every write: existing files are complete, and --resume finishes the run."""
    moments = int(in_a_process_of_its_own(KILLED_AT_EVERY_WRITE, scene_folder, tmp_path))
    assert moments > 8  # options, state and weights: opened, written, renamed
    leftovers = 0
    for moment in range(1, moments + 1):
        run = tmp_path / str(moment)
        leftovers += len(list(run.glob(".*part*")))
        if (run / "state.pt").exists():
            assert torch.load(run / "state.pt", weights_only=True)["progress"]["step"] == 1
        assert train(scene_folder, run, with_steps(1), resume=True).step == 1
        assert sorted(path.name for path in run.iterdir() if path.is_file()) == [
            "latest.safetensors",
            "options.json",
            "state.pt",
        ]
    assert leftovers > moments // 2  # the kills came in the middle


def test_a_full_disk(tmp_path):
    """It raises one of our errors; the existing checkpoint is kept."""
    trainer, run = Trainer(TINY, torch.device("cpu")), tmp_path / "run"
    trainer.save(run)
    before = {path.name: path.read_bytes() for path in run.iterdir()}

    def save():
        fill_disk_at(10_000)
        with pytest.raises(UnwritableOutput) as caught:
            trainer.save(run)
        assert str(caught.value) == (
            f"{run / 'state.pt'}: cannot be written (File too large). Choose another place."
        )

    assert run_child(save) == 0
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_what_a_run_leaves_behind(scene_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(MetricsLog, "EVERY", 2)
    train(scene_folder, tmp_path, with_steps(3), validation=scene_folder.parent)
    rows = list(csv.DictReader((tmp_path / "metrics.csv").read_text().splitlines()))
    assert [row["step"] for row in rows] == ["2"]
    assert float(rows[0]["loss"]) > 0
    scores = list(csv.DictReader((tmp_path / "validation.csv").read_text().splitlines()))
    assert float(scores[0]["town_badpix_0070"]) > 0
    assert list((tmp_path / "samples").glob("town_3.png"))
    metadata = checkpoint.read_metadata(tmp_path / "best.safetensors")
    assert metadata["steps"] == "3"
    assert json.loads(metadata["scores"])["town"]["mse_100"] > 0
    assert json.loads((tmp_path / "options.json").read_text())["steps"] == 3


def test_training_begins_with_given_weights(weights_file):
    options = TrainOptions(**{**vars(TINY), "initial": str(weights_file), "steps": 1})
    expected, _ = checkpoint.load(weights_file)
    found = Trainer(options, torch.device("cpu")).network
    assert same(expected.state_dict(), found.state_dict())


def test_weights_count_the_steps_before_them(scene_folder, tmp_path):
    begin = tmp_path / "begin.safetensors"
    checkpoint.save(begin, checkpoint.create("fast"), {"steps": "10", "hours": "1.50"})
    options = TrainOptions(**{**vars(TINY), "initial": str(begin), "steps": 1})
    train(scene_folder, tmp_path / "run", options)
    facts = checkpoint.read_metadata(tmp_path / "run" / "latest.safetensors")
    assert facts["steps"] == "11"
    assert 1.5 <= float(facts["hours"]) < 1.6


# Two forked processes, with the environment that torchrun would set.
TWO_PROCESSES = """
import os, socket, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from oaccdepth.options import TrainOptions
from oaccdepth.training.loop import train
from trouble import run_child

options = TrainOptions(steps=2, batch=1, patch=16, workers=0, validate_steps=0, iterations=1)
with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
os.environ |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def run(rank):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    train(Path(sys.argv[1]), Path(sys.argv[2]) / "two", options)


with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(lambda rank: run_child(run, rank), range(2))) == [0, 0]
"""


def in_a_process_of_its_own(program, *words):
    """Run a program with one thread, which may fork; return what it prints."""
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    alone = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    environment = {**os.environ, **alone, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", program, *map(str, words)]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_two_processes_train_one_run(scene_folder, tmp_path):
    """With gloo: one run, one set of weights."""
    in_a_process_of_its_own(TWO_PROCESSES, scene_folder, tmp_path)
    assert_trained(tmp_path / "two")


@pytest.mark.slow
def test_torchrun(scene_folder, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--standalone", "-m", "oaccdepth", "train"]  # on a free port
    command += [str(scene_folder), "-o", str(tmp_path / "two"), "--steps", "2", "--batch", "1"]
    command += ["--patch", "16", "--workers", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parents[2])
    assert_trained(tmp_path / "two")


def assert_trained(run):
    metadata = checkpoint.read_metadata(run / "latest.safetensors")
    assert metadata["steps"] == "2"
    assert all(torch.isfinite(x).all() for x in weights(run).values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": None}, "train: give either --minutes or --steps, to say how long."),
        ({"minutes": 1.0}, "train: give either --minutes or --steps, to say how long."),
        ({"preset": "huge"}, "--preset huge: no such network. Known: fast, paper."),
        ({"patch": 30}, "--patch 30: expected a multiple of 8."),
        ({"patch": 64}, "--patch 64: larger than a scene. Use at most 48."),
        ({"part": "last"}, "--part last: no such part. Known: first, refinement, edges."),
        ({"part": "edges"}, "--part edges: give a trained network with --initial."),
        ({"part": "first", "preset": "paper"}, "--part: only for --preset fast."),
        (
            {"part": "refinement"},
            "--part refinement: give a trained first pass with --initial.",
        ),
        (
            {"part": "refinement", "initial": "fast", "iterations": 1},
            "--part refinement: use --iterations 2 or more.",
        ),
    ],
)
def test_bad_options(scene_folder, tmp_path, changes, message):
    with pytest.raises(InvalidOption) as caught:
        train(scene_folder, tmp_path, TrainOptions(**{**vars(TINY), **changes}))
    assert str(caught.value) == message


def test_a_run_is_not_overwritten_and_a_foreign_state_is_refused(scene_folder, tmp_path):
    (tmp_path / "state.pt").write_bytes(b"not a state")
    with pytest.raises(OutputExists) as caught:
        train(scene_folder, tmp_path, TINY)
    assert str(caught.value) == (
        f"{tmp_path}: already holds a run. Pass --resume to go on with it."
    )
    with pytest.raises(InvalidCheckpoint, match=r"state.pt: does not fit this run"):
        train(scene_folder, tmp_path, TINY, resume=True)
