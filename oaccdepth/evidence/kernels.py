"""The evidence in fused loops, for the CPU: arrays in, arrays filled. `plain.py` says the same.

Packed pictures, and aggregation, whose costs and paths are integers. `sweep_kernels.py` has the
sweep, `sample_kernels.py` samples of each pixel's own, `sector_kernels.py` votes by sector.
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
    """By how much sums over eight directions (h, w, l) exceed the least: out (l/2, h, w, 2) uint8.

    The sums become zero again, for the next costs.
    """
    levels = 2 * len(out)
    above = np.empty(total.shape[2], U8)
    for y in range(start, stop):
        for x in range(total.shape[1]):
            t = total[y, x]
            least = t[0]
            for l in range(1, levels):  # noqa: E741
                least = min(least, t[l])
            for l in range(len(t)):  # noqa: E741
                above[l] = U8(min(U16(U16(t[l] - least) >> U16(3)), U16(255)))
                t[l] = U16(0)
            for pair in range(len(out)):
                out[pair, y, x, 0] = above[2 * pair]
                out[pair, y, x, 1] = above[2 * pair + 1]
