"""Meshes: triangles with a texture and a material, moved about in space. Arrays only, no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oaccdepth.rendering.rig import Numbers

IntArray = NDArray[np.int64]

CREASE = 0.6  # cosine; a corner whose face turns further than this from its neighbours is an edge


@dataclass(frozen=True, eq=False)
class Texture:
    """Colours of a surface."""

    picture: Numbers  # (h, w, 3) in [0, 1], as it is shown
    mirrored: bool = True  # at its edges, instead of repeated


@dataclass(frozen=True, eq=False)
class Material:
    """What a surface looks like."""

    texture: Texture
    gloss: float = 0.0  # 0: matt; 1: shines like a mirror
    sharpness: float = 30.0  # of highlights


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles; `places` are positions in the texture, y downwards; 1 is its width or height."""

    points: Numbers  # (n, 3)
    faces: IntArray  # (k, 3)
    places: Numbers  # (m, 2): x, y
    place_faces: IntArray  # (k, 3)
    material: Material
    smooth: bool = True  # normals change over a face, but not over a sharp edge
    casts: bool = True  # a shadow

    def moved(self, matrix: Numbers, shift: Sequence[float] | Numbers) -> Mesh:
        """Turn and stretch by a (3, 3) matrix, then shift."""
        points = self.points @ np.asarray(matrix, np.float32).T + np.asarray(shift, np.float32)
        return replace(self, points=points.astype(np.float32))

    def with_material(self, material: Material) -> Mesh:
        """The same shape with another surface."""
        return replace(self, material=material)


def joined(meshes: Sequence[Mesh]) -> Mesh:
    """One mesh of several with the material of the first."""
    points = np.cumsum([0] + [len(mesh.points) for mesh in meshes])
    places = np.cumsum([0] + [len(mesh.places) for mesh in meshes])
    return replace(
        meshes[0],
        points=np.concatenate([mesh.points for mesh in meshes]),
        faces=np.concatenate([m.faces + k for m, k in zip(meshes, points[:-1], strict=True)]),
        places=np.concatenate([mesh.places for mesh in meshes]),
        place_faces=np.concatenate(
            [m.place_faces + k for m, k in zip(meshes, places[:-1], strict=True)]
        ),
    )


def face_normals(corners: Numbers) -> Numbers:
    """Normals of triangles (k, 3, 3), as long as twice their area."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return np.asarray(normals, np.float32)


def corner_normals(mesh: Mesh) -> Numbers:
    """Unit normals at the corners, (k, 3, 3), turned towards the reference camera."""
    corners = mesh.points[mesh.faces]
    normals = face_normals(corners)
    away = np.einsum("kc,kc->k", normals, corners.mean(axis=1)) > 0
    unit = _normalised(normals)
    result = np.repeat(unit[:, None], 3, axis=1)
    if mesh.smooth:
        at_points = np.zeros_like(mesh.points)
        for corner in range(3):
            np.add.at(at_points, mesh.faces[:, corner], normals)
        smoothed = _normalised(at_points)[mesh.faces]  # (k, 3, 3)
        gentle = np.einsum("kic,kc->ki", smoothed, unit) > CREASE
        result = np.where(gentle[..., None], smoothed, result)
    return np.where(away[:, None, None], -result, result)


def _normalised(vectors: Numbers) -> Numbers:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-20), np.float32)


def turned(axis: Sequence[float], angle: float) -> Numbers:
    """Rotation matrix (3, 3) around an axis, by an angle [radians]."""
    x, y, z = np.asarray(axis, np.float64) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    matrix = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    return np.asarray(matrix, np.float32)


def turned_at_random(rng: np.random.Generator) -> Numbers:
    """A random rotation; all are equally likely."""
    matrix, upper = np.linalg.qr(rng.standard_normal((3, 3)))
    matrix = matrix * np.sign(np.diag(upper))
    return np.asarray(matrix * np.sign(np.linalg.det(matrix)), np.float32)
