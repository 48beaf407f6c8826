"""What estimates need after the first fit, used once: another process compiles it this way."""

from __future__ import annotations

import torch

from oaccdepth import evidence
from oaccdepth.evidence.edges import find_edges
from oaccdepth.evidence.reach import apart, lead, misfit, reach, some
from oaccdepth.evidence.surfaces import surfaces
from oaccdepth.evidence.views import Views

SIDE = 32  # px


def use_all() -> None:
    """Use all of it on a small picture, in the order in which an estimate does."""
    torch.set_num_threads(1)
    steps = torch.tensor([(0.0, 1.0), (1.0, 0.0), (0.0, -1.0)])
    views = Views(torch.rand(3, 3, SIDE, SIDE), torch.rand(3, SIDE, SIDE), steps)
    disparity = torch.zeros(SIDE, SIDE)
    disparity[:, SIDE // 2 :] = 1.0
    surfaces(disparity, views)
    evidence.look(views, torch.stack([disparity] * 3), disparity, 3)
    find_edges(disparity, views.reference)
    compared = some(views)
    differences = apart(compared, disparity)
    misfit(differences)
    lead(compared, disparity, differences)
    reach(views, disparity, differences, torch.ones_like(disparity))
