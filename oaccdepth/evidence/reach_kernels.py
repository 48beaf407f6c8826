"""What reaches how far, in fused loops for the CPU; `reach.py` says the same."""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled
from oaccdepth.evidence.kernels import HALF, ONE, PRESENT, ZERO
from oaccdepth.evidence.reach import HALF_VOTE
from oaccdepth.evidence.sample_kernels import differ, rooms, sample

F = np.float32
HALF_AGAINST = F(HALF_VOTE)


@compiled
def means(start, stop, maps, radius, out):  # type: ignore[no-untyped-def]
    """Means (n, h, w) over the squares around each pixel, of what lies within the frame."""
    height, width = maps.shape[1:]
    column, row, sums = np.empty(width, F), np.zeros(width + 2 * radius, F), np.empty(width, F)
    counts = np.empty(width, F)
    for q in range(width):
        counts[q] = min(q + radius, width - 1) - max(q - radius, 0) + 1
    for y in range(start, stop):
        top, bottom = max(y - radius, 0), min(y + radius, height - 1)
        for number in range(len(maps)):
            column[:] = ZERO
            for i in range(top, bottom + 1):
                here = maps[number, i]
                for q in range(width):
                    column[q] += here[q]
            for q in range(width):
                row[q + radius], sums[q] = column[q], ZERO
            for j in range(2 * radius + 1):
                here = row[j : j + width]
                for q in range(width):
                    sums[q] += here[q]
            into = out[number, y]
            for q in range(width):
                into[q] = sums[q] / (counts[q] * F(bottom - top + 1))


@compiled
def alike(start, stop, one, other, out):  # type: ignore[no-untyped-def]
    """Products of the slopes of two pictures (c, h, w), and their squares: out (3, h, w)."""
    height, width = one.shape[1:]
    for y in range(start, stop):
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        both, first, second = out[0, y], out[1, y], out[2, y]
        both[:], first[:], second[:] = ZERO, ZERO, ZERO
        for c in range(len(one)):
            a, b = one[c], other[c]
            for q in range(width):
                left, right = max(q - 1, 0), min(q + 1, width - 1)
                ax, ay = HALF * (a[y, right] - a[y, left]), HALF * (a[below, q] - a[above, q])
                bx, by = HALF * (b[y, right] - b[y, left]), HALF * (b[below, q] - b[above, q])
                both[q] += ax * bx + ay * by
                first[q] += ax * ax + ay * ay
                second[q] += bx * bx + by * by


@compiled
def _fade_row(own, decay, above, here, below, wide, out):  # type: ignore[no-untyped-def]
    """What is left of the largest of the 3x3 pixels around each of a row, or its own."""
    width = len(own)
    for q in range(width):
        wide[1 + q] = max(here[q], max(above[q], below[q]))
    wide[0], wide[1 + width] = wide[1], wide[width]
    for q in range(width):
        out[q] = max(own[q], decay * max(wide[q + 1], max(wide[q], wide[q + 2])))


@compiled
def fade(start, stop, own, decay, times, out):  # type: ignore[no-untyped-def]
    """What is left (h, w) of what the pixels around have, if every px takes its share of it."""
    height, width = own.shape
    first, last = max(0, start - times), min(height, stop + times)
    old, new = np.empty((last - first, width), F), np.empty((last - first, width), F)
    wide = np.empty(width + 2, F)
    for y in range(first, last):
        for q in range(width):
            old[y - first, q] = own[y, q]
    for _ in range(times):
        for y in range(last - first):
            above, below = old[max(y - 1, 0)], old[min(y + 1, last - first - 1)]
            _fade_row(own[first + y], decay, above, old[y], below, wide, new[y])
        old, new = new, old
    for y in range(start, stop):
        for q in range(width):
            out[y, q] = old[y - first, q]


@compiled
def against(  # type: ignore[no-untyped-def]
    start, stop, packed, size, reference, steps, margin, disparity, rivals, out
):
    """The least mean vote (h, w) against any disparity that is so far from a map; 1: no view."""
    n = disparity.shape[1]
    room, place, r = rooms(n), np.empty(n, F), np.empty(n, F)
    total, count = np.empty(n, F), np.empty(n, F)
    for y in range(start, stop):
        least = out[y]
        least[:] = ONE
        red, green, blue = reference[0, y], reference[1, y], reference[2, y]
        for away in rivals:
            for x in range(n):
                place[x], total[x], count[x] = disparity[y, x] + away, ZERO, ZERO
            for k in range(len(packed)):
                sample(packed, k, size, y + margin, margin, steps[k, 0], steps[k, 1], place, room)
                differ(room[3], red, green, blue, r)
                for x in range(n):
                    there = ONE if r[x] < PRESENT else ZERO
                    total[x] += there * r[x] / (r[x] + HALF_AGAINST)
                    count[x] += there
            for x in range(n):
                vote = total[x] / max(count[x], ONE)
                least[x] = min(least[x], vote if count[x] > ZERO else ONE)
