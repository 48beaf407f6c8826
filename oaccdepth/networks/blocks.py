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
        return plus(y, x)


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

    def __init__(self, full: int, half: int, quarter: int, eighth: int, out: int = 1) -> None:
        super().__init__()
        self.detail = same(full, full)
        self.to_half = halving(full, half)
        self.half_in = nn.ModuleList([LevelConv(half) for _ in range(2)])
        self.to_quarter = halving(half, quarter)
        self.quarter_in = nn.ModuleList([LevelConv(quarter) for _ in range(2)])
        self.to_eighth = halving(quarter, eighth)
        self.eighth = nn.ModuleList([LevelConv(eighth) for _ in range(2)])
        self.from_eighth = nn.Conv2d(eighth, quarter, 1)
        self.from_quarter = nn.Conv2d(quarter, half, 1)
        self.half_out = LevelConv(half)
        self.from_half = nn.ConvTranspose2d(half, full, 2, 2)
        self.mix = same(full, full)
        self.out = nn.Conv2d(full, out, 3, padding=1)
        nn.init.zeros_(self.out.weight)  # at step 0 the evidence decides
        nn.init.zeros_(self.out.bias)  # type: ignore[arg-type]

    def mix_levels(self, half: Tensor, num_levels: int) -> Tensor:
        """Mix levels and neighbours, at half, quarter and eighth resolution."""
        for layer in self.half_in:
            half = layer(half, num_levels)
        quarter = self.to_quarter(half)
        for layer in self.quarter_in:
            quarter = layer(quarter, num_levels)
        eighth = self.to_eighth(quarter)
        for layer in self.eighth:
            eighth = layer(eighth, num_levels)
        quarter = plus(enlarge(self.from_eighth(eighth)), quarter)
        half = plus(enlarge(self.from_quarter(quarter)), half)
        mixed: Tensor = self.half_out(half, num_levels)
        return mixed

    def enlarge(self, x: Tensor, half: Tensor) -> Tensor:
        """What entered and what was mixed to (b*l, out, h, w)."""
        found: Tensor = self.out(self.mix(plus(self.from_half(half), x)))
        return found


def by_level(x: Tensor, num_levels: int) -> Tensor:
    """(b*l, ...) as (b, l, ...), the same memory."""
    return x.view(-1, num_levels, *x.shape[1:])


def plus(new: Tensor, x: Tensor) -> Tensor:
    """The sum; written over the first where no gradient needs that: new memory takes time."""
    return new + x if torch.is_grad_enabled() else new.add_(x)


def join(maps: list[Tensor]) -> Tensor:
    """Maps (b, c, h, w) side by side, channels last, in the type that layers compute in here.

    Joined in 32 bits and converted afterwards, they take five times as long.
    """
    device = maps[0].device.type
    dtype = maps[0].dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    return torch.cat([x.to(dtype, memory_format=torch.channels_last) for x in maps], 1)


def enlarge(x: Tensor) -> Tensor:
    """Twice the resolution, bilinear."""
    return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)


class UNet(nn.Module):
    """Mixes maps at full, half and quarter resolution; the sides must be multiples of four."""

    def __init__(self, channels_in: int, channels: tuple[int, int, int], out: int) -> None:
        super().__init__()
        full, half, quarter = channels
        self.enter = same(channels_in, full)
        self.to_half = halving(full, half)
        self.half_in = nn.ModuleList([same(half, half) for _ in range(2)])
        self.to_quarter = halving(half, quarter)
        self.quarter = nn.ModuleList([same(quarter, quarter) for _ in range(3)])
        self.from_quarter = nn.Conv2d(quarter, half, 1)
        self.half_out = nn.ModuleList([same(half, half) for _ in range(2)])
        self.from_half = nn.ConvTranspose2d(half, full, 2, 2)
        self.mix = same(full, full)
        self.out = nn.Conv2d(full, out, 3, padding=1)
        nn.init.zeros_(self.out.weight)  # at step 0 the evidence decides
        nn.init.zeros_(self.out.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """(b, c, h, w) to (b, out, h, w)."""
        x = self.enter(x)
        half = self.to_half(x)
        for layer in self.half_in:
            half = plus(layer(half), half)
        quarter = self.to_quarter(half)
        for layer in self.quarter:
            quarter = plus(layer(quarter), quarter)
        half = plus(enlarge(self.from_quarter(quarter)), half)
        for layer in self.half_out:
            half = plus(layer(half), half)
        found: Tensor = self.out(self.mix(plus(self.from_half(half), x)))
        return found
