"""The evidence in fused loops, for the CPU: arrays in, arrays filled. `plain.py` says the same.

Packed pictures, votes by sector and their means, and aggregation, whose costs and paths are
integers. `sweep_kernels.py` has the sweep, `sample_kernels.py` samples of each pixel's own.
"""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled

F = np.float32
U8 = np.uint8
U16 = np.uint16
ZERO, ONE, HALF = F(0), F(1), F(0.5)
PRESENT = F(4)  # colour differences from here on come from a sample that is not there
I32 = np.int32
GREY = 1020  # a full colour, packed: four times 255, so that pictures of 8 bits stay exact
COLOUR = I32(1023)  # ten bits
GREEN, BLUE, GONE = I32(10), I32(20), I32(30)  # where they begin; the last is "absent"
ROUNDING = F(1e-3)  # px: a shift so near a whole number is one
# So that even no vote, by too few views, exceeds all means; more than rounding leaves of none.
RARE, NONE = F(1e9), F(1e-4)
BEYOND = 30000  # cost of a level that does not exist
LANES = 32  # levels that are worked on at a time


@compiled
def pack(start, stop, pictures, packed):  # type: ignore[no-untyped-def]
    """Pictures (k, c, n) to one number a pixel: packed (k, n and more).

    Grey ones become three colours. What follows the picture is fetched, but has no weight.
    """
    blue, n = pictures.shape[1] - 1, pictures.shape[2]
    for k in range(start, stop):
        r, g, b, p = pictures[k, 0], pictures[k, blue >> 1], pictures[k, blue], packed[k]
        p[n:] = 0
        for i in range(n):
            colour = I32(min(r[i], ONE) * F(GREY) + HALF)
            colour |= I32(I32(min(g[i], ONE) * F(GREY) + HALF) << GREEN)
            colour |= I32(I32(min(b[i], ONE) * F(GREY) + HALF) << BLUE)
            p[i] = colour | I32(I32(r[i] > F(1.5)) << GONE)


@compiled
def _shares(count, least, room):  # type: ignore[no-untyped-def]
    """One over the samples of each half-plane (room 4 to 19), each axis (to 27) and all (28).

    RARE where they are too few.
    """
    n = count.shape[1]
    for x in range(n):
        room[0, x], room[1, x] = ZERO, ZERO
    for z in range(8):
        for x in range(n):
            room[0, x] += count[z, x]
            room[1, x] += count[z + 8, x]
    for x in range(n):
        room[1, x] += room[0, x]
        room[28, x] = ONE / room[1, x] if room[1, x] >= F(1e-3) else ZERO
    for z in range(8):
        for x in range(n):
            own, other = room[0, x], room[1, x] - room[0, x]
            a, b = count[z, x], count[z + 8, x]
            room[4 + z, x] = ONE / own if own >= least else RARE
            room[12 + z, x] = ONE / other if other >= least else RARE
            room[20 + z, x] = ONE / (a + b) if a + b >= least else RARE
            room[0, x] = own + (b - a)


@compiled
def means(votes, count, least, room, full, half, axis):  # type: ignore[no-untyped-def]
    """Means (gains, w): over all sectors, the least of a half-plane, the least of an axis.

    Of votes (gains, 16, w) and samples (16, w). `room` (29, w) is scratch: the sums over one
    half-plane and over all, and `_shares`.
    """
    n = count.shape[1]
    _shares(count, least, room)
    for g in range(len(votes)):
        for x in range(n):
            room[0, x], room[1, x], half[g, x], axis[g, x] = ZERO, ZERO, F(2), F(2)
        for z in range(8):
            for x in range(n):
                room[0, x] += votes[g, z, x]
                room[1, x] += votes[g, z + 8, x]
        for x in range(n):
            room[1, x] += room[0, x]
            full[g, x] = room[1, x] * room[28, x]
        for z in range(8):
            for x in range(n):
                own, a, b = room[0, x], votes[g, z, x], votes[g, z + 8, x]
                one, other = (own + NONE) * room[4 + z, x], room[1, x] - own + NONE
                half[g, x] = min(half[g, x], min(one, other * room[12 + z, x]))
                axis[g, x] = min(axis[g, x], (a + b + NONE) * room[20 + z, x])
                room[0, x] = own + (b - a)
        for x in range(n):
            half[g, x] = full[g, x] if half[g, x] > F(1.5) else half[g, x]
            axis[g, x] = full[g, x] if axis[g, x] > F(1.5) else axis[g, x]


@compiled
def vote(r, weight, k, z, gains, count, votes):  # type: ignore[no-untyped-def]
    """Add the votes of a view k, weighted, to those of its sector z."""
    g0, g1, g2 = gains[0], gains[1], gains[2]
    for x in range(len(r)):
        t = r[x]
        w = weight[k, x] if t < PRESENT else ZERO
        count[z, x] += w
        votes[0, z, x] += min(t * g0, ONE) * w
        votes[1, z, x] += min(t * g1, ONE) * w
        votes[2, z, x] += min(t * g2, ONE) * w


@compiled
def _walk(cost, total, y, x, dy, dx, n, jump, jy, jx, step, levels, a, b):  # type: ignore[no-untyped-def]
    """Add the costs of the best paths along one line, which come from its beginning.

    `a` and `b` hold the paths to one pixel and to the next: a place before the first level, and one
    or more after the last that no path comes from.
    """
    a[:], b[:] = U16(BEYOND), U16(BEYOND)
    a[1 : levels + 1] = U16(0)
    least, far = U16(0), U16(0)
    for i in range(n):
        c, t = cost[y, x], total[y, x]
        if i > 0:
            far = U16(least + jump[y + jy, x + jx])
        lowest = U16(BEYOND)
        for l in range(cost.shape[2]):  # noqa: E741
            near = min(U16(a[l] + step), U16(a[l + 2] + step))
            path = U16(U16(min(min(a[l + 1], far), near) - least) + c[l])
            b[l + 1] = path
            lowest = min(lowest, path)
            t[l] = U16(t[l] + path)
        b[levels + 1] = U16(BEYOND)
        least = lowest
        a, b = b, a
        y += dy
        x += dx


@compiled
def aggregate(start, stop, cost, levels, total, dy, dx, jump, step):  # type: ignore[no-untyped-def]
    """Add both directions of one family of lines to the total (h, w, l) uint16.

    Cost (h, w, l) uint8, 255 beyond the number of levels: there are so many that 32 of them are
    worked on at a time. `jump` (h, w) is the penalty between a pixel and the one before it, at
    (y - dy, x - dx).
    """
    height, width, room = cost.shape
    a, b = np.empty(room + 2, U16), np.empty(room + 2, U16)
    for line in range(start, stop):
        s = np.int64(line)
        if dy == 0:
            y, x, n = s, np.int64(0), width
        elif dx == 0:
            y, x, n = np.int64(0), s, height
        elif dx > 0:
            x, y = max(np.int64(0), width - 1 - s), max(np.int64(0), s - (width - 1))
            n = min(height - y, width - x)
        else:
            x, y = min(width - 1, s), max(np.int64(0), s - (width - 1))
            n = min(height - y, x + 1)
        _walk(cost, total, y, x, dy, dx, n, jump, 0, 0, step, levels, a, b)
        ey, ex = y + dy * (n - 1), x + dx * (n - 1)
        _walk(cost, total, ey, ex, -dy, -dx, n, jump, dy, dx, step, levels, a, b)


@compiled
def excess(start, stop, total, out):  # type: ignore[no-untyped-def]
    """By how much sums over eight directions (h, w, l) exceed the least: uint8."""
    levels = out.shape[2]
    for y in range(start, stop):
        for x in range(total.shape[1]):
            t, o = total[y, x], out[y, x]
            least = t[0]
            for l in range(1, levels):  # noqa: E741
                least = min(least, t[l])
            for l in range(levels):  # noqa: E741
                o[l] = U8(min(U16(U16(t[l] - least) >> U16(3)), U16(255)))
