"""Scenes with ground truth, unpacked to be cut at random."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oaccdepth.errors import InvalidLightField
from oaccdepth.files.atomic import told
from oaccdepth.files.regular import read_small, walk
from oaccdepth.lightfield import Array, BoolArray, FloatArray, as_float
from oaccdepth.readers import find, read, read_ground_truth
from oaccdepth.readers.decoding import decode

VALID_MASK = "valid_mask.png"
MOST_LICENCE = 1 << 20  # bytes


@dataclass(frozen=True, eq=False)
class Scene:
    """A light field with ground truth."""

    name: str
    views: Array  # (u, v, h, w, 3) uint8, mapped from a file
    truth: FloatArray  # (h, w) [px]
    valid: BoolArray  # (h, w): where the truth may be learnt


def load_scenes(root: Path) -> list[Scene]:
    """Every scene with ground truth below `root`."""
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
    return Scene(path.name, mapped(views), np.where(valid, truth, 0).astype(np.float32), valid)


def mapped(views: Array) -> Array:
    """The same from a temporary file: a hundred scenes would fill the memory of most machines."""
    with told(Path(tempfile.gettempdir())), tempfile.TemporaryFile() as file:
        file.write(np.ascontiguousarray(views).data)
        file.flush()
        return np.memmap(file, views.dtype, "r", shape=views.shape)  # which keeps the file alive


def read_valid_mask(path: Path, shape: tuple[int, ...]) -> BoolArray:
    """Where the scene has neither reflections nor glass; an all-zero file means everywhere."""
    file = (path if path.is_dir() else path.parent) / VALID_MASK
    if not os.path.lexists(file):
        return np.ones(shape, dtype=bool)
    picture = np.atleast_3d(decode(file))
    colours = picture[:, :, : 1 if picture.shape[2] < 3 else 3]  # without alpha
    if picture.shape[:2] != tuple(shape) or not colours.any():
        return np.ones(shape, dtype=bool)
    return np.asarray(colours[:, :, colours.shape[2] // 2], dtype=bool)


def describe_data(root: Path, scenes: Sequence[Scene]) -> dict[str, str]:
    """What weights were trained on, and the licence that lies beside it."""
    names = ", ".join(scene.name for scene in scenes)
    return {"data": names, "licence": find_licence(root) or "not stated"}


def find_licence(root: Path) -> str:
    """The first licence found in the data, at any depth; empty if there is none."""
    named = sorted(path for path in walk(root) if path.name.lower().startswith("licen"))
    texts = (_read_licence(path) for path in named)
    return next((text for text in texts if text), "")


def _read_licence(path: Path) -> str:
    try:
        return read_small(path, MOST_LICENCE).decode(errors="replace").strip()
    except OSError:  # a folder, a pipe, or far longer than any licence
        return ""
