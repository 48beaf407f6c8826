"""Scenes with ground truth, whole, in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from oaccdepth.errors import InvalidLightField
from oaccdepth.lightfield import Array, BoolArray, FloatArray, as_float
from oaccdepth.readers import find, read, read_ground_truth

VALID_MASK = "valid_mask.png"


@dataclass(frozen=True, eq=False)
class Scene:
    """A light field with ground truth."""

    name: str
    views: Array  # (u, v, h, w, 3) uint8
    truth: FloatArray  # (h, w) [px]
    valid: BoolArray  # (h, w): where the truth may be learnt


def load_scenes(root: Path) -> list[Scene]:
    """Every scene with ground truth below `root`, whole, in memory."""
    scenes = [scene for path in find(root) if (scene := load_scene(path)) is not None]
    if not scenes:
        raise InvalidLightField(
            f"{root}: no scene with ground truth. Expected folders in the HCI layout: "
            "input_Cam000.png …, gt_disp_lowres.pfm."
        )
    return scenes


def load_scene(path: Path) -> Scene | None:
    """One scene, or None if it has no ground truth."""
    truth = read_ground_truth(path)
    if truth is None:
        return None
    light_field = read(path)
    views = light_field.views
    if views.dtype != np.uint8:
        views = (as_float(views) * 255).round().astype(np.uint8)
    if views.shape[-1] == 1:
        views = np.repeat(views, 3, axis=-1)
    valid = np.isfinite(truth) & read_valid_mask(path, truth.shape)
    return Scene(path.name, views, np.where(valid, truth, 0).astype(np.float32), valid)


def read_valid_mask(path: Path, shape: tuple[int, ...]) -> BoolArray:
    """Where the scene's reflections and glass are not; an all-zero file means: everywhere."""
    folder = path if path.is_dir() else path.parent
    picture = cv2.imread(str(folder / VALID_MASK)) if (folder / VALID_MASK).exists() else None
    if picture is None or picture.shape[:2] != tuple(shape) or not picture.any():
        return np.ones(shape, dtype=bool)
    return np.asarray(picture[:, :, 1] > 0)
