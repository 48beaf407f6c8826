"""The demo's scene: a still life of simple shapes, always the same. Arrays only, no files."""

from __future__ import annotations

import numpy as np

from oaccdepth.progress import ReportProgress, ignore
from oaccdepth.rendering import textures
from oaccdepth.rendering.lighting import Light, Lighting
from oaccdepth.rendering.meshes import Material, Mesh, Texture, turned, turned_at_random
from oaccdepth.rendering.primitives import (
    box,
    cylinder,
    lathe,
    leaf,
    plane,
    rod,
    sphere,
    torus,
    wire,
)
from oaccdepth.rendering.renderer import Scene
from oaccdepth.rendering.rig import Rig
from oaccdepth.rendering.scenes import Finish, RenderedScene, render
from oaccdepth.rendering.stage import Ground

SIZE = (384, 512)  # height, width [px]
NEARNESS, DISPARITY = (1 / 13.6, 1 / 6.5), (-1.4, 1.9)  # 1 / depth of what is seen, and its [px]
PITCH = 0.32  # how far the camera looks down [radians]
DISTANCE = 9.0
TEXELS = 512

Colour = tuple[float, float, float]


def demo_scene(size: tuple[int, int] = SIZE, progress: ReportProgress = ignore) -> RenderedScene:
    """Render the still life, with its true visibility."""
    scene, finish = still_life(size)
    return render(scene, finish, with_visibility=True, progress=progress)


def demo_rig(size: tuple[int, int] = SIZE) -> Rig:
    """Build the array of cameras that looks at the still life."""
    return Rig(size, 1.52 * max(size)).with_disparities(NEARNESS, DISPARITY)


def still_life(size: tuple[int, int] = SIZE) -> tuple[Scene, Finish]:
    """Put the still life together."""
    rng = np.random.default_rng(2022)
    rig = demo_rig(size)
    up = np.array([0.0, -np.cos(PITCH), -np.sin(PITCH)])
    ground = Ground(np.array([0.0, 0.95, DISTANCE]), up)
    meshes = [
        *_room(rng, rig, ground),
        *_books(rng, ground),
        *_bouquet(rng, ground),
        *_cage(ground),
        *_game(rng, ground),
        *_lights(ground),
    ]
    lighting = Lighting(
        (
            Light((-0.75, -1.0, -0.55), (1.15, 1.05, 0.9)),
            Light((0.9, -0.5, -0.6), (0.16, 0.2, 0.3)),
        ),
        (0.3, 0.33, 0.38),
    )
    return Scene(tuple(meshes), lighting, rig), Finish(0.42)


# Materials


def _between(rng: np.random.Generator, low: Colour, high: Colour, falloff: float) -> Texture:
    shade = 0.5 + 0.24 * textures.noise(rng, TEXELS, falloff)
    return Texture(textures.mixed(shade, np.array(low, np.float32), np.array(high, np.float32)))


def _metal(shade: float) -> Material:
    picture = np.full((4, 4, 3), [shade, 0.82 * shade, 0.5 * shade], np.float32)
    return Material(Texture(picture), gloss=0.5, sharpness=40.0)


def _painted(rng: np.random.Generator, painter: textures.Painter, gloss: float = 0.0) -> Material:
    return Material(Texture(np.clip(painter(rng, TEXELS), 0, 1)), gloss, 50.0)


# Things; `_put` places them by right, away and up on the table


def _put(
    mesh: Mesh, ground: Ground, place: tuple[float, float, float], size: float, turn: float = 0.0
) -> Mesh:
    matrix = ground.axes @ turned((0, 0, 1), turn) * size
    return mesh.moved(matrix, ground.point + ground.axes @ np.array(place))


def _room(rng: np.random.Generator, rig: Rig, ground: Ground) -> list[Mesh]:
    """A wooden table, a wall and a picture on it."""
    wood = Material(Texture(textures.wood(np.random.default_rng(5), 1024)), 0.12, 25.0)
    wall = Material(_between(rng, (0.42, 0.47, 0.46), (0.62, 0.64, 0.58), 1.1))
    table = plane(rig, wood, ground.point, ground.up, 420.0)
    away = ground.axes[:, 1]
    back = plane(rig, wall, ground.point + 4.2 * away, np.array([0.12, 0.0, -1.0]), 360.0)
    far = plane(rig, wall, np.array([0, 0, 30.0]), np.array([0.0, 0.0, -1.0]), 300.0)
    upright = Ground(ground.point + 3.6 * away, np.array([0.0, -1.0, 0.0]))
    canvas = box(_painted(np.random.default_rng(14), textures.marble), (0.95, 0.05, 0.7), cells=8)
    frame = box(_metal(0.55), (1.05, 0.04, 0.8), cells=8)
    place = (-0.5, 0.1, 2.2)
    return [table, back, far, _put(canvas, upright, place, 1.0),
            _put(frame, upright, (place[0], place[1] + 0.05, place[2]), 1.0)]  # fmt: skip


def _books(rng: np.random.Generator, ground: Ground) -> list[Mesh]:
    """A pile of boxes with a ball on it."""
    result, height = [], 0.0
    painters = (textures.weave, textures.stripes, textures.tiles)
    for number, thick in enumerate((0.17, 0.13, 0.2)):
        cover = _painted(np.random.default_rng(31 + number), painters[number])
        book = box(cover, (1.0 - 0.1 * number, 0.72, thick), cells=8)
        result.append(_put(book, ground, (-1.75, 0.9, height + thick), 1.0, 0.35 - 0.3 * number))
        height += 2 * thick
    ball = sphere(_painted(np.random.default_rng(8), textures.spots, 0.25))
    return [*result, _put(ball, ground, (-1.7, 0.85, height + 0.42), 0.42)]


def _bouquet(rng: np.random.Generator, ground: Ground) -> list[Mesh]:
    """A vase with twigs and leaves."""
    heights = np.linspace(0, 1.5, 20)
    radii = 0.3 + 0.2 * np.sin(0.6 + 2.6 * heights) - 0.06 * heights
    vase = lathe(_painted(np.random.default_rng(21), textures.stripes, 0.3),
                 [(0.0, 0.0), *zip(radii.tolist(), heights.tolist(), strict=True)])  # fmt: skip
    green = Material(_between(rng, (0.08, 0.24, 0.07), (0.38, 0.6, 0.22), 1.0))
    bark = Material(_between(rng, (0.22, 0.14, 0.08), (0.4, 0.3, 0.18), 0.8))
    result = [_put(vase, ground, (1.85, 0.6, 0.0), 0.9)]
    for number in range(6):
        angle = 2.4 * number
        tip = np.array([0.75 * np.cos(angle), 0.5 * np.sin(angle), 2.5 + 0.25 * (number % 3)])
        start = np.array([1.85, 0.6, 1.2])
        way = start + np.linspace(0, 1, 7)[:, None] * (tip - [0, 0, 1.2])
        way[:, :2] += 0.12 * np.sin(np.linspace(0, 3, 7) + number)[:, None]
        points = ground.point + way @ ground.axes.T
        result.append(wire(bark, points, 0.02))
        for point in points[2:]:
            for _ in range(2):
                blade = leaf(green, 0.17, 0.3)
                result.append(blade.moved(turned_at_random(rng) * rng.uniform(0.3, 0.5), point))
    return result


def _cage(ground: Ground) -> list[Mesh]:
    """A birdcage of thin wires, with a ring to sit on."""
    metal, result = _metal(0.75), []
    angles = np.linspace(0, 2 * np.pi, 23)[:-1]
    heights = np.array([0.0, 0.5, 1.0, 1.25, 1.42, 1.5])
    radii = np.array([0.55, 0.55, 0.55, 0.46, 0.26, 0.02])
    for angle in angles:
        way = np.stack([radii * np.cos(angle), radii * np.sin(angle), heights], -1)
        result.append(wire(metal, way, 0.011))
    for height in (0.02, 0.5, 1.0):
        result.append(torus(metal, 0.03).moved(np.diag([0.58, 0.58, 0.58]), (0, 0, height)))
    swing = torus(_metal(0.45), 0.1).moved(turned((1, 0, 0), np.pi / 2) * 0.2, (0, 0, 0.8))
    result += [swing, rod(metal, np.array([0, 0, 1.0]), np.array([0, 0, 1.5]), 0.01)]
    return [_put(mesh, ground, (0.35, 1.3, 0.0), 1.15) for mesh in result]


def _game(rng: np.random.Generator, ground: Ground) -> list[Mesh]:
    """A chessboard with turned pieces and glossy balls."""
    squares = np.indices((8, 8)).sum(axis=0) % 2
    picture = np.where(squares[..., None] > 0, [0.85, 0.78, 0.62], [0.2, 0.12, 0.08])
    picture = (
        np.kron(picture, np.ones((64, 64, 1))) + 0.03 * textures.noise(rng, 512, 0.9)[..., None]
    )
    board = box(
        Material(Texture(picture.astype(np.float32)), 0.15, 30.0), (1.0, 1.0, 0.05), cells=10
    )
    # a box shows the texture from 0.95 to 1.95 on its top: mirrored, that is all of it
    result = [_put(board, ground, (0.1, -0.75, 0.05), 0.95, 0.4)]
    pawn = [(0.0, 0.0), (0.3, 0.0), (0.3, 0.08), (0.16, 0.2), (0.1, 0.5), (0.2, 0.56), (0.08, 0.62),
            (0.2, 0.75), (0.22, 0.85), (0.14, 0.98), (0.0, 1.0)]  # fmt: skip
    pale = Material(_between(rng, (0.75, 0.66, 0.5), (0.9, 0.84, 0.7), 1.2), 0.2, 40.0)
    dark = Material(_between(rng, (0.12, 0.07, 0.05), (0.3, 0.18, 0.12), 1.2), 0.3, 40.0)
    turn = turned((0, 0, 1), 0.4)[:2, :2]
    for number, square in enumerate([(-3, -1), (-1, 1), (1, -3), (2, 2), (3, 0), (-2, 3), (0, -2)]):
        right, away = turn @ (np.array(square) * 0.95 / 4 - 0.12)
        man = lathe(dark if number % 2 else pale, pawn)
        size = 0.36 if number % 3 else 0.5
        result.append(_put(man, ground, (0.1 + right, -0.75 + away, 0.1), size))
    cup = cylinder(_painted(np.random.default_rng(6), textures.tiles, 0.2), 0.9)
    ring = torus(_painted(np.random.default_rng(40), textures.clouds, 0.35), 0.3)
    leaning = ring.moved(turned((1, 0.3, 0), 1.2), (0, 0, 0))
    return [*result, _put(cup, ground, (-1.55, -0.95, 0.38), 0.42),
            _put(leaning, ground, (1.75, -0.95, 0.46), 0.48, 0.5)]  # fmt: skip


def _lights(ground: Ground) -> list[Mesh]:
    """A string of small lamps across the picture, near the camera."""
    part = np.linspace(-1, 1, 21)
    way = np.stack([3.6 * part, -1.3 + 0.5 * part, 2.75 + 0.5 * part**2], -1)
    points = ground.point + way @ ground.axes.T
    cable = Material(Texture(np.full((4, 4, 3), 0.12, np.float32)))
    result = [wire(cable, points, 0.014)]
    colours = [(0.9, 0.35, 0.2), (0.95, 0.75, 0.3), (0.3, 0.65, 0.75), (0.8, 0.8, 0.75)]
    for number, point in enumerate(points[1::2]):
        picture = np.full((4, 4, 3), colours[number % 4], np.float32)
        lamp = sphere(Material(Texture(picture), 0.6, 60.0), 20)
        result.append(lamp.moved(np.eye(3) * 0.085, point - 0.08 * ground.up))
    return result
