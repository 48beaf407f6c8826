"""OACCNet, the network of the paper: tensors in, tensors out; no files, no options, no devices.

Features of every view; a cost per pixel and integer disparity from the samples of all views, each
modulated by its occlusion mask; 3D convolutions over the volume of costs; softmax regression. The
mask of a pass follows from the disparity of the one before (docs/method.md).

Views come as (b, u, v, h, w) grey in [0, 1], on the grid of the weights or a smaller one, which
takes the weights of the central views. A validity (b, u, v, h, w) of 0 and 1 says which pixels are
there; a sample that is not there, or lies outside the frame, has mask 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEAK = 0.1  # slope of the activation below zero
LARGEST_BLUR = 1e-3  # share of an absent pixel in a bilinear sample that still counts as present
SMALLEST_MEAN = 1e-6  # of the masks; where none sees the point, the cost is 0 / this = 0


@dataclass(frozen=True)
class OACCNetConfig:
    """The shape of the network, stored with its weights; the defaults are the preset `paper`."""

    grid: tuple[int, int] = (9, 9)  # (u, v)
    reach: int = 4  # disparities from -reach to reach [px]
    feature_channels: int = 16
    feature_blocks: int = 8
    matching_channels: int = 8  # features that are compared over the views; groups of the cost
    cost_channels: int = 512
    volume_channels: int = 160
    volume_blocks: int = 2
    attention_channels: int = 10
    decay: float = 2.0  # q of Eq. 8
    iterations: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", tuple(self.grid))  # JSON gives a list

    @property
    def levels(self) -> range:
        """The integer disparities [px]."""
        return range(-self.reach, self.reach + 1)

    @property
    def margin(self) -> int:
        """How far a view may be shifted [px]."""
        return self.reach * (max(self.grid) // 2)


@dataclass(frozen=True)
class PassResult:
    """What one pass gave."""

    disparity: Tensor  # (b, h, w) [px]
    confidence: Tensor  # (b, h, w) in [0, 1]
    mask: Tensor  # (b, u, v, h, w) in [0, 1]: what the pass modulated with
    probability: Tensor  # (b, d, h, w) over the levels


class ConvNorm(nn.Module):
    """Convolution, batch norm and, if asked for, activation.

    Outside of training the norm is folded into the convolution: one pass over memory, not two.
    """

    def __init__(
        self, conv: nn.Conv2d | nn.Conv3d, activation: bool, keep_layout: bool = False
    ) -> None:
        super().__init__()
        self.keep_layout = keep_layout  # in training: quicker, at the price below
        self.conv = conv
        norm = nn.BatchNorm2d if isinstance(conv, nn.Conv2d) else nn.BatchNorm3d
        self.norm = norm(conv.out_channels)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """(b, c, ...) to (b, c', ...)."""
        weight, bias = self.folded()
        convolve = F.conv2d if isinstance(self.conv, nn.Conv2d) else conv3d
        stride, padding = self.conv.stride, self.conv.padding
        return self.finish(convolve(x, weight, bias, stride, padding))

    def folded(self) -> tuple[Tensor, Tensor | None]:
        """Weight and bias that include the norm; those of the convolution where it is training."""
        weight, bias, norm = self.conv.weight, self.conv.bias, self.norm
        if norm.training:
            return weight, bias
        scale, offset = as_line(norm)
        shape = (-1,) + (1,) * (weight.ndim - 1)
        return weight * scale.view(shape), offset if bias is None else offset + bias * scale

    def finish(self, y: Tensor) -> Tensor:
        """Apply what follows a convolution with the folded weight; changes `y`."""
        if self.norm.training:
            # On a CPU, PyTorch sums statistics of channels_last tensors in single precision: off
            # by 0.017 of a standard deviation over the 5 million samples of the authors' batches.
            y = self.norm(y if self.keep_layout else y.contiguous())
        return F.leaky_relu(y, LEAK, inplace=True) if self.activation else y


def as_line(norm: nn.BatchNorm2d | nn.BatchNorm3d) -> tuple[Tensor, Tensor]:
    """What a norm multiplies channels by, and then adds, outside of training."""
    assert norm.running_mean is not None and norm.running_var is not None
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    return scale, norm.bias - norm.running_mean * scale


def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any) -> Tensor:
    """F.conv3d, by oneDNN on a CPU: for a small single volume PyTorch takes a slow fallback."""
    on_cpu = x.device.type == "cpu" and x.dtype == torch.float32 and torch.backends.mkldnn.enabled
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if torch.is_grad_enabled() or not on_cpu or not available:
        return F.conv3d(x, weight, bias, stride, padding)
    y: Tensor = torch.ops.aten.mkldnn_convolution(x, weight, bias, padding, stride, (1, 1, 1), 1)
    return y


class ChannelAttention(nn.Module):
    """Weighs the channels of each level by what they hold on average over the picture."""

    def __init__(self, channels: int, reduced: int) -> None:
        super().__init__()
        self.reduce = ConvNorm(nn.Conv3d(channels, reduced, 1), activation=True)
        self.expand = ConvNorm(nn.Conv3d(reduced, channels, 1), activation=False)

    def forward(self, x: Tensor) -> Tensor:
        """(b, c, d, h, w) to the same."""
        average = x.mean((3, 4), keepdim=True)  # (b, c, d, 1, 1)
        return x * torch.sigmoid(self.expand(self.reduce(average)))


class ResidualBlock(nn.Module):
    """Two convolutions and the input; nothing after the sum."""

    def __init__(self, first: ConvNorm, second: ConvNorm, attention: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.attention = first, second, attention

    def forward(self, x: Tensor) -> Tensor:
        """(b, c, ...) to the same."""
        y: Tensor = self.attention(self.second(self.first(x)))
        return y + x


def flat(channels_in: int, channels_out: int, bias: bool = False) -> nn.Conv2d:
    """3x3 over a view."""
    return nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=bias)


def deep(channels_in: int, channels_out: int) -> nn.Conv3d:
    """3x3x3 over level, y and x."""
    return nn.Conv3d(channels_in, channels_out, 3, padding=1, bias=False)


class Features(nn.Module):
    """What makes a pixel recognisable, for each view alone, with the same weights for all."""

    def __init__(self, config: OACCNetConfig) -> None:
        super().__init__()
        wide, narrow = config.feature_channels, config.matching_channels
        self.enter = ConvNorm(flat(1, wide), activation=False)
        self.blocks = nn.Sequential(*(self.block(wide) for _ in range(config.feature_blocks)))
        self.mix = ConvNorm(flat(wide, wide), activation=True)
        self.narrow = ConvNorm(flat(wide, narrow), activation=True)
        self.leave = flat(narrow, narrow)

    @staticmethod
    def block(channels: int) -> ResidualBlock:
        """Make one whose convolutions have a bias, without attention."""
        first = ConvNorm(flat(channels, channels, bias=True), activation=True)
        second = ConvNorm(flat(channels, channels, bias=True), activation=False)
        return ResidualBlock(first, second, nn.Identity())

    def forward(self, pictures: Tensor) -> Tensor:
        """(n, 1, h, w) to (n, c, h, w)."""
        x = self.enter(pictures)
        if not self.enter.norm.training:
            x = x.contiguous(memory_format=torch.channels_last)
        features: Tensor = self.leave(self.narrow(self.mix(self.blocks(x))))
        return features


class Aggregation(nn.Module):
    """Mixes the costs over level, y and x."""

    def __init__(self, config: OACCNetConfig) -> None:
        super().__init__()
        channels = config.volume_channels
        squeeze = nn.Conv3d(config.cost_channels, channels, 1, bias=False)
        self.squeeze = ConvNorm(squeeze, activation=True)  # applied by OACCNet.construct_cost
        self.enter = nn.Sequential(*(ConvNorm(deep(channels, channels), True) for _ in range(2)))
        blocks = (self.block(channels, config) for _ in range(config.volume_blocks))
        self.blocks = nn.Sequential(*blocks)
        self.leave = ConvNorm(deep(channels, channels), activation=True)
        self.score = deep(channels, 1)

    @staticmethod
    def block(channels: int, config: OACCNetConfig) -> ResidualBlock:
        """Make one with channel attention, after convolutions without bias."""
        first = ConvNorm(deep(channels, channels), activation=True)
        second = ConvNorm(deep(channels, channels), activation=False)
        return ResidualBlock(first, second, ChannelAttention(channels, config.attention_channels))

    def forward(self, volume: Tensor) -> Tensor:
        """(b, c, d, h, w) to logits (b, d, h, w)."""
        if not self.leave.norm.training:
            volume = volume.contiguous(memory_format=torch.channels_last_3d)
        logits: Tensor = self.score(self.leave(self.blocks(self.enter(volume))))
        return logits[:, 0]


class OACCNet(nn.Module):
    """Occlusion-aware cost construction, CVPR 2022: views to the centre view's disparity."""

    def __init__(self, config: OACCNetConfig = OACCNetConfig()) -> None:  # noqa: B008 (frozen)
        super().__init__()
        self.config = config
        self.features = Features(config)
        # One u x v kernel per output, over one feature channel: the same for every disparity.
        groups = config.matching_channels
        self.cost = nn.Conv2d(groups, config.cost_channels, config.grid, groups=groups, bias=False)
        self.aggregation = Aggregation(config)

    def forward(
        self, views: Tensor, truth: Tensor | None = None, validity: Tensor | None = None
    ) -> Tensor:
        """Disparity (b, h, w) [px].

        With `truth` (b, h, w), as in training, one pass with the mask of the true disparity;
        otherwise as many passes as the configuration says.
        """
        if truth is None:
            return self.estimate_passes(views, validity)[-1].disparity
        validity = torch.ones_like(views) if validity is None else validity
        mask = occlusion_mask(views, truth, self.config.decay, validity)
        cost = self.construct_cost(self.extract_features(views * validity), mask, validity)
        return self.regress(self.aggregation(cost))[0]

    def estimate_passes(
        self, views: Tensor, validity: Tensor | None = None, iterations: int | None = None
    ) -> list[PassResult]:
        """Every pass in turn, from no occlusion at all; the last one's disparity is the answer."""
        present = torch.ones_like(views) if validity is None else validity

        def find_mask(disparity: Tensor) -> Tensor:
            return occlusion_mask(views, disparity, self.config.decay, present)

        features = self.extract_features(views * present)
        return self.passes(features, present, present, find_mask, iterations)

    def passes(
        self,
        features: Tensor,
        mask: Tensor,
        validity: Tensor | None,
        find_mask: Callable[[Tensor], Tensor],
        iterations: int | None,
    ) -> list[PassResult]:
        """The same from features (b, u, v, c, h, w), the first mask, and how to find the next."""
        passes: list[PassResult] = []
        for _ in range(iterations or self.config.iterations):
            if passes:
                mask = find_mask(passes[-1].disparity)
            cost = self.construct_cost(features, mask, validity)
            disparity, confidence, probability = self.regress(self.aggregation(cost))
            passes.append(PassResult(disparity, confidence, mask, probability))
        return passes

    def extract_features(self, views: Tensor) -> Tensor:
        """(b, u, v, h, w) to (b, u, v, c, h, w)."""
        b, u, v, h, w = views.shape
        pictures = views.reshape(-1, 1, h, w)
        # A camera row at a time stays in the cache; statistics of a batch need all of it at once.
        count = b * u * v if self.features.enter.norm.training else v
        features = [self.features(some) for some in torch.split(pictures, count)]
        return torch.cat(features).contiguous().view(b, u, v, -1, h, w)

    def construct_cost(self, features: Tensor, mask: Tensor, validity: Tensor | None) -> Tensor:
        """Features (b, u, v, c, h, w), masks (b, u, v, h, w) to a volume (b, c, d, h, w).

        Without a validity every sample counts, and features are 0 outside the frame: the authors'
        way. The volume has passed the 1x1x1 convolution that opens the aggregation, because apart
        from training both are one linear map, and the 512 channels between them never exist.
        """
        if self.training:
            squeezed: Tensor = self.aggregation.squeeze(self.full_cost(features, mask, validity))
            return squeezed
        b, u, v, _, h, w = features.shape
        weight, bias = self.fused_weight((u, v))  # (c', u*v*c)
        volume = features.new_empty(b, len(self.config.levels), h * w, len(weight))
        # Strided samples and a matrix product per level take 0.42 s for a tile of 96 px on one
        # core, `full_cost` 1.29 s. A dilated convolution with the fused weight takes 0.83 s, and
        # could not modulate: its samples exist only inside the sum.
        for index, samples in enumerate(self.modulated_samples(features, mask, validity)):
            level = samples.reshape(b, -1, h * w).transpose(1, 2) @ weight.T  # (b, h*w, c')
            volume[:, index] = level if bias is None else level + bias
        return self.aggregation.squeeze.finish(volume.view(b, -1, h, w, len(weight)).movedim(4, 1))

    def modulated_samples(
        self, features: Tensor, mask: Tensor, validity: Tensor | None
    ) -> Iterator[Tensor]:
        """For each level, the samples (b, u, v, c, h, w), times mask, over the mean mask."""
        padded = F.pad(features, (self.config.margin,) * 4)
        relative = self.relative_masks(mask, validity)
        for level in self.config.levels:
            samples = angular_patch(padded, level, self.config.margin)
            yield samples * next(relative)[:, :, :, None]

    def relative_masks(self, mask: Tensor, validity: Tensor | None) -> Iterator[Tensor]:
        """For each level, the masks (b, u, v, h, w) divided by their mean over the views.

        The mean is over the grid of the weights: views beyond a smaller array have mask 0.
        """
        margin, num_views = self.config.margin, self.config.grid[0] * self.config.grid[1]
        present = None if validity is None else F.pad(validity, (margin,) * 4)
        for level in self.config.levels:
            counted = mask if present is None else mask * angular_patch(present, level, margin)
            mean = counted.sum((1, 2), keepdim=True) / num_views
            yield counted / mean.clamp(min=SMALLEST_MEAN)

    def full_cost(self, features: Tensor, mask: Tensor, validity: Tensor | None) -> Tensor:
        """Construct all cost channels (b, c, d, h, w), step by step as in the paper.

        A convolution over the array of views, dilated by the level, modulated sample by sample.
        """
        grid = (features.shape[1], features.shape[2])
        weight = self.central_weight(grid)
        relative = self.relative_masks(mask, validity)
        costs = [
            dilated_convolution(features, weight, level, self.config.margin, next(relative))
            for level in self.config.levels
        ]
        return torch.stack(costs, 2)

    def central_weight(self, grid: tuple[int, int]) -> Tensor:
        """Weights of the central views for a smaller array: (c, 1, u, v)."""
        (full_u, full_v), (u, v) = self.config.grid, grid
        if u > full_u or v > full_v:
            raise ValueError(f"{u}x{v} views, expected at most {full_u}x{full_v}")
        top, left = full_u // 2 - u // 2, full_v // 2 - v // 2
        return self.cost.weight[:, :, top : top + u, left : left + v]

    def fused_weight(self, grid: tuple[int, int]) -> tuple[Tensor, Tensor | None]:
        """Join grouped convolution, 1x1x1 and (outside training) norm in one map: (c', u*v*c)."""
        squeeze, bias = self.aggregation.squeeze.folded()  # (c', cost, 1, 1, 1)
        groups = self.config.matching_channels
        grouped = self.central_weight(grid).reshape(groups, -1, *grid)  # (g, o, u, v)
        by_group = squeeze.reshape(squeeze.shape[0], groups, -1)  # (c', g, o)
        return torch.einsum("cgo,gouv->cuvg", by_group, grouped).flatten(1), bias

    def regress(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Disparity (b, h, w) [px], confidence (b, h, w) and probability (b, d, h, w) (Eq. 9).

        The confidence is the probability within one level of the answer, fading out over the next
        so that it does not jump where the answer passes a level.
        """
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        probability = torch.softmax(logits, 1)
        levels = torch.tensor(self.config.levels, device=logits.device)[:, None, None]
        disparity = (probability * levels).sum(1)
        near = (2 - (levels - disparity[:, None]).abs()).clamp(0, 1)  # (b, d, h, w)
        return disparity, (probability * near).sum(1).clamp(0, 1), probability


def angular_patch(padded: Tensor, level: int, margin: int) -> Tensor:
    """Every view sampled where the centre's pixels go at an integer disparity (Eq. 1 and 2).

    (b, u, v, ..., h + 2*margin, w + 2*margin) to (b, u, v, ..., h, w). View (u, v) is read
    level*(u - uc) rows up and level*(v - vc) columns left. That is linear in u and v, so the patch
    is a strided view of the array and nothing is copied.
    """
    size, strides = list(padded.shape), list(padded.stride())
    step_y, step_x = strides[-2:]
    first_y, first_x = margin + level * (size[1] // 2), margin + level * (size[2] // 2)
    start = padded.storage_offset() + first_y * step_y + first_x * step_x
    strides[1] -= level * step_y
    strides[2] -= level * step_x
    size[-2] -= 2 * margin
    size[-1] -= 2 * margin
    return padded.as_strided(size, strides, start)


def dilated_convolution(
    features: Tensor, weight: Tensor, level: int, margin: int, modulation: Tensor | None = None
) -> Tensor:
    """Shift-and-concat as one convolution (the paper's section 3.2): (b, c', h, w).

    Features (b, u, v, c, h, w) are padded by `margin` and laid side by side as an array of views;
    the kernel (c', 1, u, v) has one tap per view, `level` pixels less than a view apart (Eq. 4).
    A modulation (b, u, v, h, w) multiplies each tap's sample before the sum (Eq. 5).
    """
    b, u, v, c, h, w = features.shape
    array = F.pad(features, (margin,) * 4).permute(0, 3, 1, 4, 2, 5)  # (b, c, u, H, v, W)
    height, width = h + 2 * margin, w + 2 * margin
    array = array.reshape(b, c, u * height, v * width)
    dilation = (height - level, width - level)
    top, left = margin + level * (u // 2), margin + level * (v // 2)  # where view (0, 0) is read
    rows, columns = h + (u - 1) * dilation[0], w + (v - 1) * dilation[1]
    array = array[:, :, top : top + rows, left : left + columns]
    if modulation is None:
        return F.conv2d(array, weight, dilation=dilation, groups=c)
    samples = F.unfold(array, (u, v), dilation=dilation).view(b, c, u * v, h, w)
    samples = (samples * modulation.flatten(1, 2)[:, None]).flatten(1, 2)  # (b, c*u*v, h, w)
    return F.conv2d(samples, weight.reshape(-1, u * v, 1, 1), groups=c)


@torch.no_grad()
def occlusion_mask(
    views: Tensor, disparity: Tensor, decay: float, validity: Tensor | None = None
) -> Tensor:
    """How well each view agrees with the centre at this disparity (Eq. 6 to 8): (b, u, v, h, w).

    Views (b, u, v, h, w), disparity (b, h, w). 1: the same; 0: opposite, outside or not there.
    """
    _, u, v, _, _ = views.shape
    present = torch.ones_like(views) if validity is None else validity
    centre, known = views[:, u // 2, v // 2, None], present[:, u // 2, v // 2, None] > 0
    rows = []
    for index in range(u):  # a camera row at a time bounds the memory
        warped, seen = warp_row(views[:, index], present[:, index], disparity, index - u // 2)
        mask = (1 - (warped - centre).abs()).abs() ** decay
        mask = torch.where(known, mask, 1.0)  # nothing to compare with
        rows.append(mask * (seen > 1 - LARGEST_BLUR))
    mask = torch.stack(rows, 1)
    mask[:, u // 2, v // 2] = present[:, u // 2, v // 2]  # the centre sees all of itself
    return mask


def warp_row(
    views: Tensor, present: Tensor, disparity: Tensor, step_u: int
) -> tuple[Tensor, Tensor]:
    """Sample a camera row (b, v, h, w) and its validity where the centre's pixels went (Eq. 6).

    Bilinear; 0 outside the frame.
    """
    b, v, h, w = views.shape
    steps_v = torch.arange(v, device=views.device).to(disparity)[:, None, None] - v // 2
    y = torch.arange(h, device=views.device).to(disparity)[:, None] - step_u * disparity
    x = torch.arange(w, device=views.device).to(disparity) - steps_v * disparity[:, None]
    where = torch.stack(((2 * x + 1) / w - 1, ((2 * y + 1) / h - 1)[:, None].expand_as(x)), -1)
    pictures = torch.stack((views, present.to(views)), 2).flatten(0, 1)  # (b*v, 2, h, w)
    sampled = F.grid_sample(pictures, where.flatten(0, 1), align_corners=False)
    warped, seen = sampled.view(b, v, 2, h, w).unbind(2)
    return warped, seen
