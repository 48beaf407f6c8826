"""Several sweeps of a wide scene to one answer: for each pixel, the one that the views confirm."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from torch import Tensor

from oaccdepth.estimation.disparity_range import coarse_sweep
from oaccdepth.estimation.found import Found, FoundPass
from oaccdepth.lightfield import FloatArray, LightField, as_grey

VOTE_GAIN = 20.0  # a difference of 1 / gain is a full vote against
DOUBT = 0.3  # votes against a disparity that is far from the coarse sweep's
FAR = 4.0  # px: from there on it is


def merge_sweeps(light_field: LightField, sweeps: list[Found], shears: tuple[int, ...]) -> Found:
    """Add the shears back; where there are several sweeps, choose one for each pixel."""
    for sweep, shear in zip(sweeps, shears, strict=True):
        for part in sweep.passes:
            part.disparity = part.disparity + shear
    if len(sweeps) == 1:
        return sweeps[0]
    return choose(sweeps, best_sweep(light_field, sweeps))


def best_sweep(light_field: LightField, sweeps: list[Found]) -> Tensor:
    """Number of the sweep (h, w) whose answer the views contradict least.

    Where there is little texture every answer fits; there the coarse sweep, which saw the whole
    range at once, decides.
    """
    height, width = light_field.resolution
    coarse, sure = coarse_sweep(light_field)
    enlarged = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_NEAREST)
    trust = cv2.resize(sure.astype(np.float32), (width, height))
    costs = []
    for sweep in sweeps:
        disparity = sweep.passes[-1].disparity.numpy()
        away = np.minimum(np.abs(disparity - enlarged) / FAR, 1)
        costs.append(votes_against(light_field, disparity) + DOUBT * trust * away)
    return torch.from_numpy(np.stack(costs).argmin(0))


def votes_against(light_field: LightField, disparity: FloatArray) -> FloatArray:
    """Mean over the views of the saturated difference to the centre view, smoothed: (h, w)."""
    rows, columns = light_field.grid
    height, width = light_field.resolution
    centre = as_grey(light_field.views[rows // 2, columns // 2])
    y, x = np.mgrid[:height, :width].astype(np.float32)
    total, count = np.zeros_like(centre), np.full_like(centre, 1e-3)
    missing = set(light_field.missing_views)
    for u, v in np.ndindex(rows, columns):
        if (u, v) in missing or (u, v) == (rows // 2, columns // 2):
            continue
        sampled = cv2.remap(
            as_grey(light_field.views[u, v]),
            x - disparity * np.float32(v - columns // 2),
            y - disparity * np.float32(u - rows // 2),
            cv2.INTER_LINEAR,
            borderValue=-9.0,
        )
        inside = sampled >= 0
        total += np.where(inside, np.minimum(VOTE_GAIN * np.abs(sampled - centre), 1), 0)
        count += inside
    return np.asarray(cv2.boxFilter(total / count, -1, (5, 5)), dtype=np.float32)


def choose(sweeps: list[Found], number: Tensor) -> Found:
    """Take each pixel from the sweep whose number (h, w) is given."""

    def pick(values: list[Tensor]) -> Tensor:
        index = number.expand_as(values[0])
        return torch.stack(values).gather(0, index[None])[0]

    passes = []
    for parts in zip(*(sweep.passes for sweep in sweeps), strict=True):
        masks = [part.masks for part in parts if part.masks is not None]
        disparity = pick([part.disparity for part in parts])
        passes.append(FoundPass(disparity, pick(masks) if masks else None))
    sure = [sweep.confidence for sweep in sweeps if sweep.confidence is not None]
    return Found(passes, pick(sure))
