"""The fast network for one tile, as ONNX: for runtimes that have no torch.

Takes grey views (1, u, v, h + 2*margin, w + 2*margin) in [0, 1], ABSENT (-1) where there is no
picture, and gives disparity [px] and confidence, (1, h, w) each, after all passes.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth.errors import InvalidOption, MissingDependency
from oaccdepth.evidence.sweep import RESIDUAL_GAIN, SMALLEST_SUM, presence, share_there, warp
from oaccdepth.files.atomic import replacing
from oaccdepth.networks.edges import VOTE_GAINS
from oaccdepth.networks.fast import ALIGNMENT, FastNet

OPSET = 18


class ExportedNetwork(FastNet):
    """The same arithmetic without views of memory, results in place or choices by value."""

    def forward_tile(self, views: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
        """Disparity and confidence after all passes, (1, h, w) each."""
        first, context = self.first_pass(views)
        last = first
        for _ in range(iterations - 1):
            last = self.refine(views, last, first, context)
        refined = iterations > 1
        disparity = self.polish(views, last).disparity if refined else last.disparity
        return disparity, self.confidence(last, refined)

    def sweep_evidence(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """As in FastNet."""
        config = self.config
        centre = self.centre(views)[:, None]
        samples = self._shifted(views)  # (1, l, u*v, h, w)
        present = (samples >= 0).to(samples)
        return self._compared(samples, centre, (config.vote_gain,), present)

    def warp_evidence(
        self, pictures: Tensor, candidates: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As in FastNet."""
        centre = self.centre(pictures[:, :, :, 0])[:, None]
        moved = torch.stack(warp(pictures, candidates, self.config.margin), 1)
        samples, shares = moved.unbind(3)  # (b, n, u*v, h, w)
        middle = samples.shape[1] // 2
        mask = (1 - (samples[:, middle] - centre).abs()).clamp(min=0) ** self.config.decay
        own = torch.zeros(mask.shape[1], device=mask.device)
        own[len(own) // 2] = 1
        mask = torch.where(own[:, None, None] > 0, torch.ones_like(mask), mask)
        mask = mask * presence(shares[:, middle])
        gains = (self.config.refine_vote_gain,)
        evidence, votes = self._compared(samples, centre, gains, mask[:, None])
        num_full = self.config.grid[0] * self.config.grid[1]
        relative = mask * (num_full / mask.sum(1, keepdim=True).clamp(min=SMALLEST_SUM))
        return evidence, votes, mask, relative

    def surface_evidence(self, views: Tensor, surfaces: Tensor) -> tuple[Tensor, Tensor]:
        """As in FastNet."""
        centre = self.centre(views)[:, None]
        samples = torch.stack(warp(views, surfaces, self.config.margin), 1)
        return self._compared(samples.clamp(min=0), centre, VOTE_GAINS, share_there(samples))

    def average(self, values: Tensor, disparity: Tensor) -> Tensor:
        """As in FastNet, by one look-up: a slice for each neighbour takes minutes to export."""
        radius, tolerance = self.config.smoothing_radius, self.config.smoothing_tolerance
        height, width = disparity.shape[1:]
        steps = torch.arange(2 * radius + 1)
        y = steps[:, None, None, None] + torch.arange(height)[:, None]
        x = steps[:, None, None] + torch.arange(width)
        index = (y * (width + 2 * radius) + x).flatten(0, 1)  # (neighbours, h, w)
        own = disparity[:, None]
        padded = F.pad(torch.cat([own, values], 1), (radius,) * 4, mode="replicate")
        around = padded.flatten(2)[:, :, index]  # (b, 1 + k, neighbours, h, w)
        weight = torch.exp((around[:, :1] - own[:, None]) ** 2 * (-0.5 / tolerance**2))
        return (weight * around[:, 1:]).sum(2) / weight.sum(2)

    def _shifted(self, views: Tensor) -> Tensor:
        """The angular patches (1, l, u*v, h, w) of all integer disparities, by one look-up.

        A slice for each view and disparity would be 729 operations of the graph.
        """
        margin, reach = self.config.margin, self.config.reach
        rows, columns, height, width = views.shape[1:]
        d = torch.arange(-reach, reach + 1)[:, None, None]
        u, v = torch.arange(rows)[:, None], torch.arange(columns)
        top, left = margin - d * (u - rows // 2), margin - d * (v - columns // 2)
        corner = ((u * columns + v) * height + top) * width + left  # (l, u, v)
        y, x = torch.arange(height - 2 * margin)[:, None], torch.arange(width - 2 * margin)
        index = corner.flatten(1)[:, :, None, None] + y * width + x
        return views.flatten()[index][None]

    def _compared(
        self, samples: Tensor, centre: Tensor, gains: Sequence[float], mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Modulated evidence (b*l, k*u*v, h, w) of samples (b, l, u*v, h, w), and mean votes."""
        num_full = self.config.grid[0] * self.config.grid[1]
        residual = samples - centre[:, None]
        scaled = RESIDUAL_GAIN * residual
        votes = [(gain * residual.abs()).clamp(max=1) for gain in gains]
        relative = mask * (num_full / mask.sum(2, keepdim=True).clamp(min=SMALLEST_SUM))
        evidence = torch.cat([part * relative for part in (scaled, *votes)], 2)
        return evidence.flatten(0, 1), (votes[0] * relative).sum(2) / num_full

    def _strips(self, views: Tensor, num_levels: int) -> list[slice]:
        return [slice(0, views.shape[-2] - 2 * self.config.margin)]


class TileNetwork(nn.Module):
    """What is exported: one tensor in, two out."""

    def __init__(self, network: FastNet, iterations: int) -> None:
        super().__init__()
        self.network = ExportedNetwork(network.config).eval()
        self.network.load_state_dict(network.state_dict())
        self.iterations = iterations

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """(1, u, v, h + 2*margin, w + 2*margin) to (1, h, w) twice."""
        return self.network.forward_tile(views, self.iterations)


def export_onnx(
    network: nn.Module,
    path: Path,
    *,
    tile: int = 128,
    grid: tuple[int, int] | None = None,
    iterations: int | None = None,
) -> None:
    """Write the network for tiles of this size and arrays of this grid."""
    if not isinstance(network, FastNet):
        raise InvalidOption("export: only the fast network can be exported. Use --weights fast.")
    if tile % ALIGNMENT:
        raise InvalidOption(f"--tile {tile}: expected a multiple of {ALIGNMENT}.")
    try:
        import onnx  # noqa: F401 (torch's exporter needs both)
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependency(
            'export needs ONNX. Install it with: pip install "oaccdepth[onnx]".'
        ) from error
    rows, columns = grid or network.config.grid
    side = tile + 2 * network.config.margin
    example = torch.rand(1, rows, columns, side, side)
    module = TileNetwork(network.cpu(), iterations or network.config.iterations).eval()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with (
        replacing(path) as temporary,
        torch.no_grad(),
        redirect_stdout(io.StringIO()),  # the exporter chats
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (example,),
            str(temporary),
            input_names=["views"],
            output_names=["disparity", "confidence"],
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
        )
