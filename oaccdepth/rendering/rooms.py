"""Rooms with things in them: tables, shelves, corridors, clutter. Each fills a Stage at random."""

from __future__ import annotations

import numpy as np

from oaccdepth.rendering.meshes import Mesh, turned, turned_at_random
from oaccdepth.rendering.primitives import box, leaf, plane, rod
from oaccdepth.rendering.rig import Numbers
from oaccdepth.rendering.stage import Ground, Stage, put_on

DISTANCE = 6.0  # of the middle of a scene; things are about 1 in size


def table(stage: Stage) -> None:
    """Things on a floor or a table, seen from above, with a wall behind."""
    rng = stage.rng
    ground = lay_floor(stage, float(rng.uniform(0.15, 1.1)))
    backdrop(stage, DISTANCE * float(rng.uniform(1.2, 2.5)))
    reach = view_width(stage) / 2
    for _ in range(int(rng.integers(3, 14))):
        size = reach * float(np.exp(rng.uniform(np.log(0.12), np.log(0.45))))
        put_on(stage, ground, rng.uniform(-1.1, 1.1) * reach, rng.uniform(-1, 1.2) * reach, size)


def shelf(stage: Stage) -> None:
    """Boards with things on them, and uprights between them, in front of a wall."""
    rng = stage.rng
    reach = view_width(stage) / 2
    depth = reach * rng.uniform(0.3, 0.8)
    tilt = turned((rng.uniform(-1, 1), rng.uniform(-1, 1), 0.1), rng.uniform(0, 0.35))
    middle = np.array([0.0, 0.0, DISTANCE])
    material = stage.material()
    boards = int(rng.integers(2, 5))
    spacing = 2.4 * reach / boards
    for level in np.arange(boards) * spacing - 1.1 * reach + rng.uniform(0.3, 1) * spacing:
        board = box(material, (1.6 * reach, 0.03 * reach, depth), cells=12)
        stage.add(board.moved(tilt, middle + tilt @ np.array([0, level, 0])))
        up = tilt @ np.array([0.0, -1.0, 0.0])
        ground = Ground(middle + tilt @ np.array([0, level - 0.03 * reach, 0]), up)
        for right in np.arange(-1.1, 1.1, rng.uniform(0.3, 0.7)):
            size = spacing * rng.uniform(0.15, 0.42)
            put_on(stage, ground, right * reach, rng.uniform(-0.7, 0.5) * depth, size, 0.8)
    for right in rng.uniform(-1, 1, int(rng.integers(0, 3))) * reach:
        side = box(material, (0.03 * reach, 1.6 * reach, depth), cells=12)
        stage.add(side.moved(tilt, middle + tilt @ np.array([right, 0, 0])))
    backdrop(stage, DISTANCE + depth * rng.uniform(1.1, 3), float(rng.uniform(0, 0.3)))


def corridor(stage: Stage) -> None:
    """Walls, floor and ceiling, seen at grazing angles, with a few objects."""
    rng = stage.rng
    reach = view_width(stage) / 2
    end = DISTANCE * rng.uniform(1.5, 4)
    for side in np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[rng.random(4) < 0.75]:
        direction = np.array([*side, 0.0]) * reach * rng.uniform(0.35, 1.1)
        normal = -direction / np.linalg.norm(direction) + rng.normal(0, 0.12, 3)
        point = direction + np.array([0, 0, DISTANCE])
        stage.add(_wall(stage, point, normal, rng.uniform(60, 300)))
    backdrop(stage, end, float(rng.uniform(0, 0.7)))
    for _ in range(int(rng.integers(1, 7))):
        float_thing(stage, reach)


def clutter(stage: Stage) -> None:
    """Things in the air at all depths, dense or sparse, in front of one to three walls."""
    rng = stage.rng
    reach = view_width(stage) / 2
    backdrop(stage, DISTANCE * float(rng.uniform(1.3, 3)), float(rng.uniform(0, 0.9)))
    for _ in range(int(rng.integers(0, 3))):
        normal = turned_at_random(rng)[0]
        point = np.array([0, 0, DISTANCE * rng.uniform(1.0, 1.6)]) + rng.normal(0, reach, 3)
        stage.add(_wall(stage, point, normal, rng.uniform(100, 400)))
    for _ in range(int(rng.choice([rng.integers(2, 6), rng.integers(8, 22)]))):
        float_thing(stage, reach)
    if rng.random() < 0.25:
        foliage(stage, reach)


def float_thing(stage: Stage, reach: float) -> None:
    """Put an object anywhere, at any angle."""
    rng = stage.rng
    depth = DISTANCE * float(np.exp(rng.uniform(np.log(0.6), np.log(1.7))))
    size = reach * float(np.exp(rng.uniform(np.log(0.1), np.log(0.5))))
    place = np.array([*rng.uniform(-1, 1, 2) * reach * depth / DISTANCE, depth])
    turn = turned_at_random(rng) * size
    stage.add(*(part.moved(turn, place) for part in stage.thing()))


def foliage(stage: Stage, reach: float) -> None:
    """A twig with leaves."""
    rng = stage.rng
    material, bark = stage.material(), stage.material()
    start = np.array([*rng.uniform(-1.2, 1.2, 2) * reach, DISTANCE * rng.uniform(0.6, 1)])
    end = np.array([*rng.uniform(-1.2, 1.2, 2) * reach, DISTANCE * rng.uniform(0.6, 1)])
    stage.add(rod(bark, start, end, reach * rng.uniform(0.006, 0.02)))
    for part in np.linspace(0, 1, int(rng.integers(6, 25))):
        length = reach * rng.uniform(0.15, 0.4)
        blade = leaf(material, rng.uniform(0.1, 0.4), rng.uniform(-0.5, 0.5))
        stage.add(blade.moved(turned_at_random(rng) * length, start + part * (end - start)))


def view_width(stage: Stage) -> float:
    """Width of what the reference camera sees in the middle of a scene."""
    return DISTANCE * min(stage.rig.size) / stage.rig.focal


def lay_floor(stage: Stage, pitch: float) -> Ground:
    """Lay a floor on which the camera looks down at this angle [radians]."""
    rng = stage.rng
    roll = turned((0, 0, 1), float(rng.normal(0, 0.08)))
    up = roll @ np.array([0, -np.cos(pitch), -np.sin(pitch)])
    point = np.array([0.0, view_width(stage) * rng.uniform(0, 0.25), DISTANCE])
    stage.add(_wall(stage, point, up, rng.uniform(120, 500)))
    return Ground(point, up)


def backdrop(stage: Stage, depth: float, tilt: float = 0.0) -> None:
    """Put a wall behind everything, turned by an angle, and behind it one that faces us."""
    rng = stage.rng
    turn = turned((rng.normal(), rng.normal(), 1e-3), tilt)
    normal = turn @ np.array([0.0, 0.0, -1.0])
    stage.add(_wall(stage, np.array([0, 0, depth]), normal, rng.uniform(100, 450)))
    # A tilted wall may end within the frame; this one never does.
    far = np.array([0.0, 0.0, 1.6 * depth])
    stage.add(_wall(stage, far, np.array([0.0, 0.0, -1.0]), rng.uniform(100, 450)))


def _wall(stage: Stage, point: Numbers, normal: Numbers, texture_px: float) -> Mesh:
    normal = normal / np.linalg.norm(normal)
    return plane(stage.rig, stage.material(), point, normal, float(texture_px))
