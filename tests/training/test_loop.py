"""Training: it learns, resumes to the exact step, survives a kill, and runs in two processes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from oaccdepth.errors import InvalidCheckpoint, InvalidOption, OutputExists
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastConfig, FastNet
from oaccdepth.networks.paper import OACCNet, OACCNetConfig
from oaccdepth.options import TrainOptions
from oaccdepth.training.loop import Trainer, train
from oaccdepth.training.losses import FastLoss, PaperLoss, split_cross_entropy

TINY = TrainOptions(
    steps=4, batch=1, patch=16, workers=0, validate_steps=0, warm_up=2, checkpoint_minutes=0.0
)


def weights(run):
    return load_file(run / "latest.safetensors")


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def with_steps(steps):
    return TrainOptions(**{**vars(TINY), "steps": steps})


def test_loss_falls(scene_folder):
    """Not a test of accuracy: that gradients reach the weights and point the right way."""
    from oaccdepth.training.patches import PatchSampler, load_scenes

    torch.manual_seed(0)
    network = FastNet(FastConfig(channels=(16,) * 4, refine_channels=(16,) * 4))
    module = FastLoss(network).train()
    patch = PatchSampler(load_scenes(scene_folder), 32, 16, seed=0).draw(1)
    batch = [torch.from_numpy(x)[None] for x in (patch.views, patch.truth, patch.valid)]
    optimiser = torch.optim.AdamW(network.parameters(), 3e-3)
    losses = []
    for _ in range(12):
        loss, _ = module(*batch, 2)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


def test_cross_entropy_is_least_at_the_truth():
    network = FastNet(FastConfig(channels=(16,) * 4, refine_channels=(16,) * 4))
    state = network(torch.rand(1, 9, 9, 48, 48), 1)[0]
    truth = torch.full((1, 16, 16), 1.25)
    logits = torch.full((1, 9, 16, 16), -50.0)
    logits[:, 5], logits[:, 6] = torch.tensor(0.75).log(), torch.tensor(0.25).log()
    state.logits = logits
    entropy = -(0.75 * torch.tensor(0.75).log() + 0.25 * torch.tensor(0.25).log())
    torch.testing.assert_close(split_cross_entropy(state, truth), entropy.expand(1, 16, 16))
    state.logits = logits.roll(1, 1)
    assert (split_cross_entropy(state, truth) > 1).all()


def test_the_papers_loss_is_l1_with_the_mask_of_the_truth():
    torch.manual_seed(0)
    config = OACCNetConfig(
        feature_blocks=1, matching_channels=4, cost_channels=8, volume_channels=4
    )
    network = OACCNet(config).eval()
    views, truth = torch.rand(1, 9, 9, 40, 40), torch.rand(1, 8, 8)
    valid = torch.ones(1, 8, 8, dtype=torch.bool)
    valid[0, :4] = False
    loss, parts = PaperLoss(network)(views, truth, valid, 1)
    inner = views[..., 16:-16, 16:-16]
    error = (network(inner, truth, torch.ones_like(inner)) - truth).abs()
    torch.testing.assert_close(loss, error[0, 4:].mean())
    assert parts["l1"] == loss


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


# Train again and again in forked processes; the n-th is killed at the n-th access to a file that
# is being written. Prints how many were killed.
KILLED_AT_EVERY_WRITE = """
import os, sys
from pathlib import Path
from oaccdepth.options import TrainOptions
from oaccdepth.training.loop import train
from oaccdepth.training import curves, losses, parts, patches
from trouble import kill_at_write, run_child

data, runs = map(Path, sys.argv[1:])
options = TrainOptions(
    steps=1, batch=1, patch=16, workers=0, validate_steps=0, checkpoint_minutes=0.0
)


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
    """kill -9 at every write: what is there is whole, and --resume finishes the run."""
    command = [sys.executable, "-c", KILLED_AT_EVERY_WRITE, str(scene_folder), str(tmp_path)]
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    moments = int(answer.stdout)
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


def test_what_a_run_leaves_behind(scene_folder, tmp_path):
    options = TrainOptions(**{**vars(TINY), "steps": 20})
    train(scene_folder, tmp_path, options, validation=scene_folder.parent)
    rows = list(csv.DictReader((tmp_path / "metrics.csv").read_text().splitlines()))
    assert rows[0]["step"] == "20"
    assert float(rows[0]["loss"]) > 0
    scores = list(csv.DictReader((tmp_path / "validation.csv").read_text().splitlines()))
    assert float(scores[0]["town_badpix_0070"]) > 0
    assert list((tmp_path / "samples").glob("town_20.png"))
    metadata = checkpoint.read_metadata(tmp_path / "best.safetensors")
    assert metadata["steps"] == "20"
    assert json.loads(metadata["scores"])["town"]["mse_100"] > 0
    assert json.loads((tmp_path / "options.json").read_text())["steps"] == 20


def test_training_begins_with_given_weights(scene_folder, tmp_path):
    options = TrainOptions(**{**vars(TINY), "initial": "fast", "steps": 1})
    device = torch.device("cpu")
    expected, _ = checkpoint.load(checkpoint.find_weights("fast"))
    assert same(expected.state_dict(), Trainer(options, device).network.state_dict())


def test_weights_count_the_steps_before_them(scene_folder, tmp_path):
    begin = tmp_path / "begin.safetensors"
    checkpoint.save(begin, checkpoint.create("fast"), {"steps": "10", "hours": "1.50"})
    options = TrainOptions(**{**vars(TINY), "initial": str(begin), "steps": 1})
    train(scene_folder, tmp_path / "run", options)
    facts = checkpoint.read_metadata(tmp_path / "run" / "latest.safetensors")
    assert facts["steps"] == "11"
    assert 1.5 <= float(facts["hours"]) < 1.6


def test_two_processes_train_one_run(scene_folder, tmp_path):
    """Under torchrun, with gloo: one run, one set of weights."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", str(29500 + os.getpid() % 2000), "-m", "oaccdepth", "train"]
    command += [str(scene_folder), "-o", str(tmp_path / "two"), "--steps", "2", "--batch", "1"]
    command += ["--patch", "16", "--workers", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parents[2])
    metadata = checkpoint.read_metadata(tmp_path / "two" / "latest.safetensors")
    assert metadata["steps"] == "2"
    assert all(torch.isfinite(x).all() for x in weights(tmp_path / "two").values())


def test_bad_options(scene_folder, tmp_path):
    with pytest.raises(InvalidOption) as caught:
        train(scene_folder, tmp_path, TrainOptions())
    assert str(caught.value) == "train: give either --minutes or --steps, to say how long."
    with pytest.raises(InvalidOption) as caught:
        train(scene_folder, tmp_path, TrainOptions(steps=1, preset="huge"))
    assert str(caught.value) == "--preset huge: no such network. Known: fast, paper."
    with pytest.raises(InvalidOption) as caught:
        train(scene_folder, tmp_path, TrainOptions(steps=1, patch=30))
    assert str(caught.value) == "--patch 30: expected a multiple of 8."


def test_a_run_is_not_overwritten_and_a_foreign_state_is_refused(scene_folder, tmp_path):
    (tmp_path / "state.pt").write_bytes(b"not a state")
    with pytest.raises(OutputExists) as caught:
        train(scene_folder, tmp_path, TINY)
    assert str(caught.value) == (
        f"{tmp_path}: already holds a run. Pass --resume to go on with it."
    )
    with pytest.raises(InvalidCheckpoint, match=r"state.pt: does not fit this run"):
        train(scene_folder, tmp_path, TINY, resume=True)
