"""Disparity maps and occlusion masks from light fields: `read`, `estimate`, `write`."""

from typing import Any

from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import OaccDepthError
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.options import EstimateOptions, ReadOptions
from oaccdepth.readers import read
from oaccdepth.version import __version__
from oaccdepth.writers import write

__all__ = [
    "Camera",
    "DisparityMap",
    "EstimateOptions",
    "LightField",
    "OaccDepthError",
    "ReadOptions",
    "__version__",
    "estimate",
    "read",
    "write",
]


def __getattr__(name: str) -> Any:
    """Load `estimate` on first use: importing torch takes seconds, and `--help` must not."""
    if name == "estimate":
        from oaccdepth.estimation.inference import estimate

        return estimate
    raise AttributeError(f"module 'oaccdepth' has no attribute {name!r}")
