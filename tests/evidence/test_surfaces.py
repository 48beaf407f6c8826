"""Two surfaces that meet: fused loops, tensor operations and a literal version agree."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch

from oaccdepth import evidence
from oaccdepth.evidence import plain
from oaccdepth.evidence import surfaces as meeting
from oaccdepth.evidence.surfaces import surfaces
from oaccdepth.evidence.views import ABSENT, Views

SIZE = (24, 30)
STEPS = [(0, -2), (0, -1), (0, 1), (0, 2), (-1, 0), (1, 0), (2, 1), (-2, -1)]


def scene(channels=3, covered=0.3, gap=1.0, noise=0.02, absent=False):
    """A card in front of a wall, its edge in column 14, of which a share is `covered`."""
    rng = np.random.default_rng(channels)
    x = np.arange(SIZE[1])
    disparity = np.where(x < 14, gap, 0.0) + 0.01 * x + np.zeros(SIZE)
    disparity[:, 14] = gap + 0.14 if covered > 0.5 else 0.14
    front, behind = rng.uniform(0.1, 0.4, channels), rng.uniform(0.6, 0.9, channels)
    share = np.where(x < 14, 1.0, np.where(x == 14, covered, 0.0))
    picture = behind[:, None, None] + (front - behind)[:, None, None] * np.tile(share, (SIZE[0], 1))
    views = np.tile(np.pad(picture, [(0, 0), (2, 2), (2, 2)], mode="edge"), (len(STEPS), 1, 1, 1))
    for view, step in zip(views, STEPS, strict=True):  # the card, and its edge with it, moves
        view[:] = np.roll(view, round(step[1] * gap), 2)
    views += noise * rng.standard_normal(views.shape)
    picture = (picture + noise * rng.standard_normal(picture.shape)).clip(0, 1)
    if absent:
        views[1, :, 3:20, 4:] = ABSENT
    parts = (views, picture, np.array(STEPS))
    pictures, middle, steps = (torch.from_numpy(part.astype(np.float32)) for part in parts)
    return torch.from_numpy(disparity.astype(np.float32)), Views(pictures, middle, steps, 2)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("absent", [False, True], ids=["all", "absent"])
def test_three_versions(channels, absent):
    disparity, views = scene(channels, absent=absent)
    fused = surfaces(disparity, views)
    far, near = (meeting.lean(disparity, sign / meeting.SOFTNESS) for sign in (-1, 1))
    pure = 1 / (1 + (meeting.local_range(disparity) / meeting.PURE) ** 2)
    plainly = meeting.plain_meet(views, disparity, pure, far, near)
    torch.testing.assert_close(fused, plainly, atol=1e-3, rtol=0)
    parts = (views.pictures, views.reference, views.steps)
    literally = (*(part.double().numpy() for part in parts), views.margin)
    for y, x in ((0, 13), (12, 14), (23, 16), (8, 12)):
        ends = far[y, x].item(), near[y, x].item()
        expected = reference.surfaces_at(disparity.double().numpy(), literally, *ends, y, x)
        assert fused[:, y, x].tolist() == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("channels", [1, 3])
def test_mean_colours_in_two_versions(channels):
    disparity, views = scene(channels, absent=True)
    fused = evidence.mean_colour(views, disparity)
    plainly = plain.mean_colour(views, disparity)
    torch.testing.assert_close(fused, plainly, atol=0.5 / 1020, rtol=0)  # ten bits


@pytest.mark.parametrize("covered", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_how_much_of_a_pixel_is_covered(covered):
    disparity, views = scene(covered=covered, noise=0)
    shares = surfaces(disparity, views)[2:5, 8:-8, 14] + 0.5
    assert shares[0].tolist() == pytest.approx([covered] * shares.shape[1], abs=0.02)
    assert shares[2].tolist() == pytest.approx([covered] * shares.shape[1], abs=0.2)


def test_all_views_together_are_less_noisy():
    disparity, views = scene(noise=0.1)
    by_one, by_all = (surfaces(disparity, views)[field, 2:-2, 14].std() for field in (2, 4))
    assert by_all < 0.7 * by_one


def test_places_are_those_next_to_the_pixel():
    """On slanted surfaces, a mean over 9x9 pixels would include pixels farther away."""
    disparity, views = scene()
    far, near = surfaces(disparity, views)[:2, 12, 14].tolist()
    assert far == pytest.approx(0.16, abs=0.015)
    assert near == pytest.approx(1.12, abs=0.015)


def test_a_single_surface_has_nothing_to_say():
    disparity, views = scene(gap=0.05)
    found = surfaces(disparity, views)
    assert not found[2:].any()
    assert found[1].sub(found[0]).max() < 0.1


def test_soft_extremes_are_weighted_means():
    torch.manual_seed(0)
    x = torch.randn(12, 14)
    for slope in (-1 / meeting.SOFTNESS, 1 / meeting.SOFTNESS):
        found = meeting.lean(x, slope)
        for y, column in ((0, 0), (5, 7), (11, 3)):
            rows = slice(max(0, y - meeting.RADIUS), y + meeting.RADIUS + 1)
            columns = slice(max(0, column - meeting.RADIUS), column + meeting.RADIUS + 1)
            around = x[rows, columns].double()
            weight = (slope * around).exp()
            expected = float((weight * around).sum() / weight.sum())
            assert float(found[y, column]) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("size", [(1, 3), (5, 7), (30, 70)])
def test_surroundings_in_two_versions(size):
    torch.manual_seed(0)
    x = torch.randn(size)
    for fused, plainly in zip(meeting.around(x), meeting.plain_around(x), strict=True):
        torch.testing.assert_close(fused, plainly, atol=1e-4, rtol=1e-4)
