"""What a network found for a whole picture: tensors on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from oaccdepth.lightfield import LightField


@dataclass
class FoundPass:
    """What one pass gave."""

    disparity: Tensor  # (h, w) [px]
    masks: Tensor | None = None  # (u, v, h, w)


@dataclass
class Found:
    """What all passes gave."""

    passes: list[FoundPass] = field(default_factory=list)
    confidence: Tensor | None = None  # (h, w) in [0, 1]
    evidence: Tensor | None = None  # (l, h, w): probability of the levels


def fill_absent(found: Found, light_field: LightField) -> None:
    """Where the reference view has no picture: what is around, and no confidence."""
    valid = light_field.valid
    if valid is None or valid.ndim == 2:
        return
    is_there = torch.from_numpy(valid[light_field.reference_view])
    if is_there.all():
        return
    for one in found.passes:
        one.disparity = fill_smoothly(one.disparity, is_there)
    if found.confidence is not None:
        found.confidence = found.confidence * is_there


def fill_smoothly(values: Tensor, is_known: Tensor) -> Tensor:
    """Give unknown values (h, w) means of the known ones around: the nearer these, the finer."""
    if is_known.all() or not is_known.any():
        return values
    known = is_known[None, None].to(values)
    mean = [F.avg_pool2d(x, 2, ceil_mode=True) for x in (values * known, known)]
    half = fill_smoothly((mean[0] / mean[1].clamp(min=1e-6))[0, 0], mean[1][0, 0] > 0)
    size = (values.shape[-2], values.shape[-1])
    filled = F.interpolate(half[None, None], size, mode="bilinear", align_corners=False)[0, 0]
    return torch.where(is_known, values, filled)
