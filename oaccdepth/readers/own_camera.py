"""Camera options (--baseline-mm, --focal-px and others) and --crop -> Camera."""

from __future__ import annotations

import math
from dataclasses import replace

from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import Camera
from oaccdepth.options import ReadOptions, declarations
from oaccdepth.readers.cutting import Cut

EQUIVALENT_MM = 36.0  # sensor width of a full-frame camera, assumed if unknown
NAMES = ("baseline_mm", "focal_px", "focal_mm", "sensor_mm", "focus_distance_mm")


def choose_camera(known: Camera | None, options: ReadOptions, larger_side_px: int) -> Camera | None:
    """Return the camera from the files, with the user's options in place of its values."""
    given = {name: value for name in NAMES if (value := getattr(options, name)) is not None}
    if not given:
        return known
    _check_values(given)
    first = next(f"{_flag(name)} {value:g}" for name, value in given.items())
    baseline = given.get("baseline_mm", known.baseline_mm if known else None)
    if baseline is None:
        raise InvalidOption(
            f"{first}: a camera also needs the distance between views. Add --baseline-mm MM."
        )
    sensor = given.get("sensor_mm", known.sensor_mm if known else EQUIVALENT_MM)
    focal = _focal_mm(given, known, sensor / larger_side_px)
    if focal is None:
        raise InvalidOption(
            f"{first}: a camera also needs its focal length. "
            "Add --focal-px PX, or --focal-mm MM with --sensor-mm MM."
        )
    focus = given.get("focus_distance_mm", known.focus_mm if known else 0.0)
    return Camera(baseline, focal, sensor, focus)


def _flag(name: str) -> str:
    return declarations(ReadOptions)[name][0]


def _check_values(given: dict[str, float]) -> None:
    for name, value in given.items():
        is_focus = name == "focus_distance_mm"  # 0: the cameras are parallel
        if not (math.isfinite(value) and (value > 0 or (is_focus and value == 0))):
            expected = "0 or more" if is_focus else "more than 0"
            raise InvalidOption(f"{_flag(name)} {value:g}: expected {expected}.")
    if "focal_px" in given and "focal_mm" in given:
        raise InvalidOption(
            f"--focal-px {given['focal_px']:g}: the focal length is also given by "
            f"--focal-mm {given['focal_mm']:g}. Pass one of the two."
        )


def _focal_mm(given: dict[str, float], known: Camera | None, pitch_mm: float) -> float | None:
    if "focal_px" in given:
        return given["focal_px"] * pitch_mm
    if known is not None:
        return given.get("focal_mm", known.focal_mm)
    return given.get("focal_mm") if "sensor_mm" in given else None


def cropped_camera(camera: Camera | None, cut: Cut | None) -> Camera | None:
    """Return the camera of a cropped view: smaller sensor, shifted centre."""
    if camera is None or cut is None:
        return camera
    pitch = camera.sensor_mm / max(cut.stored)  # mm per stored pixel
    (height, width), (top, left) = cut.part, cut.corner
    return replace(
        camera,
        sensor_mm=pitch * max(cut.part),
        right_mm=camera.right_mm + pitch * (left + width / 2 - cut.stored[1] / 2),
        down_mm=camera.down_mm + pitch * (top + height / 2 - cut.stored[0] / 2),
    )
