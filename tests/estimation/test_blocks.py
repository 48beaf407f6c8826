"""Levels, blocks, tiles and masks: how a light field is laid out for the fast network."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from layered import scene_between

from oaccdepth import evidence
from oaccdepth.estimation import blocks
from oaccdepth.estimation.blocks import Wanted, cut_blocks, cut_views, in_tiles, plan_levels
from oaccdepth.estimation.inference import estimate
from oaccdepth.evidence import plain
from oaccdepth.evidence.views import ABSENT, thin_out
from oaccdepth.evidence.visibility import visible
from oaccdepth.lightfield import LightField
from oaccdepth.networks.fast import FastNet
from oaccdepth.options import EstimateOptions

CPU = torch.device("cpu")
LEVELS = torch.tensor([-1.0, -0.5, 0.5, 1.25])


@pytest.fixture(scope="module")
def wide():
    """3x3 views of 64x400 px."""
    return scene_between(-1.0, 1.2, size=(64, 400), grid=(3, 3))


def wanted(light_field, **others):
    return Wanted(LEVELS, 3, 64, light_field.reference_view, **others)


@given(
    low=st.floats(-40, 40), width=st.floats(0, 60), step=st.sampled_from((0.0625, 0.25, 0.3, 1.0))
)
def test_levels_cover_every_range(low, width, step):
    levels = plan_levels(low, low + width, step).double()
    assert levels[0] <= low + 1e-4 and levels[-1] >= low + width - 1e-4
    assert len(levels) % 2 == 0 and len(levels) >= 4
    np.testing.assert_allclose(levels.diff(), step, atol=1e-4)
    most = (width + 2 * blocks.LEVEL_MARGIN) / step + 6
    assert len(levels) <= most  # but not much more
    assert float(levels[0] / (2 * step)) == pytest.approx(round(float(levels[0] / (2 * step))))


def test_blocks_are_as_large_as_their_levels_allow():
    views = np.broadcast_to(np.uint8(0), (3, 3, 2000, 900, 3))
    few, many = (cut_blocks(LightField(views), count) for count in (34, 340))
    assert len(few) == 8 and len(many) > 40
    for found, count in ((few, 34), (many, 340)):
        kept = sum(
            (y.stop - y.start) * (x.stop - x.start) for y, x in (block.kept for block in found)
        )
        assert kept == 2000 * 900
        largest = max((y.stop - y.start) * (x.stop - x.start) for y, x in (b.kept for b in found))
        assert largest * count <= blocks.BLOCK_VOTES


def test_views_for_later_passes_are_cut_when_they_are_needed(wide):
    """The same ones with the same answers as if they had been kept, in noise, too."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.05, wide.light_field.views.shape)
    noisy = (wide.light_field.views + noise).clip(0, 1).astype(np.float32)
    light_field = replace(wide.light_field, views=noisy)
    network = FastNet(replace(FastNet().config, refine_views=5)).eval()
    rows = (slice(0, 64), slice(0, 400))
    some, cuts = torch.tensor([0, 2, 3, 4, 5, 7]), []

    def choose(steps):
        return some

    def later():
        few = partial(blocks.choose_later, network, choose)
        cuts.append(cut_views(light_field, wanted(light_field), rows, CPU, few))
        return cuts[-1]

    def answers(*given):
        views = cut_views(light_field, wanted(light_field), rows, CPU, choose)
        with torch.inference_mode():
            return [x.disparity for x in network.passes(views, LEVELS, 2, None, *given)]

    for kept, cut in zip(answers(), answers(later), strict=True):
        assert torch.equal(kept, cut)
    assert [len(views.steps) for views in cuts] == [5]


def test_a_region_has_the_evidence_of_the_whole(wide):
    """Votes do not depend on where a block was cut: steps, margins and corners match."""
    light_field = wide.light_field
    whole = cut_views(light_field, wanted(light_field), (slice(0, 64), slice(0, 400)), CPU)
    part = cut_views(light_field, wanted(light_field), (slice(16, 48), slice(200, 264)), CPU)
    assert whole.margin == 0 and part.margin > 0
    votes = [evidence.sweep(views, LEVELS)[:, :12].int() for views in (whole, part)]
    difference = (votes[0][..., 16:48, 200:264] - votes[1]).abs()
    assert difference.max() <= 1


def test_pictures_are_filled_up_to_a_multiple_of_8():
    views = np.full((3, 3, 20, 30, 1), 255, np.uint8)
    found = cut_views(LightField(views), Wanted(LEVELS, 1, 64, (1, 1)), np.s_[0:24, 0:32], CPU)
    assert found.size == (24, 32) and found.pictures.shape == (8, 1, 24, 32)
    assert (found.reference[:, :20, :30] == 1).all()
    assert (found.reference[:, 20:] == ABSENT).all() and (found.reference[..., 30:] == ABSENT).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_views_lie_in_memory_as_they_like(dtype):
    """Callers flip and memory-map arrays: strides may be negative, and arrays read-only."""
    values = np.random.default_rng(0).random((3, 3, 16, 24, 3))
    largest = 1 if dtype == np.float32 else np.iinfo(dtype).max
    turned = (values * largest).astype(dtype)[:, ::-1, ::-1, ::-1]
    turned.flags.writeable = False
    region = np.s_[0:16, 0:24]
    found, expected = (
        cut_views(LightField(views), Wanted(LEVELS, 1, 64, (1, 1)), region, CPU)
        for views in (turned, turned.copy())
    )
    assert torch.equal(found.pictures, expected.pictures)
    assert torch.equal(found.reference, expected.reference)


@pytest.mark.parametrize(("all_vote", "count"), [(False, 48), (True, 80)])
def test_of_a_large_grid_every_other_view_votes(all_vote, count, monkeypatch):
    voted = []
    sweep = evidence.sweep
    monkeypatch.setattr(
        evidence,
        "sweep",
        lambda views, levels: (voted.append(len(views.steps)), sweep(views, levels))[1],
    )
    views = np.random.default_rng(0).integers(0, 256, (9, 9, 16, 24, 3), np.uint8)
    light_field = LightField(views, disparity_range=(-1.0, 1.0))
    estimate(light_field, EstimateOptions(all_vote=all_vote))
    assert voted == [count]


def test_another_reference_view_is_in_the_middle_of_its_own_steps(wide):
    light_field = wide.light_field
    found = cut_views(light_field, Wanted(LEVELS, 1, 64, (0, 2)), np.s_[0:64, 0:400], CPU)
    assert found.steps.min(0).values.tolist() == [-2, 0]  # cameras further down and to the left
    assert found.steps.max(0).values.tolist() == [0, 2]
    own = torch.from_numpy(light_field.views[0, 2]).permute(2, 0, 1)
    torch.testing.assert_close(found.reference, own)


def test_steps_see_every_tile_with_its_surroundings():
    """A step that sees 64 px around a pixel gives the same result in tiles as on the whole."""
    far = torch.nn.AvgPool2d((1, 129), 1, (0, 64), count_include_pad=False)
    x = torch.rand(1, 2, 8, 300)
    tiled = in_tiles(48, (8, 300))(lambda part: (far(part), part), x)
    torch.testing.assert_close(tiled[0], far(x))
    assert torch.equal(tiled[1], x)


def test_no_answer_lies_beyond_the_levels(wide, untrained, monkeypatch):
    """Filling plain areas could go beyond, where slanted surfaces end."""
    polish = FastNet.polish

    def far_off(*given):
        answer = polish(*given)
        return replace(answer, disparity=50 * answer.disparity)

    monkeypatch.setattr(FastNet, "polish", far_off)
    options = EstimateOptions(disparity_range=(-2.0, 2.0))
    found = estimate(wide.light_field, options, network=untrained).disparity
    levels = plan_levels(-2.0, 2.0, untrained.config.level_step)
    assert found.min() == levels[0] and found.max() == levels[-1]


def test_blocks_hardly_matter(wide, untrained, monkeypatch):
    options = EstimateOptions(disparity_range=(-1.2, 1.4), iterations=2)
    whole = estimate(wide.light_field, options, network=untrained)
    monkeypatch.setattr(blocks, "BLOCK_VOTES", 14 * 128 * 128)
    assert len(cut_blocks(wide.light_field, 14)) == 4
    parts = estimate(wide.light_field, options, network=untrained)
    difference = np.abs(parts.disparity - whole.disparity)
    assert np.mean(difference > 0.01) < 0.01
    assert parts.confidence.shape == whole.confidence.shape


def tolerance_at(pictures, some, disparity, y, x):
    """Twice the median difference, plus the effect of a misfit of a quarter pixel."""
    difference = plain.differences(some, torch.from_numpy(disparity)) / 3
    noise = float(difference[difference < 1].median())
    grey = np.pad(pictures[4, 4].mean(0), 1, mode="edge")
    across, down = grey[y + 1, x + 2] - grey[y + 1, x], grey[y + 2, x + 1] - grey[y, x + 1]
    return 2 * noise + 0.25 * np.hypot(across, down) / 2


def test_masks_of_noisy_views_do_not_change_the_estimate(scene, untrained):
    """Without masks, noisy views are smoothed in place."""
    noise = np.random.default_rng(1).normal(0, 0.1, scene.light_field.views.shape)
    views = (scene.light_field.views + noise).clip(0, 1).astype(np.float32)
    noisy = replace(scene.light_field, views=views)
    options = EstimateOptions(disparity_range=(-1.5, 1.6))
    without = estimate(noisy, options, network=untrained)
    masked = estimate(noisy, replace(options, keep_masks=True), network=untrained)
    np.testing.assert_array_equal(without.disparity, masked.disparity)


def test_masks_are_literal_ones(scene, untrained):
    """Eq. 8 for differences above what noise and interpolation explain, where the map allows it.

    Elsewhere a view sees the point if it is in the frame.
    """
    valid = np.ones((9, 9), bool)
    valid[2, 3] = False
    light_field = LightField(scene.light_field.views, valid=valid)
    options = EstimateOptions(disparity_range=(-1.5, 1.6), keep_masks=True, iterations=1)
    result = estimate(light_field, options, network=untrained)
    assert not result.masks[2, 3].any() and (result.masks[4, 4] == 1).all()
    views = cut_views(light_field, wanted(light_field), (slice(0, 48), slice(0, 64)), CPU)
    some = views.only(thin_out(views.steps, blocks.MEASURED_VIEWS))
    pictures = scene.light_field.views.astype(np.float64).transpose(0, 1, 4, 2, 3)
    seen = visible(views, torch.from_numpy(result.disparity))
    free = torch.ones(9, 9, 48, 64)
    others = [(u, v) for u, v in np.ndindex(9, 9) if (u, v) not in ((2, 3), (4, 4))]
    for (u, v), one in zip(others, seen, strict=True):
        free[u, v] = one
    hidden = list(np.argwhere(free.numpy() == 0)[::997])
    assert len(hidden) > 5
    places = [(0, 0, 20, 30), (8, 3, 10, 50), (4, 5, 0, 62), *hidden]
    for u, v, y, x in places:
        found = reference.difference(
            pictures[u, v], pictures[4, 4], y, x, 0, (4 - u, 4 - v), result.disparity[y, x]
        )
        tolerance = tolerance_at(pictures, some, result.disparity, y, x)
        power = 0 if free[u, v, y, x] else 32
        expected = 0.0 if found is None else (1 - min(max(found / 3 - tolerance, 0), 1)) ** power
        assert result.masks[u, v, y, x] == pytest.approx(
            expected, abs=1e-2
        )  # ten bits, to the power of 32


@pytest.mark.parametrize("contrast", [1.0, 0.2])
def test_masks_show_what_is_hidden(scene, untrained, contrast):
    """Also behind something of nearly the same colour: the map says where to look closely."""
    views = (0.4 + contrast * (scene.light_field.views - 0.4)).astype(np.float32)
    options = EstimateOptions(disparity_range=(-1.5, 1.6), keep_masks=True)
    result = estimate(replace(scene.light_field, views=views), options, network=untrained)
    inner = (..., slice(8, -8), slice(8, -8))  # elsewhere views end
    called, hidden = result.masks[inner] < 0.5, ~scene.visibility[inner]
    both = np.count_nonzero(called & hidden)
    assert both > 0.75 * called.sum() and both > 0.7 * hidden.sum()


@pytest.mark.parametrize("keeps", [False, True])
def test_progress_counts_every_pass_and_its_masks(scene, untrained, keeps):
    told = []
    options = EstimateOptions(disparity_range=(-1.5, 1.6), keep_masks=keeps, iterations=2)
    estimate(
        scene.light_field, options, network=untrained, progress=lambda *part: told.append(part)
    )
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions) and fractions[-1] == pytest.approx(1)
    assert len(set(fractions)) == (5 if keeps else 3)
