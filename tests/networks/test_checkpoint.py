"""Weights files: found, strict, never unpickled."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from oaccdepth.errors import InvalidCheckpoint, UnreadableFile
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastConfig, FastNet
from oaccdepth.networks.paper import OACCNet, OACCNetConfig

FAST = FastNet(FastConfig(channels=(16,) * 4, refine_channels=(16,) * 4, decay=5.0))
PAPER = OACCNet(
    OACCNetConfig(
        feature_blocks=1, matching_channels=4, cost_channels=8, volume_channels=4, decay=3.0
    )
)


@pytest.mark.parametrize("network", [FAST, PAPER], ids=["fast", "paper"])
def test_what_is_saved_comes_back(network, tmp_path):
    path = tmp_path / "some.safetensors"
    checkpoint.save(path, network, {"steps": "7"})
    loaded, metadata = checkpoint.load(path)
    assert loaded.config == network.config
    assert metadata["steps"] == "7"
    assert not loaded.training
    for name, value in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    assert checkpoint.sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_weights_are_found_by_path_variable_and_name(tmp_path, monkeypatch):
    checkpoint.save(tmp_path / "mine.safetensors", FAST, {})
    assert checkpoint.find_weights(str(tmp_path / "mine.safetensors")).parent == tmp_path
    monkeypatch.setenv("OACCDEPTH_WEIGHTS", str(tmp_path))
    assert checkpoint.find_weights("mine") == tmp_path / "mine.safetensors"
    assert checkpoint.find_weights("fast").stem == "fast"  # bundled, wherever we are
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OACCDEPTH_WEIGHTS")
    with pytest.raises(UnreadableFile):
        checkpoint.find_weights("mine")
    for name in ("fast", "mine"):  # files that happen to lie where we are
        (tmp_path / name).write_text("something else")
    assert checkpoint.find_weights("fast").suffix == ".safetensors"
    assert checkpoint.find_weights("mine") == Path("mine")


def test_unknown_weights():
    names = ", ".join(path.stem for path in checkpoint.bundled())
    with pytest.raises(UnreadableFile) as caught:
        checkpoint.find_weights("best")
    assert str(caught.value) == (
        "--weights best: no bundled weights of this name. "
        f"Bundled: {names}. Or give the path of a .safetensors file."
    )
    with pytest.raises(UnreadableFile) as caught:
        checkpoint.find_weights("no/such.safetensors")
    assert str(caught.value).startswith("no/such.safetensors: no such weights file. Bundled: ")


def test_damaged_and_foreign_files(tmp_path):
    path = tmp_path / "weights.safetensors"
    checkpoint.save(path, FAST, {})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InvalidCheckpoint) as caught:
        checkpoint.load(path)
    assert str(caught.value) == (
        f"{path}: not a readable safetensors file, or damaged. Download or make it again; "
        "`oaccdepth weights convert` turns the authors' .pth.tar into one."
    )
    save_file({"x": torch.zeros(3)}, path)
    with pytest.raises(InvalidCheckpoint) as caught:
        checkpoint.load(path)
    assert str(caught.value) == (
        f"{path}: not weights of oaccdepth (metadata 'format' is missing, expected oaccdepth-1). "
        "`oaccdepth weights convert` turns the authors' .pth.tar into weights."
    )


def rewritten(path, change):
    """The same file with its tensors and metadata changed."""
    metadata, tensors = checkpoint._open(path)
    change(metadata, tensors)
    save_file(tensors, path, metadata)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, t: t.pop("beta"), "weights do not fit: beta is missing. "),
        (
            lambda m, t: t.update(extra=torch.zeros(1)),
            "weights do not fit: extra is not part of the network. ",
        ),
        (
            lambda m, t: t.update(beta=torch.zeros(2)),
            "weights do not fit: beta is (2,) torch.float32, expected () torch.float32. ",
        ),
        (
            lambda m, t: t.update(beta=torch.tensor(float("nan"))),
            "damaged: beta holds values that are not finite.",
        ),
        (
            lambda m, t: m.update(config='{"colour": 3}'),
            "its configuration does not describe a network of this version (",
        ),
        (lambda m, t: m.update(config="{"), "its configuration does not describe a network"),
    ],
)
def test_weights_that_do_not_fit(change, message, tmp_path):
    path = tmp_path / "weights.safetensors"
    checkpoint.save(path, FAST, {})
    with pytest.raises(InvalidCheckpoint) as caught:
        checkpoint.load(rewritten(path, change))
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_pickle_is_refused_not_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("executed",))

    path = tmp_path / "trap.safetensors"
    torch.save({"state_dict": Trap()}, path)
    with pytest.raises(InvalidCheckpoint):
        checkpoint.load(path)


def test_the_bundled_weights_are_small_and_say_what_they_are():
    path = checkpoint.find_weights("fast")
    assert path.stat().st_size < 10e6
    metadata = checkpoint.read_metadata(path)
    assert {"network", "config", "steps", "training", "scores", "data", "licence"} <= set(metadata)
