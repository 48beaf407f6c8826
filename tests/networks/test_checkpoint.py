"""Weights files: found, strict, never unpickled."""

from __future__ import annotations

import hashlib
import json
import resource
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import small_networks
import torch
from safetensors.torch import save_file
from trouble import run_child

from oaccdepth.errors import InvalidCheckpoint, UnreadableFile
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastNet
from oaccdepth.networks.paper import OACCNet

FAST = FastNet(replace(small_networks.FAST, squarings=2))
PAPER = OACCNet(replace(small_networks.PAPER, decay=3.0))


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


def test_the_network_says_what_it_is(tmp_path):
    """Metadata of earlier weights must not hide a configuration that has changed since."""
    path = tmp_path / "some.safetensors"
    checkpoint.save(path, FAST, {"steps": "7"})
    loaded, metadata = checkpoint.load(path)
    loaded.config = replace(loaded.config, certainty=(0.5, 0.25, 0.125))
    checkpoint.save(path, loaded, metadata)
    loaded, metadata = checkpoint.load(path)
    assert loaded.config.certainty == (0.5, 0.25, 0.125)
    assert metadata["steps"] == "7"


def test_weights_are_found_by_path_variable_and_name(tmp_path, monkeypatch):
    checkpoint.save(tmp_path / "mine.safetensors", FAST, {})
    assert checkpoint.find_weights(str(tmp_path / "mine.safetensors")).parent == tmp_path
    monkeypatch.setenv("OACCDEPTH_WEIGHTS", str(tmp_path))
    assert checkpoint.find_weights("mine") == tmp_path / "mine.safetensors"
    assert checkpoint.find_weights("fast").stem == "fast"  # bundled, whatever the current folder is
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OACCDEPTH_WEIGHTS")
    with pytest.raises(UnreadableFile):
        checkpoint.find_weights("mine")
    for name in ("fast", "mine"):  # files that happen to be in the current folder
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
    assert path.stat().st_size < 6e6
    metadata = checkpoint.read_metadata(path)
    assert {"network", "config", "steps", "training", "scores", "data", "licence"} <= set(metadata)


def claim(path, network, config):
    """A weights file that claims a different configuration from the network's."""
    facts = {"format": checkpoint.FORMAT, "network": checkpoint.kind_of(network), "config": config}
    save_file(network.state_dict(), path, facts)


@pytest.mark.parametrize(
    "config",
    [
        "[]",
        "null",
        "3",
        '"fast"',
        "[" * 100_000,
        '{"grid": [0, 0]}',
        '{"grid": [9]}',
        '{"grid": 9}',
        '{"grid": [1000000, 1000000]}',
        '{"reach": 1000000000}',
        '{"reach": "4"}',
        '{"reach": true}',
        '{"iterations": 1000000000}',
        '{"iterations": 0}',
        '{"decay": NaN}',
        '{"decay": 1e999}',
        '{"unknown": 1}',
    ],
)
@pytest.mark.parametrize("network", [FAST, PAPER], ids=["fast", "paper"])
def test_configurations_that_make_no_sense(network, config, tmp_path):
    path = tmp_path / "weights.safetensors"
    claim(path, network, config)
    with pytest.raises(InvalidCheckpoint) as caught:
        checkpoint.load(path)
    assert str(caught.value).startswith(
        f"{path}: its configuration does not describe a network of this version ("
    )


def test_sizes_are_checked_before_anything_is_allocated(tmp_path):
    """2048 channels everywhere would take gigabytes."""
    path = tmp_path / "weights.safetensors"
    sizes = dict.fromkeys(("cost_channels", "volume_channels", "feature_channels"), 2048)
    claim(path, PAPER, json.dumps({**asdict(PAPER.config), **sizes}))

    def load():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(InvalidCheckpoint, match="weights do not fit"):
            checkpoint.load(path)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # KiB

    assert run_child(load) == 0


@pytest.mark.parametrize("value", ["many", "", "nan", "-1", "9" * 5000])
def test_metadata_that_is_no_number(value, tmp_path):
    path = tmp_path / "weights.safetensors"
    checkpoint.save(path, FAST, {"steps": value})
    with pytest.raises(InvalidCheckpoint) as caught:
        checkpoint.load(path)
    assert str(caught.value) == f"{path}: damaged: its metadata says steps = {value[:40]}."


@pytest.mark.parametrize("scores", ["[]", "{", '{"a": 3}', '{"a": {"mse_100": "x"}}', '{"a": {}}'])
def test_scores_that_are_none(scores):
    assert checkpoint.read_scores({"scores": scores}) == {}
