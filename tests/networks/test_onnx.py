"""The exported parts give the same results in another runtime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_networks import FAST
from trouble import fill_disk_at, run_child

from oaccdepth.errors import InvalidOption, UnwritableOutput
from oaccdepth.evidence.edges import SIGNS
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastNet
from oaccdepth.networks.onnx import (
    OUTPUTS,
    FirstPass,
    example_of_first_pass,
    example_of_refinement,
    export_onnx,
)

TILE, LEVELS = 24, 8


@pytest.fixture(scope="module")
def network():
    """Weights without zeros, so that every layer has an effect."""
    torch.manual_seed(0)
    made = FastNet(replace(FAST, edge_channels=8)).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return made


def test_examples_have_the_shapes_that_the_parts_take(network):
    first = example_of_first_pass(TILE, LEVELS)
    later = example_of_refinement(network, TILE)
    with torch.no_grad():
        answers = [FirstPass(network)(*first), network.refinement(*later)]
    for answer, count in zip(answers, (LEVELS, 9), strict=True):
        assert len(answer) == len(OUTPUTS)
        assert [value.shape for value in answer[:2]] == [(1, TILE, TILE)] * 2
        assert answer[2].shape == (1, count, TILE, TILE)


@pytest.mark.slow
def test_onnxruntime_agrees_to_a_thousandth(network, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    paths = export_onnx(network, tmp_path, tile=TILE, levels=LEVELS)
    assert [path.name for path in paths] == ["first_pass.onnx", "edges.onnx", "refinement.onnx"]
    session = onnxruntime.InferenceSession(paths.pop(1), providers=["CPUExecutionProvider"])
    for count in (1, 50):  # any number of pixels
        signs = torch.rand(count, SIGNS)
        with torch.no_grad():
            scores = network.edges(signs)
        (found,) = session.run(["scores"], {"signs": signs.numpy()})
        np.testing.assert_allclose(found, scores, atol=1e-3)
    examples = [example_of_first_pass(TILE, LEVELS), example_of_refinement(network, TILE)]
    for path, part, example in zip(
        paths, (FirstPass(network), network.refinement), examples, strict=True
    ):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_inputs()]
        found = session.run(
            list(OUTPUTS), {n: x.numpy() for n, x in zip(names, example, strict=True)}
        )
        with torch.no_grad():
            expected = part(*example)
        for name, ours, theirs in zip(OUTPUTS, expected, found, strict=True):
            np.testing.assert_allclose(theirs, ours, atol=1e-3, err_msg=f"{path.name}: {name}")


@pytest.mark.slow
def test_a_full_disk(network, tmp_path):
    """All files appear, or none of them and no folder."""
    pytest.importorskip("onnxscript")
    export_onnx(network, tmp_path / "whole", tile=TILE, levels=LEVELS)
    sizes = sorted(path.stat().st_size for path in (tmp_path / "whole").iterdir())

    def act():
        fill_disk_at(sizes[-1] - 1)  # enough for the smaller ones
        with pytest.raises(UnwritableOutput, match=r"full/.*\.onnx: cannot be written"):
            export_onnx(network, tmp_path / "full", tile=TILE, levels=LEVELS)

    assert run_child(act) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_only_the_fast_network_is_exported(tmp_path):
    with pytest.raises(InvalidOption) as caught:
        export_onnx(checkpoint.create("paper"), tmp_path)
    assert str(caught.value) == (
        "export: only the fast network can be exported. Use --weights fast."
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tile": 30}, "--tile 30: expected a multiple of 8."),
        ({"levels": 33}, "--levels 33: expected an even number, 4 or more."),
        ({"levels": 2}, "--levels 2: expected an even number, 4 or more."),
    ],
)
def test_sizes_that_do_not_fit(network, tmp_path, wrong, message):
    with pytest.raises(InvalidOption) as caught:
        export_onnx(network, tmp_path, **wrong)
    assert str(caught.value) == message
