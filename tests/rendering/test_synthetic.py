import time

import cv2
import numpy as np
import pytest

from oaccdepth.rendering.surfaces import (
    Outline,
    Plane,
    Sphere,
    Surface,
    Wave,
    bars,
    cloud_texture,
    lattice,
    leaves,
    plain_texture,
    polygon,
    speckle_texture,
    weave_texture,
)
from oaccdepth.rendering.synthetic import demo_scene, random_scene, render


def texture(seed=0, texels=128):
    return cloud_texture(np.random.default_rng(seed), texels, 1.2)


def warped_to_centre(scene, u, v):
    """View (u, v) sampled where, by `LightField`'s convention, the centre's points lie."""
    rows, columns = scene.light_field.grid
    y, x = np.mgrid[: scene.disparity.shape[0], : scene.disparity.shape[1]].astype(np.float32)
    y = y - scene.disparity * (u - rows // 2)
    x = x - scene.disparity * (v - columns // 2)
    view = scene.light_field.views[u, v]
    return cv2.remap(view, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)


def away_from_edges(disparity, jump=0.5):
    """Pixels whose neighbours belong to the same surface; others mix two colours."""
    size = np.ones((7, 7), np.uint8)
    return cv2.dilate(disparity, size) - cv2.erode(disparity, size) < jump


def test_views_agree_where_the_points_are_seen(scene):
    centre = scene.light_field.centre
    inner = away_from_edges(scene.disparity)
    for u, v in np.ndindex(scene.light_field.grid):
        error = np.abs(warped_to_centre(scene, u, v) - centre).max(axis=-1)
        seen = scene.visibility[u, v] & inner
        assert np.percentile(error[seen], 90) < 0.03
        assert error[seen].mean() < 0.012


def test_hidden_points_do_not_agree(scene):
    # At least the larger part of them: a hidden point may have its occluder's colour by chance.
    hidden = ~scene.visibility[0, 0]
    hidden[:8] = hidden[-8:] = hidden[:, :8] = hidden[:, -8:] = False  # outside the view's frame
    assert hidden.sum() > 50
    error = np.abs(warped_to_centre(scene, 0, 0) - scene.light_field.centre).max(axis=-1)
    assert np.median(error[hidden]) > 0.05


def test_nearer_moves_right_in_views_to_the_left_and_down_in_views_above():
    scene = render([Surface(Plane(2.0), texture())], (3, 3), (32, 32))
    views = scene.light_field.views
    # d = 2: the centre's (y, x) lies at (y + 2, x) one view up, and at (y, x + 2) one to the left.
    np.testing.assert_allclose(views[0, 1, 2:], views[1, 1, :-2], atol=1e-2)
    np.testing.assert_allclose(views[1, 0, :, 2:], views[1, 1, :, :-2], atol=1e-2)


def test_a_slanted_plane_is_exact():
    plane = Plane(0.3, 0.02, -0.01)
    y, x = np.mgrid[:20, :30].astype(np.float32)
    disparity = plane.seen_from(3, -4, y, x)
    np.testing.assert_allclose(plane(y + 3 * disparity, x - 4 * disparity), disparity, atol=1e-5)


@pytest.mark.parametrize(
    "shape", [Sphere(16, 16, 12, 0.5, 0.4), Wave(Plane(0.2, 0.01, 0.01), 0.3, 0.1, 0.1)]
)
def test_a_curved_surface_is_solved(shape):
    y, x = np.mgrid[:32, :32].astype(np.float32)
    disparity = Surface(shape, texture()).seen_from(4, -4, y, x)
    again = shape(y + 4 * disparity, x - 4 * disparity)
    np.testing.assert_allclose(again, disparity, atol=1e-3)


def test_a_surface_that_folds_over_is_refused():
    steep = Surface(Sphere(16, 16, 4, 0.0, 3.0), texture())
    with pytest.raises(ValueError, match="so steep that it hides parts of itself"):
        render([Surface(Plane(0.0), texture()), steep], (9, 9), (32, 32))


def test_a_scene_needs_a_background():
    with pytest.raises(ValueError, match="no background"):
        render([Surface(Plane(0.0), texture(), bars(10, 5))], (3, 3), (16, 16))


def brute_force_visibility(surfaces, scene, u, v, density=6):
    """Splat a dense cloud of points of every surface into view (u, v); nearest per cell wins.

    Points of the centre view are then seen if nothing near them in the view is clearly nearer. It
    never solves for a disparity, unlike the renderer.
    """
    height, width = scene.disparity.shape
    rows, columns = scene.light_field.grid
    step_u, step_v = u - rows // 2, v - columns // 2
    margin = 24
    y, x = np.meshgrid(
        np.arange(-margin, height + margin, 1 / density, dtype=np.float32),
        np.arange(-margin, width + margin, 1 / density, dtype=np.float32),
        indexing="ij",
    )
    nearest = np.full((height * density, width * density), -np.inf)
    for surface in surfaces:
        disparity = surface.disparity(y, x)
        inside = (
            np.ones(y.shape, bool) if surface.outline is None else surface.outline.inside(y, x) > 0
        )
        cell_y = np.floor((y - disparity * step_u + 0.5) * density).astype(int)
        cell_x = np.floor((x - disparity * step_v + 0.5) * density).astype(int)
        inside &= (cell_y >= 0) & (cell_y < nearest.shape[0])
        inside &= (cell_x >= 0) & (cell_x < nearest.shape[1])
        np.maximum.at(nearest, (cell_y[inside], cell_x[inside]), disparity[inside])
    cy, cx = np.mgrid[:height, :width]
    at_y, at_x = cy - scene.disparity * step_u, cx - scene.disparity * step_v
    framed = (at_y >= 0) & (at_y <= height - 1) & (at_x >= 0) & (at_x <= width - 1)
    cell_y = np.clip(np.floor((at_y + 0.5) * density), 0, nearest.shape[0] - 1).astype(int)
    cell_x = np.clip(np.floor((at_x + 0.5) * density), 0, nearest.shape[1] - 1).astype(int)
    return framed & (nearest[cell_y, cell_x] <= scene.disparity + 0.1)


def test_visibility_is_what_brute_force_finds():
    sphere = Sphere(14, 12, 7, 0.3, 0.2)
    surfaces = [
        Surface(Plane(-1.0, 0.005, 0.01), texture(1)),
        Surface(sphere, texture(2), sphere.outline()),
        Surface(Plane(1.2, 0.0, 0.01), texture(3), polygon(20, 24, 5, 4, 0.3)),
        Surface(Plane(2.0), texture(4), bars(100.0, 3.0, 0.5, 22.0)),
    ]
    scene = render(surfaces, (5, 5), (32, 36))
    for u, v in [(0, 0), (0, 4), (1, 2), (4, 1), (2, 2)]:
        found = brute_force_visibility(surfaces, scene, u, v)
        # They differ only where an occluder's edge passes through the cell: within 1/6 px of it.
        assert (found != scene.visibility[u, v]).mean() < 0.02
    assert scene.visibility[2, 2].all()
    assert not scene.visibility[0, 0].all()


def test_bounds_of_an_outline_change_nothing():
    outline = leaves([(10.0, 8.0), (22.0, 20.0)], 12.0, 5.0)
    shape = Plane(1.5, 0.01, -0.02)
    background = Surface(Plane(-1.0), texture(1))
    bounded = render([background, Surface(shape, texture(2), outline)], (5, 5), (32, 32))
    boundless = Surface(shape, texture(2), Outline(outline.inside))
    everywhere = render([background, boundless], (5, 5), (32, 32))
    np.testing.assert_array_equal(bounded.light_field.views, everywhere.light_field.views)
    np.testing.assert_array_equal(bounded.disparity, everywhere.disparity)


def test_edges_are_antialiased():
    dark, bright = np.zeros((64, 64, 3), np.float32), np.ones((64, 64, 3), np.float32)
    surfaces = [Surface(Plane(0.0), dark), Surface(Plane(1.0), bright, bars(100, 6, 0.3, 16))]
    values = np.unique(render(surfaces, (1, 1), (32, 32)).light_field.views)
    assert set(values) == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_the_same_scene_is_rendered_again():
    first, second = demo_scene((48, 64), (3, 3)), demo_scene((48, 64), (3, 3))
    np.testing.assert_array_equal(first.light_field.views, second.light_field.views)
    np.testing.assert_array_equal(first.disparity, second.disparity)
    one, other = (random_scene(np.random.default_rng(3), (3, 3), (32, 32)) for _ in range(2))
    np.testing.assert_array_equal(one.light_field.views, other.light_field.views)


def test_the_demo_has_near_and_far_and_hidden_points():
    scene = demo_scene(grid=(3, 3))
    assert scene.light_field.views.shape == (3, 3, 192, 256, 3)
    assert scene.light_field.views.dtype == np.float32
    assert scene.disparity.min() < -1.5 and scene.disparity.max() > 1.5
    assert 0.8 < scene.visibility.mean() < 0.995
    assert scene.light_field.camera is not None
    depth = scene.light_field.camera.depth_mm(scene.disparity, 256)
    assert np.isfinite(depth).all()


@pytest.mark.parametrize("seed", range(8))
def test_random_scenes_are_sound(seed):
    scene = random_scene(np.random.default_rng(seed), (5, 5), (40, 40), (-2.0, 3.0))
    views = scene.light_field.views
    assert views.min() >= 0 and views.max() <= 1 and np.isfinite(views).all()
    assert scene.disparity.min() >= -2.001 and scene.disparity.max() <= 3.001
    seen = scene.visibility & away_from_edges(scene.disparity, 0.4)
    errors = [
        np.abs(warped_to_centre(scene, u, v) - scene.light_field.centre).mean(axis=-1)[seen[u, v]]
        for u, v in np.ndindex(5, 5)
    ]
    assert np.median(np.concatenate(errors)) < 0.04  # noise of up to 0.02 in each of the two


@pytest.mark.slow
def test_random_scenes_are_made_quickly():
    start = time.process_time()
    for seed in range(3):
        random_scene(np.random.default_rng(seed))
    assert (time.process_time() - start) / 3 < 1.0  # about 0.4 s on one core


def test_noise_is_what_was_asked_for():
    surfaces = [Surface(Plane(0.0), np.full((32, 32, 3), 0.5, np.float32))]
    views = render(surfaces, (3, 3), (32, 32), noise=0.02).light_field.views
    assert abs(views.std() - 0.02) < 0.001


@pytest.mark.parametrize("make", [cloud_texture, weave_texture, speckle_texture, plain_texture])
def test_textures_are_periodic_and_in_range(make):
    made = make(np.random.default_rng(1), 64)
    assert made.shape == (64, 64, 3) and made.dtype == np.float32
    assert made.min() >= 0 and made.max() <= 1
    across, inside = np.abs(made[0] - made[-1]).mean(), np.abs(made[1:] - made[:-1]).mean()
    assert across < 3 * inside + 1e-3  # no seam


def test_outlines():
    y, x = np.mgrid[:21, :21].astype(np.float32)
    upright = bars(10, 3).inside(y, x) > 0
    assert upright[:, [0, 1, 9, 10, 11, 20]].all() and not upright[:, 2:9].any()
    net = lattice(10, 3).inside(y, x) > 0
    assert net[10].all() and net[:, 10].all() and not net[5, 5]
    square = polygon(10, 10, 4, 4).inside(y, x) > 0
    assert square[7:14, 7:14].all() and not square[5].any() and not square[:, 15].any()
    leaf = leaves([(10.0, 10.0)], 12, 4).inside(y, x) > 0
    assert leaf[10, 5:16].all() and not leaf[10, 3] and not leaf[13, 10]
