"""The learnt parts of the fast network as ONNX: for runtimes that have no torch.

Several files, because gathering evidence for a part needs the answer of the one before it, and the
evidence itself is no network: loops over views and lines (`evidence/`), for the caller's own code.
The passes are for one tile size, what decides edges for any number of pixels.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oaccdepth.errors import InvalidOption, MissingDependency
from oaccdepth.evidence import KINDS, MEANS
from oaccdepth.evidence.edges import SIGNS
from oaccdepth.files.atomic import staged, told
from oaccdepth.networks.answers import EXTRA, OFFSETS
from oaccdepth.networks.fast import ALIGNMENT, LEVELS, SUB_LEVELS, FastNet

OPSET = 18
FIRST, REFINEMENT, EDGES = "first_pass.onnx", "refinement.onnx", "edges.onnx"
OUTPUTS = ("disparity", "spread", "logits", "certainty")  # the fields of an Answer
FEWEST_LEVELS = 4


class FirstPass(nn.Module):
    """Evidence of all levels to an answer."""

    def __init__(self, network: FastNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, volume: Tensor, picture: Tensor, levels: Tensor) -> tuple[Tensor, ...]:
        """(1, l/2, 24, h, w) uint8, (1, 3, h, w) and (l) [px] to the fields of an Answer."""
        return self.network.first_pass(volume, picture, levels)


def export_onnx(
    network: nn.Module, folder: Path, *, tile: int = 128, levels: int = LEVELS
) -> list[Path]:
    """Write all parts, the passes for tiles of this size; return the files."""
    if not isinstance(network, FastNet):
        raise InvalidOption("export: only the fast network can be exported. Use --weights fast.")
    if tile % ALIGNMENT:
        raise InvalidOption(f"--tile {tile}: expected a multiple of {ALIGNMENT}.")
    if levels % SUB_LEVELS or levels < FEWEST_LEVELS:
        raise InvalidOption(f"--levels {levels}: expected an even number, {FEWEST_LEVELS} or more.")
    try:
        import onnx  # noqa: F401 (torch's exporter needs both)
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependency(
            'export needs ONNX. Install it with: pip install "oaccdepth[onnx]".'
        ) from error
    network = network.cpu().eval()
    first, later = example_of_first_pass(tile, levels), example_of_refinement(network, tile)
    files = [FIRST, *([EDGES] if network.edges else []), REFINEMENT]
    with staged(folder, last=REFINEMENT) as stage:
        _export(FirstPass(network), stage / FIRST, first, ("volume", "picture", "levels"))
        if network.edges:
            _export_edges(network.edges, stage / EDGES)
        _export(network.refinement, stage / REFINEMENT, later, ("seen", "known", "candidates"))
    return [folder / file for file in files]


def example_of_first_pass(tile: int, levels: int) -> tuple[Tensor, ...]:
    """Random inputs of the first part's shapes."""
    volume = torch.randint(
        256, (1, levels // SUB_LEVELS, SUB_LEVELS * KINDS, tile, tile), dtype=torch.uint8
    )
    return volume, torch.rand(1, 3, tile, tile), torch.arange(levels) / 4 - 4


def example_of_refinement(network: FastNet, tile: int) -> tuple[Tensor, ...]:
    """Random inputs of the second part's shapes."""
    count = OFFSETS + EXTRA
    seen = MEANS * count + 1  # of each candidate, and the mean mask
    known = network.refinement.net.enter.conv.in_channels - seen
    return tuple(torch.rand(1, channels, tile, tile) for channels in (seen, known, count))


def _export_edges(edges: nn.Module, path: Path) -> None:
    """Write what decides edges: signs of any number of pixels to scores of their choices."""
    signs = (torch.rand(8, SIGNS),)
    _export(edges, path, signs, ("signs",), ("scores",), ({0: torch.export.Dim("pixels")},))


def _export(
    module: nn.Module,
    path: Path,
    example: tuple[Tensor, ...],
    names: Sequence[str],
    outputs: Sequence[str] = OUTPUTS,
    sizes: tuple[Any, ...] | None = None,
) -> None:
    """Write one graph; `sizes` are those that may differ."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with (
        told(path),
        torch.no_grad(),
        redirect_stdout(io.StringIO()),  # the exporter chats
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            example,
            str(path),
            input_names=list(names),
            output_names=list(outputs),
            dynamic_shapes=sizes,
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
        )
