"""Weights on a device, ready to estimate with."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from oaccdepth.estimation.device import choose_device
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import FastNet
from oaccdepth.networks.paper import OACCNet
from oaccdepth.options import EstimateOptions


@dataclass(frozen=True, eq=False)
class LoadedWeights:
    """A network on its device, and what it is."""

    network: FastNet | OACCNet
    name: str = "untitled"
    sha256: str = ""
    compat: str = ""  # "authors": reproduce the numerics of their program

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    @property
    def kind(self) -> str:
        """Which network: fast or paper."""
        return checkpoint.kind_of(self.network)


def load_network(weights: str = EstimateOptions.weights, device: str = "auto") -> LoadedWeights:
    """Load weights by name or path, onto a device; to be passed to `estimate` many times."""
    torch_device = choose_device(device)
    path = checkpoint.find_weights(weights)
    network, metadata = checkpoint.load(path)
    compat = metadata.get("compat", "")
    return LoadedWeights(network.to(torch_device), path.stem, checkpoint.sha256(path), compat)
