"""What the fast network is made of: layers over volumes of evidence. Tensors only."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth.networks.paper import ConvNorm

# A volume (b, c, l, h, w) is kept as (b*l, c, h, w) channels_last: the same memory as
# channels_last_3d, so 2D layers treat every level alike and 3D ones mix levels, without copies.


class LevelConv(nn.Module):
    """3x3x3 convolution over level, y, x; batch norm; activation; plus its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        conv = nn.Conv3d(channels, channels, 3, padding=1, bias=False)
        self.layer = ConvNorm(conv, activation=True, keep_layout=True)

    def forward(self, x: Tensor, num_levels: int) -> Tensor:
        """(b*l, c, h, w) to the same."""
        volume = by_level(x, num_levels).transpose(1, 2)  # (b, c, l, h, w), same memory
        y: Tensor = self.layer(volume).transpose(1, 2).flatten(0, 1)  # (b*l, c, h, w)
        return y + x


def halving(channels_in: int, channels_out: int) -> ConvNorm:
    """Two by two pixels to one."""
    conv = nn.Conv2d(channels_in, channels_out, 2, 2, bias=False)
    return ConvNorm(conv, activation=True, keep_layout=True)


def same(channels_in: int, channels_out: int) -> ConvNorm:
    """3x3 pixels around each."""
    conv = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
    return ConvNorm(conv, activation=True, keep_layout=True)


class Hourglass(nn.Module):
    """Mixes evidence over space and levels at half, quarter and eighth resolution."""

    def __init__(self, full: int, half: int, quarter: int, eighth: int) -> None:
        super().__init__()
        self.to_half = halving(full, half)
        self.half_in = LevelConv(half)
        self.to_quarter = halving(half, quarter)
        self.quarter_in = nn.ModuleList([LevelConv(quarter) for _ in range(2)])
        self.to_eighth = halving(quarter, eighth)
        self.eighth = nn.ModuleList([LevelConv(eighth) for _ in range(3)])
        self.from_eighth = nn.Conv2d(eighth, quarter, 1)
        self.quarter_out = LevelConv(quarter)
        self.from_quarter = nn.Conv2d(quarter, half, 1)
        self.half_out = LevelConv(half)
        self.from_half = nn.ConvTranspose2d(half, full, 2, 2)
        self.mix = same(full, full)
        self.out = nn.Conv2d(full, 1, 3, padding=1)
        nn.init.zeros_(self.out.weight)  # at step 0 the network is a plane sweep
        nn.init.zeros_(self.out.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor, num_levels: int) -> tuple[Tensor, Tensor]:
        """(b*l, full, h, w) to logits (b, l, h, w) and features (b, l, full, h, w)."""
        half = self.half_in(self.to_half(x), num_levels)
        quarter = self.to_quarter(half)
        for layer in self.quarter_in:
            quarter = layer(quarter, num_levels)
        eighth = self.to_eighth(quarter)
        for layer in self.eighth:
            eighth = layer(eighth, num_levels)
        quarter = quarter + enlarge(self.from_eighth(eighth))
        half = half + enlarge(self.from_quarter(self.quarter_out(quarter, num_levels)))
        x = self.mix(x + self.from_half(self.half_out(half, num_levels)))
        return by_level(self.out(x), num_levels)[:, :, 0], by_level(x, num_levels)


def by_level(x: Tensor, num_levels: int) -> Tensor:
    """(b*l, ...) as (b, l, ...), the same memory."""
    return x.view(-1, num_levels, *x.shape[1:])


def enlarge(x: Tensor) -> Tensor:
    """Twice the resolution, bilinear."""
    return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)


class Projection(nn.Module):
    """Evidence of all views to a few channels: residuals, votes and, with masks, the masks."""

    def __init__(self, kinds: int, grid: tuple[int, int], channels: int) -> None:
        super().__init__()
        bound = (3.0 / (kinds * grid[0] * grid[1])) ** 0.5
        self.weight = nn.Parameter(torch.empty(channels, kinds, *grid).uniform_(-bound, bound))

    def forward(self, evidence: Tensor, grid: tuple[int, int]) -> Tensor:
        """(n, kinds*u*v, h, w) to (n, c, h, w) channels_last, for a grid of up to the full size."""
        (full_u, full_v), (u, v) = self.weight.shape[2:], grid
        top, left = (full_u - u) // 2, (full_v - v) // 2
        weight = self.weight[:, :, top : top + u, left : left + v].flatten(1)  # (c, kinds*u*v)
        n, _, h, w = evidence.shape
        # bmm, because matmul with a shared matrix would copy the evidence, the largest tensor here
        y = torch.bmm(weight.expand(n, -1, -1), evidence.flatten(2))  # (n, c, h*w)
        return y.view(n, -1, h, w).contiguous(memory_format=torch.channels_last)
