"""A disparity map as points in space: arrays in, arrays or one PLY file out. No meshes.

Two conventions, both with x to the right, y up and z towards the viewer, so that every program
opens the cloud upright and facing you. In both, every point lies on the ray of its pixel, so the
cloud seen from the centre camera is the picture; the viewer's 3D does the same (`space.js`).

- camera known: millimetres, the centre camera at the origin, looking along -z. A pixel is
  `sensor_mm / larger side` wide, as in the conversion from disparity to depth, so the points
  project back onto the pixels they came from, also in pictures that are not square.
- camera not known: pixels. The median disparity lies at z = 0, where a pixel is one unit wide, and
  is seen from `1.62 x larger side` away: under an angle of 0.6 rad. There one pixel of disparity
  is a sixteenth of the larger side; farther away it is more, so that planes stay plane.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidOption
from oaccdepth.files.atomic import replacing
from oaccdepth.lightfield import Array, FloatArray, as_float

DoubleArray = NDArray[np.float64]

# Without a camera, as in the viewer's space.js.
ANGLE = 0.6  # rad: the angle that the larger side is seen under
RELIEF = 1 / 16  # of the larger side: how much nearer one pixel of disparity is
FARTHEST = 5.0  # the farthest point lies at most so many times as far away as the middle


def points(result: DisparityMap) -> FloatArray:
    """A point for every pixel, (h, w, 3): x right, y up, z towards the viewer.

    Millimetres if the camera is known, otherwise pixels (see the module). NaN where the disparity
    is not finite or lies beyond infinity.
    """
    height, width = result.disparity.shape
    larger_side = max(height, width)
    right = np.arange(width, dtype=np.float64) - (width - 1) / 2  # px from the middle
    up = (height - 1) / 2 - np.arange(height, dtype=np.float64)
    depth = result.depth_mm()  # (h, w) [mm]
    cloud = np.empty((height, width, 3))
    if depth is None or result.camera is None:
        distance = _distance(larger_side)
        reach = _relative_depth(result.disparity, RELIEF * larger_side / distance)
        cloud[..., 2] = (1 - reach) * distance
        cloud[..., 0] = right * reach
        cloud[..., 1] = up[:, None] * reach
    else:
        pitch = result.camera.sensor_mm / larger_side  # mm per pixel
        depth[~np.isfinite(depth)] = np.nan
        reach = depth.astype(np.float64) * (pitch / result.camera.focal_mm)  # mm per pixel
        # in a part that was cut out, the optical axis is not in the middle
        cloud[..., 0] = (right + result.camera.right_mm / pitch) * reach
        cloud[..., 1] = (up[:, None] - result.camera.down_mm / pitch) * reach
        cloud[..., 2] = -depth
    cloud[~np.isfinite(cloud[..., 2])] = np.nan
    return cloud.astype(np.float32)


def _distance(larger_side: int) -> float:
    """Distance to the middle of a cloud whose camera is unknown [px]."""
    return larger_side / (2 * math.tan(ANGLE / 2))


def _relative_depth(disparity: FloatArray, slope: float) -> DoubleArray:
    """Depth over the depth of the median disparity; `slope` is its change per pixel there."""
    known = np.sort(disparity[np.isfinite(disparity)])
    if not len(known):
        return np.full(disparity.shape, np.nan)
    median, lowest = float(known[len(known) // 2]), float(known[0])
    if median > lowest:
        slope = min(slope, (1 - 1 / FARTHEST) / (median - lowest))
    return 1 / (1 + slope * (disparity.astype(np.float64) - median))


def write_ply(path: Path, result: DisparityMap, colour: Array | None = None) -> int:
    """Write the cloud as binary PLY and return how many points it has: those with a finite place.

    `colour` is a picture (h, w, c) of the centre view, in any form that a light field holds;
    without it the points have no colour.
    """
    cloud = points(result)
    rows = _vertices(cloud, result, colour)[np.isfinite(cloud[..., 2])]
    header = _header(len(rows), rows.dtype, _describe_unit(result))
    with replacing(path) as temporary:
        temporary.write_bytes(header.encode("ascii") + rows.tobytes())
    return len(rows)


def _vertices(cloud: FloatArray, result: DisparityMap, colour: Array | None) -> Array:
    """One record per pixel, (h, w), in the order in which they stand in the file."""
    fields: list[tuple[str, str]] = [("x", "<f4"), ("y", "<f4"), ("z", "<f4")]
    if colour is not None:
        fields += [("red", "u1"), ("green", "u1"), ("blue", "u1")]
    fields += [("confidence", "<f4")]
    rows = np.empty(result.disparity.shape, dtype=fields)
    for axis, name in enumerate("xyz"):
        rows[name] = cloud[..., axis]
    rows["confidence"] = result.confidence
    if colour is not None:
        height, width = result.disparity.shape
        if colour.shape[:2] != (height, width):
            raise InvalidOption(
                f"the picture has {colour.shape[1]}x{colour.shape[0]} pixels, "
                f"the disparity map {width}x{height}: expected the same size."
            )
        values = np.rint(as_float(colour) * 255).astype(np.uint8)
        for channel, name in enumerate(("red", "green", "blue")):
            # Grey has one channel, which is taken thrice.
            rows[name] = values[..., min(channel, colour.shape[-1] - 1)]
    return rows


PLY_TYPES = {"f": "float", "u": "uchar"}


def _describe_unit(result: DisparityMap) -> str:
    if result.camera is not None:
        return "unit: millimetre; the centre camera is at the origin and looks along -z"
    distance = _distance(max(result.disparity.shape))
    return (
        "unit: pixel at the median disparity, z = 0; "
        f"the centre camera is at z = {distance:.1f} and looks along -z"
    )


def _header(count: int, dtype: np.dtype[np.generic], unit: str) -> str:
    properties = [
        f"property {PLY_TYPES[field.kind]} {name}"
        for name, (field, *_) in (dtype.fields or {}).items()
    ]
    lines = [
        "ply",
        "format binary_little_endian 1.0",
        "comment made by oaccdepth",
        "comment axes: x right, y up, z towards the viewer",
        f"comment {unit}",
        f"element vertex {count}",
        *properties,
        "end_header",
    ]
    return "\n".join(lines) + "\n"
