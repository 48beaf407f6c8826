"""Random scenes from a seed -> rendered light fields, for training. Arrays only, no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import Array, BoolArray, FloatArray, LightField
from oaccdepth.options import Range, RenderOptions
from oaccdepth.progress import ReportProgress, ignore
from oaccdepth.rendering import gaps, rooms
from oaccdepth.rendering.lighting import Light, Lighting
from oaccdepth.rendering.meshes import Mesh
from oaccdepth.rendering.primitives import MARGIN_PX
from oaccdepth.rendering.renderer import (
    Scene,
    find_disparity,
    find_nearness,
    find_visibility,
    gather,
    render_views,
)
from oaccdepth.rendering.rig import Numbers, Rig, camera_places
from oaccdepth.rendering.stage import Stage

Builder = Callable[[Stage], None]

# How often each kind is chosen, and the chance that gaps are put in front of it.
# Half of them are gaps and patterns: with a quarter, the network filled narrow gaps.
KINDS: tuple[tuple[Builder, float, float], ...] = (
    (rooms.table, 0.22, 0.15),
    (rooms.shelf, 0.08, 0.1),
    (rooms.corridor, 0.06, 0.15),
    (rooms.clutter, 0.11, 0.2),
    (gaps.combs, 0.24, 0.0),
    (gaps.fences, 0.09, 0.0),
    (gaps.patterns, 0.2, 0.0),
)
EVEN = Lighting((), (1.0, 1.0, 1.0), shadows=False)
FAINT, NOISY = 0.25, 0.33  # shares
CHUNK_BYTES = 1 << 29  # of linear light, rendered at a time
REPORTS = 3  # of the progress, at least; more would leave cores idle at the end of each part


@dataclass(frozen=True, eq=False)
class RenderedScene:
    """A rendered light field and the truth about it."""

    light_field: LightField
    disparity: FloatArray  # (h, w) [px], at the pixel centres of the reference view
    visibility: BoolArray | None = None  # (u, v, h, w): the reference view's point is seen there


@dataclass(frozen=True)
class Finish:
    """How the camera turns light into values."""

    brightness: float = 0.45  # of the middle grey value
    noise: float = 0.0  # deviation, on values in [0, 1]
    seed: int = 0  # of the noise


PLAIN = Finish()


def random_scene(
    seed: int,
    objects: Sequence[Sequence[Mesh]] = (),
    size: tuple[int, int] = RenderOptions.size,
    disparity_range: Range = RenderOptions.disparity_range,
) -> tuple[Scene, Finish]:
    """Build the scene of a seed; the same seed and objects give the same scene."""
    rng = np.random.default_rng([seed, 14])
    weights = np.array([weight for _, weight, _ in KINDS])
    build, _, gap_chance = KINDS[int(rng.choice(len(KINDS), p=weights / weights.sum()))]
    rig = Rig(size, max(size) * float(rng.uniform(1.1, 2.6)))
    contrast = (1.0, 5.0) if rng.random() < FAINT else None
    stage = Stage(rng, rig, objects, contrast, glossy=float(rng.choice([0, 0.1, 0.5])))
    build(stage)
    if rng.random() < gap_chance:
        gaps.in_front(stage)
    flat = build in (gaps.combs, gaps.patterns) and rng.random() < 0.6
    lighting = EVEN if flat else random_lighting(rng)
    scene = focused(Scene(tuple(stage.meshes), lighting, rig), random_range(rng, disparity_range))
    noise = float(np.exp(rng.uniform(np.log(0.004), np.log(0.2)))) if rng.random() < NOISY else 0.0
    return scene, Finish(float(rng.uniform(0.33, 0.6)), noise, seed)


def random_range(rng: np.random.Generator, limits: Range) -> Range:
    """Draw a part of the disparities; narrow ones around the middle are the most frequent."""
    whole = limits[1] - limits[0]
    shares = [(0.05, 0.25), (0.25, 0.5), (0.5, 1.0)]
    least, most = shares[int(rng.choice(3, p=[0.3, 0.5, 0.2]))]
    span = whole * float(rng.uniform(least, most))
    middle = (limits[0] + limits[1]) / 2 + float(rng.normal(0, whole / 8))
    middle = float(np.clip(middle, limits[0] + span / 2, limits[1] - span / 2))
    return middle - span / 2, middle + span / 2


def random_lighting(rng: np.random.Generator) -> Lighting:
    """Draw one to three lights from above and the camera's side, and a sky."""
    lights = []
    for number in range(int(rng.integers(1, 4))):
        strength = rng.uniform(0.7, 1.3) if number == 0 else rng.uniform(0.1, 0.5)
        direction = (rng.uniform(-1, 1), -rng.uniform(0.2, 1.2), -rng.uniform(0.15, 1.0))
        tint = 1 + rng.uniform(-0.12, 0.12, 3)
        lights.append(Light(direction, _triple(strength * tint)))
    sky = rng.uniform(0.15, 0.55) * (1 + rng.uniform(-0.1, 0.1, 3))
    return Lighting(tuple(lights), _triple(sky))


def _triple(values: Numbers) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])


def focused(scene: Scene, disparity: Range) -> Scene:
    """Move the cameras so that the reference view has exactly these disparities."""
    nearness = find_nearness(scene)
    low, high = float(nearness.min()), float(nearness.max())
    if high - low < 1e-6:  # a single plane, facing the camera
        high = low + 1e-6
    return replace(scene, rig=scene.rig.with_disparities((low, high), disparity))


def render(
    scene: Scene,
    finish: Finish = PLAIN,
    places: FloatArray | None = None,
    *,
    samples: int = RenderOptions.samples,
    with_visibility: bool = False,
    progress: ReportProgress = ignore,
) -> RenderedScene:
    """Render every view of a scene, with its exact disparity, as 8-bit pictures.

    Parameters
    ----------
    places
        Where the cameras stand, (u, v, 2) [steps]: down and right of the reference camera, which is
        that of the middle view. 9 x 9 cameras if None.
    progress
        Called with how much of the views is done, 0 to 1.
    """
    places = camera_places((9, 9)) if places is None else places
    triangles = gather(scene)
    disparity = find_disparity(triangles, scene.rig.size)
    _check_reach(disparity, places)
    visibility = find_visibility(triangles, disparity, places) if with_visibility else None
    middle = slice(places.shape[0] // 2, None), slice(places.shape[1] // 2, None)
    reference = render_views(triangles, scene.rig, places[middle][:1, :1], samples)[0, 0]
    scale = exposure(reference, finish)
    rng = np.random.default_rng([finish.seed, 41])
    views = np.empty((*places.shape[:2], *scene.rig.size, 3), np.uint8)
    # linear light of all views would fill the memory
    rows = max(1, min(CHUNK_BYTES // (4 * views[0].size), len(places) // REPORTS))
    for first in range(0, len(places), rows):
        progress("rendering", first / len(places))
        light = render_views(triangles, scene.rig, places[first : first + rows], samples)
        views[first : first + rows] = expose(light, scale, finish.noise, rng)
    light_field = LightField(
        views,
        source="rendered scene",
        format="rendered",
        reason="rendered",
        camera=scene.rig.camera(),
        disparity_range=(float(disparity.min()), float(disparity.max())),
    )
    return RenderedScene(light_field, disparity, visibility)


def _check_reach(disparity: FloatArray, places: FloatArray) -> None:
    """Refuse cameras that look beyond the walls of a scene."""
    reach = float(np.abs(places).max() * np.abs(disparity).max())
    if reach > MARGIN_PX:
        raise InvalidOption(
            f"the outermost cameras look {reach:.0f} px beyond the frame, at most {MARGIN_PX} are "
            "rendered. Use fewer cameras or smaller disparities."
        )


def exposure(reference: FloatArray, finish: Finish) -> float:
    """Factor for the light that gives the middle of the reference view this brightness."""
    middle, bright = np.percentile(reference, [50, 98])
    return float(min(finish.brightness**2 / max(middle, 1e-6), 1.0 / max(bright, 1e-6)))


def expose(light: FloatArray, scale: float, noise: float, rng: np.random.Generator) -> Array:
    """Light (u, v, h, w, 3) -> 8-bit values, with noise."""
    result = np.empty(light.shape, np.uint8)
    for index in np.ndindex(light.shape[:2]):
        # at edges corners are weighted a little below 0 or above 1, so black may be less than black
        view = np.sqrt(np.maximum(light[index] * np.float32(scale), 0))
        if noise > 0:
            view += rng.standard_normal(view.shape, np.float32) * np.float32(noise)
        result[index] = np.rint(np.clip(view, 0, 1) * 255)
    return result
