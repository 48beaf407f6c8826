"""`oaccdepth weights`: exact output, exact errors, exit codes."""

import json
from pathlib import Path

import pytest
import reference
import torch

from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastConfig, FastNet
from oaccdepth.networks.paper import OACCNet, OACCNetConfig


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The only folder in which weights are found by name."""
    monkeypatch.setattr(checkpoint, "weights_folders", lambda: [tmp_path])
    return tmp_path


@pytest.fixture
def tiny(folder):
    torch.manual_seed(0)
    config = OACCNetConfig(
        feature_blocks=1, matching_channels=2, cost_channels=8, volume_channels=4
    )
    checkpoint.save(folder / "tiny.safetensors", OACCNet(config), {"origin": "a test"})
    return folder / "tiny.safetensors"


def test_list(run, tiny):
    scores = {"a": {"mse_100": 1, "badpix_0070": 3.0}, "b": {"mse_100": 0.5, "badpix_0070": 4}}
    facts = {"licence": "CC BY 4.0: from somewhere\nand more", "scores": json.dumps(scores)}
    checkpoint.save(tiny.with_stem("fast"), FastNet(FastConfig()), facts)
    checkpoint.save(tiny, checkpoint.load(tiny)[0], {"licence": "\n"})  # as good as none
    result = run("weights", "list")
    assert result.exit_code == 0
    sizes = [f"{path.stat().st_size / 1e6:.1f} MB" for path in (tiny.with_stem("fast"), tiny)]
    assert result.stdout == (
        "name  network  size    licence     benchmark    stress\n"
        f"fast  fast     {sizes[0]}  CC BY 4.0   0.75 / 3.50  unknown\n"
        f"tiny  paper    {sizes[1]}  not stated  unknown      unknown\n"
        "\nScores: mean MSE x100 / BadPix 0.07 of the HCI benchmark's scenes and of the stress\n"
        "scenes. Weights have the licence of the data that they were trained on.\n"
    )


def test_list_as_json(run, tiny):
    (facts,) = json.loads(run("weights", "list", "--json").stdout)
    assert facts["name"] == "tiny"
    assert facts["network"] == "paper"
    assert facts["metadata"]["origin"] == "a test"


def test_list_without_any(run, folder):
    result = run("weights", "list")
    assert result.exit_code == 0
    assert result.stdout == "none\n"


def test_show(run, tiny):
    result = run("weights", "show", tiny)
    assert result.exit_code == 0
    lines = dict(line.split(None, 1) for line in result.stdout.splitlines())
    assert lines["name"] == "tiny"
    assert lines["sha256"] == checkpoint.sha256(tiny)
    assert lines["bytes"] == str(tiny.stat().st_size)
    assert lines["origin"] == "a test"
    assert json.loads(lines["config"])["volume_channels"] == 4
    assert run("weights", "show", "tiny").stdout == result.stdout
    assert json.loads(run("weights", "show", "tiny", "--json").stdout)["sha256"] == lines["sha256"]


def test_show_of_a_name_that_is_not_there(run, tiny):
    result = run("weights", "show", "huge")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: --weights huge: no bundled weights of this name. Bundled: tiny. "
        "Or give the path of a .safetensors file.\n"
    )


def test_convert(run, tmp_path):
    source, target = tmp_path / "OACC-Net.pth.tar", tmp_path / "oacc.safetensors"
    torch.save({"state_dict": reference.random_authors_state()}, source)
    result = run("weights", "convert", source, "-o", target)
    assert result.exit_code == 0
    assert result.stdout == f"{target}: sha256 {checkpoint.sha256(target)}\n"
    facts = json.loads(run("weights", "show", target, "--json").stdout)
    assert facts["parameters"] == 5_017_980
    assert facts["metadata"]["compat"] == "authors"

    again = run("weights", "convert", source, "-o", target)
    assert again.exit_code == 1
    assert again.stderr == (f"error: {target}: already exists. Pass --overwrite to replace it.\n")
    assert run("weights", "convert", source, "-o", target, "--overwrite").exit_code == 0


def test_convert_of_something_else(run, tmp_path):
    source, target = tmp_path / "photo.png", tmp_path / "oacc.safetensors"
    source.write_bytes(b"\x89PNG")
    result = run("weights", "convert", source, "-o", target)
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: {source}: not a PyTorch checkpoint, or a damaged one; expected the authors' "
        "OACC-Net checkpoint (OACC-Net.pth.tar, 9x9 views). Download it again.\n"
    )
    assert not target.exists()


def test_the_model_card_tells_the_truth(run):
    """weights/README.md agrees with the bundled weights, their hash and their scores."""
    folder = Path(__file__).parents[2] / "weights"
    text = (folder / "README.md").read_text(encoding="utf-8")
    card = text.split("fast` -->\n", 1)[1].split("<!-- /card -->", 1)[0]
    result = run("weights", "card", "fast")
    assert result.exit_code == 0
    assert card == result.stdout
    assert "| **mean** |" in card
