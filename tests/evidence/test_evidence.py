"""Votes by sector: fused loops, tensor operations and a literal version agree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
import torch

from oaccdepth import evidence
from oaccdepth.evidence import plain, sector_kernels, shifts
from oaccdepth.evidence.sector_kernels import PIECE
from oaccdepth.evidence.views import ABSENT, Views

SIZE = (11, 14)
LEVELS = torch.tensor([-1.5, -0.75, 0.0, 0.3, 1.0, 2.0])


def grid(rows, columns):
    """Steps of all views of a grid but the centre."""
    places = itertools.product(range(rows), range(columns))
    steps = [(rows // 2 - u, columns // 2 - v) for u, v in places]
    return [step for step in steps if step != (0, 0)]


CROSS = [(0, 1), (0, 2), (0, -1), (0, -2), (1, 0), (2, 0), (-1, 0), (-2, 0)]
IRREGULAR = [(0.3, 1.1), (-0.7, 0.45), (1.25, -0.5), (-1.6, -1.2), (0.0, -2.05)]
ARRAYS = {
    "3x3": grid(3, 3),
    "1x5": grid(1, 5),
    "5x1": grid(5, 1),
    "cross": CROSS,
    "irregular": IRREGULAR,
    "one view": [(0, 1)],
}


def make_views(name, margin, channels, absent=False):
    """Faint random pictures of 8 bits; some of their pixels may be absent."""
    rng = np.random.default_rng(len(name) + margin + channels)
    steps = np.array(ARRAYS[name], np.float32)
    shape = (len(steps), channels, SIZE[0] + 2 * margin, SIZE[1] + 2 * margin)
    pictures = (128 + 5 * rng.standard_normal(shape)).round().astype(np.float32) / 255
    middle = (128 + 5 * rng.standard_normal((channels, *SIZE))).round().astype(np.float32) / 255
    if absent:
        pictures[0, :, 2:6, 3:8] = ABSENT
        pictures[-1] = ABSENT
        middle[:, 7:9, 9:] = ABSENT
    return Views(*map(torch.from_numpy, (pictures, middle, steps)), margin)


CASES = [
    ("3x3", 0, 3, False),
    ("3x3", 2, 1, True),
    ("1x5", 0, 3, True),
    ("5x1", 3, 3, False),
    ("cross", 0, 1, False),
    ("irregular", 0, 3, True),
    ("irregular", 4, 1, False),
    ("one view", 0, 3, False),
]
IDS = [
    f"{name} margin {margin} {'RGB' if channels == 3 else 'grey'}{' absent' * absent}"
    for name, margin, channels, absent in CASES
]


@pytest.fixture(params=CASES, ids=IDS)
def views(request):
    return make_views(*request.param)


def pixels(count=14):
    """Corners and some others."""
    rng = np.random.default_rng(1)
    corners = list(itertools.product((0, SIZE[0] - 1), (0, SIZE[1] - 1)))
    inner = zip(rng.integers(SIZE[0], size=count), rng.integers(SIZE[1], size=count), strict=True)
    return [*corners, (8, 12), *((int(y), int(x)) for y, x in inner)]


def arrays(views):
    """The input of the literal version."""
    return (
        views.pictures.double().numpy(),
        views.reference.double().numpy(),
        views.steps.double().tolist(),
        views.margin,
    )


def test_a_sweep(views):
    fused, plainly = (torch.zeros(len(LEVELS) // 2, *SIZE, 24, dtype=torch.uint8) for _ in range(2))
    costs = evidence.fused_sweep(views, LEVELS, fused)
    # the fused version rounds what lies between pixels to a fortieth of a grey level
    assert (costs.int() - evidence.plain_sweep(views, LEVELS, plainly).int()).abs().max() <= 2
    assert (fused.int() - plainly.int()).abs().max() <= 2
    for (y, x), (number, level) in itertools.product(pixels(), enumerate(LEVELS.tolist())):
        found, rounded = (
            votes[number // 2, y, x].view(12, 2)[:, number % 2] for votes in (plainly, fused)
        )
        expected = 255 * np.array(
            [reference.evidence_at(*arrays(views), y, x, level, gain) for gain in evidence.GAINS]
        )  # (gains, means)
        assert found[:9].view(3, 3).T.tolist() == pytest.approx(expected, abs=0.55)
        assert rounded[:9].view(3, 3).T.tolist() == pytest.approx(expected, abs=1.8)
        cost = [expected.mean(), expected[:, 1:].min(1).mean(), expected[2].mean()]
        assert costs[:, y, x, number].tolist() == pytest.approx(cost, abs=1.8)


@pytest.mark.parametrize("limit", [0, 10**6], ids=["rows made anew", "rows kept"])
def test_a_sweep_of_a_wide_scene(limit, monkeypatch):
    """Rows are kept if that takes little memory, and made anew for every level if not."""
    monkeypatch.setattr(shifts, "MOST_KEPT", limit)
    rng = np.random.default_rng(2)
    pictures = rng.integers(0, 256, (8, 1, 12, 300)).astype(np.float32) / 255
    middle = torch.from_numpy(rng.integers(0, 256, (1, 12, 300)).astype(np.float32) / 255)
    views = Views(torch.from_numpy(pictures), middle, torch.tensor(grid(3, 3)).float())
    levels = torch.arange(-12, 4) * 0.25
    fused, plainly = (torch.zeros(8, 12, 300, 24, dtype=torch.uint8) for _ in range(2))
    costs = evidence.fused_sweep(views, levels, fused)
    assert (costs.int() - evidence.plain_sweep(views, levels, plainly).int()).abs().max() <= 2
    assert (fused.int() - plainly.int()).abs().max() <= 2


def test_the_votes_of_many_views_in_one_direction():
    """More views of one sector than 16 bits can add up at once."""
    steps = torch.tensor([(0, 1 + k) for k in range(60)], dtype=torch.float32)
    views = Views(torch.ones(60, 1, 9, 70), torch.zeros(1, 9, 70), steps)
    fused = torch.zeros(1, 9, 70, 24, dtype=torch.uint8)
    evidence.fused_sweep(views, torch.tensor([0.0, 0.5]), fused)
    assert (fused[0, :, 0, :18] == 255).all()


@pytest.mark.parametrize(("squarings", "q"), [(3, 8), (-1, 0)], ids=["masks", "no masks"])
def test_a_closer_look(views, squarings, q):
    rng = np.random.default_rng(3)
    candidates = torch.from_numpy(rng.uniform(-2, 2, (3, *SIZE)).astype(np.float32))
    base = candidates[1]
    fused = evidence.look(views, candidates, base, squarings)
    plainly = plain.look(views, candidates, base, squarings, evidence.GAINS)
    torch.testing.assert_close(fused, plainly, atol=2e-3, rtol=0)
    for y, x in pixels():
        masks, there = reference.masks_at(*arrays(views), y, x, float(base[y, x]), q)
        seen = reference.seen_by(base.double().numpy(), views.steps.tolist(), y, x)
        masks = [mask * one for mask, one in zip(masks, seen, strict=True)]
        share = sum(masks) / max(there, 1)
        assert float(fused[27, y, x]) == pytest.approx(share, abs=1e-4)
        for n, (g, gain) in itertools.product(range(3), enumerate(evidence.GAINS)):
            at = float(candidates[n, y, x])
            expected = reference.evidence_at(*arrays(views), y, x, at, gain, masks)
            found = fused[9 * n + g : 9 * n + 9 : 3, y, x].tolist()
            assert found == pytest.approx(expected, abs=1e-3)


def test_differences(views):
    """The basis of the masks: fused, plain and literal versions."""
    rng = np.random.default_rng(3)
    disparity = torch.from_numpy(rng.uniform(-2, 2, SIZE).astype(np.float32))
    fused = evidence.differences(views, disparity)
    plainly = plain.differences(views, disparity)
    torch.testing.assert_close(
        fused.clamp(max=plain.PRESENT), plainly.clamp(max=plain.PRESENT), atol=4e-3, rtol=0
    )
    masks = plain.masks_of(fused, len(views.reference), 3)
    for y, x in pixels():
        expected, _ = reference.masks_at(*arrays(views), y, x, float(disparity[y, x]), 8)
        assert masks[:, y, x].tolist() == pytest.approx(expected, abs=0.02)


def test_votes_of_what_matches_are_none():
    """At the true disparity of a plane nothing votes against it; at any other, something does."""
    picture = torch.rand(1, 20, 40, generator=torch.Generator().manual_seed(0))
    shifts = [-2, -1, 1, 2]
    pictures = torch.stack([torch.roll(picture, 2 * step, 2) for step in shifts])
    steps = torch.tensor([(0, step) for step in shifts], dtype=torch.float32)
    volume = evidence.sweep(Views(pictures, picture, steps), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    inner = volume[..., 8:-8].view(2, 12, 2, 20, 24)
    assert (inner[0, :, 1] == 0).all()  # level 2.0
    assert (inner[0, :9, 0].float().mean((1, 2)) > 60).all()
    assert (inner[1, 9:] > 0).float().mean() > 0.9  # aggregated: cost above the best


def test_where_nothing_is_there_nothing_is_said():
    views = make_views("3x3", 0, 3)
    nothing = Views(torch.full_like(views.pictures, ABSENT), views.reference, views.steps)
    volume = evidence.sweep(nothing, LEVELS)
    assert not volume.any()


def test_an_occluder_on_one_side_leaves_the_other_half_plane():
    """The views to the left see something else; the least mean over a half-plane is still 0."""
    steps = torch.tensor(grid(3, 3), dtype=torch.float32)
    pictures = torch.full((8, 1, 6, 6), 0.5)
    pictures[steps[:, 1] > 0] = 1.0
    volume = evidence.sweep(Views(pictures, torch.full((1, 6, 6), 0.5), steps), LEVELS[2:4])
    found = volume.view(1, 12, 2, 6, 6)[0, :, 0, 2, 2]  # at disparity 0
    assert found[:3].tolist() == [96, 96, 96]  # 3 of 8 views
    assert found[3:6].tolist() == [0, 0, 0]


def test_a_narrow_gap_leaves_an_axis():
    """The views to both sides see something else; those above and below still see the same."""
    steps = torch.tensor(grid(3, 3), dtype=torch.float32)
    pictures = torch.full((8, 1, 6, 6), 0.5)
    pictures[steps[:, 1] != 0] = 1.0
    volume = evidence.sweep(Views(pictures, torch.full((1, 6, 6), 0.5), steps), LEVELS[2:4])
    found = volume.view(1, 12, 2, 6, 6)[0, :, 0, 2, 2]  # at disparity 0
    assert found[:3].tolist() == [191, 191, 191]  # 6 of 8 views
    assert found[3:6].tolist() == [191, 191, 191]  # 3 of 4
    assert found[6:9].tolist() == [0, 0, 0]


def test_sectors_without_samples_are_not_heard():
    """Sums of none are not quite none after rounding, and must not pass for the least mean."""
    rng = np.random.default_rng(4)
    count = rng.uniform(2, 12, (16, PIECE)).astype(np.float32)
    count[5:13] = 0  # a half-plane without any
    votes = (rng.uniform(0.3, 1, (3, 16, PIECE)) * count).astype(np.float32)
    room = np.zeros((sector_kernels.ROWS, PIECE), np.float32)
    room[:48], room[48:64] = votes.reshape(48, PIECE), count
    sector_kernels.find_shares(room.ravel(), np.float32(1))
    sector_kernels.find_means(room.ravel())
    found = room[sector_kernels.MEANS :].reshape(3, 3, PIECE)  # full, half, axis; gains
    for g, x in np.ndindex(3, PIECE):
        samples = [(votes[g, z, x] / max(count[z, x], 1e-9), count[z, x]) for z in range(16)]
        expected = reference.means(samples, list(range(16)), 1.0)
        assert found[:, g, x].tolist() == pytest.approx(expected, abs=1e-3)
