"""Pixels on edges: plain, fused and literal versions, on edges of which everything is known."""

import numpy as np
import pytest
import reference
import torch

from oaccdepth.evidence import edges
from oaccdepth.evidence.edges import MEANS, OWN, SIGNS, find_edges

SIZE = (26, 34)


def card(covered=0.3, gap=1.0, noise=0.0, slope=0.0):
    """A card in front of a wall, whose edge runs through column 14; a map, and what is seen."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    share = np.clip(14 + covered + slope * (y - SIZE[0] / 2) - x, 0, 1)
    disparity = np.where(share > 0.4, gap, 0.0) + 0.005 * x
    front, behind = np.array([0.2, 0.3, 0.25]), np.array([0.7, 0.6, 0.8])
    picture = (1 - share) * behind[:, None, None] + share * front[:, None, None]
    picture = (picture + noise * rng.standard_normal(picture.shape)).clip(0, 1)
    return (torch.from_numpy(one.astype(np.float32)) for one in (disparity, picture))


def at(found, y, x):
    """Signs of one pixel."""
    number = (found.where == y * SIZE[1] + x).nonzero().item()
    return found.signs[number]


@pytest.mark.parametrize("size", [SIZE, (1, 9), (7, 1), (5, 6)])
def test_signs_in_two_versions(size):
    torch.manual_seed(0)
    maps, normals = (
        torch.rand(3, *size),
        torch.nn.functional.normalize(torch.randn(2, *size), dim=0),
    )
    where = torch.randperm(size[0] * size[1])[: size[0] * size[1] // 2 + 1]
    own = torch.rand(OWN, *size)
    plainly = edges.plain_gather(own, maps, where, normals, *edges.points())
    torch.testing.assert_close(edges.gather(own, maps, where, normals), plainly)


def test_signs_are_those_of_the_literal_version(monkeypatch):
    disparity, picture = card(noise=0.03, slope=0.3)
    seen = {}
    gather = edges.gather

    def listen(own, maps, where, normals):
        seen.update(maps=maps.double().numpy(), normals=normals.double().numpy())
        return gather(own, maps, where, normals)

    monkeypatch.setattr(edges, "gather", listen)
    found = find_edges(disparity, picture)
    assert found.signs.shape == (len(found.where), SIGNS)
    assert len(found.where) > 40
    for number in range(0, len(found.where), 7):
        y, x = divmod(int(found.where[number]), SIZE[1])
        expected = reference.edge_signs_at(seen["maps"], seen["normals"], y, x)
        assert found.signs[number, OWN:].tolist() == pytest.approx(expected, abs=1e-4)


def turn(maps, times):
    return torch.rot90(maps, times, (-2, -1)).contiguous()


@pytest.mark.parametrize("turns", range(4))
def test_turned_pictures_have_the_same_signs(turns):
    disparity, picture = card(noise=0.02, slope=0.2)
    found = find_edges(disparity, picture)
    turned = find_edges(
        *(torch.rot90(x, turns, (-2, -1)).contiguous() for x in (disparity, picture))
    )
    numbers = torch.rot90(torch.arange(disparity.numel()).view(SIZE), turns, (-2, -1)).flatten()
    order = numbers[turned.where].argsort()
    assert numbers[turned.where][order].tolist() == found.where.tolist()
    torch.testing.assert_close(turned.signs[order], found.signs, atol=2e-3, rtol=0)
    torch.testing.assert_close(turned.places[order], found.places)


@pytest.mark.parametrize("covered", [0.2, 0.5, 0.8])
def test_the_share_of_light_has_less_noise_along_the_edge(covered):
    plain, noisy = (find_edges(*card(covered, noise=noise)) for noise in (0.0, 0.04))
    rows = range(4, 22)
    alone, along = (
        torch.stack([at(noisy, y, 14)[sign] - at(plain, y, 14)[sign] for y in rows]).std()
        for sign in (0, OWN + 8)  # of the pixel, and averaged over 6 px to either side
    )
    assert along < 0.6 * alone


def test_directions_point_to_the_nearer_surface():
    disparity, picture = card()
    found = find_edges(disparity, picture)
    beside = at(found, 12, 14)[OWN:].view(MEANS, 3)[3:, 1]  # position, 2 and 1 px on either side
    assert (beside[:2] < -0.3).all()
    assert (beside[2:] > 0.3).all()


def test_places_are_the_surfaces_beside_the_edge():
    disparity, picture = card()
    found = find_edges(disparity, picture)
    number = (found.where == 12 * SIZE[1] + 14).nonzero().item()
    far, near, own = found.places[number].tolist()
    assert (far, near) == pytest.approx((0.075, 1.07), abs=0.02)
    assert own == pytest.approx(float(disparity[12, 14]))


@pytest.mark.parametrize("gap", [0.0, 0.15])
def test_one_surface_has_no_edges(gap):
    found = find_edges(*card(gap=gap))
    assert found.where.numel() == 0
    assert found.signs.shape == (0, SIGNS)
    assert found.places.shape == (0, 3)


def test_uneven_colours_are_not_trusted():
    even, uneven = (find_edges(*card(noise=noise)) for noise in (0.0, 0.4))
    assert at(even, 12, 14)[2] > 0.9
    assert uneven.signs[:, 2].median() < 0.1
