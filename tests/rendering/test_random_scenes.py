"""Random scenes, stress scenes and the demo's still life."""

import cv2
import numpy as np
import pytest

from oaccdepth.errors import InvalidOption
from oaccdepth.rendering import scenes, stress, textures
from oaccdepth.rendering.rig import Rig, camera_places
from oaccdepth.rendering.still_life import demo_rig

SMALL = (48, 64)
FIVE = camera_places((5, 5))


def render(seed, size=SMALL, places=FIVE, **settings):
    scene, finish = scenes.random_scene(seed, size=size, **settings)
    return scenes.render(scene, finish, places, with_visibility=True), finish


def warped(rendered, u, v, sign=1):
    """View (u, v) sampled at the points of the reference view."""
    height, width = rendered.disparity.shape
    y, x = np.mgrid[:height, :width].astype(np.float32)
    down, right = FIVE[u, v] * np.float32(sign)
    view = rendered.light_field.views[u, v].astype(np.float32) / 255
    return cv2.remap(
        view, x - rendered.disparity * right, y - rendered.disparity * down, cv2.INTER_LINEAR
    )


# the weave of seed 4 is finer than the pixels of such a small picture
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5])
def test_views_agree_where_points_are_seen(seed):
    """They agree better than with reversed disparities, and than where points are hidden."""
    rendered, finish = render(seed, disparity_range=(-2.0, 2.0))
    assert rendered.light_field.views.dtype == np.uint8
    assert -2.001 <= rendered.disparity.min() < rendered.disparity.max() <= 2.001
    reference = rendered.light_field.centre
    right, wrong = [], []
    for u, v in [(0, 0), (0, 4), (4, 0), (4, 4)]:
        seen = rendered.visibility[u, v]
        right.append(np.abs(warped(rendered, u, v) - reference).mean(axis=-1)[seen])
        wrong.append(np.abs(warped(rendered, u, v, -1) - reference).mean(axis=-1)[seen])
    right, wrong = np.concatenate(right), np.concatenate(wrong)
    assert right.mean() <= wrong.mean() + 0.002
    if finish.noise < 0.01:
        assert np.median(right) < 0.04


def test_a_seed_gives_one_scene_and_the_next_another():
    (first, _), (again, _), (other, _) = render(4), render(4), render(5)
    assert np.array_equal(first.light_field.views, again.light_field.views)
    assert np.array_equal(first.disparity, again.disparity)
    assert not np.array_equal(first.light_field.views, other.light_field.views)


def test_black_that_is_less_than_black():
    """It is caused by rounding, as at edges of scene 27: no warning, and the result is black."""
    light = np.full((1, 1, 2, 2, 3), -2e-16, np.float32)
    assert scenes.expose(light, 1.0, 0.0, np.random.default_rng(0)).max() == 0


def test_the_progress_of_a_scene():
    """It is reported even if all views fit into memory at once."""
    told = []
    scene, finish = scenes.random_scene(3, size=SMALL)
    scenes.render(scene, finish, camera_places((9, 1)), progress=lambda *part: told.append(part))
    assert told == [("rendering", 0.0), ("rendering", 1 / 3), ("rendering", 2 / 3)]


def test_scenes_are_of_many_kinds():
    ranges, noises, faint = [], [], 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 99])
        low, high = scenes.random_range(rng, (-4.0, 4.0))
        assert -4 <= low < high <= 4
        ranges.append(high - low)
    assert min(ranges) < 1 and max(ranges) > 5
    for seed in range(9):
        scene, finish = scenes.random_scene(seed, size=(16, 16))
        noises.append(finish.noise)
        contrasts = [
            float(mesh.material.texture.picture.std(axis=(0, 1)).mean()) for mesh in scene.meshes
        ]
        faint += max(contrasts) < 8 / 255
    assert 1 <= sum(noise > 0 for noise in noises) <= 7 and max(noises) <= 0.2
    assert 1 <= faint <= 5


def test_a_larger_view_shows_the_same_scene():
    small, large = (scenes.random_scene(2, size=size) for size in ((48, 48), (96, 96)))
    assert len(small[0].meshes) == len(large[0].meshes)
    assert small[1] == large[1]


def test_noise_and_brightness_are_what_was_asked_for():
    light = np.full((1, 1, 64, 64, 3), 0.3, np.float32)
    finish = scenes.Finish(brightness=0.5, noise=0.05)
    scale = scenes.exposure(light[0, 0], finish)
    values = scenes.expose(light, scale, finish.noise, np.random.default_rng(0)) / 255
    assert values.mean() == pytest.approx(0.5, abs=0.005)
    assert values.std() == pytest.approx(0.05, abs=0.003)


def test_light_that_comes_in_parts_is_the_same(monkeypatch):
    whole, _ = render(3)
    monkeypatch.setattr(scenes, "CHUNK_BYTES", 1)
    parts, _ = render(3)
    assert np.array_equal(whole.light_field.views, parts.light_field.views)


def test_cameras_that_look_beyond_the_walls_are_refused():
    scene, finish = scenes.random_scene(1, size=(16, 16), disparity_range=(2.0, 3.0))
    with pytest.raises(InvalidOption, match="the outermost cameras look"):
        scenes.render(scene, finish, camera_places((1, 201)))


@pytest.mark.parametrize("name", stress.SCENES)
def test_stress_scenes(name):
    scene, finish = stress.stress_scene(name, size=(64, 64))
    rendered = scenes.render(scene, finish, camera_places((1, 1)))
    hard = stress.SCENES[name]
    assert rendered.disparity.min() == pytest.approx(hard.disparity[0], abs=1e-3)
    assert rendered.disparity.max() == pytest.approx(hard.disparity[1], abs=1e-3)
    assert finish.noise == hard.noise


def test_a_stress_scene_is_always_the_same():
    (first, _), (again, _) = (stress.stress_scene("glossy_things", size=(64, 64)) for _ in range(2))
    for one, other in zip(first.meshes, again.meshes, strict=True):
        assert np.array_equal(one.points, other.points)


def test_the_rig_places_and_projects():
    rig = Rig((40, 60), 50.0).with_disparities((0.1, 0.5), (-1.0, 3.0))
    x, y, nearness = (
        np.array([0.0, 29.5, 59.0]),
        np.array([39.0, 19.5, 0.0]),
        np.array([0.1, 0.3, 0.5]),
    )
    projected = rig.project(rig.place(x, y, nearness))
    np.testing.assert_allclose(projected, np.stack([x, y, [-1.0, 1.0, 3.0]], -1), atol=1e-4)
    camera = rig.camera()
    assert camera is not None
    depth = camera.depth_mm(np.array([-1.0, 1.0, 3.0], np.float32), 60)
    np.testing.assert_allclose(depth, 100 / nearness, rtol=1e-4)  # a unit is 100 mm
    assert Rig((40, 60), 50.0, 1.0, -0.5).camera() is None  # parallel cameras cannot see it


def test_the_demo_has_near_and_far_and_hidden_points(demo):
    assert demo.light_field.views.shape == (9, 9, 192, 256, 3)
    assert demo.disparity.min() < -1 and demo.disparity.max() > 1.5
    assert demo.visibility is not None and 0.8 < demo.visibility.mean() < 0.995
    assert demo.light_field.camera == demo_rig((192, 256)).camera()


@pytest.mark.parametrize("seed", range(4))
def test_a_texture_cut_out_of_a_tiny_one(seed):
    """An object with a colour instead of a texture has a texture of 4x4 texels."""
    found = textures.crop(np.random.default_rng(seed), [np.full((4, 4, 3), 0.5, np.float32)], 16)
    assert found.shape == (16, 16, 3)
    assert found.min() >= 0.4 and found.max() <= 0.6
