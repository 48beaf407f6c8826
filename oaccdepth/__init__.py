"""Disparity maps and occlusion masks from light fields: `read`, `estimate`, `write`, `process`."""

from typing import Any

from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import OaccDepthError
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.options import EstimateOptions, ReadOptions, WriteOptions
from oaccdepth.readers import read
from oaccdepth.version import __version__
from oaccdepth.writers.results import write

__all__ = [
    "Camera",
    "DisparityMap",
    "EstimateOptions",
    "LightField",
    "OaccDepthError",
    "ReadOptions",
    "WriteOptions",
    "__version__",
    "estimate",
    "process",
    "read",
    "write",
]


def __getattr__(name: str) -> Any:
    """Load these on first use: importing torch takes seconds, and `--help` must not."""
    if name == "process":
        from oaccdepth.pipeline import process

        return process
    if name == "estimate":
        from oaccdepth.estimation.inference import estimate

        return estimate
    raise AttributeError(f"module 'oaccdepth' has no attribute {name!r}")
