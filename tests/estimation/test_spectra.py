"""Phase correlation: where fine texture is, and that strange pictures do not agree."""

import cv2
import numpy as np
import pytest

from oaccdepth.estimation.disparity_range import estimate_range
from oaccdepth.estimation.matching import Matcher
from oaccdepth.estimation.spectra import agree_at
from oaccdepth.lightfield import LightField


def fine_texture(grid, size, near, far):
    """White noise, different from pixel to pixel: a wall, and a board over a quarter of it."""
    rng = np.random.default_rng(4)
    wall, board = rng.random((2, 3 * size, 3 * size)).astype(np.float32)
    views = np.empty((*grid, size, size, 1), np.float32)
    for u, v in np.ndindex(*grid):
        down, right = u - grid[0] // 2, v - grid[1] // 2
        y, x = (size + far * step for step in (down, right))
        views[u, v, ..., 0] = wall[y : y + size, x : x + size]
        y, x = (size // 4 - near * step for step in (down, right))
        half = size // 2
        views[u, v, y : y + half, x : x + half, 0] = board[:half, :half]
    return LightField(views)


@pytest.mark.parametrize(("grid", "near", "far"), [((5, 5), 13, -17), ((1, 5), 5, -21)])
def test_fine_texture_is_found_wherever_it_is(grid, near, far):
    """Half as large, as the coarse search sees it, nothing of it is left."""
    light_field = fine_texture(grid, 256, near, far)
    assert agree_at(Matcher(light_field)) == (far - 1, near + 1)
    found = estimate_range(light_field)
    assert found is not None
    assert far - 1 < found[0] <= far and near <= found[1] < near + 1


def test_fine_texture_is_found_behind_something_clear():
    """A comb that is matched in most of the picture; before, only that was searched."""
    light_field = fine_texture((5, 5), 256, near=0, far=-12)
    texture = np.random.default_rng(5).random((64, 64)).astype(np.float32)
    texture = cv2.resize(texture, (256, 256), interpolation=cv2.INTER_LINEAR)
    comb = np.where(np.arange(256) % 16 < 12, texture, np.nan)
    views = light_field.views.copy()
    for u, v in np.ndindex(5, 5):  # 3 px per step, in front of all
        moved = np.roll(comb, (-3 * (u - 2), -3 * (v - 2)), axis=(0, 1))
        views[u, v, ..., 0] = np.where(np.isnan(moved), views[u, v, ..., 0], moved)
    found = estimate_range(LightField(views))
    assert found is not None
    assert found[0] <= -12 and found[1] >= 3


@pytest.mark.parametrize("grid", [(5, 5), (1, 3), (1, 2)])
@pytest.mark.parametrize("content", ["black", "noise"])
def test_nothing_agrees_where_there_is_nothing(grid, content):
    shape = (*grid, 128, 160, 1)
    views = np.random.default_rng(5).random(shape) if content == "noise" else np.zeros(shape)
    assert agree_at(Matcher(LightField(views.astype(np.float32)))) is None
