"""A folder written by `writers.write` -> DisparityMap: the way back, for looking at it again."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from oaccdepth.disparity import DisparityMap, Provenance
from oaccdepth.errors import UnreadableFile
from oaccdepth.files.pfm import read_pfm
from oaccdepth.lightfield import Camera, FloatArray
from oaccdepth.writers import RUN_FILE


def is_result(path: Path) -> bool:
    """Whether this is a folder with a finished result."""
    return (path / RUN_FILE).is_file() and (path / "disparity.pfm").is_file()


def read_result(folder: Path) -> DisparityMap:
    """Read disparity, confidence and how they were made; masks and passes are not kept in files."""
    run = _read_run(folder / RUN_FILE)
    disparity = read_pfm(folder / "disparity.pfm")
    return DisparityMap(
        disparity=disparity,
        confidence=_read_confidence(folder / "confidence.png", disparity.shape),
        camera=_camera(run.get("result")),
        made_with=_provenance(run),
    )


def _read_run(path: Path) -> dict[str, Any]:
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{path}: not readable as JSON ({error}). Estimate again.") from error
    if not isinstance(run, dict):
        raise UnreadableFile(f"{path}: not what `estimate` writes. Estimate again.")
    return run


def _read_confidence(path: Path, shape: tuple[int, ...]) -> FloatArray:
    stored = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) if path.is_file() else None
    if stored is None or stored.shape != shape:
        raise UnreadableFile(
            f"{path}: expected an 8-bit picture of {shape[1]}x{shape[0]} px. Estimate again."
        )
    return np.asarray(stored, dtype=np.float32) / np.float32(255)


def _camera(result: Any) -> Camera | None:
    known = result.get("camera") if isinstance(result, dict) else None
    names = {field.name for field in fields(Camera)}
    needed = {field.name for field in fields(Camera) if field.default is MISSING}
    if not isinstance(known, dict) or not needed <= set(known) <= names:
        return None
    return Camera(**{name: float(value) for name, value in known.items()})


def _provenance(run: dict[str, Any]) -> Provenance:
    names = {field.name for field in fields(Provenance)}
    known = {name: value for name, value in run.items() if name in names and value is not None}
    for name in ("notes", "disparity_range"):
        if name in known:
            known[name] = tuple(known[name])
    return Provenance(**known)
