"""How far the views agree, and how far information reaches into areas that have none."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch
from layered import Plane, Surface, cloud_texture, render

from oaccdepth.estimation.blocks import Wanted, cut_views
from oaccdepth.evidence import reach as reaching
from oaccdepth.evidence.fit import fit
from oaccdepth.evidence.reach import apart, lead, misfit, reach, some, textured
from oaccdepth.evidence.views import ABSENT, Views
from oaccdepth.lightfield import LightField
from oaccdepth.writers.scenes import with_8_bits

SIDE = 128
HOLE = slice(24, 104)


def wall(noise, shade=0.5):
    """Views of a textured wall with a plain square of 80 px."""
    rng = np.random.default_rng(4)
    texture = cloud_texture(rng, 256, 1.0)
    texture[48:208, 48:208] = shade
    scene = render([Surface(Plane(0.0), texture)], (5, 5), (SIDE, SIDE), noise=noise, rng=rng)
    light_field = with_8_bits(scene.light_field)
    wanted = Wanted(torch.tensor([-1.0, 1.0]), 1, SIDE, light_field.reference_view)
    return cut_views(light_field, wanted, (slice(0, SIDE), slice(0, SIDE)), torch.device("cpu"))


def looked_at(noise, shade=0.5):
    """The reach of information on that wall."""
    views = wall(noise, shade)
    disparity, information = fit(views, torch.zeros(SIDE, SIDE))
    return reach(views, disparity, apart(some(views), disparity), information).numpy()


@pytest.mark.parametrize(
    ("noise", "shade"), [(0, 0.0), (0, 1.0), (0, 0.5), (1 / 255, 0.5), (2 / 255, 0.5)]
)
def test_it_fades_inside_a_plain_area(noise, shade):
    left = looked_at(noise, shade)
    outside = np.ones((SIDE, SIDE), bool)
    outside[HOLE, HOLE] = False
    assert np.mean(left[outside]) > 0.95
    middle = left[60:68, 60:68]  # 36 px from the nearest texture
    assert middle.max() < 0.15
    assert left[64, 30] > 2 * left[64, 42]  # 6 and 18 px from it


def noisy_stripe(deviation, contrast):
    """5x5 views at a disparity of 1 px: weak texture in the left half, none in the right one."""
    rng = np.random.default_rng(8)
    texture = contrast * rng.standard_normal((104, 104))
    texture[:, 56:] = 0
    steps = [(u, v) for u in range(-2, 3) for v in range(-2, 3) if (u, v) != (0, 0)]

    def view(u, v):
        seen = 0.5 + texture[None, 4 - u : 100 - u, 4 - v : 100 - v] + np.zeros((3, 1, 1))
        return (seen + deviation * rng.standard_normal(seen.shape)).clip(0, 1).astype(np.float32)

    pictures = torch.from_numpy(np.stack([view(*step) for step in steps]))
    return Views(pictures, torch.from_numpy(view(0, 0)), torch.tensor(steps).float())


@pytest.mark.parametrize("deviation", [0.05, 0.1])
def test_texture_weaker_than_noise_is_seen(deviation):
    views = noisy_stripe(deviation, contrast=deviation / 2)
    found = textured(views, torch.ones(96, 96))
    assert found[:, :42].mean() > 0.9
    assert found[:, 62:].max() < 0.5 and found[:, 62:].mean() < 0.02
    elsewhere = textured(views, torch.full((96, 96), -1.0))  # where the views do not agree
    assert elsewhere.max() < 0.5 and elsewhere.mean() < 0.1


def test_texture_is_that_of_the_literal_version():
    views = noisy_stripe(0.05, contrast=0.02)
    found = textured(views, torch.ones(96, 96))
    for y, x in ((40, 30), (3, 90), (95, 0), (50, 52)):
        expected = reference.shared_texture(views.reference, mean_of(views), y, x)
        assert float(found[y, x]) == pytest.approx(expected, abs=1e-3)  # ten bits


def mean_of(views):
    """What the views see at 1 px, pixel by pixel."""
    out = views.reference.clone()
    for y, x in np.ndindex(96, 96):
        places = [(y + int(u), x + int(v), k) for k, (u, v) in enumerate(views.steps.tolist())]
        seen = [views.pictures[k, :, i, j] for i, j, k in places if 0 <= i < 96 and 0 <= j < 96]
        out[:, y, x] = torch.stack(seen).mean(0)
    return out


def test_half_is_left_after_eight_pixels():
    """The decay itself, from a single informed column."""
    information = torch.zeros(32, 32)
    information[:, 0] = 100.0
    views = cut_views(
        LightField(np.zeros((3, 3, 32, 32, 1), np.uint8)),
        Wanted(torch.tensor([0.0]), 1, 32, (1, 1)),
        (slice(0, 32), slice(0, 32)),
        torch.device("cpu"),
    )
    flat = torch.zeros(32, 32)
    left = reach(views, flat, apart(some(views), flat), information)
    torch.testing.assert_close(left[16, 2], torch.tensor(1.0))  # 5x5 means: two columns more
    torch.testing.assert_close(left[16, 10], torch.tensor(0.5))
    torch.testing.assert_close(left[16, 18], torch.tensor(0.25))


def test_the_misfit_is_the_mean_square_of_what_is_there():
    """Four views of which one is absent and one outside the frame on the left."""
    values = np.full((3, 3, 32, 32, 3), 0.5, np.float32)
    values[0, 1], values[1, 0] = 0.6, 0.8
    values[1, 2, ..., 0] = 0.2  # by 0.3 in one of three colours
    valid = np.zeros((3, 3), bool)
    valid[[0, 1, 1, 1], [1, 0, 1, 2]] = True
    views = cut_views(
        LightField(values, valid=valid),
        Wanted(torch.tensor([-8.0, 8.0]), 1, 32, (1, 1)),
        (slice(0, 32), slice(0, 32)),
        torch.device("cpu"),
    )
    found = misfit(apart(views, torch.full((32, 32), -8.0)))
    inner, left = (0.1**2 + 0.3**2 + 0.1**2) / 3, (0.1**2 + 0.1**2) / 2
    expected = {(16, 16): inner, (16, 2): left}
    for place, value in expected.items():
        assert float(found[place]) == pytest.approx(value, rel=1e-4)


def test_where_no_view_is_there_the_misfit_is_the_worst():
    assert misfit(torch.full((4, 2, 2), torch.nan)).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_few_views_are_compared():
    steps = some(wall(0)).steps
    assert len(steps) == 4 and steps.abs().min() == 2  # the corners of 5x5


@pytest.mark.parametrize("absent", [False, True])
def test_the_lead_is_what_a_literal_version_finds(absent):
    rng = np.random.default_rng(5)
    steps = np.array([(-2, 1), (0.5, -1.25), (2, 2)], np.float32)
    pictures = rng.uniform(0.4, 0.6, (3, 3, 18, 20)).astype(np.float32)
    middle = rng.uniform(0.4, 0.6, (3, 12, 14)).astype(np.float32)
    if absent:
        pictures[0], pictures[1, :, 4:9, 5:12], middle[:, 3:5, 6:] = ABSENT, ABSENT, ABSENT
    views = Views(*map(torch.from_numpy, (pictures, middle, steps)), margin=3)
    disparity = torch.from_numpy(rng.uniform(-3, 3, (12, 14)).astype(np.float32))
    found = lead(views, disparity, apart(views, disparity))
    expected = [
        reference.lead_at(pictures, middle, steps, 3, y, x, float(disparity[y, x]))
        for y, x in np.ndindex(12, 14)
    ]
    np.testing.assert_allclose(found.flatten(), expected, atol=5e-3)


def test_only_an_answer_that_nothing_beside_it_matches_leads():
    """True disparity 0 on the wall; in the plain square anything fits; half a pixel off nothing."""
    views = some(wall(0))
    found = {
        at: lead(views, torch.full((SIDE, SIDE), at), apart(views, torch.full((SIDE, SIDE), at)))
        for at in (0.0, 0.5)
    }
    assert found[0.0][:20].mean() > 0.3
    assert found[0.0][60:68, 60:68].abs().max() < 0.01
    assert found[0.5][:20].mean() < -0.3


@pytest.mark.parametrize("size", [(1, 5), (12, 14), (90, 41)])
def test_fused_and_plain_versions_agree(size):
    torch.manual_seed(2)
    one, other = torch.rand(3, *size), torch.rand(3, *size)
    own = torch.where(torch.rand(size) > 0.99, torch.rand(size), 0.0)
    for fused, plain in (
        (reaching.products(one, other), reaching.plain_products(one, other)),
        (reaching.mean_around(one, 2), reaching.plain_mean_around(one, 2)),
        (reaching.mean_around(one, 6), reaching.plain_mean_around(one, 6)),
        (reaching.fade(own), reaching.plain_fade(own)),
    ):
        torch.testing.assert_close(fused, plain, atol=1e-5, rtol=0)


def test_rivals_in_two_versions():
    views = some(wall(2 / 255))
    disparity = torch.linspace(-1, 70, SIDE).expand(SIDE, SIDE)  # at the right no view is there
    differences = apart(views, disparity)
    expected = reaching.plain_rivals(views, disparity) - reaching.votes(differences)
    torch.testing.assert_close(lead(views, disparity, differences), expected, atol=1e-5, rtol=0)
