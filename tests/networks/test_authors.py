"""The authors' checkpoint: conversion, and inference against a literal version of their program."""

from __future__ import annotations

import contextlib
import warnings
import zipfile

import numpy as np
import pytest
import reference
import torch
from torch import nn

from oaccdepth.errors import InvalidCheckpoint, InvalidOption, UnreadableFile
from oaccdepth.networks import authors, checkpoint
from oaccdepth.networks.paper import OACCNet, OACCNetConfig

EXPECTED = "expected the authors' OACC-Net checkpoint (OACC-Net.pth.tar, 9x9 views)"


@pytest.fixture(scope="module")
def state():
    return reference.random_authors_state()


@pytest.fixture(scope="module")
def released(state, tmp_path_factory):
    """A file as the authors' program writes it."""
    path = tmp_path_factory.mktemp("authors") / "OACC-Net.pth.tar"
    torch.save({"epoch": 3500, "state_dict": state}, path)
    return path


def textured(height, width):
    """Views (9, 9, h, w) that resemble each other."""
    rng = np.random.default_rng(5)
    return (0.7 * rng.random((height, width)) + 0.3 * rng.random((9, 9, height, width))).astype(
        np.float32
    )


def test_converted_weights_hold_every_value(state, released, tmp_path):
    authors.convert(released, tmp_path / "new" / "oacc.safetensors")
    network, metadata = checkpoint.load(tmp_path / "new" / "oacc.safetensors")
    assert metadata["network"] == "paper"
    assert metadata["compat"] == "authors"
    assert metadata["origin"] == (
        f"OACC-Net.pth.tar of the authors of OACC-Net, sha256 {checkpoint.sha256(released)}"
    )
    ours = network.state_dict()
    assert sum(t.numel() for t in ours.values()) == sum(t.numel() for t in state.values())
    for name, layer in (
        ("init_feature.0.weight", "features.enter.conv.weight"),
        ("init_feature.9.conv.3.bias", "features.blocks.7.second.conv.bias"),
        ("init_feature.14.running_var", "features.narrow.norm.running_var"),
        ("lastconv.weight", "features.leave.weight"),
        ("build_cost.oacc.fuse.weight", "cost.weight"),
        ("aggregate.Conv2.1.bias", "aggregation.enter.1.norm.bias"),
        ("aggregate.Resb2.body.3.weight", "aggregation.blocks.1.second.conv.weight"),
        (
            "aggregate.Resb1.calayer.conv_du.3.bias",
            "aggregation.blocks.0.attention.expand.conv.bias",
        ),
        ("aggregate.Conv4.weight", "aggregation.score.weight"),
    ):
        assert torch.equal(ours[layer].flatten(), state[name].flatten()), name


def test_every_name_of_theirs_has_one_of_ours():
    theirs = [authors._their_name(name) for name in OACCNet().state_dict()]
    assert sorted(theirs) == sorted(reference.authors_shapes())


@pytest.mark.parametrize("size", [(9, 7), (4, 7)])
def test_inference_is_their_program(state, released, size):
    """Tiles of 8 px instead of 128: 3x2 tiles, and 1x2, which is less than one group of four."""
    grey = textured(*size)
    expected = reference.authors_program(state, grey, tile=8)
    network = authors.load_authors(released)
    found = authors.estimate_like_authors(network, torch.from_numpy(grey), tile=8)
    assert len(found) == 2
    assert found[-1].disparity.shape == (1, *size)
    assert expected.std() > 0.05
    assert np.abs(found[-1].disparity[0].numpy() - expected).max() < 1e-3


@pytest.mark.slow
def test_inference_is_their_program_at_full_tile_size(state, released):
    grey = textured(70, 64)
    expected = reference.authors_program(state, grey)
    network = authors.load_authors(released)
    found = authors.estimate_like_authors(network, torch.from_numpy(grey))
    assert np.abs(found[-1].disparity[0].numpy() - expected).max() < 1e-3


def test_mask_is_theirs():
    views, disparity = torch.rand(2, 9, 9, 6, 9), 2 * torch.randn(2, 6, 9)
    expected = reference.authors_masks(views.view(2, 81, 6, 9), disparity)
    found = authors.unaligned_mask(views, disparity, 2.0)
    assert (found.view(2, 81, 6, 9) - expected).abs().max() < 1e-4


@pytest.fixture
def small_network():
    torch.manual_seed(2)
    return OACCNet(
        OACCNetConfig(
            feature_blocks=1,
            matching_channels=2,
            cost_channels=8,
            volume_channels=4,
            attention_channels=2,
        )
    ).eval()


def test_statistics_are_those_of_the_tiles(small_network):
    """The stored statistics of the norms are neither used nor changed."""
    grey = torch.from_numpy(textured(9, 8))
    before = authors.estimate_like_authors(small_network, grey, tile=8)[-1].disparity
    norms = [m for m in small_network.modules() if isinstance(m, nn.BatchNorm2d | nn.BatchNorm3d)]
    for norm in norms:
        norm.running_mean.fill_(7)
        norm.running_var.fill_(7)
    after = authors.estimate_like_authors(small_network, grey, tile=8)[-1].disparity
    assert torch.equal(before, after)
    assert not any(module.training for module in small_network.modules())
    assert all(norm.track_running_stats for norm in norms)
    for norm in norms:
        assert (norm.running_mean == 7).all() and (norm.running_var == 7).all()
        assert norm.num_batches_tracked == 0


def test_smaller_arrays_and_absent_views_run(small_network):
    grey = torch.from_numpy(textured(9, 11)[2:7])
    validity = torch.ones_like(grey)
    validity[0, 0] = 0
    seen = []
    passes = authors.estimate_like_authors(
        small_network, grey, 3, validity, tile=8, progress=lambda stage, done: seen.append(done)
    )
    assert [result.mask.shape for result in passes] == [(1, 5, 9, 9, 11)] * 3
    assert all((result.mask[0, 0, 0] == 0).all() for result in passes)
    assert all(torch.isfinite(result.disparity).all() for result in passes)
    assert passes[-1].probability.shape == (1, 9, 9, 11)
    assert passes[-1].confidence.shape == (1, 9, 11)
    assert seen == pytest.approx([1 / 3, 2 / 3, 1])


def refusal(path, error=InvalidCheckpoint):
    with pytest.raises(error) as caught:
        authors.load_authors(path)
    return str(caught.value).replace(str(path), "FILE")


def saved(content, tmp_path):
    path = tmp_path / "file.pth.tar"
    torch.save(content, path)
    return path


def test_missing_file(tmp_path):
    message = refusal(tmp_path / "nothing.pth.tar", UnreadableFile)
    assert message == f"FILE: no such file, {EXPECTED}."


def test_damaged_and_foreign_files(released, tmp_path):
    expected = f"FILE: not a PyTorch checkpoint, or a damaged one; {EXPECTED}. Download it again."
    data = released.read_bytes()
    for content in (b"", b"hello", data[: len(data) // 2], data[100:], b"\x80\x02}q\x00."):
        (tmp_path / "file").write_bytes(content)
        assert refusal(tmp_path / "file") in (
            expected,
            f"FILE: has no tensors under 'state_dict', {EXPECTED}.",
        )


def test_pickled_code_is_not_run(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (print, ("run",))

    path = saved({"state_dict": Harmful()}, tmp_path)
    assert refusal(path) == (
        f"FILE: not a PyTorch checkpoint, or a damaged one; {EXPECTED}. Download it again."
    )


@pytest.mark.parametrize("content", [{"model": {}}, [1, 2], {"state_dict": {"a": 1}}])
def test_other_checkpoints(content, tmp_path):
    message = refusal(saved(content, tmp_path))
    assert message == f"FILE: has no tensors under 'state_dict', {EXPECTED}."


def test_names_that_are_missing_or_unknown(state, tmp_path):
    some = dict(state)
    del some["lastconv.weight"]
    assert refusal(saved({"state_dict": some}, tmp_path)) == (
        f"FILE: lacks lastconv.weight, {EXPECTED}."
    )
    del some["aggregate.Conv4.weight"]
    assert refusal(saved({"state_dict": some}, tmp_path)) == (
        f"FILE: lacks aggregate.Conv4.weight and 1 more, {EXPECTED}."
    )
    more = {**state, "extra.weight": torch.zeros(1)}
    assert refusal(saved({"state_dict": more}, tmp_path)) == (
        f"FILE: holds the unknown extra.weight, {EXPECTED}."
    )


def test_wrong_shape(state, tmp_path):
    name = "build_cost.oacc.fuse.weight"
    other = {**state, name: torch.zeros(512, 25, 1, 1)}
    assert refusal(saved({"state_dict": other}, tmp_path)) == (
        f"FILE: {name} has shape (512, 25, 1, 1), {EXPECTED}: (512, 81, 1, 1)."
    )


def test_counters_of_old_files_may_be_missing(state, tmp_path):
    old = {name: t for name, t in state.items() if not name.endswith("num_batches_tracked")}
    network = authors.load_authors(saved({"state_dict": old}, tmp_path))
    assert torch.equal(network.features.leave.weight.flatten(), state["lastconv.weight"].flatten())


def test_output_must_be_named_safetensors(released, tmp_path):
    with pytest.raises(InvalidOption) as caught:
        authors.convert(released, tmp_path / "oacc.pth")
    assert str(caught.value) == (
        f"--output {tmp_path / 'oacc.pth'}: expected a name that ends in .safetensors."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "kind", ["sparse", "quantised", "whole numbers", "not finite", "complex", "meta"]
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_that_are_not_plain(state, tmp_path, kind):
    """Refused, without a warning from torch."""
    change = {
        "sparse": lambda tensor: tensor.to_sparse(),
        "quantised": lambda tensor: torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8),
        "whole numbers": lambda tensor: tensor.long(),
        "not finite": lambda tensor: tensor * float("nan"),
        "complex": lambda tensor: tensor.to(torch.complex64),
        "meta": lambda tensor: tensor.to("meta"),
    }[kind]
    path = tmp_path / "a.pth.tar"
    floats = {name: tensor for name, tensor in state.items() if tensor.is_floating_point()}
    torch.save({"state_dict": {**state, **{n: change(t) for n, t in floats.items()}}}, path)
    with warnings.catch_warnings(), pytest.raises(InvalidCheckpoint) as caught:
        warnings.simplefilter("error")
        authors.convert(path, tmp_path / "out.safetensors")
    assert str(caught.value).startswith(f"{path}: ")
    assert not (tmp_path / "out.safetensors").exists()


def test_a_checkpoint_that_unpacks_to_far_more(tmp_path):
    path = tmp_path / "a.pth.tar"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("archive/data/0", "w", force_zip64=True) as member,
    ):
        for _ in range(300):
            member.write(bytes(1 << 20))
    with pytest.raises(InvalidCheckpoint):
        authors.load_authors(path)


@pytest.mark.slow
def test_mutated_checkpoints(released, tmp_path):
    """200 files with a few bytes changed: each gives weights or one of our errors."""
    data, path = released.read_bytes(), tmp_path / "a.pth.tar"
    random = np.random.default_rng(0)
    for _ in range(200):
        changed = bytearray(data)
        for place in random.integers(0, len(data), random.integers(1, 20)):
            changed[place if random.random() < 0.5 else place % 4000] = random.integers(256)
        end = int(random.integers(1, len(data))) if random.random() < 0.1 else None
        path.write_bytes(changed[:end])
        with contextlib.suppress(InvalidCheckpoint):
            authors.load_authors(path)
