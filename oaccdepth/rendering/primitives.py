"""Shapes made by formulas: boxes, spheres, rods, lattices, leaves, walls. Arrays only.

Solids stand around the origin of space, within [-1, 1]; `Mesh.moved` puts them somewhere. Flat
things are given in the reference view: (x, y) [px] and 1 / depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from oaccdepth.rendering.meshes import Material, Mesh, joined
from oaccdepth.rendering.rig import Numbers, Rig

MARGIN_PX = 96  # walls go on beyond the frame, because the other views look there


def sheet(points: Numbers, places: Numbers, material: Material, smooth: bool = True) -> Mesh:
    """Mesh of a grid of points (r, c, 3) with their places in the texture (r, c, 2)."""
    rows, columns = points.shape[:2]
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b = index[:-1, :-1].ravel(), index[:-1, 1:].ravel()
    c, d = index[1:, :-1].ravel(), index[1:, 1:].ravel()
    faces = np.concatenate([np.stack([a, b, d], -1), np.stack([a, d, c], -1)])
    return Mesh(
        points.reshape(-1, 3).astype(np.float32),
        faces,
        places.reshape(-1, 2).astype(np.float32),
        faces,
        material,
        smooth,
    )


def _unit_grid(rows: int, columns: int) -> tuple[Numbers, Numbers]:
    down, right = np.linspace(0, 1, rows + 1), np.linspace(0, 1, columns + 1)
    y, x = np.meshgrid(down, right, indexing="ij")
    return y.astype(np.float32), x.astype(np.float32)


def box(material: Material, sizes: Sequence[float] = (1, 1, 1), cells: int = 6) -> Mesh:
    """Box from -size to size; each side is a grid, so that ambient light varies smoothly."""
    y, x = _unit_grid(cells, cells)
    sides = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            points = np.empty((*y.shape, 3), np.float32)
            points[..., axis] = sign
            points[..., (axis + 1) % 3], points[..., (axis + 2) % 3] = 2 * x - 1, 2 * y - 1
            points *= np.asarray(sizes, np.float32)
            scale = max(sizes)
            places = np.stack(
                [x * sizes[(axis + 1) % 3] / scale, y * sizes[(axis + 2) % 3] / scale], -1
            )
            sides.append(sheet(points, places + 0.37 * axis + 0.21 * sign, material, smooth=False))
    return joined(sides)


def sphere(material: Material, cells: int = 40) -> Mesh:
    """Sphere of radius 1."""
    y, x = _unit_grid(cells // 2, cells)
    polar, around = np.pi * y, 2 * np.pi * x
    points = np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], -1
    )
    return sheet(points, np.stack([3 * x, 1.5 * y], -1), material)


def torus(material: Material, thickness: float = 0.3, cells: int = 48) -> Mesh:
    """Ring of radius 1 - `thickness`."""
    y, x = _unit_grid(cells // 2, cells)
    inner, around = 2 * np.pi * y, 2 * np.pi * x
    radius = 1 - thickness + thickness * np.cos(inner)
    points = np.stack(
        [radius * np.cos(around), radius * np.sin(around), thickness * np.sin(inner)], -1
    )
    return sheet(points, np.stack([4 * x, y], -1), material)


def lathe(material: Material, profile: Sequence[tuple[float, float]], cells: int = 40) -> Mesh:
    """Surface of revolution around the third axis: cylinders, cones, bottles, vases, bowls.

    `profile` lists (radius, height), from the bottom to the top.
    """
    radius, height = np.array(profile, np.float32).T
    around = np.linspace(0, 2 * np.pi, cells + 1)
    points = np.stack(
        [
            radius[:, None] * np.cos(around),
            radius[:, None] * np.sin(around),
            np.broadcast_to(height[:, None], (len(profile), cells + 1)),
        ],
        -1,
    )
    way = np.cumsum(
        np.hypot(np.diff(radius, prepend=radius[0]), np.diff(height, prepend=height[0]))
    )
    along = np.broadcast_to(way[:, None], points.shape[:2])
    across = np.broadcast_to(np.linspace(0, 3, cells + 1), points.shape[:2])
    return sheet(points, np.stack([across, along], -1), material)


def cylinder(material: Material, height: float = 1.0, cells: int = 40) -> Mesh:
    """Closed cylinder of radius 1, from -height to height."""
    steps = np.linspace(-height, height, 7)
    profile = [(0.0, -height), *((1.0, float(step)) for step in steps), (0.0, height)]
    return lathe(material, profile, cells)


def rod(material: Material, start: Numbers, end: Numbers, radius: float, cells: int = 6) -> Mesh:
    """Straight wire between two points, with `cells` sides."""
    axis = np.asarray(end, np.float64) - start
    length = float(np.linalg.norm(axis)) or 1e-6
    axis /= length
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(axis, helper)
    first /= np.linalg.norm(first)
    second = np.cross(axis, first)
    around = np.linspace(0, 2 * np.pi, cells + 1)
    circle = radius * (np.cos(around)[:, None] * first + np.sin(around)[:, None] * second)
    along = np.linspace(0, 1, 9)[:, None, None]
    points = start + along * (axis * length) + circle  # (9, cells + 1, 3)
    across = np.broadcast_to(around / 6, points.shape[:2])
    down = np.broadcast_to(along[..., 0] * length / 4, points.shape[:2])
    return sheet(points, np.stack([across, down], -1), material)


def wire(material: Material, points: Numbers, radius: float) -> Mesh:
    """Bent wire through points (n, 3)."""
    return joined([rod(material, start, end, radius) for start, end in pairwise(points)])


def cage(material: Material, bars: int, radius: float) -> Mesh:
    """Cube [-1, 1] of rods: a lattice in space."""
    steps = np.linspace(-1, 1, bars)
    rods = []
    for axis in range(3):
        for a in steps:
            for b in steps:
                start, end = np.empty(3), np.empty(3)
                start[axis], end[axis] = -1, 1
                start[(axis + 1) % 3] = end[(axis + 1) % 3] = a
                start[(axis + 2) % 3] = end[(axis + 2) % 3] = b
                rods.append(rod(material, start, end, radius, 5))
    return joined(rods)


def leaf(material: Material, width: float = 0.35, bend: float = 0.4, cells: int = 8) -> Mesh:
    """Pointed, bent sheet along the first axis, from the origin to 1."""
    y, x = _unit_grid(cells, cells)
    half = width * np.sin(np.pi * np.clip(x, 0.02, 0.98)) ** 0.8 * (2 * y - 1)
    points = np.stack([x, half, -bend * x**2 + 0.15 * np.abs(half)], -1)
    return sheet(points, np.stack([x, 0.5 + half], -1), material)


def plane(
    rig: Rig,
    material: Material,
    point: Numbers,
    normal: Numbers,
    texture_px: float,
    frame: tuple[float, float, float, float] | None = None,
    cells: int = 32,
) -> Mesh:
    """Part of a plane that the views see, or the part in `frame`: top, left, bottom, right [px].

    One length of the texture covers `texture_px` where the plane passes the optical axis.
    """
    height, width = rig.size
    margin = float(MARGIN_PX)
    top, left, bottom, right = frame or (-margin, -margin, height + margin, width + margin)
    y, x = _unit_grid(cells, cells)
    y, x = top + y * (bottom - top), left + x * (right - left)
    rays = rig.place(x, y, 1.0)
    distance = float(np.dot(point, normal))
    nearness = (rays @ normal) / distance  # 1 / depth, affine in the picture
    least = 1e-2 / abs(float(point[2]))
    points = rays / np.maximum(nearness, least)[..., None]
    helper = np.array([1.0, 0.0, 0.0]) if abs(normal[0]) < 0.7 else np.array([0.0, 1.0, 0.0])
    first = np.cross(normal, helper)
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)
    scale = rig.focal / (abs(float(point[2])) * texture_px)
    away = points - np.asarray(point, np.float32)
    places = np.stack([away @ second, away @ first], -1) * scale
    result = sheet(points, places, material, smooth=False)
    seen = (nearness.ravel()[result.faces] > least).all(axis=1)
    return Mesh(
        result.points,
        result.faces[seen],
        result.places,
        result.faces[seen],
        material,
        False,
        casts=False,
    )


def cutting(
    rig: Rig,
    material: Material,
    outline: Numbers,
    nearness: Numbers | float,
    texture_px: float,
) -> Mesh:
    """Flat thing with a convex outline (n, 2): x, y [px], at one 1 / depth or one per corner."""
    x, y = outline[:, 0], outline[:, 1]
    points = rig.place(x, y, nearness)
    number = np.arange(1, len(outline) - 1)
    faces = np.stack([np.zeros_like(number), number, number + 1], -1)
    return Mesh(points, faces, (outline / texture_px).astype(np.float32), faces, material, False)
