"""The benchmark measures what it says: stages, arithmetic, memory."""

import json

import pytest
import torch
from small_networks import PAPER

from oaccdepth.benchmark import (
    count_macs,
    load_preset,
    measure,
    random_light_field,
    shift_and_concat,
)
from oaccdepth.errors import InvalidOption
from oaccdepth.estimation.weights import LoadedWeights
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastNet
from oaccdepth.networks.paper import OACCNet

CPU = torch.device("cpu")


def test_arithmetic():
    """method.md: features 0.87 TMAC, twice 0.10 + 11.62 for cost and aggregation, at 512 px.

    Ours is slightly less, because the cost constructor and the 1x1x1 convolution after it are one
    map here. The fast network's layers need less than a fiftieth.
    """
    paper = count_macs(OACCNet().eval(), CPU)
    assert paper * 512 * 512 == pytest.approx(24.3e12, rel=0.03)
    assert 0.005 * paper < count_macs(FastNet().eval(), CPU) < 0.02 * paper


def test_stages_add_up():
    loaded = LoadedWeights(FastNet().eval(), "untrained")
    result = measure("fast", loaded, random_light_field(64), CPU, lambda stage, fraction: None)
    assert sum(result.stages.values()) == pytest.approx(result.seconds, abs=0.01)  # rounded
    assert min(result.stages.values()) >= 0 and len(result.stages) > 3
    assert "everything else" in result.stages and "total" not in result.stages
    assert result.stages["first pass"] > 0 and result.stages["refinement"] > 0
    assert result.peak_bytes > 50e6


def test_shift_and_concat_is_the_cost_constructor():
    torch.manual_seed(0)
    network = OACCNet(PAPER).eval()
    views = torch.rand(1, 9, 9, 24, 40)
    with torch.no_grad():
        features = network.extract_features(views)
        weight, bias = network.fused_weight((9, 9))
        expected = network.construct_cost(features, torch.ones_like(views), None)
        volume = shift_and_concat(features, network.config.levels, weight, bias)
        torch.testing.assert_close(
            network.aggregation.squeeze.finish(volume), expected, atol=1e-4, rtol=1e-4
        )


def test_the_command_prints_json(run):
    result = run("benchmark", "--preset", "fast", "--size", "48", "--device", "cpu", "--json", "-q")
    content = json.loads(result.stdout)
    assert content["benchmarks"][0]["preset"] == "fast"
    assert content["benchmarks"][0]["seconds"] > 0
    assert content["construction"]["shift-and-concat"] > 0


def test_an_unknown_preset(run):
    result = run("benchmark", "--preset", "huge")
    assert result.exit_code == 1
    assert result.stderr == "error: --preset huge: no such network. Known: fast, paper.\n"
    with pytest.raises(InvalidOption):
        load_preset("huge", CPU)
    assert set(checkpoint.KINDS) == {"fast", "paper"}
