"""render(): a scene of meshes -> light field, exact disparity, exact visibility. Arrays only.

The compiled loops are in `rasteriser.py` and `shading.py`; this module gathers meshes, lights and
textures for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from oaccdepth.compiling import run_in_threads
from oaccdepth.lightfield import Array, BoolArray, FloatArray
from oaccdepth.options import RenderOptions
from oaccdepth.rendering.lighting import SHADOW_MAP, Lighting, ambient_light, shadow_maps
from oaccdepth.rendering.meshes import IntArray, Mesh, Texture, corner_normals
from oaccdepth.rendering.rig import Rig

NEAREST = 0.05  # least depth; anything nearer, or behind the camera, is left out
TRUTH_SAMPLES = 5  # samples along each side of a pixel, to choose its surface
COVERED = 0.4  # of a pixel, which a surface must cover to be the pixel's, as in the HCI benchmark
TOLERANCE_PX = 0.003  # of disparity: a triangle this much in front hides a point


@dataclass(frozen=True, eq=False)
class Scene:
    """What there is to see, and from where."""

    meshes: tuple[Mesh, ...]
    lighting: Lighting
    rig: Rig


@dataclass(frozen=True, eq=False)
class Triangles:
    """A scene as the compiled loops take it; t triangles."""

    corners: FloatArray  # (t, 3, 3): x, y, disparity in the reference view [px]
    carried: FloatArray  # (t, 3, CARRIED)
    style: IntArray  # (t, 2): texture, material
    texels: Array  # (n, 3) uint16, linear
    levels: IntArray  # (textures, levels, 4): place in `texels`, width, height, mirrored
    materials: FloatArray  # (m, 2): gloss, sharpness
    lights: FloatArray  # (l, 7, 3)
    maps: FloatArray  # (l, size, size): shadow maps


def find_disparity(triangles: Triangles, size: tuple[int, int]) -> FloatArray:
    """Disparity of the reference view's pixels, (h, w) [px]; -inf where nothing is.

    Of several surfaces in a pixel, the nearest that covers enough of it (`COVERED`).
    """
    from oaccdepth.rendering import rasteriser

    disparity = _settle(triangles.corners, size)
    return np.where(disparity == rasteriser.NOTHING, np.float32(-np.inf), disparity)


def find_nearness(scene: Scene) -> FloatArray:
    """1 / depth of the reference view's pixels, (h, w); does not depend on the cameras' places."""
    from oaccdepth.rendering import rasteriser

    meshes = [_without_what_is_too_near(mesh) for mesh in scene.meshes]
    positions = np.concatenate([mesh.points[mesh.faces] for mesh in meshes])
    corners = replace(scene.rig, beta=1.0, offset=0.0).project(positions)
    nearness = _settle(corners, scene.rig.size)
    if (nearness == rasteriser.NOTHING).any():
        raise ValueError("the scene has no background: something must cover the whole view")
    return nearness


def _settle(corners: FloatArray, size: tuple[int, int]) -> FloatArray:
    """The third coordinate of the surface that each pixel shows, (h, w)."""
    from oaccdepth.rendering import rasteriser

    fine = (size[0] * TRUTH_SAMPLES, size[1] * TRUTH_SAMPLES)
    depth = np.full(fine, rasteriser.NOTHING, np.float32)
    owner = np.full(fine, -1, np.int32)
    rasteriser.draw(corners, 0.0, 0.0, TRUTH_SAMPLES, depth, owner)
    settled = np.empty(size, np.float32)
    needed = round(COVERED * TRUTH_SAMPLES**2)
    rasteriser.settle(corners, TRUTH_SAMPLES, needed, depth, owner, settled)
    return settled


def find_visibility(triangles: Triangles, disparity: FloatArray, places: FloatArray) -> BoolArray:
    """Whether each point of the reference view is seen in each view: (u, v, h, w)."""
    from oaccdepth.rendering import rasteriser

    seen = np.empty((places.shape[0] * places.shape[1], *disparity.shape), bool)
    steps = places.reshape(-1, 2).astype(np.float64)
    calls = (
        (triangles.corners, disparity, u, v, TOLERANCE_PX, view)
        for (u, v), view in zip(steps.tolist(), seen, strict=True)
    )
    run_in_threads(rasteriser.find_visible, calls)
    return seen.reshape(*places.shape[:2], *disparity.shape)


def render_views(
    triangles: Triangles, rig: Rig, places: FloatArray, samples: int = RenderOptions.samples
) -> FloatArray:
    """Light that arrives in each view, (u, v, h, w, 3), linear, each pixel the mean of its samples.

    Parameters
    ----------
    places
        Where the cameras stand, (u, v, 2): down and right of the reference camera [steps].
    samples
        Each pixel is the mean of samples x samples points.
    """
    from oaccdepth.rendering import shading

    steps = places.reshape(-1, 2).astype(np.float64)
    out = np.empty((len(steps), *rig.size, 3), np.float32)
    fixed = (
        (triangles.corners, triangles.carried, triangles.style),
        (triangles.texels, triangles.levels),
        triangles.materials,
        (triangles.lights, triangles.maps),
    )
    calls = (
        (*fixed, place, rig.baseline, samples, view) for place, view in zip(steps, out, strict=True)
    )
    run_in_threads(shading.draw_view, calls)
    return out.reshape(*places.shape[:2], *out.shape[1:])


def gather(scene: Scene) -> Triangles:
    """Turn a scene into what the compiled loops take: light it, and look at it from the rig."""
    meshes = [_without_what_is_too_near(mesh) for mesh in scene.meshes]
    textures = _distinct([mesh.material.texture for mesh in meshes])
    positions = np.concatenate([mesh.points[mesh.faces] for mesh in meshes])  # (t, 3, 3)
    normals = np.concatenate([corner_normals(mesh) for mesh in meshes])
    places = np.concatenate([mesh.places[mesh.place_faces] for mesh in meshes])
    style = np.concatenate(
        [
            np.tile([_index(textures, mesh.material.texture), number], (len(mesh.faces), 1))
            for number, mesh in enumerate(meshes)
        ]
    )
    casting = np.concatenate(
        [np.empty((0, 3, 3), np.float32), *(m.points[m.faces] for m in meshes if m.casts)]
    )
    lights, maps, ambient = _light(scene, positions, normals, casting)
    corners = scene.rig.project(positions)
    nearness = (1 / positions[..., 2:]).astype(np.float32)
    carried = np.concatenate([nearness, places, positions, normals, ambient], axis=-1)
    texels, levels = _stack_textures(textures)
    materials = np.array([[m.material.gloss, m.material.sharpness] for m in meshes], np.float32)
    carried = np.ascontiguousarray(carried, np.float32)
    return Triangles(corners, carried, style, texels, levels, materials, lights, maps)


def _without_what_is_too_near(mesh: Mesh) -> Mesh:
    kept = (mesh.points[mesh.faces][..., 2] > NEAREST).all(axis=1)
    return replace(mesh, faces=mesh.faces[kept], place_faces=mesh.place_faces[kept])


def _distinct(textures: Sequence[Texture]) -> list[Texture]:
    return list({id(texture): texture for texture in textures}.values())


def _index(textures: Sequence[Texture], wanted: Texture) -> int:
    return next(k for k, texture in enumerate(textures) if texture is wanted)


def _light(
    scene: Scene, positions: FloatArray, normals: FloatArray, casting: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lights (l, 7, 3), shadow maps (l, size, size) and ambient light (t, 3, 3) at the corners."""
    lighting = scene.lighting
    directions = np.array([light.direction for light in lighting.lights], np.float64).reshape(-1, 3)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lights = np.zeros((len(directions), 7, 3), np.float32)
    maps = np.full((len(directions), 8, 8), -1e9, np.float32)
    part = np.ones(positions.shape[:2], np.float32)
    if lighting.shadows and len(casting):
        if len(directions):
            maps, projections = shadow_maps(casting, directions, SHADOW_MAP)
            lights[:, 2:5], lights[:, 5] = projections[:, :, :3], projections[:, :, 3]
        # A texel of the map is a step of depth on a slanted surface: lift by a few of them.
        step = np.linalg.norm(np.ptp(casting.reshape(-1, 3), axis=0)) / SHADOW_MAP
        lights[:, 6, 0], lights[:, 6, 1] = 1.5 * step, 6 * step
        points, facing = positions.reshape(-1, 3), normals.reshape(-1, 3)
        part = ambient_light(points, facing, casting).reshape(positions.shape[:2])
    lights[:, 0] = directions
    lights[:, 1] = np.array([light.colour for light in lighting.lights]).reshape(-1, 3)
    ambient = part[..., None] * np.asarray(lighting.ambient, np.float32)
    return lights, maps, ambient


def _stack_textures(textures: Sequence[Texture]) -> tuple[Array, IntArray]:
    """All mip levels of all textures below each other, linear, with a table of where they are."""
    pyramids = [_pyramid(texture.picture) for texture in textures]
    depth = max(len(pyramid) for pyramid in pyramids)
    levels = np.zeros((len(textures), depth, 4), np.int64)
    texels: list[Array] = []
    place = 0
    for number, pyramid in enumerate(pyramids):
        for level, picture in enumerate(pyramid):
            height, width = picture.shape[:2]
            levels[number, level] = (place, width, height, textures[number].mirrored)
            texels.append(picture.reshape(-1, 3))
            place += height * width
        levels[number, len(pyramid) :] = levels[number, len(pyramid) - 1]
    return np.concatenate(texels), levels


def _pyramid(picture: FloatArray) -> list[Array]:
    """Mip levels of a texture as uint16, each half the size of the one before."""
    linear = np.clip(picture, 0, 1).astype(np.float32) ** 2  # shown value = root of the light
    levels = [linear]
    while min(levels[-1].shape[:2]) > 1:
        height, width = levels[-1].shape[:2]
        smaller = cv2.resize(
            levels[-1], (max(width // 2, 1), max(height // 2, 1)), interpolation=cv2.INTER_AREA
        )
        levels.append(np.asarray(smaller, np.float32))
    return [np.rint(level * 65535).astype(np.uint16) for level in levels]
