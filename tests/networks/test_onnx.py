"""The exported network equals ours, in another runtime."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oaccdepth.errors import InvalidOption
from oaccdepth.evidence.sweep import ABSENT
from oaccdepth.networks import checkpoint
from oaccdepth.networks.onnx import TileNetwork, export_onnx

MARGIN = 16


@pytest.fixture(scope="module")
def network():
    return checkpoint.load(checkpoint.find_weights("fast"))[0]


@pytest.fixture(scope="module")
def views(scene):
    """A tile at the corner of a picture, so that samples are absent, and a view that is missing."""
    grey = torch.from_numpy(scene.light_field.views.mean(-1))[None, :, :, :32, :32]
    padded = torch.nn.functional.pad(grey, (MARGIN,) * 4, value=ABSENT)
    padded[0, 1, 7] = ABSENT
    return padded


def test_what_is_exported_computes_the_same(network, views):
    with torch.no_grad():
        disparity, confidence = TileNetwork(network, 2)(views)
        passes = network(views, 2)
    torch.testing.assert_close(disparity, passes[-1].disparity, atol=1e-4, rtol=0)
    expected = network.confidence(passes[-1], refined=True)
    torch.testing.assert_close(confidence, expected, atol=1e-4, rtol=0)


@pytest.mark.slow
def test_onnxruntime_agrees_to_a_thousandth(network, views, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    path = tmp_path / "fast.onnx"
    export_onnx(network, path, tile=32)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    disparity, confidence = session.run(None, {"views": views.numpy()})
    with torch.no_grad():
        last = network(views)[-1]
    np.testing.assert_allclose(disparity, last.disparity, atol=1e-3)
    np.testing.assert_allclose(confidence, network.confidence(last, True).detach(), atol=1e-3)


def test_only_the_fast_network_is_exported(tmp_path):
    with pytest.raises(InvalidOption) as caught:
        export_onnx(checkpoint.create("paper"), tmp_path / "x.onnx")
    assert str(caught.value) == (
        "export: only the fast network can be exported. Use --weights fast."
    )


def test_tiles_are_multiples_of_8(network, tmp_path):
    with pytest.raises(InvalidOption) as caught:
        export_onnx(network, tmp_path / "x.onnx", tile=30)
    assert str(caught.value) == "--tile 30: expected a multiple of 8."
