"""Disparity maps and occlusion masks from light fields: `read`, `estimate`, `write`, `process`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap
    from oaccdepth.errors import OaccDepthError
    from oaccdepth.estimation.inference import estimate
    from oaccdepth.lightfield import Camera, LightField
    from oaccdepth.options import EstimateOptions, ReadOptions, WriteOptions
    from oaccdepth.pipeline import process
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

_HOMES = {
    "Camera": "lightfield",
    "DisparityMap": "disparity",
    "EstimateOptions": "options",
    "LightField": "lightfield",
    "OaccDepthError": "errors",
    "ReadOptions": "options",
    "WriteOptions": "options",
    "__version__": "version",
    "estimate": "estimation.inference",
    "process": "pipeline",
    "read": "readers",
    "write": "writers.results",
}


def __getattr__(name: str) -> Any:
    """Import each name on first use: NumPy takes a while to import, and torch takes seconds."""
    if name not in _HOMES:
        raise AttributeError(f"module 'oaccdepth' has no attribute {name!r}")
    return getattr(import_module(f"oaccdepth.{_HOMES[name]}"), name)
