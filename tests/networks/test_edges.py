"""The choice between surfaces at edges, against literal loops and a scene whose edge is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oaccdepth.evidence.sweep import ABSENT, RESIDUAL_GAIN
from oaccdepth.networks.edges import (
    NEAR,
    RADIUS,
    SOFTNESS,
    VOTE_GAINS,
    Choice,
    decide,
    otherness,
    surfaces_around,
)
from oaccdepth.networks.fast import FastConfig, FastNet, PassState
from oaccdepth.training.losses import choice_loss

SMALL = FastConfig(channels=(16, 16, 16, 16), refine_channels=(16, 16, 16, 16))
MARGIN = SMALL.margin
H, W = 24, 32
FAR_SURFACE, NEAR_SURFACE, EDGE = -1, 1, 16  # px of disparity; column where the nearer one begins


def two_surfaces():
    """Views (1, 9, 9, …) of a textured plane that hides another one from a column on."""
    rng = np.random.default_rng(1)
    height, width = H + 2 * MARGIN, W + 2 * MARGIN
    textures = rng.random((2, height + 16, width + 16)).astype(np.float32)
    views = np.empty((9, 9, height, width), np.float32)
    y, x = np.mgrid[:height, :width]
    for u, v in np.ndindex(9, 9):
        near = x + NEAR_SURFACE * (v - 4) >= MARGIN + EDGE  # where that was in the centre view
        for texture, d, here in (
            (textures[0], FAR_SURFACE, ~near),
            (textures[1], NEAR_SURFACE, near),
        ):
            moved = texture[y + d * (u - 4) + 8, x + d * (v - 4) + 8]
            views[u, v][here] = moved[here]
    truth = np.full((1, H, W), FAR_SURFACE, np.float32)
    truth[:, :, EDGE:] = NEAR_SURFACE
    return torch.from_numpy(views)[None], torch.from_numpy(truth)


def test_surfaces_around_are_soft_extremes():
    disparity = torch.from_numpy(np.random.default_rng(0).uniform(-2, 2, (1, 13, 15))).float()
    found = surfaces_around(disparity)[0]
    for y, x in [(0, 0), (6, 7), (12, 3), (4, 14)]:
        window = disparity[0, max(y - RADIUS, 0) : y + RADIUS + 1]
        window = window[:, max(x - RADIUS, 0) : x + RADIUS + 1].double()
        for index, sign in ((0, -1), (2, 1)):
            weight = torch.exp(sign * window / SOFTNESS)
            expected = (weight * window).sum() / weight.sum()
            assert found[index, y, x].item() == pytest.approx(expected.item(), abs=1e-4)
    torch.testing.assert_close(found[1], disparity[0])


@pytest.mark.parametrize("level", [-4.0, 4.0])
def test_a_plane_at_the_end_of_the_reach_is_its_own_surface(level):
    surfaces = surfaces_around(torch.full((1, 12, 12), level))
    torch.testing.assert_close(surfaces, torch.full((1, 3, 12, 12), level))
    assert not otherness(surfaces).any()


def test_weights_of_surfaces():
    surfaces = torch.tensor([-1.0, 0.5, 0.5 + NEAR]).view(1, 3, 1, 1)
    assert otherness(surfaces).flatten().tolist() == [1, 0, 0]
    p = torch.tensor([0.4, 0.3, 0.3]).view(1, 3, 1, 1)
    found = decide(p, surfaces).flatten()
    # the nearest surface is the own one under another name
    expected = torch.tensor([0.4**2, 0.6**2, 0]) / (0.4**2 + 0.6**2)
    torch.testing.assert_close(found, expected)
    doubt = decide(torch.tensor([0.01, 0.99, 0.0]).view(1, 3, 1, 1), surfaces).flatten()
    assert doubt[0] == pytest.approx(1e-4, rel=0.03)


def test_evidence_of_surfaces_is_the_literal_one():
    views, _ = two_surfaces()
    views[0, 2, 3] = ABSENT
    surfaces = torch.tensor([-1.0, 0.0, 2.0]).view(1, 3, 1, 1).expand(1, 3, H, W)
    evidence, votes = FastNet(SMALL).surface_evidence(views, surfaces)
    evidence = evidence.view(3, 3, 9, 9, H, W)
    y, x = 7, 11
    centre = views[0, 4, 4, y + MARGIN, x + MARGIN].item()
    residuals, saturated = np.zeros((9, 9)), np.zeros((2, 9, 9))
    for u, v in np.ndindex(9, 9):
        sample = views[0, u, v, y + MARGIN + (4 - u) * 2, x + MARGIN + (4 - v) * 2].item()
        if sample >= 0:
            residuals[u, v] = RESIDUAL_GAIN * (sample - centre) * 81 / 80
            for gain in (0, 1):
                vote = min(1, VOTE_GAINS[gain] * abs(sample - centre))
                saturated[gain, u, v] = vote * 81 / 80
    np.testing.assert_allclose(evidence[2, 0, :, :, y, x], residuals, atol=1e-3)
    np.testing.assert_allclose(evidence[2, 1:, :, :, y, x], saturated, atol=1e-3)
    np.testing.assert_allclose(votes[0, 2, y, x], saturated[0].mean(), atol=1e-4)


@pytest.mark.parametrize("moved", [-3, 3])
def test_untrained_votes_find_the_edge(moved):
    """An answer whose edge lies three pixels beside the true one is put right by the views."""
    views, truth = two_surfaces()
    network = FastNet(SMALL).eval()
    wrong = torch.full_like(truth, FAR_SURFACE)
    wrong[:, :, EDGE + moved :] = NEAR_SURFACE
    with torch.no_grad():
        first, context = network.first_pass(views)
        last = PassState(wrong, torch.ones_like(wrong), first.logits, first.logits, first.summary)
        choice = network.settle(views, last, first, context)
    # the mean over 3x3 px of the votes blurs the edge by a pixel
    near_edge = slice(EDGE - 1, EDGE + 1)
    error = (choice.disparity - truth).abs()[0]
    error[:, near_edge] = 0
    assert error.max() < 0.1
    assert not choice.spread[:, :, EDGE - 1 : EDGE + 1].any()  # no wandering between surfaces
    assert choice.spread[0, 12, 4] == 1


def test_loss_of_a_choice_is_the_literal_one():
    surfaces = torch.tensor([[-1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [0.02, 2.0, 0.01]]).T
    surfaces = surfaces.reshape(1, 3, 3, 1).transpose(1, 2).contiguous()  # (1, s, 3 px, 1)
    logits = torch.randn(1, 3, 3, 1, generator=torch.Generator().manual_seed(0))
    truth = torch.tensor([0.01, 1.5, 0.3]).view(1, 3, 1)
    choice = Choice(truth + 0.25, truth, logits, surfaces)
    p = torch.softmax(logits, 1)[0, :, :, 0].T  # (px, s)
    # pixel 0: own and nearest are as good; pixel 1: the nearest; pixel 2 has nothing to choose
    expected = -(p[0, 1] + p[0, 2]).log() - p[1, 2].log()
    found = choice_loss(choice, truth, torch.ones(1, 3, 1, dtype=torch.bool))
    assert found.item() == pytest.approx(0.25 + expected.item() / 2, abs=1e-5)
