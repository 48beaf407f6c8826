"""Tiles cover the picture exactly once, aligned, with margins inside the picture only."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oaccdepth.estimation.tiles import plan_tiles, put


@given(
    height=st.integers(1, 300),
    width=st.integers(1, 300),
    tile=st.integers(1, 200),
    margin=st.integers(0, 70),
    alignment=st.sampled_from([1, 8]),
)
def test_every_pixel_is_kept_once(height, width, tile, margin, alignment):
    counts = np.zeros((height, width), int)
    for part in plan_tiles(height, width, tile, margin, alignment):
        counts[part.kept] += 1
        for side, kept, length in zip(part.region, part.kept, (height, width), strict=True):
            end = -(-length // alignment) * alignment
            assert side.start % alignment == 0
            assert side.stop % alignment == 0 or side.stop == end
            assert side.start <= max(0, kept.start - margin)
            assert side.stop >= min(end, kept.stop + margin)
            assert side.start >= 0
            assert side.stop <= end
    assert (counts == 1).all()


def test_what_is_kept_is_found_in_the_region():
    picture = np.arange(40 * 50).reshape(40, 50)
    for part in plan_tiles(40, 50, 16, 8, 8):
        region = np.pad(picture, 8)[
            8 + part.region[0].start : 8 + part.region[0].stop,
            8 + part.region[1].start : 8 + part.region[1].stop,
        ]
        assert (region[part.kept_in_region] == picture[part.kept]).all()


@pytest.mark.parametrize("side", [100, 512, 576])
def test_a_picture_of_up_to_a_tile_is_one(side):
    assert len(plan_tiles(side, side, 576, 64, 8)) == 1


def test_tiles_become_the_whole_picture():
    values = torch.arange(2 * 40 * 56, dtype=torch.float32).reshape(2, 40, 56)
    tiles = plan_tiles(40, 56, 24, 4, 1)
    assert len(tiles) > 4
    whole = None
    for tile in tiles:
        whole = put(whole, values[(..., *tile.region)], tile, (40, 56))
    assert torch.equal(whole, values)
