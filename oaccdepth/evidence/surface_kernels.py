"""The meeting of two surfaces in fused loops, for the CPU; `surfaces.py` has the plain version."""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled
from oaccdepth.evidence.plain import PRESENT
from oaccdepth.evidence.surfaces import (
    APART,
    FIELDS,
    LEAST_CONTRAST,
    LEAST_WEIGHT,
    MOST_UNSURE,
    RADIUS,
)

F = np.float32
ZERO, ONE, HALF = F(0), F(1), F(0.5)
NOTHING, LEAST_SQUARE = F(LEAST_WEIGHT), F(LEAST_CONTRAST**2)


@compiled
def _gather(picture, disparity, pure, y, x, far, near, fall, known):  # type: ignore[no-untyped-def]
    """Sums over the neighbours of a pixel that belong to the far (0) and to the near surface (1).

    `known` (2, 2 + 2*c) takes weight, disparity, colour, and colour squared.
    """
    channels, height, width = picture.shape
    known[:] = ZERO
    scale = ONE / (near - far)
    for i in range(max(0, y - RADIUS), min(height, y + RADIUS + 1)):
        for j in range(max(0, x - RADIUS), min(width, x + RADIUS + 1)):
            weight = fall[i - y + RADIUS, j - x + RADIUS] * pure[i, j]
            position = min(max((disparity[i, j] - far) * scale, ZERO), ONE)
            for side in range(2):
                nearer = position if side == 1 else ONE - position
                part = weight * (nearer * nearer) * (nearer * nearer)
                sums = known[side]
                sums[0] += part
                sums[1] += part * disparity[i, j]
                for c in range(channels):
                    value = part * picture[c, i, j]
                    sums[2 + c] += value
                    sums[2 + channels + c] += value * picture[c, i, j]


@compiled
def _finish(sums, start):  # type: ignore[no-untyped-def]
    """Sums to means, in place; weight and variation of the colour."""
    channels = (len(sums) - 2) // 2
    weight = sums[0] + NOTHING
    sums[1] = (sums[1] + NOTHING * start) / weight
    variation = ZERO
    for c in range(channels):
        sums[2 + c] /= weight
        sums[2 + channels + c] /= weight
        variation += sums[2 + channels + c] - sums[2 + c] * sums[2 + c]
    return weight, np.sqrt(max(variation, ZERO) / F(channels))


@compiled
def _covered(own, behind, front):  # type: ignore[no-untyped-def]
    """Share of what is in front in a mixture of both, each (c), and how far they are apart."""
    square, along = ZERO, ZERO
    for c in range(len(own)):
        apart = front[c] - behind[c]
        square += apart * apart
        along += (own[c] - behind[c]) * apart
    return min(max(along / max(square, LEAST_SQUARE), -HALF), F(1.5)), np.sqrt(square / F(len(own)))


@compiled
def _mean_colour(pictures, width, steps, y, x, disparity, own, out):  # type: ignore[no-untyped-def]
    """What the views see, on average, at a disparity of the pixel (y, x), the margin included.

    `pictures` (k, c, h' * w') are flat and `width` is their w'. Into out (c), or the pixel's own
    colour if none sees it.
    """
    channels, size = pictures.shape[1:]
    height = size // width
    count = ZERO
    out[:] = ZERO
    sample = np.empty(channels, F)
    for k in range(len(pictures)):
        py, px = F(y) + steps[k, 0] * disparity, F(x) + steps[k, 1] * disparity
        if py < ZERO or px < ZERO or py > F(height - 1) or px > F(width - 1):
            continue
        y0, x0 = min(int(py), height - 2), min(int(px), width - 2)
        fy, fx = py - F(y0), px - F(x0)
        at = y0 * width + x0
        is_there = True
        for c in range(channels):
            p = pictures[k, c]
            above = p[at] + fx * (p[at + 1] - p[at])
            below = p[at + width] + fx * (p[at + width + 1] - p[at + width])
            sample[c] = above + fy * (below - above)
            is_there = is_there and sample[c] < F(PRESENT)
        if is_there:
            count += ONE
            for c in range(channels):
                out[c] += sample[c]
    for c in range(channels):
        out[c] = out[c] / count if count > ZERO else own[c]


@compiled
def mean_colours(start, stop, picture, disparity, pictures, width, steps, margin, out):  # type: ignore[no-untyped-def]
    """What the views see, on average, at a disparity (h, w) of each pixel: into out (c, h, w)."""
    for y in range(start, stop):
        for x in range(disparity.shape[1]):
            place, at = disparity[y, x], (y + margin, x + margin)
            _mean_colour(pictures, width, steps, *at, place, picture[:, y, x], out[:, y, x])


@compiled
def meet(  # type: ignore[no-untyped-def]
    start,
    stop,
    picture,
    disparity,
    pure,
    far,
    near,
    fall,
    pictures,
    width,
    steps,
    margin,
    out,
):
    """Fill `out` (11, h, w), see `surfaces`."""
    channels = len(picture)
    known = np.empty((2, 2 + 2 * channels), F)
    own, other = np.empty(channels, F), np.empty(channels, F)
    for y in range(start, stop):
        for x in range(disparity.shape[1]):
            out[0, y, x], out[1, y, x] = far[y, x], near[y, x]
            two = min((near[y, x] - far[y, x] - F(APART)) / F(APART), ONE)
            if two <= ZERO:
                for field in range(2, FIELDS):
                    out[field, y, x] = ZERO
                continue
            _gather(picture, disparity, pure, y, x, far[y, x], near[y, x], fall, known)
            behind, front = known[0], known[1]
            weight_f, vary_f = _finish(behind, far[y, x])
            weight_n, vary_n = _finish(front, near[y, x])
            out[0, y, x] += two * (behind[1] - far[y, x])
            out[1, y, x] += two * (front[1] - near[y, x])
            for c in range(channels):
                own[c] = picture[c, y, x]
                other[c] = own[c] * own[c]
            share, contrast = _covered(own, behind[2:], front[2:])
            lit, _ = _covered(other, behind[2 + channels :], front[2 + channels :])
            inside = min(max(share, ZERO), ONE)
            misfit = ZERO
            for c in range(channels):
                rest = own[c] - behind[2 + c] - inside * (front[2 + c] - behind[2 + c])
                misfit += rest * rest
            out[2, y, x] = two * (share - HALF)
            out[3, y, x] = two * (lit - HALF)
            for side in range(2):  # the nearer one first
                place = out[1 - side, y, x]
                _mean_colour(pictures, width, steps, y + margin, x + margin, place, own, other)
                seen, _ = _covered(other, behind[2:], front[2:])
                out[4 + side, y, x] = two * (seen - HALF)
            out[6, y, x] = two * contrast
            beside = ONE / max(contrast, F(LEAST_CONTRAST))
            out[7, y, x] = two * min(np.sqrt(misfit / F(channels)) * beside, F(MOST_UNSURE))
            out[8, y, x] = two * min(vary_f * beside, F(MOST_UNSURE))
            out[9, y, x] = two * min(vary_n * beside, F(MOST_UNSURE))
            out[10, y, x] = two * min(weight_f, weight_n)


@compiled
def visible(start, stop, disparity, places, least, seen):  # type: ignore[no-untyped-def]
    """Whether each view sees each point of a map (h, w): seen (k, h, w) uint8.

    `places` (k, n, 2) are the pixels that could hide a point, relative to it, and `least` (k, n) by
    how much they are nearer then; rows where nothing is that near are left out.
    """
    height, width = disparity.shape
    top = np.empty(height, F)
    for y in range(height):
        top[y] = disparity[y].max()
    for y in range(start, stop):
        own = disparity[y]
        bottom = own.min()
        for k in range(len(places)):
            s = seen[k, y]
            s[:] = 1
            for n in range(places.shape[1]):
                dy, dx = places[k, n]
                need = least[k, n]
                if y + dy < 0 or y + dy >= height or not top[y + dy] >= bottom + need:
                    continue
                first, last = max(0, -dx), min(width, width - dx)
                if last <= first:
                    continue
                here, there, into = own[first:last], disparity[y + dy, first + dx :], s[first:last]
                for x in range(last - first):
                    into[x] &= np.uint8(there[x] < here[x] + need)
