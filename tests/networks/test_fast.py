"""The compact network: evidence against literal loops, masks, smaller arrays, reach."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch

from oaccdepth.evidence.sweep import (
    ABSENT,
    FIT_STEP,
    FIT_TOLERANCE,
    RESIDUAL_GAIN,
    fit,
    interpolate_levels,
    power,
    presence,
    warp,
    with_presence,
)
from oaccdepth.networks.edges import average_surface
from oaccdepth.networks.fast import PLACE_RADII, FastConfig, FastNet, places
from oaccdepth.networks.paper import angular_patch

SMALL = FastConfig(channels=(16, 16, 16, 16), refine_channels=(16, 16, 16, 16))
MARGIN = SMALL.margin
H, W = 16, 24


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(3)


def random_network(config=SMALL):
    """Untrained, but with norms and outputs that do something."""
    network = FastNet(config).eval()
    for name, parameter in network.named_parameters():
        if parameter.ndim < 2 or "out.weight" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.2)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d | torch.nn.BatchNorm3d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    return network


def random_views(grid=(9, 9), b=1, h=H, w=W):
    """Smooth enough that sub-pixel samples mean something."""
    views = torch.rand(b * grid[0] * grid[1], 1, h + 2 * MARGIN, w + 2 * MARGIN)
    views = torch.nn.functional.avg_pool2d(views, 5, 1, 2)
    return views.view(b, *grid, h + 2 * MARGIN, w + 2 * MARGIN)


@pytest.mark.parametrize("d", range(-4, 5))
def test_angular_patch_is_equation_1(d):
    views = random_views((3, 5))
    patch = angular_patch(views, d, MARGIN)[0].numpy()
    for y, x in [(0, 0), (H - 1, 3), (5, W - 1)]:
        expected = reference.angular_patch(views[0].numpy(), y + MARGIN, x + MARGIN, d)
        np.testing.assert_array_equal(patch[:, :, y, x], expected)


def test_sweep_evidence_is_the_literal_one():
    network, views = FastNet(SMALL), random_views()
    views[0, 2, 3] = ABSENT
    evidence, votes = network.sweep_evidence(views)
    evidence = evidence.view(9, 2, 9, 9, H, W)
    y, x, level = 7, 11, 6  # disparity 2
    centre = views[0, 4, 4, y + MARGIN, x + MARGIN].item()
    residuals, saturated = np.zeros((9, 9)), np.zeros((9, 9))
    for u in range(9):
        for v in range(9):
            sample = views[0, u, v, y + MARGIN + (4 - u) * 2, x + MARGIN + (4 - v) * 2].item()
            if sample >= 0:
                residuals[u, v] = RESIDUAL_GAIN * (sample - centre) * 81 / 80
                saturated[u, v] = min(1, SMALL.vote_gain * abs(sample - centre)) * 81 / 80
    np.testing.assert_allclose(evidence[level, 0, :, :, y, x], residuals, atol=1e-5)
    np.testing.assert_allclose(evidence[level, 1, :, :, y, x], saturated, atol=1e-5)
    np.testing.assert_allclose(votes[0, level, y, x], saturated.mean(), atol=1e-6)


def test_warp_is_bilinear_sampling_at_equation_6():
    views = random_views((3, 5))
    disparity = torch.rand(1, 2, H, W) * 6 - 3
    samples = torch.stack(warp(views, disparity, MARGIN), 1).view(2, 3, 5, H, W).numpy()
    picture = views[0].numpy()
    for n, u, v, y, x in [(0, 0, 0, 3, 4), (1, 2, 4, 15, 23), (1, 1, 2, 0, 0), (0, 2, 1, 8, 20)]:
        d = disparity[0, n, y, x].item()
        expected = reference.bilinear(
            picture[u, v], y + MARGIN + (1 - u) * d, x + MARGIN + (2 - v) * d
        )
        assert samples[n, u, v, y, x] == pytest.approx(expected, abs=1e-4)


def test_samples_fade_at_the_edge_of_a_picture():
    views = torch.full((1, 3, 3, H + 2 * MARGIN, W + 2 * MARGIN), ABSENT)
    views[..., MARGIN:-MARGIN, MARGIN:-MARGIN] = 0.5
    for shift, expected in [(0.0, 1.0), (0.25, 0.5), (0.5, 0.0), (2.0, 0.0)]:
        pictures = with_presence(views)
        samples = warp(pictures, torch.full((1, 1, H, W), -shift), MARGIN)[0]
        there = presence(samples[:, :, 1])
        right_view = there.view(3, 3, H, W)[1, 2]  # sampled `shift` to the right
        torch.testing.assert_close(right_view[3, -1], torch.tensor(expected), atol=1e-4, rtol=0)
        assert right_view[3, 5] == pytest.approx(1, abs=1e-4)


def test_mask_of_a_refinement_is_equation_8():
    network, views = FastNet(SMALL), random_views()
    candidates = torch.zeros(1, 5, H, W) + torch.arange(-2, 3).view(1, 5, 1, 1) * 0.25 + 1
    _, _, mask, relative = network.warp_evidence(with_presence(views), candidates)
    centre = network.centre(views)
    moved = angular_patch(views, 1, MARGIN)
    expected = (1 - (moved - centre[:, None, None]).abs()) ** SMALL.decay
    expected[:, 4, 4] = 1
    torch.testing.assert_close(mask.view(1, 9, 9, H, W), expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(relative.mean(1), torch.ones(1, H, W))


@pytest.mark.parametrize("grid", [(3, 3), (5, 9), (7, 7)])
def test_a_smaller_array_is_the_full_one_with_absent_views(grid):
    network, small = random_network(), random_views(grid)
    full = torch.full((1, 9, 9, *small.shape[-2:]), ABSENT)
    top, left = (9 - grid[0]) // 2, (9 - grid[1]) // 2
    full[:, top : top + grid[0], left : left + grid[1]] = small
    with torch.no_grad():
        for ours, expected in zip(network(small, 3), network(full, 3), strict=True):
            torch.testing.assert_close(ours.disparity, expected.disparity, atol=2e-3, rtol=0)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 6.0, 8.0, 0.5])
def test_powers(exponent):
    x = torch.rand(50)
    torch.testing.assert_close(power(x.clone(), exponent), x**exponent)


def test_absent_samples_change_nothing_whatever_they_hold():
    network, views = random_network(), random_views()
    views[0, 1, 2] = ABSENT
    other = views.clone()
    other[0, 1, 2] = 7 * ABSENT
    with torch.no_grad():
        assert torch.equal(network(views)[-1].disparity, network(other)[-1].disparity)


def test_strips_make_no_difference(monkeypatch):
    """Training takes all rows at once, inference a few at a time."""
    monkeypatch.setattr("oaccdepth.networks.fast.STRIP_SAMPLES", 1 << 17)
    network, views = random_network(), random_views(h=40, w=40)
    context, shared = torch.rand(1, 16, 40, 40), torch.rand(1, 16, 40, 40)
    candidates, each = torch.rand(1, 5, 40, 40), torch.rand(1, 5, 3, 40, 40)
    with torch.no_grad():
        inferred = network.sweep(views, context)
        closer = network.look_closer(views, candidates, shared, each)
        assert len(network._strips(views, 9)) > 1
        state = network.first_pass(views)[0]
        polished = network.polish(views, state)
        monkeypatch.undo()
        assert len(network._strips(views, 2)) == 1
        whole = network.polish(views, state)
        torch.testing.assert_close(polished.disparity, whole.disparity, atol=1e-5, rtol=0)
        network.training = True  # its norms do as before
        trained = network.sweep(views, context)
        closer_trained = network.look_closer(views, candidates, shared, each)
    for ours, expected in zip(inferred + closer, trained + closer_trained, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)


def test_an_untrained_network_is_a_plane_sweep():
    """The classical answer alone finds a textured plane."""
    torch.manual_seed(0)
    texture = torch.rand(H + 2 * MARGIN + 32, W + 2 * MARGIN + 32)
    views = torch.stack(
        [
            texture[16 + 2 * (u - 4) :, 16 + 2 * (v - 4) :][: H + 2 * MARGIN, : W + 2 * MARGIN]
            for u in range(9)
            for v in range(9)
        ]
    ).view(1, 9, 9, H + 2 * MARGIN, W + 2 * MARGIN)
    with torch.no_grad():
        passes = FastNet(SMALL).eval()(views, 2)
    assert (passes[0].disparity - 2).abs().max() < 0.05
    assert (passes[1].disparity - 2).abs().max() < 0.05


def test_nothing_beyond_the_receptive_margin_matters():
    network = random_network()
    side = 2 * SMALL.receptive_margin + 24
    views = random_views(h=side, w=side)
    far = views.clone()
    far[..., : MARGIN + 8, :] = torch.rand_like(far[..., : MARGIN + 8, :])
    far[..., -MARGIN - 8 :] = torch.rand_like(far[..., -MARGIN - 8 :])
    kept = slice(8 + SMALL.receptive_margin, side - 8 - SMALL.receptive_margin)
    with torch.no_grad():
        first, _ = network.first_pass(views)
        other, _ = network.first_pass(far)
        # the views' own margin: samples of up to 16 px further away
        inner = slice(kept.start + MARGIN, kept.stop)
        assert not torch.equal(first.disparity, other.disparity)
        torch.testing.assert_close(
            first.disparity[:, inner, : kept.stop - MARGIN],
            other.disparity[:, inner, : kept.stop - MARGIN],
            atol=1e-5,
            rtol=0,
        )


def test_interpolation_between_levels():
    logits = torch.arange(9.0).view(1, 9, 1, 1) ** 2
    position = torch.tensor([0.0, 0.5, 3.25, 8.0]).view(1, 4, 1, 1)
    expected = torch.tensor([0.0, 0.5, 9 + 0.25 * 7, 64.0]).view(1, 4, 1, 1)
    torch.testing.assert_close(interpolate_levels(logits, position), expected)


def test_candidates_stay_within_reach_and_equally_far_apart():
    network = FastNet(SMALL)
    state = network(random_views(), 1)[0]
    state.disparity = torch.linspace(-4, 4, H * W).view(1, H, W)
    state.spread = torch.rand(1, H, W)
    candidates = network.choose_candidates(state)
    assert candidates.abs().max() <= 4 + 2 * 0.02 + 1e-6
    steps = candidates.diff(dim=1)
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), atol=1e-5, rtol=0)
    torch.testing.assert_close(candidates[:, 2], state.disparity)


def test_places_are_steps_from_the_means_nearby():
    disparity = torch.rand(1, 1, H, W)
    candidates = disparity + 0.3 * torch.arange(-2.0, 3.0).view(1, 5, 1, 1)
    found = places(candidates)[0].transpose(0, 1).numpy()  # (radius, n, h, w)
    for index, radius in enumerate(PLACE_RADII):
        for y, x in [(0, 0), (7, 20), (15, 12)]:
            window = disparity[0, 0, max(y - radius, 0) : y + radius + 1]
            window = window[:, max(x - radius, 0) : x + radius + 1]
            expected = (candidates[0, :, y, x] - window.mean()).numpy() / 0.3
            np.testing.assert_allclose(found[index, :, y, x], expected.clip(-4, 4), atol=1e-4)


def test_smoothing_is_the_mean_over_the_same_surface():
    rng = np.random.default_rng(0)
    disparity = rng.normal(0, 0.1, (2, 12, 15)).astype(np.float32)
    disparity[:, :, 8:] += 2  # another surface
    expected = np.zeros_like(disparity)
    for b, y, x in np.ndindex(disparity.shape):
        total = weights = 0.0
        for dy, dx in np.ndindex(5, 5):
            near = disparity[b, min(max(y + dy - 2, 0), 11), min(max(x + dx - 2, 0), 14)]
            weight = np.exp(-(((near - disparity[b, y, x]) / 0.1) ** 2) / 2)
            total, weights = total + weight * near, weights + weight
        expected[b, y, x] = total / weights
    given = torch.from_numpy(disparity)
    found = average_surface(given[:, None], given, 2, 0.1)[:, 0]
    assert np.abs(found.numpy() - expected).max() < 1e-5
    assert torch.equal(average_surface(given[:, None], given, 0, 0.1)[:, 0], given)


def test_fit_is_the_literal_one():
    views = random_views((3, 5))
    views[0, 0, 1] = ABSENT
    disparity = torch.rand(1, H, W) * 4 - 2
    centre = views[:, 1, 2, MARGIN:-MARGIN, MARGIN:-MARGIN]
    found = fit(views, centre, disparity, MARGIN)[0].numpy()
    for y, x in [(3, 4), (15, 23), (0, 0), (8, 20)]:
        d = disparity[0, y, x].item()
        first = second = 0.0
        for u, v in np.ndindex(3, 5):
            if (u, v) == (0, 1):
                continue
            before, after = (
                reference.bilinear(
                    views[0, u, v].numpy(), y + MARGIN + (1 - u) * at, x + MARGIN + (2 - v) * at
                )
                for at in (d - FIT_STEP, d + FIT_STEP)
            )
            residual = (before + after) / 2 - centre[0, y, x].item()
            slope = (after - before) / (2 * FIT_STEP)
            weight = 1 / (1 + (residual / FIT_TOLERANCE) ** 2)
            first, second = first + weight * slope * residual, second + weight * slope**2
        assert found[:, y, x] == pytest.approx([first, second], rel=1e-3, abs=1e-5)


def test_polishing_moves_answers_to_where_the_views_fit():
    """A slanted, finely textured plane, answers 0.03 px off; and nothing moves without texture."""
    rows, columns = (torch.arange(float(side + 2 * MARGIN)) - MARGIN for side in (H, W))
    truth = 0.5 + 0.01 * columns.expand(len(rows), -1)  # of the centre view, at its x

    def texture(y, x):
        return 0.5 + 0.2 * torch.sin(0.9 * x + 0.4 * y) + 0.2 * torch.sin(0.7 * y - 0.3 * x)

    views = torch.empty(1, 9, 9, len(rows), len(columns))
    for u, v in np.ndindex(9, 9):
        # x - d(x') * (v - 4) with d = 0.5 + 0.01 x' gives the centre's x' in closed form
        x = (columns + 0.5 * (v - 4)) / (1 - 0.01 * (v - 4))
        y = rows[:, None] + (u - 4) * (0.5 + 0.01 * x)
        views[0, u, v] = texture(y, x)
    inner = truth[None, MARGIN:-MARGIN, MARGIN:-MARGIN]
    network = FastNet(SMALL).eval()
    state = network(views, 1)[0]
    state.disparity = inner + 0.03
    left = (network.polish(views, state).disparity - inner).abs()
    assert left.max() < 0.015
    unmoved = network.polish(torch.full_like(views, 0.5), state).disparity
    assert torch.equal(unmoved, state.disparity)
