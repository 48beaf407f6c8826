"""Folders of objects -> meshes: OBJ files with textures, or pairs of .npz and .jpg.

An object is a list of meshes, one per material, within [-1, 1], upright along the third axis.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from oaccdepth.errors import InvalidOption, UnreadableFile
from oaccdepth.files.regular import is_regular, walk
from oaccdepth.lightfield import FloatArray, as_float
from oaccdepth.readers.arrays import read_members
from oaccdepth.readers.decoding import decode
from oaccdepth.rendering.meshes import IntArray, Material, Mesh, Texture
from oaccdepth.rendering.wavefront import Paint, Part, read_obj

logger = logging.getLogger(__name__)

MOST_TRIANGLES = 500_000  # of an object; a scene has a dozen of them
FARTHEST = 1e9  # of a point or texture place: float32 has room to square it
SMALLEST_AREA = 1e-30  # of a triangle: below that it cannot be scaled up
MOST_TEXELS = 2048  # a side; a larger texture is scaled down
PACKED = ("vertices", "uv", "faces", "uv_faces")  # arrays of an .npz file
PACKED_TEXTURES = (".jpg", ".png")
# Where the textures of an OBJ file are: beside it, or as in Google Scanned Objects.
TEXTURE_FOLDERS = (".", "../materials/textures", "textures", "../textures")

Object = list[Mesh]


def find_objects(folder: Path) -> list[Path]:
    """Files of the objects at any depth of a folder, in order."""
    if not folder.is_dir():
        raise InvalidOption(f"--objects {folder}: no such folder.")
    found = sorted(path for path in walk(folder) if _is_object(path))
    if not found:
        raise InvalidOption(
            f"--objects {folder}: no objects in it. "
            "Expected .obj files with textures, or pairs of .npz and .jpg."
        )
    return found


def _is_object(path: Path) -> bool:
    return path.suffix.lower() in (".obj", ".npz") and is_regular(path)


def read_object(path: Path) -> Object:
    """Read an object and bring it to the common size."""
    parts = read_obj(path) if path.suffix.lower() == ".obj" else [_read_packed(path)]
    count = sum(len(part.faces) for part in parts)
    if count > MOST_TRIANGLES:
        raise UnreadableFile(
            f"{path}: has {count} triangles, more than {MOST_TRIANGLES}. "
            "Simplify the mesh, or take it out of the folder."
        )
    parts = _without_degenerate(path, parts)
    used = np.concatenate([part.points[part.faces].reshape(-1, 3) for part in parts])
    low, high = used.min(axis=0), used.max(axis=0)
    middle, scale = (low + high) / 2, 2 / float((high - low).max())
    return [_mesh(path, part, middle, scale) for part in parts]


def _read_packed(path: Path) -> Part:
    """Read an .npz file with int16 points, uint16 texture places, faces and their places."""
    try:
        points, places, faces, place_faces = read_members(path, PACKED)
        if not _fit(points, faces, 3) or not _fit(places, place_faces, 2):
            raise ValueError("arrays do not fit together")
        if len(faces) != len(place_faces):
            raise ValueError("faces and uv_faces differ in length")
    except (OSError, ValueError) as error:
        raise UnreadableFile(
            f"{path}: is no packed mesh, expected {', '.join(PACKED)}. See docs/rendering.md."
        ) from error
    return Part(
        points.astype(np.float32) / np.float32(32767),
        faces.astype(np.int64),
        places.astype(np.float32) / np.float32(65535),
        place_faces.astype(np.int64),
        Paint(texture=_packed_texture(path)),
    )


def _fit(points: Any, faces: Any, axes: int) -> bool:
    return bool(
        points.ndim == faces.ndim == 2
        and points.shape[1] == axes
        and faces.shape[1] == 3
        and len(faces) > 0
        and faces.min() >= 0
        and faces.max() < len(points)
    )


def _packed_texture(path: Path) -> str:
    there = [path.stem + end for end in PACKED_TEXTURES if path.with_suffix(end).exists()]
    return there[0] if there else path.stem + PACKED_TEXTURES[0]


def _without_degenerate(path: Path, parts: list[Part]) -> list[Part]:
    """Leave out triangles without area; a mesh of nothing else is an error."""
    result, count = [], 0
    for part in parts:
        corners = part.points[part.faces].astype(np.float64)
        if not (_is_sane(corners) and _is_sane(part.places)):
            raise UnreadableFile(
                f"{path}: has points or texture places that are not finite, or beyond "
                f"{FARTHEST:g}. Export the mesh again."
            )
        area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        kept = (area**2).sum(axis=1) > SMALLEST_AREA**2
        count += int((~kept).sum())
        faces, place_faces = part.faces[kept], part.place_faces[kept]
        if len(faces):
            result.append(Part(part.points, faces, part.places, place_faces, part.paint))
    if not result:
        raise UnreadableFile(
            f"{path}: has no triangle with an area. Export the mesh again, or take it out."
        )
    if count:
        logger.info("%s: %d triangles without area are left out.", path, count)
    return result


def _is_sane(places: Any) -> bool:
    """Whether these numbers are safe for compiled loops, which check nothing."""
    return bool((np.abs(places) <= FARTHEST).all())  # False for NaN


def _mesh(path: Path, part: Part, middle: FloatArray, scale: float) -> Mesh:
    places = part.places.copy()
    places[:, 1] = 1 - places[:, 1]  # in files, y points up
    points, faces = _welded((part.points - middle) * np.float32(scale), part.faces)
    texture = Texture(_read_texture(path, part.paint), mirrored=False)
    return Mesh(points, faces, places, part.place_faces, Material(texture))


def _read_texture(path: Path, paint: Paint) -> FloatArray:
    """Read the texture of a part, (h, w, 3) in [0, 1]; its colour alone if it has none."""
    if paint.texture is None:
        return np.full((4, 4, 3), np.clip(paint.colour, 0.0, 1.0), np.float32)
    name = paint.texture.replace("\\", "/")
    # Only pictures beside the mesh or below it: of any other path, only the name is used.
    is_below = not Path(name).is_absolute() and ".." not in Path(name).parts
    tried = [path.parent / name] if is_below else []
    tried += [path.parent / folder / Path(name).name for folder in TEXTURE_FOLDERS]
    there = next((place for place in tried if is_regular(place)), None)
    if there is None:
        raise UnreadableFile(
            f"{path}: its texture {name} is missing. Put it beside the mesh, or take the mesh out."
        )
    picture = as_float(decode(there))
    if picture.ndim == 2 or picture.shape[-1] == 1:
        picture = np.repeat(picture.reshape(*picture.shape[:2], 1), 3, axis=-1)
    picture = picture[..., :3]
    scale = MOST_TEXELS / max(picture.shape[:2])
    if scale < 1:
        smaller = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        return np.asarray(smaller, np.float32)
    return np.ascontiguousarray(picture)


def _welded(points: FloatArray, faces: IntArray) -> tuple[FloatArray, IntArray]:
    """Join points at the same place, so that normals are smooth over the seams of a texture."""
    distinct, number = np.unique(points, axis=0, return_inverse=True)
    return distinct, number.reshape(-1)[faces]
