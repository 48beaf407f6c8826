"""Wavefront OBJ files -> triangles, and the textures that their MTL files name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from oaccdepth.errors import UnreadableFile
from oaccdepth.files.fields import BadField, as_number
from oaccdepth.files.regular import is_regular, read_small
from oaccdepth.lightfield import FloatArray
from oaccdepth.rendering.meshes import IntArray

MOST_BYTES = 1 << 29  # of a file; a million triangles are a fifth of it

# What may stand before the name of a texture: `-s 1 1 1 -clamp on`. Where it lies is not changed.
MAP_OPTIONS = re.compile(r"^\s*map_Kd\s+(-[a-z]+\s+((on|off|[-+.\d]+)\s+)*)*")

Corner = tuple[int, int]  # number of a point, number of a texture place; from 0
Group = list[tuple[Corner, Corner, Corner]]


@dataclass(frozen=True)
class Paint:
    """What an MTL file says about a material."""

    colour: tuple[float, float, float] = (0.6, 0.6, 0.6)
    texture: str | None = None  # name of a picture


@dataclass(frozen=True, eq=False)
class Part:
    """Triangles of one material."""

    points: FloatArray  # (n, 3), of the whole file
    faces: IntArray  # (k, 3)
    places: FloatArray  # (m, 2): right, up
    place_faces: IntArray  # (k, 3)
    paint: Paint


def read_obj(path: Path) -> list[Part]:
    """Read the triangles of an OBJ file, by material; polygons are cut into fans."""
    points: list[list[float]] = []
    places: list[list[float]] = [[0.0, 0.0]]  # the first is for corners that have none
    groups: dict[str, Group] = {}
    paints: dict[str, Paint] = {}
    libraries: set[str] = set()
    current = groups.setdefault("", [])
    for number, line in enumerate(_lines(path), start=1):
        words = line.split()
        try:
            match words[:1]:
                case ["v"]:
                    points.append([float(word) for word in words[1:4]])
                case ["vt"]:
                    places.append([float(word) for word in words[1:3]])
                case ["f"]:
                    _add_face(words[1:], len(points), len(places), current)
                case ["usemtl"]:
                    current = groups.setdefault(" ".join(words[1:]), [])
                case ["mtllib"]:
                    name = Path(line.split(maxsplit=1)[1].strip().replace("\\", "/")).name
                    if name not in libraries:  # once, however often it is named
                        libraries.add(name)
                        paints |= _read_mtl(path.parent / name)  # only from beside the mesh
        except (ValueError, IndexError) as error:
            raise _not_understood(path, number, line) from error
    return [
        _part(path, points, places, corners, paints.get(name, Paint()))
        for name, corners in groups.items()
        if corners
    ]


def _lines(path: Path) -> list[str]:
    if path.stat().st_size > MOST_BYTES:
        raise UnreadableFile(
            f"{path}: is larger than {MOST_BYTES >> 20} MiB. "
            "Simplify the mesh, or take it out of the folder."
        )
    return read_small(path, MOST_BYTES).decode("utf-8", errors="replace").splitlines()


def _not_understood(path: Path, number: int, line: str) -> UnreadableFile:
    return UnreadableFile(
        f"{path}: line {number} cannot be understood: {line.strip()[:60]!r}. Export the mesh again."
    )


def _add_face(words: list[str], points: int, places: int, group: Group) -> None:
    corners = [_corner(word, points, places) for word in words]
    if len(corners) < 3:
        raise ValueError("a face needs three corners")
    group.extend((corners[0], second, third) for second, third in pairwise(corners[1:]))


def _corner(word: str, points: int, places: int) -> Corner:
    """'7/3/2', '7//2' or '7' as numbers from 0; negative ones count from the last line read."""
    parts = word.split("/")
    point = int(parts[0])
    point = point - 1 if point > 0 else points + point
    place = int(parts[1]) if len(parts) > 1 and parts[1] else 0  # 0 is the place without a texture
    place = place if place >= 0 else places + place
    if not (0 <= point < points and 0 <= place < places):
        raise IndexError("no such point or texture place")
    return point, place


def _part(
    path: Path,
    points: list[list[float]],
    places: list[list[float]],
    corners: Group,
    paint: Paint,
) -> Part:
    numbers = np.array(corners, np.int64)  # (k, 3, 2)
    try:
        with np.errstate(over="ignore"):  # to infinity, which is refused
            space, flat = np.array(points, np.float32), np.array(places, np.float32)
        if space.shape[1:] != (3,) or flat.shape[1:] != (2,):
            raise ValueError("not in space")
    except ValueError as error:
        raise UnreadableFile(
            f"{path}: points have different numbers of coordinates, expected three. "
            "Export the mesh again."
        ) from error
    return Part(space, numbers[..., 0], flat, numbers[..., 1], paint)


def _read_mtl(path: Path) -> dict[str, Paint]:
    """Read the colours and textures of an MTL file; a missing file has none."""
    if not is_regular(path):
        return {}
    result: dict[str, Paint] = {}
    name, colour = "", Paint.colour
    for number, line in enumerate(_lines(path), start=1):
        words = line.split()
        try:
            match words[:1]:
                case ["newmtl"]:
                    name, colour = " ".join(words[1:]), Paint.colour
                    result[name] = Paint()
                case ["Kd"] if len(words) >= 4:
                    colour = as_number(words[1]), as_number(words[2]), as_number(words[3])
                    result[name] = Paint(colour, result.get(name, Paint()).texture)
                case ["map_Kd"] if len(words) >= 2:
                    result[name] = Paint(colour, MAP_OPTIONS.sub("", line).strip())
        except BadField as error:
            raise _not_understood(path, number, line) from error
    return result
