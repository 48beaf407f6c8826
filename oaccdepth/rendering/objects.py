"""Folders of scanned objects -> meshes: OBJ files with a texture, or packed .npz and .jpg pairs."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from oaccdepth.lightfield import FloatArray
from oaccdepth.rendering.meshes import IntArray, Material, Mesh, Texture


def find_objects(folder: Path) -> list[Path]:
    """Files of the objects in a folder, in order."""
    return sorted(path for path in folder.iterdir() if path.suffix == ".npz")


def read_object(path: Path) -> Mesh:
    """Read an object, turned so that its up is ours, within [-1, 1]."""
    with np.load(path) as file:
        points = file["vertices"].astype(np.float32) / 32767
        places = file["uv"].astype(np.float32) / 65535
        faces, place_faces = file["faces"].astype(np.int64), file["uv_faces"].astype(np.int64)
    picture = cv2.imread(str(path.with_suffix(".jpg")))
    assert picture is not None
    texture = Texture(picture[..., ::-1].astype(np.float32) / 255)
    places[:, 1] = 1 - places[:, 1]
    points, faces = _welded(points, faces)
    return Mesh(points, faces, places, place_faces, Material(texture))


def _welded(points: FloatArray, faces: IntArray) -> tuple[FloatArray, IntArray]:
    """Join points at the same place, so that normals are smooth over the seams of a texture."""
    distinct, number = np.unique(points, axis=0, return_inverse=True)
    return distinct, number.reshape(-1)[faces]
