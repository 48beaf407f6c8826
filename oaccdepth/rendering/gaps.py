"""Things with gaps: combs, wedges, strips, fences, stripes, dots, reliefs. Each fills a Stage."""

from __future__ import annotations

import numpy as np

from oaccdepth.rendering import textures
from oaccdepth.rendering.meshes import Material, joined, turned
from oaccdepth.rendering.primitives import MARGIN_PX, cutting, rod, sheet, wire
from oaccdepth.rendering.rig import Numbers
from oaccdepth.rendering.rooms import DISTANCE, backdrop, clutter, float_thing, view_width
from oaccdepth.rendering.stage import TEXELS, Stage

FAR, NEAR = 1 / (1.6 * DISTANCE), 1 / (0.6 * DISTANCE)  # 1 / depth of flat scenes


def combs(stage: Stage) -> None:
    """Wedges and strips a few pixels apart, far in front of a background."""
    rng = stage.rng
    _ground(stage, FAR)
    for _ in range(int(rng.integers(1, 4))):
        nearness = float(rng.uniform(FAR + 0.3 * (NEAR - FAR), NEAR))
        _comb(stage, nearness)
    if rng.random() < 0.4:
        for _ in range(int(rng.integers(1, 5))):
            float_thing(stage, view_width(stage) / 2)


def in_front(stage: Stage) -> None:
    """Put a comb, a fence or wires in front of another scene."""
    rng = stage.rng
    nearness = 1 / (DISTANCE * rng.uniform(0.55, 0.85))
    kind = rng.random()
    if kind < 0.45:
        _comb(stage, float(nearness))
    elif kind < 0.75:
        _fence(stage, float(nearness))
    else:
        _wires(stage)


def fences(stage: Stage) -> None:
    """Lattices behind lattices, wires and cages, in front of walls and objects."""
    rng = stage.rng
    if rng.random() < 0.5:
        clutter(stage)
    else:
        backdrop(stage, 1.5 * DISTANCE, float(rng.uniform(0, 0.6)))
    for depth in np.sort(rng.uniform(0.6, 1.4, int(rng.integers(1, 4))))[::-1]:
        _fence(stage, float(1 / (DISTANCE * depth)))
    if rng.random() < 0.4:
        _wires(stage)


def patterns(stage: Stage) -> None:
    """Stripes, dots or reliefs on flat grounds: like the test scenes of the HCI benchmark."""
    kind = stage.rng.random()
    if kind < 0.4:
        stripes(stage)
    elif kind < 0.7:
        dots(stage)
    else:
        reliefs(stage)


def grained(stage: Stage) -> Material:
    """A matt, even colour with grain, or any other material."""
    if stage.rng.random() < 0.35:
        return stage.material()
    return Material(stage.finished(textures.grain(stage.rng, TEXELS)))


def _grain_px(stage: Stage) -> float:
    """Width of a texture [px], such that a texel is half a pixel to two pixels wide."""
    return TEXELS * float(stage.rng.uniform(0.5, 2))


def _ground(stage: Stage, nearness: float) -> None:
    """Flat or slanted background that covers the frame."""
    rng = stage.rng
    height, width = stage.rig.size
    corners = _rectangle(-MARGIN_PX, -MARGIN_PX, height + MARGIN_PX, width + MARGIN_PX)
    slope = rng.uniform(-0.25, 0.25, 2) * nearness if rng.random() < 0.4 else np.zeros(2)
    whole = max(height, width) + 2 * MARGIN_PX
    at = nearness * 1.3 + (corners / whole - 0.5) @ slope
    parts = 1 if rng.random() < 0.5 else 2
    for part in range(parts):  # two halves, as backgammon has
        share = corners.copy()
        values = at.copy()
        if part == 1:
            share[:, 1] = np.maximum(share[:, 1], height * rng.uniform(0.2, 0.8))
            values = nearness * 1.31 + (share / whole - 0.5) @ slope
        stage.add(cutting(stage.rig, grained(stage), share, values, _grain_px(stage)))


def _rectangle(top: float, left: float, bottom: float, right: float) -> Numbers:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)


def _comb(stage: Stage, nearness: float) -> None:
    """Teeth side by side: wedges or strips, of one texture, joined at one end or not."""
    rng = stage.rng
    unit = min(stage.rig.size)
    length = unit * rng.uniform(0.25, 1.1)
    tooth = float(np.exp(rng.uniform(np.log(2), np.log(16))))
    gap = float(np.exp(rng.uniform(np.log(1.5), np.log(14))))
    count = int(min(float(rng.integers(4, 40)), 1.2 * unit / (tooth + gap)))
    wedge = rng.random() < 0.6
    material, texture_px = grained(stage), _grain_px(stage)
    turn = turned((0, 0, 1), rng.choice([0, np.pi / 2, rng.uniform(0, 6.3)]))[:2, :2]
    middle = np.array(stage.rig.size[::-1]) * rng.uniform(0.3, 0.7, 2)
    lean = rng.uniform(-0.3, 0.3) * nearness / unit if rng.random() < 0.3 else 0.0
    pieces = []
    for number in range(count):
        start = (number - count / 2) * (tooth + gap)
        thick = tooth + gap * (0.95 if wedge else 0.0)
        outline: Numbers = np.array([[0, start], [0, start + thick], [length, start + thick / 2]])
        if not wedge:
            outline = _rectangle(start, 0, start + thick, length)
        outline -= [length / 2, 0]
        level = nearness + lean * outline[:, 0]
        pieces.append(cutting(stage.rig, material, outline @ turn.T + middle, level, texture_px))
    if rng.random() < 0.5:  # the back of the comb
        back = _rectangle(-count / 2 * (tooth + gap), -length / 2 - unit * rng.uniform(0.05, 0.4),
                          count / 2 * (tooth + gap), -length / 2 + 1)  # fmt: skip
        level = nearness + lean * back[:, 0]
        pieces.append(cutting(stage.rig, material, back @ turn.T + middle, level, texture_px))
    stage.add(joined(pieces))


def _fence(stage: Stage, nearness: float) -> None:
    """Lattice of flat bars or round rods, tilted."""
    rng = stage.rng
    period = float(np.exp(rng.uniform(np.log(10), np.log(70)))) * min(stage.rig.size) / 384
    thick = max(float(rng.uniform(0.06, 0.35)) * period, 1.2)
    size = max(stage.rig.size)
    angle = rng.choice([0.0, np.pi / 4, rng.uniform(0, 3.1)])
    middle = np.array(stage.rig.size[::-1]) / 2
    reach = size * float(rng.choice([0.25, 0.45, 0.8]))
    slope = rng.uniform(-0.4, 0.4, 2) * nearness / size
    material = stage.material()
    turns = [angle, angle + np.pi / 2] if rng.random() < 0.7 else [angle]
    bars = []
    for turn in turns:
        along, across = (
            np.array([np.cos(turn), np.sin(turn)]),
            np.array([-np.sin(turn), np.cos(turn)]),
        )
        for offset in np.arange(-reach, reach, period):
            ends = middle + across * offset + np.array([[-1], [1]]) * along * reach
            at = np.maximum(nearness + (ends - middle) @ slope, 0.3 * nearness)
            start, end = stage.rig.place(ends[:, 0], ends[:, 1], at)
            radius = thick / 2 / (nearness * stage.rig.focal)
            bars.append(rod(material, start, end, radius, 4 if thick < 4 else 8))
    stage.add(joined(bars))


def _wires(stage: Stage) -> None:
    """A few bent wires across the picture."""
    rng = stage.rng
    height, width = stage.rig.size
    for _ in range(int(rng.integers(1, 9))):
        nearness = 1 / (DISTANCE * rng.uniform(0.55, 1.0))
        part = np.linspace(-0.1, 1.1, 14)
        x, y = (
            part * width,
            height * (rng.uniform(0, 1) + rng.uniform(-0.3, 0.3) * np.sin(3 * part)),
        )
        if rng.random() < 0.5:
            x, y = y * width / height, x * height / width
        thick = float(np.exp(rng.uniform(np.log(1.0), np.log(6.0))))
        points = stage.rig.place(x, y, nearness)
        stage.add(wire(stage.material(), points, thick / 2 / (nearness * stage.rig.focal)))


def stripes(stage: Stage) -> None:
    """Strips of two depths side by side that hardly differ in colour, at any angle."""
    rng = stage.rng
    _ground(stage, FAR)
    width = float(np.exp(rng.uniform(np.log(3), np.log(30))))
    material, texture_px = grained(stage), _grain_px(stage)
    size = max(stage.rig.size)
    middle = np.array(stage.rig.size[::-1]) / 2
    turn = turned((0, 0, 1), rng.choice([0, np.pi / 2, rng.uniform(0, 6.3)]))[:2, :2]
    nearness = float(rng.uniform(FAR * 1.4, NEAR))
    place = -0.8 * size + float(rng.uniform(0, 20))
    while place < 0.8 * size:
        outline = _rectangle(-size, place, size, place + width)
        if rng.random() < 0.3:
            outline[:2, 0] += rng.uniform(-20, 20)
        outline = outline @ turn.T + middle
        stage.add(cutting(stage.rig, material, outline, nearness, texture_px))
        place += width * float(rng.uniform(1.2, 3.5))
        width = float(np.clip(width * rng.uniform(0.85, 1.15), 2, 40))


def dots(stage: Stage) -> None:
    """Rows of small discs in front of an even ground."""
    rng = stage.rng
    _ground(stage, FAR)
    material, texture_px = grained(stage), _grain_px(stage)
    height, width = stage.rig.size
    spacing = float(rng.uniform(12, 60))
    radius = float(np.exp(rng.uniform(np.log(1.2), np.log(0.35 * spacing))))
    angles = np.linspace(0, 2 * np.pi, 17)[:-1]
    circle = np.stack([np.cos(angles), np.sin(angles)], -1)
    nearness = float(rng.uniform(FAR * 1.45, NEAR))
    pieces = []
    for y in np.arange(spacing / 2, height, spacing):
        for x in np.arange(spacing / 2, width, spacing):
            size = radius * (0.3 + 0.7 * y / height)
            middle = np.array([x, y]) + rng.normal(0, 0.1 * spacing, 2)
            pieces.append(
                cutting(stage.rig, material, middle + size * circle, nearness, texture_px)
            )
    stage.add(joined(pieces))


def reliefs(stage: Stage) -> None:
    """Pyramids, hollow or raised, waves and slanted steps on a flat ground."""
    rng = stage.rng
    height, width = stage.rig.size
    cells = 80
    y, x = np.meshgrid(np.linspace(0, 1, cells + 1), np.linspace(0, 1, cells + 1), indexing="ij")
    level = np.zeros_like(x)
    for _ in range(int(rng.integers(2, 8))):
        cy, cx, radius = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9), rng.uniform(0.08, 0.3)
        distance = (
            np.maximum(abs(y - cy), abs(x - cx)) if rng.random() < 0.5 else np.hypot(y - cy, x - cx)
        )
        level += rng.choice([-1, 1]) * np.clip(radius - distance, 0, rng.uniform(0.3, 1) * radius)
    if rng.random() < 0.4:
        level += 0.05 * np.sin(rng.uniform(5, 30) * x + rng.uniform(5, 30) * y)
    level = (level - level.min()) / max(np.ptp(level), 1e-6)
    px = -MARGIN_PX + x * (width + 2 * MARGIN_PX)
    py = -MARGIN_PX + y * (height + 2 * MARGIN_PX)
    points = stage.rig.place(px, py, FAR + (NEAR - FAR) * 0.8 * level)
    places = np.stack([px, py], -1) / _grain_px(stage)
    stage.add(sheet(points, places, grained(stage)))
    if rng.random() < 0.3:
        _comb(stage, NEAR)
