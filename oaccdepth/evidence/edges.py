"""The pixels on edges, and what tells which of the two surfaces that meet there each one shows.

In the row of pixels along an edge, a match says little: in every other view, something else is
beside the edge. The colour of a pixel says how much of it the nearer surface covers, if both
surfaces are even and differ in colour; the answer of the network says what it believes. Both are
also averaged along the edge, which is a line, and on either side of it. What follows from all these
signs is learnt (`networks/fast.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from oaccdepth.compiling import run_by_rows
from oaccdepth.evidence.surfaces import around, meet
from oaccdepth.evidence.views import Views

APART = 0.2  # px between two surfaces, from which on an edge is looked at
STEP = 0.1  # px of disparity within 3x3 pixels, from which on there is an edge
CONTRAST = 0.05  # between the colours of two surfaces: from there on they differ
UNEVEN = 0.3  # variation and misfit, relative to that contrast, at which colours count half
LITTLE = 0.003  # neighbours, by weight, with which they count half
TRUSTED = 0.02  # what is added to the trust in colours, so that means are never over nothing
TINY = 1e-6
RADII = (1, 3, 6)  # px along an edge over which signs are averaged
BESIDE = (-2, -1, 1, 2)  # px across an edge, to where the nearer surface is if positive
BESIDE_RADIUS = 2  # px along an edge over which those are averaged
MAPS = 3  # that are averaged: trust in colours, position, trust times the share of the light
OWN = 10  # signs of the pixel alone
MEANS = len(RADII) + len(BESIDE)
SIGNS = OWN + MAPS * MEANS
PLACES = 3  # the farther surface, the nearer one, and what the map says


@dataclass(frozen=True)
class Edges:
    """What is known of the n pixels of a map on which two surfaces meet."""

    where: Tensor  # (n): numbers of the pixels, row by row
    places: Tensor  # (n, 3) [px]: the farther surface, the nearer one, and what the map says
    signs: Tensor  # (n, SIGNS)


@torch.no_grad()
def find_edges(disparity: Tensor, reference: Tensor) -> Edges:
    """Where two surfaces of a map (h, w) [px] meet, seen in the reference view (c, h, w).

    The reference view is enough: asking the others would take most of the time, and in noise their
    colours misled.
    """
    alone = Views(reference.new_empty(0, *reference.shape), reference, reference.new_empty(0, 2))
    far, near, within = around(disparity)
    known = meet(alone, disparity, far, near, within)
    far, near = known[:2]
    two = near - far > APART
    where = (two & (within > STEP)).flatten().nonzero()[:, 0]
    gap = (near - far).clamp(min=TINY)
    position = torch.where(two, ((disparity - far) / gap).clamp(-0.2, 1.2) - 0.5, 0.0)
    trust = torch.where(two, trust_in_colours(known), 0.0)
    maps = torch.stack([trust, position, trust * known[3]])
    own = describe(known, position, trust, within / gap)
    signs = gather(own, maps, where, directions(maps, within > STEP))
    places = torch.stack([far, near, disparity]).flatten(1)[:, where].T
    return Edges(where, places, signs)


def trust_in_colours(known: Tensor) -> Tensor:
    """How far the share of light in what `surfaces` knows (11, h, w) can be trusted: (h, w)."""
    contrast, *unsure, weight = known[6:]
    uneven = torch.stack(unsure).amax(0) / UNEVEN
    clear = (contrast / CONTRAST).clamp(0, 1) / (1 + uneven.square().square())
    trust: Tensor = clear * weight / (weight + LITTLE)
    return trust


def describe(known: Tensor, position: Tensor, trust: Tensor, step: Tensor) -> Tensor:
    """Signs of each pixel alone (10, h, w), all of the order of 1."""
    far, near, _, light, _, _, contrast, *unsure, weight = known
    apart = (near - far + 0.01).log()
    unsure = [one.clamp(max=1) for one in unsure]
    rest = [step.clamp(max=1.5), 4 * contrast.clamp(max=0.3), *unsure, (weight + 1e-4).log() / 3]
    return torch.stack([light, position, trust, apart, *rest])


def directions(maps: Tensor, is_edge: Tensor) -> Tensor:
    """Unit vectors (2, h, w) across the edge, down and to the right, to the nearer surface."""
    trust, position, light = maps
    mixed = torch.where(is_edge, light + (1 - trust) * position, position)[None, None]
    along = torch.tensor([1.0, 4, 6, 4, 1], device=mixed.device) / 16
    mixed = F.pad(mixed, [3] * 4, mode="replicate")
    mixed = F.conv2d(F.conv2d(mixed, along.view(1, 1, 5, 1)), along.view(1, 1, 1, 5))[0, 0]
    across = mixed[:, 2:] - mixed[:, :-2]
    down = mixed[2:] - mixed[:-2]
    across = across[:-2] + 2 * across[1:-1] + across[2:]
    down = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    found: Tensor = torch.stack([down, across]) / (torch.hypot(down, across) + TINY)
    return found


def points() -> tuple[Tensor, Tensor]:
    """Where to look from a pixel on an edge: (n, 2) px along and across it; weights (MEANS, n)."""
    longest = RADII[-1]
    spots = [(along, 0) for along in range(-longest, longest + 1)]
    reach = range(-BESIDE_RADIUS, BESIDE_RADIUS + 1)
    spots += [(along, across) for across in BESIDE for along in reach]
    weights = torch.zeros(MEANS, len(spots))
    for row, radius in enumerate(RADII):
        weights[row, longest - radius : longest + radius + 1] = binomial(radius)
    for number in range(len(BESIDE)):
        start = 2 * longest + 1 + number * len(reach)
        weights[len(RADII) + number, start : start + len(reach)] = binomial(BESIDE_RADIUS)
    return torch.tensor(spots, dtype=torch.float32), weights


def binomial(radius: int) -> Tensor:
    """Weights of the pixels up to so far away on either side; their sum is 1."""
    return torch.tensor([comb(2 * radius, k) for k in range(2 * radius + 1)]) / 4.0**radius


def gather(own: Tensor, maps: Tensor, where: Tensor, normals: Tensor) -> Tensor:
    """Signs (n, SIGNS) of some pixels: their own, and means of maps (3, h, w) around them.

    Along the edges and beside them: normals (2, h, w) point across. The last map is averaged by the
    first.
    """
    spots, weights = points()
    if maps.device.type != "cpu":
        return plain_gather(own, maps, where, normals, spots.to(maps), weights.to(maps))
    from oaccdepth.evidence import edge_kernels

    out = torch.empty(len(where), SIGNS)
    run_by_rows(
        edge_kernels.gather,
        len(where),
        own.flatten(1).numpy(),
        maps.movedim(0, -1).contiguous().numpy(),
        where.numpy(),
        normals.flatten(1).contiguous().numpy(),
        spots.numpy(),
        weights.numpy(),
        np.array([(row.nonzero().min(), row.nonzero().max() + 1) for row in weights]),
        out.numpy(),
    )
    return out


def plain_gather(
    own: Tensor, maps: Tensor, where: Tensor, normals: Tensor, spots: Tensor, weights: Tensor
) -> Tensor:
    """The same in tensor operations."""
    height, width = maps.shape[-2:]
    down, right = normals.flatten(1)[:, where, None]  # (n, 1) each
    along, across = spots.T
    y = (where // width)[:, None] + along * right + across * down
    x = (where % width)[:, None] - along * down + across * right
    y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    y0, x0 = y.floor().clamp(max=max(height - 2, 0)), x.floor().clamp(max=max(width - 2, 0))
    fy, fx = y - y0, x - x0
    corner, flat = (y0 * width + x0).long(), maps.flatten(1)
    below, right_of = (width if height > 1 else 0), (1 if width > 1 else 0)
    upper = torch.lerp(flat[:, corner], flat[:, corner + right_of], fx)
    lower = torch.lerp(flat[:, corner + below], flat[:, corner + below + right_of], fx)
    found = torch.lerp(upper, lower, fy)  # (3, n, spots)
    means = torch.einsum("mns,ks->nkm", found, weights)
    means[..., 2] /= means[..., 0] + TRUSTED
    return torch.cat([own.flatten(1)[:, where].T, means.flatten(1)], 1)
