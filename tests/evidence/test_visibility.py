"""What a map hides from which view: fused, plain and literal versions, and a card before a wall."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch

from oaccdepth.evidence import fit
from oaccdepth.evidence.views import Views
from oaccdepth.evidence.visibility import fused_visible, plain_visible, suspects_of, visible

SIZE = (20, 26)
STEPS = [(0.0, -4.0), (0.0, 1.0), (3.0, 0.0), (-2.0, 2.0), (0.5, -1.3), (-4.0, -3.0)]


def views_at(steps, size=SIZE):
    """Views whose pictures do not matter."""
    placed = torch.tensor(steps).reshape(-1, 2)
    return Views(torch.zeros(len(placed), 1, *size), torch.zeros(1, *size), placed)


def card(gap=2.0, first=10, last=16):
    """A card, `gap` px in front of a wall."""
    disparity = torch.zeros(SIZE)
    disparity[:, first:last] = gap
    return disparity


def rough():
    """A map with steps, slopes and single stray pixels."""
    rng = np.random.default_rng(5)
    smooth = np.linspace(-1, 1, SIZE[1]) + np.zeros(SIZE)
    smooth[5:12, 8:15] += 1.5
    smooth += 2.03 * (rng.random(SIZE) < 0.05)
    return torch.from_numpy(smooth.astype(np.float32))


@pytest.mark.parametrize(
    "disparity", [card(), rough(), torch.zeros(SIZE)], ids=["card", "rough", "flat"]
)
def test_three_versions(disparity):
    views = views_at(STEPS)
    seen = visible(views, disparity)
    suspects = suspects_of(views.steps, disparity)
    assert torch.equal(fused_visible(disparity, suspects), plain_visible(disparity, suspects))
    for y, x in np.ndindex(*SIZE):
        expected = reference.seen_by(disparity.double().numpy(), STEPS, y, x)
        assert seen[:, y, x].bool().tolist() == expected, (y, x)


def test_a_card_hides_the_wall_on_its_far_side():
    """A view that shows nearer points further left hides the wall to the left of the card.

    By the gap times the view's step, and 2 px more, where samples mix both.
    """
    seen = visible(views_at([(0.0, -4.0), (0.0, 4.0)]), card(gap=1.5)).bool()
    left, right = ~seen[0, 9], ~seen[1, 9]
    assert left.nonzero()[:, 0].tolist() == list(range(2, 10))
    assert right.nonzero()[:, 0].tolist() == list(range(16, 24))


def test_a_slope_hides_nothing():
    """Two pixels of it differ by less than an occluder does."""
    disparity = 0.04 * torch.arange(SIZE[1]).expand(SIZE)
    steps = [(0.0, 4.0), (0.0, -4.0), (1.0, 1.0)]
    assert visible(views_at(steps), disparity).all()
    assert not visible(views_at(steps), 10 * disparity).all()  # here 4 steps show its back


def test_what_nobody_sees_is_asked_of_all():
    disparity = torch.ones(SIZE)
    disparity[9, 12] = 0
    steps = [(0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)]
    assert visible(views_at(steps), disparity)[:, 9, 12].all()
    assert not visible(views_at(steps[:2]), card(1.0, 13, 14))[:, 9, 12].all()


def test_no_views():
    assert visible(views_at([]), card()).shape == (0, *SIZE)


def test_a_fit_beside_an_edge_is_not_pulled_towards_the_nearer_side(monkeypatch):
    """Card and wall have nearly the same colour, so its samples do not stand out as wrong."""
    rng = np.random.default_rng(2)
    height, width, gap = 24, 64, 0.5
    wall, front = 0.5 + 0.01 * np.cumsum(rng.standard_normal((2, height, width + 40)), 2)

    def view(step):
        x, wide = np.arange(width), np.arange(width + 40)
        moved = np.stack([np.interp(x - step * gap + 20, wide, row) for row in front])
        is_card = (x - step * gap >= 30) & (x - step * gap < 40)
        return np.where(is_card, moved, wall[:, 20 : 20 + width])

    steps = [-4, -3, -2, -1, 1, 2, 3, 4]
    pictures = torch.from_numpy(np.stack([view(step) for step in [*steps, 0]])).float()[:, None]
    placed = torch.tensor([[0.0, float(step)] for step in steps])
    views = Views(pictures[:-1], pictures[-1], placed)
    truth = torch.zeros(height, width)
    truth[:, 30:40] = gap

    def pull():
        found, _ = fit.fit(views, truth, 3)
        return float(found[2:-2, 40:46].mean())

    assert abs(pull()) < 2e-4
    monkeypatch.setattr(fit, "visible", lambda views, map: torch.ones(8, *map.shape).byte())
    assert pull() > 2e-3
