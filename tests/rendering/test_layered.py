"""Two renderers without common code, compared: triangles in a z-buffer, and analytic layers."""

import cv2
import layered
import numpy as np
import pytest
from layered import Plane, Surface, bars, cloud_texture

from oaccdepth.rendering.lighting import Lighting
from oaccdepth.rendering.meshes import Material, Texture
from oaccdepth.rendering.primitives import cutting
from oaccdepth.rendering.renderer import (
    Scene,
    find_disparity,
    find_visibility,
    gather,
    render_views,
)
from oaccdepth.rendering.rig import Rig, camera_places

SIZE = (40, 52)
EVEN = Lighting((), (1.0, 1.0, 1.0), shadows=False)


@pytest.fixture(scope="module")
def pictures():
    return [cloud_texture(np.random.default_rng(seed), 128, 1.4) for seed in range(3)]


@pytest.fixture(scope="module")
def layers(pictures):
    """A slanted wall, a tilted square, a bar."""
    square = layered.polygon(18.0, 20.0, 9.0, 4, 0.3)
    return layered.render(
        [
            Surface(Plane(-1.2, 0.01, 0.015), pictures[0]),
            Surface(Plane(0.2, 0.0, 0.02), pictures[1], square),
            Surface(Plane(2.0), pictures[2], bars(300.0, 4.0, 0.2, 40.0)),
        ],
        (5, 5),
        SIZE,
        samples=2,
    )


@pytest.fixture(scope="module")
def triangles(pictures):
    """The same scene made of triangles."""
    # So far away that perspective does not matter: layers have none in their textures.
    rig = Rig(SIZE, 60.0, beta=1000.0, offset=1000.0)

    def flat(outline, plane, picture):
        disparity = plane.level + plane.by_y * outline[:, 1] + plane.by_x * outline[:, 0]
        # Layered textures are linear light, sampled at texels, and 64 px wide.
        material = Material(Texture(np.sqrt(picture), mirrored=False))
        mesh = cutting(rig, material, outline, (disparity + rig.offset) / rig.beta, 64.0)
        mesh.places[:] += 0.5 / 128
        return mesh

    wall = np.array([[-40.0, -40], [100, -40], [100, 90], [-40, 90]])
    angles = 0.3 + np.pi / 4 + np.pi / 2 * np.arange(4)
    corners = np.stack([np.cos(angles), np.sin(angles)], -1) * 9 * 2**0.5 + [20, 18]
    along, across = np.array([-np.sin(0.2), np.cos(0.2)]), np.array([np.cos(0.2), np.sin(0.2)])
    ends = [(-80, -2), (80, -2), (80, 2), (-80, 2)]
    bar = np.array([across * (40 + side) + along * way for way, side in ends])
    meshes = (
        flat(wall, Plane(-1.2, 0.01, 0.015), pictures[0]),
        flat(corners, Plane(0.2, 0.0, 0.02), pictures[1]),
        flat(bar, Plane(2.0), pictures[2]),
    )
    scene = Scene(meshes, EVEN, rig)
    return rig, gather(scene)


def test_disparities_are_the_same(layers, triangles):
    disparity = find_disparity(triangles[1], SIZE)
    same = np.abs(disparity - layers.disparity) < 1e-3
    low, high = (morph(layers.disparity, np.ones((3, 3))) for morph in (cv2.erode, cv2.dilate))
    assert same[high - low < 0.2].all()  # layers use the pixel's centre, so edges differ
    assert 0.98 < same.mean() < 0.998
    assert (disparity > layers.disparity)[~same].mean() > 0.8  # the nearer one needs less than half


def test_visibility_is_the_same(layers, triangles):
    visibility = find_visibility(triangles[1], layers.disparity, camera_places((5, 5)))
    assert (visibility == layers.visibility).mean() > 0.998
    assert 0.03 < (~visibility).mean() < 0.3


def test_views_are_the_same_up_to_the_places_of_samples(layers, triangles):
    rig, corners = triangles
    light = render_views(corners, rig, camera_places((5, 5)), samples=2)
    for u, v in [(0, 0), (2, 2), (4, 1)]:
        difference = np.abs(light[u, v] - layers.light_field.views[u, v]).max(axis=-1)
        assert np.median(difference) < 0.004
        assert (difference > 0.05).mean() < 0.1  # edges, which they sample at different positions


def test_the_layers_agree_where_their_points_are_seen(layers):
    """This shows that both are right, not wrong in the same way."""
    y, x = np.mgrid[: SIZE[0], : SIZE[1]].astype(np.float32)
    centre = layers.light_field.centre
    for u, v in [(0, 0), (0, 4), (4, 2)]:
        down, right = layers.disparity * (u - 2), layers.disparity * (v - 2)
        warped = cv2.remap(layers.light_field.views[u, v], x - right, y - down, cv2.INTER_CUBIC)
        error = np.abs(warped - centre).max(axis=-1)
        assert np.median(error[layers.visibility[u, v]]) < 0.01
        hidden = ~layers.visibility[u, v]
        hidden[:6] = hidden[-6:] = hidden[:, :6] = hidden[:, -6:] = False  # out of the frame
        assert hidden.sum() > 20 and np.median(error[hidden]) > 0.03
