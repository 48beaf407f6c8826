"""Procedural textures: (t, t, 3) in [0, 1], from a random generator. Arrays only."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from oaccdepth.lightfield import FloatArray

Painter = Callable[[np.random.Generator, int], FloatArray]


def colour(rng: np.random.Generator, saturation: float = 0.5) -> FloatArray:
    """Any colour, neither black nor white: (3,)."""
    grey = rng.uniform(0.2, 0.8)
    return np.clip(grey + saturation * rng.uniform(-0.5, 0.5, 3), 0.05, 0.95).astype(np.float32)


def noise(rng: np.random.Generator, texels: int, falloff: float) -> FloatArray:
    """Periodic noise (t, t) of mean 0 and deviation 1, amplitude 1 / frequency ** `falloff`."""
    spectrum = np.fft.rfft2(rng.standard_normal((texels, texels), np.float32))
    frequency = np.hypot(np.fft.fftfreq(texels)[:, None], np.fft.rfftfreq(texels))
    frequency[0, 0] = 1.0
    spectrum *= (frequency + 1.0 / texels) ** -falloff
    spectrum[0, 0] = 0
    result = np.fft.irfft2(spectrum, (texels, texels)).astype(np.float32)
    return np.asarray(result / result.std(), np.float32)


def mixed(shade: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Colours (t, t, 3) between two, by a shade (t, t) of which [0, 1] is the range."""
    part = np.clip(shade, 0, 1)[..., None]
    return np.asarray(low + part * (high - low), np.float32)


def clouds(rng: np.random.Generator, texels: int) -> FloatArray:
    """Soft or rough noise between two colours."""
    shade = noise(rng, texels, rng.uniform(0.5, 1.6))
    return mixed(0.5 + rng.uniform(0.15, 0.35) * shade, colour(rng), colour(rng))


def grain(rng: np.random.Generator, texels: int) -> FloatArray:
    """One colour with fine grain of its own in each channel, as the HCI test patterns have."""
    shades = np.stack([noise(rng, texels, rng.uniform(0.0, 0.5)) for _ in range(3)], axis=-1)
    shared = noise(rng, texels, 0.3)[..., None]
    mixing = rng.random()
    strength = rng.choice([0.03, 0.08, 0.2])
    return np.asarray(
        colour(rng, 0.8) + strength * (mixing * shades + (1 - mixing) * shared), np.float32
    )


def stripes(rng: np.random.Generator, texels: int) -> FloatArray:
    """Stripes or checks with grain."""
    y, x = _grid(texels)
    waves = int(rng.integers(3, 48))
    pattern = np.tanh(rng.uniform(1, 12) * np.sin(2 * np.pi * waves * x))
    if rng.random() < 0.6:
        other = waves if rng.random() < 0.6 else int(rng.integers(3, 48))
        pattern = pattern * np.tanh(6 * np.sin(2 * np.pi * other * y))
    shade = 0.5 + 0.4 * pattern + rng.uniform(0, 0.15) * noise(rng, texels, 0.8)
    return mixed(shade, colour(rng), colour(rng))


def tiles(rng: np.random.Generator, texels: int) -> FloatArray:
    """Bricks or tiles: joints, and a shade of its own for each."""
    y, x = _grid(texels)
    rows, columns = int(rng.integers(3, 14)) * 2, int(rng.integers(2, 14))
    row = np.floor(y * rows)
    across = x * columns + (0.5 * (row % 2) if rng.random() < 0.6 else 0.0)
    in_y, in_x = y * rows - row, across - np.floor(across)
    joint = rng.uniform(0.02, 0.08)
    inside = np.minimum(np.minimum(in_y, 1 - in_y), np.minimum(in_x, 1 - in_x) * 1.5) > joint
    shades = rng.uniform(0.2, 0.9, (rows + 1, columns + 1))
    own = shades[row.astype(int) % rows, np.floor(across).astype(int) % columns]
    body = mixed(own + 0.1 * noise(rng, texels, 1.0), colour(rng), colour(rng))
    return np.where(inside[..., None], body, colour(rng, 0.1) * 0.7)


def wood(rng: np.random.Generator, texels: int) -> FloatArray:
    """Planks with rings."""
    y, x = _grid(texels)
    planks = int(rng.integers(2, 9))
    plank = np.floor(y * planks)
    offsets = rng.uniform(0, 9, planks + 1)[plank.astype(int)]
    bend = cv2.resize(noise(rng, 64, 1.5), (texels, texels), interpolation=cv2.INTER_CUBIC)
    rings = np.sin(2 * np.pi * (y * planks * 5 + offsets + 0.35 * bend + 0.3 * np.sin(9 * x)))
    fibres = cv2.resize(noise(rng, texels, 0.6)[:, : texels // 16], (texels, texels))
    light = np.array([0.72, 0.52, 0.34], np.float32) * rng.uniform(0.7, 1.25, 3).astype(np.float32)
    dark = light * np.float32(rng.uniform(0.35, 0.75))
    shade = 0.5 + 0.2 * rings + 0.13 * fibres + 0.12 * np.sin(offsets * 7)
    gap = np.minimum(y * planks - plank, 1 - (y * planks - plank)) < 0.012
    return np.where(gap[..., None], 0.3 * dark, mixed(shade, dark, light)).astype(np.float32)


def marble(rng: np.random.Generator, texels: int) -> FloatArray:
    """Veins."""
    y, x = _grid(texels)
    bend = noise(rng, texels, 1.6)
    vein = np.abs(
        np.sin(2 * np.pi * (rng.integers(1, 5) * x + rng.integers(1, 5) * y) + 1.2 * bend)
    )
    shade = vein ** rng.uniform(0.3, 1) + 0.06 * noise(rng, texels, 0.8)
    return mixed(shade, colour(rng, 0.3), colour(rng, 0.3))


def spots(rng: np.random.Generator, texels: int) -> FloatArray:
    """Discs of many colours on a ground: terrazzo, confetti or wallpaper."""
    picture = np.empty((texels, texels, 3), np.float32)
    picture[:] = colour(rng)
    largest = rng.uniform(0.006, 0.05) * texels
    for _ in range(int(rng.integers(80, 500))):
        centre = tuple(int(value) for value in rng.integers(0, texels, 2))
        axes = tuple(int(value) for value in rng.uniform(0.3, 1, 2) * largest + 1)
        shade = tuple(float(value) for value in colour(rng, 0.9))
        angle = float(rng.uniform(0, 180))
        cv2.ellipse(picture, centre, axes, angle, 0, 360, shade, -1, cv2.LINE_AA)
    return picture + np.float32(rng.uniform(0, 0.04)) * noise(rng, texels, 0.6)[..., None]


def weave(rng: np.random.Generator, texels: int) -> FloatArray:
    """Cloth: threads over and under."""
    y, x = _grid(texels)
    threads = int(rng.integers(20, 90))
    over = (np.floor(x * threads) + np.floor(y * threads)) % 2
    along, across = np.abs(np.sin(np.pi * threads * x)), np.abs(np.sin(np.pi * threads * y))
    shade = 0.25 + 0.6 * np.where(over > 0, along, across) + 0.12 * noise(rng, texels, 1.1)
    return mixed(shade, colour(rng) * 0.5, colour(rng))


def plain(rng: np.random.Generator, texels: int) -> FloatArray:
    """One colour, almost without texture: 1 to 5 grey levels."""
    shade = noise(rng, texels, rng.uniform(0, 1.2))[..., None]
    return faded(colour(rng) + 0.1 * shade, rng.uniform(1, 5))


def faded(texture: FloatArray, levels: float) -> FloatArray:
    """Reduce the contrast of a texture to this standard deviation, in grey levels of 255."""
    mean = texture.mean(axis=(0, 1), keepdims=True)
    ground = np.clip(mean, 0.15, 0.85)
    return np.asarray(ground + (texture - mean) / _deviation(texture - mean) * (levels / 255))


def _deviation(texture: FloatArray) -> float:
    return max(float(texture.std()), 1e-6)


PAINTERS: tuple[Painter, ...] = (
    clouds, clouds, grain, stripes, tiles, wood, wood, marble, spots, weave, plain,
)  # fmt: skip


def crop(rng: np.random.Generator, pictures: list[FloatArray], texels: int) -> FloatArray:
    """Cut a lively square out of photographs, upright or turned, and stretch it."""
    best, liveliest = pictures[0], -1.0
    for _ in range(6):
        picture = pictures[int(rng.integers(len(pictures)))]
        side = max(1, int(min(picture.shape[:2]) * rng.uniform(0.2, 0.6)))
        top, left = (int(rng.integers(0, length - side + 1)) for length in picture.shape[:2])
        part = picture[top : top + side, left : left + side]
        blank = float((part.max(axis=2) < 0.02).mean())  # between the islands of an atlas
        liveliness = float(part.std()) - blank
        if liveliness > liveliest:
            best, liveliest = part, liveliness
    best = np.rot90(best, int(rng.integers(4)))
    result = cv2.resize(np.ascontiguousarray(best), (texels, texels), interpolation=cv2.INTER_CUBIC)
    return np.clip(result * rng.uniform(0.8, 1.2, 3), 0, 1).astype(np.float32)


def _grid(texels: int) -> tuple[FloatArray, FloatArray]:
    line = (np.arange(texels, dtype=np.float32) + np.float32(0.5)) / np.float32(texels)
    return np.broadcast_to(line[:, None], (texels, texels)), np.broadcast_to(line, (texels, texels))
