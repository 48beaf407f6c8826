"""What a network found for a whole picture: tensors on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


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
