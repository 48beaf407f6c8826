"""A disparity map as points in space: arrays in, arrays or one PLY file out. No meshes.

Two conventions, both with x to the right, y up and z towards the viewer, so that every program
opens the cloud upright and facing you:

- camera known: millimetres, the centre camera at the origin, looking along -z. A pixel is
  `sensor_mm / larger side` wide, as in the conversion from disparity to depth, so the points
  project back onto the pixels they came from, also in pictures that are not square.
- camera not known: x and y in pixels from the middle of the picture, z = disparity x larger
  side / 16.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidOption
from oaccdepth.files.atomic import replacing
from oaccdepth.lightfield import Array, FloatArray, as_float

RELIEF = 1 / 16  # of the larger side, per pixel of disparity: the depth of a cloud without a camera


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
        cloud[..., 0] = right
        cloud[..., 1] = up[:, None]
        cloud[..., 2] = result.disparity * (larger_side * RELIEF)
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


def write_ply(
    path: Path,
    result: DisparityMap,
    colour: Array | None = None,
    *,
    min_confidence: float = 0.0,
) -> int:
    """Write the cloud as binary PLY and return how many points it has.

    Parameters
    ----------
    colour
        (h, w, c) picture of the centre view, in any form that a light field holds; without it the
        points have no colour.
    min_confidence
        Points of lower confidence are left out; so is everything without a finite place.
    """
    cloud = points(result)
    keep = np.isfinite(cloud[..., 2]) & (result.confidence >= min_confidence)
    rows = _vertices(cloud, result, colour)[keep]
    header = _header(len(rows), rows.dtype, metric=result.camera is not None)
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


def _header(count: int, dtype: np.dtype[np.generic], *, metric: bool) -> str:
    unit = (
        "comment unit: millimetre; the centre camera is at the origin and looks along -z"
        if metric
        else "comment unit: pixel from the middle of the picture; z is disparity x larger side / 16"
    )
    properties = [
        f"property {PLY_TYPES[field.kind]} {name}"
        for name, (field, *_) in (dtype.fields or {}).items()
    ]
    lines = [
        "ply",
        "format binary_little_endian 1.0",
        "comment made by oaccdepth",
        "comment axes: x right, y up, z towards the viewer",
        unit,
        f"element vertex {count}",
        *properties,
        "end_header",
    ]
    return "\n".join(lines) + "\n"
