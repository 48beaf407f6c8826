"""Where two surfaces meet, and what they hide, in fused loops for the CPU.

`surfaces.py` and `visibility.py` have the plain versions. Rows are cut into short pieces: their
sums stay in the cache, and those without two surfaces are left out.
"""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled
from oaccdepth.evidence.kernels import HALF, ONE, ZERO
from oaccdepth.evidence.sample_kernels import mean_colour, rooms
from oaccdepth.evidence.surfaces import (
    APART,
    FIELDS,
    LEAST_CONTRAST,
    LEAST_WEIGHT,
    MOST_UNSURE,
    RADIUS,
)

F = np.float32
NOTHING, LEAST_SQUARE = F(LEAST_WEIGHT), F(LEAST_CONTRAST**2)
THIRD, TWO_SURFACES = F(1 / 3), F(APART)
PIECE = 64  # px of a row at a time
KNOWN = 8  # of a surface: weight, disparity, three colours, these squared


@compiled
def _gather(picture, disparity, pure, y, x, far, scale, fall, known):  # type: ignore[no-untyped-def]
    """Sums over the neighbours of a piece of a row that belong to the far (0) and near surface (1).

    `known` (2, 8, n); `scale` (n) is one over the distance of the surfaces.
    """
    height, width = disparity.shape
    n = len(far)
    known[:] = ZERO
    a, b = known[0], known[1]
    for i in range(max(0, y - RADIUS), min(height, y + RADIUS + 1)):
        for j in range(-RADIUS, RADIUS + 1):
            first, last = max(0, -x - j), min(n, width - x - j)
            weight = fall[i - y + RADIUS, j + RADIUS]
            if weight == ZERO or last <= first:
                continue
            m, here = last - first, slice(x + j + first, x + j + last)
            d, alone = disparity[i, here], pure[i, here]
            p0, p1, p2 = picture[0, i, here], picture[1, i, here], picture[2, i, here]
            low, wide = far[first:last], scale[first:last]
            f, g = a[:, first:last], b[:, first:last]
            f0, f1, f2, f3, f4, f5, f6, f7 = f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]
            g0, g1, g2, g3, g4, g5, g6, g7 = g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]
            for q in range(m):
                position = min(max((d[q] - low[q]) * wide[q], ZERO), ONE)
                whole, rest = weight * alone[q], ONE - position
                s = whole * (rest * rest) * (rest * rest)
                t = whole * (position * position) * (position * position)
                f0[q] += s
                g0[q] += t
                f1[q] += s * d[q]
                g1[q] += t * d[q]
                f2[q] += s * p0[q]
                g2[q] += t * p0[q]
                f3[q] += s * p1[q]
                g3[q] += t * p1[q]
                f4[q] += s * p2[q]
                g4[q] += t * p2[q]
                f5[q] += s * p0[q] * p0[q]
                g5[q] += t * p0[q] * p0[q]
                f6[q] += s * p1[q] * p1[q]
                g6[q] += t * p1[q] * p1[q]
                f7[q] += s * p2[q] * p2[q]
                g7[q] += t * p2[q] * p2[q]


@compiled
def _finish(sums, start, variation):  # type: ignore[no-untyped-def]
    """Sums (8, n) to weight and means, in place; how much the colours vary (n)."""
    weight = sums[0]
    for q in range(len(start)):
        weight[q] += NOTHING
        share = ONE / weight[q]
        sums[1, q] = (sums[1, q] + NOTHING * start[q]) * share
        for c in range(2, KNOWN):
            sums[c, q] *= share
        vary = ZERO
        for c in range(2, 5):
            vary += sums[3 + c, q] - sums[c, q] * sums[c, q]
        variation[q] = np.sqrt(max(vary * THIRD, ZERO))


@compiled
def _covered(own, behind, front, share):  # type: ignore[no-untyped-def]
    """Share (n) of what is in front in a mixture of both, each (3, n)."""
    for q in range(len(share)):
        square, along = ZERO, ZERO
        for c in range(3):
            apart = front[c, q] - behind[c, q]
            square += apart * apart
            along += (own[c, q] - behind[c, q]) * apart
        share[q] = min(max(along / max(square, LEAST_SQUARE), -HALF), F(1.5))


@compiled
def _unsure(own, behind, front, share, out):  # type: ignore[no-untyped-def]
    """How far both colours (3, n) are apart, and the pixel's from any mixture: out (2, n)."""
    for q in range(len(share)):
        square, misfit = ZERO, ZERO
        inside = min(max(share[q], ZERO), ONE)
        for c in range(3):
            apart = front[c, q] - behind[c, q]
            rest = own[c, q] - behind[c, q] - inside * apart
            square += apart * apart
            misfit += rest * rest
        out[0, q] = np.sqrt(square * THIRD)
        out[1, q] = np.sqrt(misfit * THIRD)


@compiled
def _meet(  # type: ignore[no-untyped-def]
    picture, disparity, pure, y, x, far, near, two, fall, packed, size, steps, margin, room, out
):
    """Fill a piece (11, n) of what `meet` fills; `two` (n) says how far there are two surfaces."""
    n = len(far)
    known, own, lit = np.empty((2, KNOWN, n), F), np.empty((3, n), F), np.empty((3, n), F)
    signs, mean = np.empty((9, n), F), np.empty((4, n), F)
    scale = ONE / np.maximum(near - far, TWO_SURFACES)
    _gather(picture, disparity, pure, y, x, far, scale, fall, known)
    behind, front = known[0], known[1]
    _finish(behind, far, signs[6])
    _finish(front, near, signs[7])
    for c in range(3):
        for q in range(n):
            own[c, q] = picture[c, y, x + q]
            lit[c, q] = own[c, q] * own[c, q]
    dark, light = behind[2:5], front[2:5]
    _covered(own, dark, light, signs[0])
    _covered(lit, behind[5:], front[5:], signs[1])
    _unsure(own, dark, light, signs[0], signs[4:6])
    for q in range(n):
        out[0, q] = far[q] + two[q] * (behind[1, q] - far[q])
        out[1, q] = near[q] + two[q] * (front[1, q] - near[q])
    for side in range(2):  # the nearer one first
        places = out[1 - side]
        mean_colour(packed, size, steps, y + margin, x + margin, places, room, mean)
        for c in range(3):
            for q in range(n):
                mean[c, q] = mean[c, q] if mean[3, q] > ZERO else own[c, q]
        _covered(mean, dark, light, signs[2 + side])
    for q in range(n):
        for field in range(4):
            out[2 + field, q] = two[q] * (signs[field, q] - HALF)
        out[6, q] = two[q] * signs[4, q]
        beside = ONE / max(signs[4, q], F(LEAST_CONTRAST))
        for field in range(5, 8):
            out[2 + field, q] = two[q] * min(signs[field, q] * beside, F(MOST_UNSURE))
        out[10, q] = two[q] * min(behind[0, q], front[0, q])


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
    packed,
    size,
    steps,
    margin,
    out,
):
    """Fill `out` (11, h, w), see `surfaces`. The picture (3, h, w) is in [0, 1]."""
    width = disparity.shape[1]
    room, two = rooms(PIECE), np.empty(PIECE, F)
    for y in range(start, stop):
        for x in range(0, width, PIECE):
            last = min(x + PIECE, width)
            low, high, into = far[y, x:last], near[y, x:last], out[:, y, x:last]
            most = ZERO
            for q in range(last - x):
                there = (high[q] - low[q] - TWO_SURFACES) / TWO_SURFACES
                two[q] = min(max(there, ZERO), ONE)
                most = max(most, two[q])
            if most > ZERO:
                here, views = (picture, disparity, pure, y, x, low, high), (packed, size, steps)
                _meet(*here, two[: last - x], fall, *views, margin, room, into)
            else:
                into[0], into[1] = low, high
                into[2:FIELDS] = ZERO


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
