"""The disparities that are searched: given, from the files, or found in the pictures."""

import time
from dataclasses import replace

import cv2
import numpy as np
import pytest
from layered import Plane, Surface, bars, cloud_texture, polygon, render, scene_between

from oaccdepth.errors import InvalidLightField, InvalidOption
from oaccdepth.estimation.disparity_range import (
    Coverage,
    choose_coverage,
    estimate_range,
)
from oaccdepth.lightfield import LightField
from oaccdepth.writers.scenes import with_8_bits


def covers_tightly(light_field, low, high, slack=0.8):
    """Whether the range found contains the true one and is not much wider."""
    found = estimate_range(light_field)
    assert found is not None
    assert low - slack <= found[0] <= low, found
    assert high <= found[1] <= high + slack, found


@pytest.mark.parametrize(
    ("between", "size", "slack"),
    [
        ((-1.0, 1.5), (96, 128), 0.8),
        ((0.3, 0.4), (96, 128), 0.8),
        ((9.0, 14.0), (96, 128), 0.8),
        ((-12.0, 12.0), (96, 128), 0.8),
        ((-25.0, 25.0), (160, 240), 1.0),
        ((40.0, 44.0), (160, 240), 1.0),
    ],
)
def test_the_range_is_found(between, size, slack):
    covers_tightly(scene_between(*between, size=size, grid=(5, 5)).light_field, *between, slack)


@pytest.mark.parametrize("grid", [(3, 3), (1, 9), (9, 1), (5, 9), (2, 2), (4, 6)])
def test_the_range_is_found_in_any_grid(grid):
    slack = 1.5 if max(grid) <= 3 else 0.8
    covers_tightly(scene_between(-3.0, 6.0, grid=grid).light_field, -3.0, 6.0, slack)


@pytest.fixture(scope="module")
def light_field():
    """9x9 views with disparities from -2 to 2."""
    return scene_between(-2.0, 2.0, size=(80, 112)).light_field


def test_the_range_of_a_cross_and_of_every_second_view(light_field):
    cross = np.zeros((9, 9), bool)
    cross[4], cross[:, 4] = True, True
    covers_tightly(replace(light_field, valid=cross), -2.0, 2.0)
    thinned = LightField(light_field.views[::2, ::2], places=light_field.camera_places[::2, ::2])
    covers_tightly(thinned, -2.0, 2.0)


@pytest.mark.parametrize("period", [6, 10, 16])
def test_a_repeating_pattern_takes_the_smaller_range(period):
    """Every period of the wall would fit; the board in front shows which one is right."""
    rng = np.random.default_rng(5)
    wave = 0.5 + 0.4 * np.sin(2 * np.pi * np.arange(256) / (2 * period))
    wall = np.repeat((wave[:, None] * wave)[..., None], 3, axis=2).astype(np.float32)
    board = polygon(40.0, 60.0, 22.0, 4, 0.2)
    surfaces = [
        Surface(Plane(-0.6), wall),
        Surface(Plane(1.2), cloud_texture(rng, 256, 1.0), board),
    ]
    covers_tightly(render(surfaces, (5, 5), (96, 128)).light_field, -0.6, 1.2)


def test_noise_faint_texture_and_an_empty_half(light_field):
    rng = np.random.default_rng(1)
    views = light_field.views
    noisy = np.clip(views + rng.normal(0, 0.03, views.shape), 0, 1).astype(np.float32)
    covers_tightly(LightField(noisy), -2.0, 2.0)
    covers_tightly(LightField(0.5 + (views - np.float32(0.5)) / 30), -2.0, 2.0)
    half = views.copy()
    half[:, :, :, :40] = 0.2
    covers_tightly(LightField(half), -2.0, 2.0)


@pytest.mark.parametrize("grid", [(9, 9), (3, 3), (1, 5)])
@pytest.mark.parametrize("content", ["black", "grey", "white", "noise", "faint noise"])
def test_views_without_information_are_said_to_have_none(grid, content):
    rng = np.random.default_rng(2)
    shape = (*grid, 64, 80, 1)
    views = {
        "black": np.zeros(shape, np.uint8),
        "grey": np.full(shape, 99, np.uint8),
        "white": np.full(shape, 255, np.uint8),
        "noise": rng.integers(0, 255, shape, dtype=np.uint8),
        "faint noise": rng.integers(99, 103, shape, dtype=np.uint8),
    }[content]
    assert estimate_range(LightField(views)) is None
    assert choose_coverage(LightField(views), None) == Coverage((-0.5, 0.5), "none")


def test_a_single_view_tells_nothing():
    assert estimate_range(LightField(scene_between(-1, 1, grid=(1, 1)).light_field.views)) is None


def test_the_search_takes_well_under_a_second():
    rng = np.random.default_rng(3)
    texture = cv2.GaussianBlur(rng.random((600, 600)).astype(np.float32), (0, 0), 1.5)
    views = np.stack(
        [[texture[40 + u : 552 + u, 40 + v : 552 + v, None] for v in range(9)] for u in range(9)]
    )
    start = time.process_time()
    covers_tightly(LightField(views), 1.0, 1.0)
    assert time.process_time() - start < 1.5  # 0.2 s on a quiet machine


def test_large_things_are_seen_through_strong_noise():
    """They show in reduced pictures; pure strong noise still has no range (see above)."""
    views = scene_between(-1.0, 1.5, size=(240, 240), texels=1024).light_field.views
    noise = np.random.default_rng(8).normal(0, 0.2, views.shape).astype(np.float32)
    found = estimate_range(LightField(np.clip(views + noise, 0, 1)))
    assert found is not None
    assert -3 < found[0] <= -1 and 1.4 < found[1] < 3


@pytest.mark.parametrize(("width", "at", "apart"), [(1.5, 3.0, 60.0), (2.0, 5.0, 500.0)])
def test_wires_are_in_the_range(width, at, apart):
    """They are thinner than the windows that find the range, and cover 1 % of the picture."""
    texture = cloud_texture(np.random.default_rng(2), 256, 1.0)
    dark = np.full_like(texture, 0.05)
    wires = Surface(Plane(at), dark, bars(apart, width, 0.3, 40.0))
    found = render([Surface(Plane(-1.0), texture), wires], (9, 9), (160, 192))
    covers_tightly(found.light_field, -1.0, at)


@pytest.mark.parametrize(("radius", "at", "side"), [(8.0, 1.2, 9), (16.0, 0.3, 9), (16.0, 3.0, 5)])
def test_a_plain_disc_in_front_is_in_the_range(radius, at, side):
    """One of two opposite views always agrees with the wall behind it."""
    texture = cloud_texture(np.random.default_rng(1), 512, 1.0)
    plain = np.full((8, 8, 3), (0.3, 0.6, 0.4), np.float32)
    wall, disc = Plane(-0.8), Surface(Plane(at), plain, polygon(80, 88, radius, 64))
    scene = render([Surface(wall, texture), disc], (side, side), (160, 176))
    covers_tightly(with_8_bits(scene.light_field), -0.8, at, 1.0)


def test_disparities_larger_than_the_picture_make_no_sense():
    light_field = scene_between(-1.0, 1.0, size=(24, 32), grid=(3, 3)).light_field
    with pytest.raises(InvalidOption) as caught:
        choose_coverage(light_field, (-1000.0, 1.0))
    assert str(caught.value) == (
        "--disparity-range -1000:1: the views are only 32 px long, and no point moves further "
        "between neighbours. Use a smaller range."
    )
    with pytest.raises(InvalidLightField) as refused:
        choose_coverage(replace(light_field, disparity_range=(-1.0, 1e6)), None)
    assert str(refused.value) == (
        "synthetic scene: its files give disparities from -1 to 1e+06 px, but the views are only "
        "32 px long. Correct disp_min and disp_max, or pass --disparity-range MIN:MAX."
    )


def test_what_the_user_says_comes_before_the_file_and_that_before_the_pictures():
    light_field = scene_between(-1.0, 1.0, size=(32, 32), grid=(3, 3)).light_field
    in_file = replace(light_field, disparity_range=(-2.0, 2.0))
    assert choose_coverage(in_file, (0.0, 1.0)).source == "option"
    assert choose_coverage(in_file, None).disparity_range == (-2.0, 2.0)
    assert choose_coverage(in_file, None).source == "file"
    assert choose_coverage(light_field, None).source == "estimated"


def faint_wall(levels, grid=(9, 9), at=-2.0, noise=0.0):
    """Boards at 0 and 1 px before a wall with so many grey levels of texture, in 8 bits."""
    rng = np.random.default_rng(11)
    shade = cloud_texture(rng, 256, 1.0).mean(axis=2, keepdims=True)
    shade = (shade - shade.mean()) / shade.std()
    wall = np.broadcast_to(0.8 + shade * levels / 255, (256, 256, 3)).astype(np.float32)
    surfaces = [
        Surface(Plane(at), wall),
        Surface(Plane(0.0), cloud_texture(rng, 256, 1.0), polygon(120.0, 58.0, 35.0, 4, 0.2)),
        Surface(Plane(1.0), cloud_texture(rng, 256, 1.0), polygon(96.0, 138.0, 29.0, 5, 0.5)),
    ]
    return with_8_bits(render(surfaces, grid, (160, 192), noise=noise, rng=rng).light_field)


@pytest.mark.parametrize(
    ("levels", "grid", "at", "noise"),
    [
        (0.5, (9, 9), -2.0, 0),
        (1, (9, 9), -8.0, 0),
        (1, (1, 9), -2.0, 0),
        (2, (3, 3), -2.0, 0),
        (2, (9, 9), -2.0, 2 / 255),
    ],
)
def test_a_wall_with_hardly_any_texture_is_in_the_range(levels, grid, at, noise):
    covers_tightly(faint_wall(levels, grid, at, noise), at, 1.0)


@pytest.mark.parametrize("side", [9, 5])
def test_a_dull_wall_in_strong_noise_is_in_the_range(side):
    """It shows in no single view, but in means of many."""
    found = estimate_range(faint_wall(12, (side, side), noise=0.1))
    assert found is not None
    assert -4.0 < found[0] <= -2.0 and 1.0 <= found[1] < 3.0


@pytest.mark.parametrize("noise", [0, 2 / 255])
def test_a_wall_without_texture_needs_no_range(noise):
    """Nothing shows where it is; noise is not texture."""
    covers_tightly(faint_wall(0, noise=noise), 0.0, 1.0)


@pytest.mark.parametrize(
    ("between", "grid"),
    [
        ((-30.0, 30.0), (1, 9)),
        ((20.0, 80.0), (3, 3)),
        ((-120.0, -118.0), (3, 3)),
        pytest.param((-30.0, 30.0), (5, 5), marks=pytest.mark.slow),
        pytest.param((0.0, 60.0), (3, 3), marks=pytest.mark.slow),
        pytest.param((-60.0, 0.0), (3, 3), marks=pytest.mark.slow),
        pytest.param((100.0, 101.0), (1, 9), marks=pytest.mark.slow),
        pytest.param((60.0, 60.1), (5, 5), marks=pytest.mark.slow),
    ],
)
def test_wide_ranges_anywhere_within_the_picture(between, grid):
    scene = scene_between(*between, size=(240, 320), grid=grid, texels=1024)
    covers_tightly(scene.light_field, *between)


@pytest.mark.parametrize("shear", [-7, -1, 0.37, 3, 12.5])
def test_a_refocused_light_field_has_the_same_range_elsewhere(light_field, shear):
    """Views shifted relative to each other, with cubic interpolation and without a border."""
    moved = np.zeros_like(light_field.views)
    height, width = light_field.resolution
    for u, v in np.ndindex(*light_field.grid):
        by = np.array([[1.0, 0, shear * (v - 4)], [0, 1, shear * (u - 4)]])
        flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
        moved[u, v] = cv2.warpAffine(light_field.views[u, v], by, (width, height), flags=flags)
    covers_tightly(LightField(np.clip(moved, 0, 1)), -2.0 + shear, 2.0 + shear, 1.0)


NOISES = [(grid, blur) for grid in ((1, 9), (9, 1), (1, 3), (3, 3), (9, 9)) for blur in (6, 12)]


@pytest.mark.parametrize(
    ("grid", "blur"),
    [
        pytest.param(*noise, marks=() if noise in (((9, 1), 6), ((3, 3), 12)) else pytest.mark.slow)
        for noise in NOISES
    ],
)
def test_pictures_that_have_nothing_to_do_with_each_other(grid, blur):
    """Smooth noise, different in each view: there are always some accidental matches."""
    rng = np.random.default_rng(3)
    views = np.empty((*grid, 160, 192, 1), np.float32)
    for view in np.ndindex(*grid):
        smooth = cv2.GaussianBlur(rng.standard_normal((160, 192)), (0, 0), blur)
        views[view] = 0.5 + 0.2 * smooth[..., None] / smooth.std()
    assert estimate_range(LightField(np.clip(views, 0, 1))) is None
