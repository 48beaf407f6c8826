"""A disparity map and its light field -> one HTML page that works from disk, offline."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidOption
from oaccdepth.files.atomic import check_file, write_bytes
from oaccdepth.files.shareable import shareable
from oaccdepth.lightfield import Camera, FloatArray, LightField
from oaccdepth.looking.viewer.pack import Payload, pack_bytes, pack_result, pack_views
from oaccdepth.looking.viewer.page import assemble, overhead
from oaccdepth.options import COLORMAPS
from oaccdepth.writers.pictures import colours_of, difference_colours

logger = logging.getLogger(__name__)

PAGE_BYTES = 11_800_000  # view quality is reduced to fit


def write_viewer(
    path: Path | str,
    light_field: LightField | None,
    result: DisparityMap,
    *,
    truth: FloatArray | None = None,
    overwrite: bool = False,
) -> None:
    """Write the page.

    Without a light field, the page shows only disparity, confidence and the point cloud. `truth`,
    (h, w) [px], adds an error map; NaN where it is unknown.
    """
    path = Path(path)
    check_file(path, overwrite)
    _check_sizes(light_field, result, truth)
    payload = Payload()
    if light_field is not None and light_field.step != 1:  # the page moves views by their number
        step, light_field = light_field.step, light_field.in_own_steps()
        result = result.per_step(step, light_field.camera)
        truth = None if truth is None else truth * np.float32(step)
        payload.notes.append(f"Disparities here are per {step:g} steps: between the views used.")
    tables = [*map(colours_of, COLORMAPS), difference_colours()]
    payload.blocks["colours"] = pack_bytes(np.stack(tables))  # (n, 256, 3)
    pack_result(payload, result, truth)
    if light_field is not None:
        pack_views(payload, light_field, PAGE_BYTES - overhead() - payload.size - 20_000)
    scene = _scene_name(light_field, result)
    meta = {
        **payload.meta,
        "scene": scene,
        "colours": [*COLORMAPS, "difference"],
        "notes": payload.notes,
    }
    meta |= _facts(light_field, result)
    text = assemble(meta, payload.blocks, f"{scene} · oaccdepth")
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # names may hold invalid Unicode
    logger.info("%s: %.1f MB. %s", path, len(text) / 1e6, " ".join(payload.notes))


def _check_sizes(
    light_field: LightField | None, result: DisparityMap, truth: FloatArray | None
) -> None:
    size = result.disparity.shape
    others = {
        "confidence": result.confidence.shape,
        "views": light_field.resolution if light_field is not None else size,
        "masks": result.masks.shape[2:] if result.masks is not None else size,
        "evidence": result.evidence.shape[1:] if result.evidence is not None else size,
        "ground truth": truth.shape if truth is not None else size,
    }
    for name, other in others.items():
        if other != size:
            raise InvalidOption(
                f"{name}: {other[1]}x{other[0]} px, but the disparity map has "
                f"{size[1]}x{size[0]}. They must belong to the same light field."
            )


def _scene_name(light_field: LightField | None, result: DisparityMap) -> Any:
    source = light_field.source if light_field is not None else ""
    name = source or str(result.made_with.input.get("source") or "")
    return shareable(name) or "light field"


def _facts(light_field: LightField | None, result: DisparityMap) -> dict[str, Any]:
    """What the page says about how it was made; names only, no paths."""
    made = result.made_with
    camera = result.camera or (light_field.camera if light_field is not None else None)
    grid = light_field.grid if light_field is not None else made.input.get("grid")
    return {
        "grid": [int(count) for count in grid] if grid else None,
        "camera": _camera(camera),
        "searched": list(made.disparity_range) if made.disparity_range else None,
        "made": {
            "version": made.version,
            "weights": shareable(made.weights),
            "device": made.device,
            "seconds": {stage: round(float(took), 3) for stage, took in made.seconds.items()},
        },
        "remarks": shareable(
            list(dict.fromkeys([*(light_field.notes if light_field else ()), *made.notes]))
        ),
    }


def _camera(camera: Camera | None) -> dict[str, float] | None:
    if camera is None:
        return None
    return {
        "baseline": camera.baseline_mm,
        "focal": camera.focal_mm,
        "sensor": camera.sensor_mm,
        "focus": camera.focus_mm,
    }
