"""The compiled renderer against rays traced one by one in plain Python."""

import numpy as np
import pytest

from oaccdepth.rendering.lighting import Light, Lighting
from oaccdepth.rendering.meshes import Material, Mesh, Texture
from oaccdepth.rendering.primitives import box, cutting, plane, sphere
from oaccdepth.rendering.renderer import (
    Scene,
    find_disparity,
    find_nearness,
    find_visibility,
    gather,
    render_views,
)
from oaccdepth.rendering.rig import Rig, camera_places
from oaccdepth.rendering.textures import noise

EVEN = Lighting((), (1.0, 1.0, 1.0), shadows=False)
SIZE = (20, 26)


def even(*colour):
    return Material(Texture(np.full((4, 4, 3), colour, np.float32)))


def speckled(seed, texels=64):
    shade = noise(np.random.default_rng(seed), texels, 1.0)
    return Material(Texture(np.clip(0.5 + 0.15 * shade[..., None] * [1, 0.5, 0.8], 0, 1)))


@pytest.fixture(scope="module")
def scene():
    """A slanted wall, with a tilted triangle and a box in front of it."""
    rig = Rig(SIZE, 30.0, beta=9.0, offset=2.0)
    facing, colour = np.array([0.3, 0.1, -1.0]), even(0.2, 0.4, 0.6)
    frame = (-20.0, -20.0, 40.0, 46.0)
    wall = plane(rig, colour, np.array([0, 0, 6.0]), facing, 10.0, frame, cells=1)
    corners = np.array([[3.3, 2.2], [21.4, 5.1], [8.2, 17.3]])
    near = cutting(rig, even(0.9, 0.1, 0.3), corners, np.array([0.3, 0.4, 0.25]), 10.0)
    turned = np.array([[0.8, -0.6, 0], [0.48, 0.64, 0.6], [-0.36, -0.48, 0.8]])
    block = box(even(0.5, 0.8, 0.1), (0.5, 0.3, 0.4), cells=1).moved(turned, (0.7, 0.5, 2.6))
    return Scene((wall, near, block), EVEN, rig)


def hits(scene, start, direction):
    """Distances along a ray at which it hits triangles, and the colours there."""
    distances, met = cross(scene, start, direction)
    return list(zip(distances[met], triangles(scene)[3][met], strict=True))


def cross(scene, start, direction):
    """Distances along a ray to the plane of each triangle, and whether it hits the triangle."""
    a, b, c, _ = triangles(scene)
    normals, others = np.cross(direction, c - a), np.cross(start - a, b - a)
    areas = dot(b - a, normals)
    with np.errstate(divide="ignore", invalid="ignore"):  # triangles parallel to the ray
        first, second = dot(start - a, normals) / areas, others @ direction / areas
        met = (np.abs(areas) >= 1e-12) & (np.minimum(first, second) >= -1e-9)
        met &= first + second <= 1 + 1e-9
        distances = dot(c - a, others) / areas
    return distances, met


def triangles(scene):
    """Corners and colours of all triangles, each (n, 3)."""
    corners = np.concatenate([mesh.points[mesh.faces] for mesh in scene.meshes]).astype(float)
    pictures = [mesh.material.texture.picture[0, 0] for mesh in scene.meshes]
    counts = [len(mesh.faces) for mesh in scene.meshes]
    return *corners.transpose(1, 0, 2), np.repeat(pictures, counts, axis=0)


def dot(first, second):
    return (first * second).sum(axis=1)


def ray(rig, u, v, y, x):
    """Origin and direction of a camera's ray at (y, x); its sensor is shifted, too."""
    middle_y, middle_x = rig.middle
    start = np.array([v * rig.baseline, u * rig.baseline, 0.0])
    # Points at disparity 0 do not move: x - d * v, d = beta / depth - offset.
    right, down = x - middle_x - rig.offset * v, y - middle_y - rig.offset * u
    return start, np.array([right / rig.focal, down / rig.focal, 1.0])  # depth grows by 1


def places_in_a_pixel(samples):
    """Offsets down and right of its centre; no two in the same row or column."""
    for i, j in np.ndindex(samples, samples):
        yield (i + (j + 0.5) / samples) / samples - 0.5, (j + (i + 0.5) / samples) / samples - 0.5


def test_disparity_is_that_of_the_nearest_surface_that_covers_enough_of_a_pixel(scene):
    disparity = find_disparity(gather(scene), SIZE)
    others = 0
    for y, x in np.ndindex(*SIZE):
        seen = []
        for down, right in places_in_a_pixel(5):
            distances, met = cross(scene, *ray(scene.rig, 0, 0, y + down, x + right))
            triangle = np.where(met, distances, np.inf).argmin()
            seen.append((scene.rig.beta / distances[triangle] - scene.rig.offset, triangle))
        seen.sort(reverse=True)
        distances, met = cross(scene, *ray(scene.rig, 0, 0, y, x))
        here = scene.rig.beta / distances[seen[9][1]] - scene.rig.offset
        expected = np.clip(here, seen[-1][0], seen[0][0])
        assert disparity[y, x] == pytest.approx(expected, abs=2e-4)
        others += abs(scene.rig.beta / distances[met].min() - scene.rig.offset - expected) > 0.05
    assert len(np.unique(np.round(disparity, 1))) > 10
    assert 5 < others < 40  # of 520 pixels: not always the surface at their centre


@pytest.mark.parametrize("place", [(0, 0), (-2, 1), (1.5, -0.25)])
def test_a_view_shows_what_its_rays_meet(scene, place):
    places = np.array([[place]], np.float32)
    light = render_views(gather(scene), scene.rig, places, samples=2)[0, 0]
    for y, x in np.ndindex(*SIZE):
        colours = []
        for down, right in places_in_a_pixel(2):
            met = hits(scene, *ray(scene.rig, *place, y + down, x + right))
            colours.append(min(met, key=lambda hit: hit[0])[1] ** 2)  # linear light
        np.testing.assert_allclose(light[y, x], np.mean(colours, axis=0), atol=2e-3)


def test_visibility_asks_what_is_first_on_the_ray_to_each_point(scene):
    triangles, places = gather(scene), camera_places((3, 3)) * np.float32(1.5)
    disparity = find_disparity(triangles, SIZE)
    visibility = find_visibility(triangles, disparity, places)
    checked = 0
    for i, j in np.ndindex(3, 3):
        u, v = (float(step) for step in places[i, j])
        for y, x in np.ndindex(*SIZE):
            own = float(disparity[y, x])
            in_y, in_x = y - own * u, x - own * v
            if not (0 <= in_y <= SIZE[0] - 1 and 0 <= in_x <= SIZE[1] - 1):
                assert not visibility[i, j, y, x]
                continue
            depths = [distance for distance, _ in hits(scene, *ray(scene.rig, u, v, in_y, in_x))]
            nearest = max(scene.rig.beta / depth - scene.rig.offset for depth in depths)
            if abs(nearest - own - 0.003) > 0.002:  # otherwise rounding decides
                assert visibility[i, j, y, x] == (nearest < own + 0.003)
                checked += 1
    assert visibility[1, 1].mean() > 0.95  # the surface with most of a pixel may miss its centre
    assert checked > 3000 and 0.05 < (~visibility).mean() < 0.6


def test_near_things_move_against_the_camera():
    rig = Rig((32, 32), 40.0, beta=4.0, offset=0.0)  # at depth 1: disparity 4, at 4: disparity 1
    wall = plane(rig, even(0, 0, 0), np.array([0, 0, 4.0]), np.array([0, 0, -1.0]), 10.0)
    square = np.array([[10.5, 12.5], [14.5, 12.5], [14.5, 20.5], [10.5, 20.5]])
    scene = Scene((wall, cutting(rig, even(1, 1, 1), square, 1.0, 10.0)), EVEN, rig)
    light = render_views(gather(scene), rig, camera_places((3, 3)))[..., 0]
    rows, columns = np.nonzero(light[1, 1] > 0.5)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (13, 20, 11, 14)
    rows, columns = np.nonzero(light[2, 1] > 0.5)  # one camera further down
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (9, 16, 11, 14)
    rows, columns = np.nonzero(light[1, 2] > 0.5)  # one camera to the right
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (13, 20, 7, 10)


def test_warping_the_views_by_the_true_disparity_gives_the_reference_where_it_is_seen():
    cv2 = pytest.importorskip("cv2")
    rig = Rig((96, 96), 130.0)
    wall = plane(rig, speckled(1), np.array([0, 0, 7.0]), np.array([0.4, 0.2, -1.0]), 150.0)
    ball = sphere(speckled(2)).moved(np.eye(3) * 0.8, (0.3, -0.2, 4.0))
    rig = rig.with_disparities((1 / 8, 1 / 3.2), (-1.0, 2.0))
    triangles = gather(Scene((wall, ball), Lighting((Light((-1, -2, -1), (1, 1, 1)),)), rig))
    disparity = find_disparity(triangles, rig.size)
    places = camera_places((5, 5))
    visibility = find_visibility(triangles, disparity, places)
    light = np.sqrt(render_views(triangles, rig, places, samples=3))
    y, x = np.mgrid[:96, :96].astype(np.float32)
    for u, v in [(0, 0), (0, 4), (4, 2), (2, 1)]:
        step_u, step_v = places[u, v]
        warped = cv2.remap(
            light[u, v], x - disparity * step_v, y - disparity * step_u, cv2.INTER_CUBIC
        )
        error = np.abs(warped - light[2, 2]).max(axis=-1)
        assert np.median(error[visibility[u, v]]) < 0.004
        assert np.quantile(error[visibility[u, v]], 0.9) < 0.03
        wrong_way = cv2.remap(
            light[u, v], x + disparity * step_v, y + disparity * step_u, cv2.INTER_CUBIC
        )
        assert np.median(np.abs(wrong_way - light[2, 2])) > 0.02


def test_shadows_are_where_the_light_does_not_arrive():
    rig = Rig((64, 64), 80.0, beta=1.0)
    wall = plane(rig, even(1, 1, 1), np.array([0, 0, 8.0]), np.array([0, 0, -1.0]), 10.0)
    board = cutting(
        rig, even(1, 1, 1), np.array([[24.0, 24], [40, 24], [40, 40], [24, 40]]), 0.25, 9.0
    )
    lighting = Lighting((Light((-1, 0, -4), (1, 1, 1)),), (0, 0, 0))  # from the left, behind us
    light = render_views(gather(Scene((wall, board), lighting, rig)), rig, camera_places((1, 1)))
    light = light[0, 0, ..., 0]
    # The board, 0.8 wide at depth 4, darkens the wall at depth 8 one unit further to the right:
    # columns 37.5 to 45.5, of which the board hides those up to 40.
    full = 4 / 17**0.5
    assert light[32, 42:45].max() < 0.01
    assert light[32, 47:50] == pytest.approx(full, abs=0.01)
    assert light[32, 26:38] == pytest.approx(full, abs=0.01)  # the board itself
    assert light[22, 42:45] == pytest.approx(full, abs=0.01)  # above its shadow


def test_gloss_changes_with_the_view_and_matt_things_do_not():
    rig = Rig((40, 40), 40.0, beta=1.0, offset=1 / 4)
    lighting = Lighting((Light((0.1, -0.1, -1), (1, 1, 1)),), (0.2, 0.2, 0.2), shadows=False)
    values = {}
    for gloss in (0.0, 0.8):
        material = Material(even(0.4, 0.4, 0.4).texture, gloss, 40.0)
        wall = plane(rig, material, np.array([0, 0, 4.0]), np.array([0, 0, -1.0]), 10.0)
        light = render_views(gather(Scene((wall,), lighting, rig)), rig, 20 * camera_places((1, 3)))
        values[gloss] = np.abs(light[0, 0] - light[0, 2]).max()  # the wall has disparity 0
    assert values[0.0] < 1e-5 and values[0.8] > 0.05


def test_far_textures_are_averaged():
    """A fine checkerboard far away is even grey: mip levels, not single texels."""
    rig = Rig((32, 32), 40.0)
    checks = np.indices((256, 256)).sum(axis=0) % 2
    material = Material(Texture(np.repeat(checks[..., None], 3, axis=2).astype(np.float32)))
    wall = plane(rig, material, np.array([0, 0, 4.0]), np.array([0, 0, -1.0]), 20.0)
    light = render_views(gather(Scene((wall,), EVEN, rig)), rig, camera_places((1, 1)))
    assert light.std() < 0.01 and light.mean() == pytest.approx(0.5, abs=0.01)


def test_what_reaches_behind_the_camera_is_left_out_and_a_hole_is_an_error():
    rig = Rig((16, 16), 20.0)
    points = np.array([[-9, -9, -2], [9, -9, -2], [0, 9, 5]], np.float32)
    face = np.array([[0, 1, 2]])
    behind = Mesh(points, face, points[:, :2], face, even(1, 1, 1))
    with pytest.raises(ValueError, match="the scene has no background"):
        find_nearness(Scene((behind,), EVEN, rig))
    wall = plane(rig, even(0, 0, 0), np.array([0, 0, 4.0]), np.array([0, 0, -1.0]), 10.0)
    nearness = find_nearness(Scene((behind, wall), EVEN, rig))
    np.testing.assert_allclose(nearness, 0.25, rtol=1e-5)
