"""What a network found for a whole picture: tensors on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from oaccdepth.lightfield import LightField

# Confidence where nothing is known (black, plain, lost in noise): of a pixel, and the mean of a
# window. What is beside such a window is continued into it only if it is sure.
UNKNOWN, UNKNOWN_AROUND, SURE_BESIDE = 0.02, 0.1, 0.8
AROUND = 9  # px: side of the window
BESIDE = 16  # px: confidence fades that slowly, by half every 8 px


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


def fill_unknown(found: Found) -> bool:
    """Where the last pass knows nothing: what is around. False if it knows nothing at all."""
    assert found.confidence is not None
    is_known, is_continued = find_known(found.confidence)
    last = found.passes[-1]
    filled = fill_smoothly(last.disparity, is_continued if is_continued.any() else is_known)
    last.disparity = torch.where(is_known, last.disparity, filled)
    return bool(is_known.any())


def find_known(confidence: Tensor) -> tuple[Tensor, Tensor]:
    """Where the views say something (h, w), and which of that is continued where they do not."""
    half = AROUND // 2
    sure = confidence[None, None]
    mean = F.avg_pool2d(sure, AROUND, 1, half, count_include_pad=False)
    lost = (mean < UNKNOWN_AROUND).to(sure)
    columns = F.max_pool2d(lost, (2 * BESIDE + 1, 1), 1, (BESIDE, 0))
    beside = F.max_pool2d(columns, (1, 2 * BESIDE + 1), 1, (0, BESIDE)) > 0
    known = (sure >= UNKNOWN) & (lost == 0)
    continued = known & ~(beside & (sure < SURE_BESIDE))
    return known[0, 0], continued[0, 0]


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
