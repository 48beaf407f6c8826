"""parameters.cfg of an HCI scene <-> grid, camera and disparity range."""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from oaccdepth.errors import UnreadableFile
from oaccdepth.files.fields import BadField, as_number
from oaccdepth.files.regular import read_small
from oaccdepth.lightfield import Camera
from oaccdepth.options import Range
from oaccdepth.readers.grid import LARGEST_GRID

FILE_NAME = "parameters.cfg"
CAMERA_KEYS = (
    ("intrinsics", "focal_length_mm"),
    ("intrinsics", "sensor_size_mm"),
    ("extrinsics", "baseline_mm"),
    ("extrinsics", "focus_distance_m"),
)
MOST_TEXT = 1 << 20  # bytes
BLANKS = re.compile(r"[^\S\n]+")  # configparser would need hours for a long run of blanks
WAY_OUT = "Restore it, or remove the file to read the views without a camera."


@dataclass(frozen=True)
class Parameters:
    """Contents of parameters.cfg; camera and range are None if they are not given."""

    shape: tuple[int, int]  # num_cams_y, num_cams_x
    camera: Camera | None = None
    disparity_range: Range | None = None
    is_ours: bool = False  # written by `oaccdepth convert`, so in our axis convention
    channels: int | None = None  # of the light field, if the pictures do not show it


def read_parameters(path: Path) -> Parameters:
    """Read parameters.cfg; raise if it is damaged."""
    config = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        config.read_string(BLANKS.sub(" ", read_small(path, MOST_TEXT).decode("utf-8-sig")))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise UnreadableFile(f"{path}: not a readable configuration file. {WAY_OUT}") from error
    shape = (
        _whole(config, path, "extrinsics", "num_cams_y"),
        _whole(config, path, "extrinsics", "num_cams_x"),
    )
    return Parameters(
        shape,
        _camera(config, path),
        _range(config, path),
        config.get("meta", "written_by", fallback="") == "oaccdepth",
        1 if config.get("meta", "channels", fallback="") == "1" else None,
    )


def _camera(config: configparser.ConfigParser, path: Path) -> Camera | None:
    if not any(config.has_option(section, key) for section, key in CAMERA_KEYS):
        return None
    focal, sensor, baseline, focus_m = (
        _number(config, path, section, key) for section, key in CAMERA_KEYS
    )
    for (section, key), value in zip(CAMERA_KEYS, (focal, sensor, baseline, focus_m), strict=True):
        if value < 0 or (value == 0 and key != "focus_distance_m"):
            raise UnreadableFile(
                f"{path}: {key} = {value} in [{section}], expected more than 0. {WAY_OUT}"
            )
    return Camera(float(baseline), float(focal), float(sensor), float(focus_m.scaleb(3)))


def _range(config: configparser.ConfigParser, path: Path) -> Range | None:
    if not (config.has_option("meta", "disp_min") or config.has_option("meta", "disp_max")):
        return None
    low, high = (float(_number(config, path, "meta", f"disp_{end}")) for end in ("min", "max"))
    if low > high:
        raise UnreadableFile(f"{path}: disp_min = {low:g} exceeds disp_max = {high:g}. {WAY_OUT}")
    return low, high


def _number(config: configparser.ConfigParser, path: Path, section: str, key: str) -> Decimal:
    text = config.get(section, key, fallback=None)
    if text is None:
        raise UnreadableFile(f"{path}: has no {key} in [{section}]. {WAY_OUT}")
    shown = f"{path}: {key} = {text[:40]} in [{section}]"
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise UnreadableFile(f"{shown}, expected a number. {WAY_OUT}") from error
    try:
        as_number(text)
    except BadField as error:
        raise UnreadableFile(f"{shown} makes no sense. {WAY_OUT}") from error
    return value


def _whole(config: configparser.ConfigParser, path: Path, section: str, key: str) -> int:
    value = _number(config, path, section, key)
    if value != int(value) or not 1 <= value <= LARGEST_GRID:
        raise UnreadableFile(
            f"{path}: {key} = {value} in [{section}], expected a number of views. {WAY_OUT}"
        )
    return int(value)


def format_parameters(
    shape: tuple[int, int],
    resolution: tuple[int, int],
    channels: int,
    camera: Camera | None,
    disparity_range: Range | None,
    scene: str,
) -> str:
    """Format the text of parameters.cfg for a light field that we write."""
    rows, columns = shape
    height, width = resolution
    intrinsics = {"image_resolution_x_px": width, "image_resolution_y_px": height}
    extrinsics: dict[str, object] = {"num_cams_x": columns, "num_cams_y": rows}
    meta: dict[str, object] = {"scene": scene, "written_by": "oaccdepth", "channels": channels}
    lines = ["[intrinsics]"]
    if camera is not None:
        lines.append(f"focal_length_mm = {camera.focal_mm!r}")
        lines.append(f"sensor_size_mm = {camera.sensor_mm!r}")
        extrinsics["baseline_mm"] = repr(camera.baseline_mm)
        # Decimal, so that converting to metres and back is exact.
        extrinsics["focus_distance_m"] = Decimal(repr(camera.focus_mm)).scaleb(-3)
    if disparity_range is not None:
        meta["disp_min"], meta["disp_max"] = (repr(float(end)) for end in disparity_range)
    lines += [f"{key} = {value}" for key, value in intrinsics.items()]
    lines += ["", "[extrinsics]", *(f"{key} = {value}" for key, value in extrinsics.items())]
    lines += ["", "[meta]", *(f"{key} = {value}" for key, value in meta.items())]
    return "\n".join(lines) + "\n"
