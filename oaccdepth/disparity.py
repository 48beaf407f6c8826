"""DisparityMap: disparity of the centre view, its confidence, and how it was made. No files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oaccdepth.lightfield import Camera, FloatArray


@dataclass(frozen=True)
class Provenance:
    """How a disparity map was made; `run.json` holds it."""

    version: str = ""
    weights: str = ""  # name
    weights_sha256: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    device: str = ""
    seconds: dict[str, float] = field(default_factory=dict)  # per stage; each waits for the device
    input: dict[str, Any] = field(default_factory=dict)  # source, format, grid, resolution, notes
    disparity_range: tuple[float, float] | None = None  # disparities that were searched [px]
    range_source: str = ""  # where it comes from: option, file, weights or estimated
    notes: tuple[str, ...] = ()
    batch: dict[str, Any] = field(default_factory=dict)  # tells `batch` that the scene is done


@dataclass(frozen=True, eq=False)
class Pass:
    """The result of one pass of the network."""

    disparity: FloatArray  # (h, w) [px]
    masks: FloatArray | None = None  # (u, v, h, w) in [0, 1]: implied by its disparity


@dataclass(frozen=True, eq=False)
class DisparityMap:
    """Disparity of the centre view: shift between neighbouring views [px]; nearer is larger."""

    disparity: FloatArray  # (h, w) [px]
    confidence: FloatArray  # (h, w) in [0, 1]
    masks: FloatArray | None = None  # (u, v, h, w): 1 seen, 0 hidden, outside or missing
    passes: tuple[Pass, ...] = ()  # every pass, if kept
    evidence: FloatArray | None = None  # (d, h, w) probability over `levels`, if kept
    levels: tuple[float, ...] = ()  # disparities [px] of `evidence`
    camera: Camera | None = None
    made_with: Provenance = field(default_factory=Provenance)

    def per_step(self, factor: float, camera: Camera | None) -> DisparityMap:
        """The same map for cameras `factor` times as far apart."""
        made, ends = self.made_with, self.made_with.disparity_range
        scaled = None if ends is None else (ends[0] * factor, ends[1] * factor)
        scale = np.float32(factor)
        return replace(
            self,
            disparity=self.disparity * scale,
            passes=tuple(replace(one, disparity=one.disparity * scale) for one in self.passes),
            levels=tuple(level * factor for level in self.levels),
            camera=camera,
            made_with=replace(made, disparity_range=scaled),
        )

    def depth_mm(self) -> FloatArray | None:
        """Depth along the camera's axis [mm], or None if the camera is unknown."""
        if self.camera is None:
            return None
        return self.camera.depth_mm(self.disparity, max(self.disparity.shape))
