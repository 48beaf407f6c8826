"""Where two surfaces meet, and what they hide, in fused loops for the CPU.

`surfaces.py` and `visibility.py` have the plain versions. Rows are cut into short pieces: their
sums stay in the cache, and those without two surfaces are left out.
"""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled, inlined
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

F, U64 = np.float32, np.uint64
ZERO_BYTE, ONE_BYTE = np.uint8(0), np.uint8(1)
NOTHING, LEAST_SQUARE = F(LEAST_WEIGHT), F(LEAST_CONTRAST**2)
THIRD, TWO_SURFACES = F(1 / 3), F(APART)
PIECE = 32  # px of a row at a time
SIDE, WIDE = 2 * RADIUS + 1, PIECE + 2 * RADIUS
KNOWN = 8  # of a surface: weight, disparity, three colours, these squared


@compiled
def _down(row, x, weight, sums):  # type: ignore[no-untyped-def]
    """Sums over columns of 9 pixels: weights, and weights times values, each twice: (4, wide).

    `weight` (2, h, w); the sums begin RADIUS px left of the row, where there is nothing.
    """
    height, width = x.shape
    sums[:] = ZERO
    a, b = sums[0, RADIUS : RADIUS + width], sums[1, RADIUS : RADIUS + width]
    c, d = sums[2, RADIUS : RADIUS + width], sums[3, RADIUS : RADIUS + width]
    for i in range(max(0, row - RADIUS), min(height, row + RADIUS + 1)):
        value, less, more = x[i], weight[0, i], weight[1, i]
        for q in range(width):
            a[q] += less[q]
            b[q] += less[q] * value[q]
        for q in range(width):
            c[q] += more[q]
            d[q] += more[q] * value[q]


@compiled
def _mean(weights, values, out):  # type: ignore[no-untyped-def]
    """Sums of values over those of weights, of 9 pixels in a row each."""
    for q in range(len(out)):
        above, below = ZERO, ZERO
        for j in range(SIDE):
            above += values[q + j]
            below += weights[q + j]
        out[q] = above / below


@compiled
def _extremes(row, x, low, high):  # type: ignore[no-untyped-def]
    """The least and largest of three in a column, and of the outermost ones once more."""
    height, width = x.shape
    above, own, below = x[max(row - 1, 0)], x[row], x[min(row + 1, height - 1)]
    for q in range(width):
        low[1 + q] = min(own[q], min(above[q], below[q]))
    for q in range(width):
        high[1 + q] = max(own[q], max(above[q], below[q]))
    low[0], high[0] = low[1], high[1]
    low[1 + width], high[1 + width] = low[width], high[width]


@compiled
def around(start, stop, x, weight, lean, spread):  # type: ignore[no-untyped-def]
    """Two weighted means (2, h, w) of a map (h, w) around each pixel, and its range (h, w) there.

    See `surfaces.lean` and `surfaces.local_range`.
    """
    width = x.shape[1]
    sums = np.empty((4, width + 2 * RADIUS), F)
    low, high = np.empty(width + 2, F), np.empty(width + 2, F)
    for y in range(start, stop):
        _down(y, x, weight, sums)
        _mean(sums[0], sums[1], lean[0, y])
        _mean(sums[2], sums[3], lean[1, y])
        _extremes(y, x, low, high)
        out = spread[y]
        for q in range(width):
            most = max(high[q + 1], max(high[q], high[q + 2]))
            out[q] = most - min(low[q + 1], min(low[q], low[q + 2]))


@inlined
def _prepare(picture, disparity, pure, y, x, known):  # type: ignore[no-untyped-def]
    """What is known of a piece of a row and RADIUS pixels on either side: known (9, WIDE).

    Disparity, then how much the pixel counts, and that times disparity, three colours and their
    squares. Beyond the frame nothing counts.
    """
    first, last = max(0, RADIUS - x), min(WIDE, disparity.shape[1] + RADIUS - x)
    known[:] = ZERO
    for q in range(first, last):
        i = U64(x - RADIUS + q)  # unsigned: it is not looked at whether it is negative
        whole, d = pure[y, i], disparity[y, i]
        known[0, U64(q)], known[1, U64(q)], known[2, U64(q)] = d, whole, whole * d
    for c in range(3):
        for q in range(first, last):
            i = U64(x - RADIUS + q)
            value = picture[c, y, i]
            part = pure[y, i] * value
            known[3 + c, U64(q)], known[6 + c, U64(q)] = part, part * value


@inlined
def _share(known, far, scale, fall, i, s, t):  # type: ignore[no-untyped-def]
    """How much the neighbours in one row belong to the far and near surface: s, t (SIDE, PIECE)."""
    for j in range(SIDE):
        weight = fall[i, j]
        for q in range(PIECE):
            position = min(max((known[0, q + j] - far[q]) * scale[q], ZERO), ONE)
            rest = ONE - position
            s[j, q] = weight * (rest * rest) * (rest * rest)
            t[j, q] = weight * (position * position) * (position * position)


@inlined
def _add(known, s, t, number, sums):  # type: ignore[no-untyped-def]
    """Add one thing that is known of a row's neighbours, by what belongs to which surface."""
    for q in range(PIECE):
        a, b = sums[0, number, q], sums[1, number, q]
        for j in range(SIDE):
            a += s[j, q] * known[1 + number, q + j]
            b += t[j, q] * known[1 + number, q + j]
        sums[0, number, q], sums[1, number, q] = a, b


@compiled
def _gather(picture, disparity, pure, y, x, far, near, fall, sums):  # type: ignore[no-untyped-def]
    """Sums over the neighbours of a piece of a row that belong to the far (0) and near surface (1).

    `sums` (2, 8, PIECE), even if the piece is shorter: the compiler knows how long its loops are.
    """
    low, scale = np.zeros(PIECE, F), np.zeros(PIECE, F)
    for q in range(len(far)):
        low[q], scale[q] = far[q], ONE / max(near[q] - far[q], TWO_SURFACES)
    s, t, known = np.empty((SIDE, PIECE), F), np.empty((SIDE, PIECE), F), np.empty((9, WIDE), F)
    sums[:] = ZERO
    for i in range(max(0, y - RADIUS), min(len(disparity), y + RADIUS + 1)):
        _prepare(picture, disparity, pure, i, x, known)
        _share(known, low, scale, fall, i - y + RADIUS, s, t)
        for number in range(KNOWN):
            _add(known, s, t, number, sums)


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
    known, own, lit = np.empty((2, KNOWN, PIECE), F), np.empty((3, n), F), np.empty((3, n), F)
    signs, mean = np.empty((9, n), F), np.empty((4, n), F)
    _gather(picture, disparity, pure, y, x, far, near, fall, known)
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
                for q in range(last - x):
                    into[0, q], into[1, q] = low[q], high[q]
                    for field in range(2, FIELDS):
                        into[field, q] = ZERO


@compiled
def visible(start, stop, disparity, bottom, top, places, least, seen):  # type: ignore[no-untyped-def]
    """Whether each view sees each point of a map (h, w): seen (k, h, w) uint8.

    `places` (k, n, 2) are the pixels that could hide a point, relative to it, and `least` (k, n) by
    how much they are nearer then; rows where nothing is that near, by the least and largest values
    of each (h), are left out.
    """
    height, width = disparity.shape
    for y in range(start, stop):
        for k in range(len(places)):
            for x in range(width):
                seen[k, y, x] = ONE_BYTE
            for n in range(places.shape[1]):
                dy, dx = places[k, n]
                need = least[k, n]
                if y + dy < 0 or y + dy >= height or not top[y + dy] >= bottom[y] + need:
                    continue
                row = y + dy
                for x in range(max(0, -dx), min(width, width - dx)):
                    # unsigned: a number that could be negative is looked at one by one
                    nearer = disparity[row, U64(x + dx)] >= disparity[y, U64(x)] + need
                    seen[k, y, U64(x)] &= ZERO_BYTE if nearer else ONE_BYTE
