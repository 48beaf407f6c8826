"""The noise of views, and views smoothed, in fused loops for the CPU; `noise.py` says the same."""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled
from oaccdepth.evidence.kernels import ONE, PRESENT, ROUNDING, ZERO
from oaccdepth.evidence.noise import BINOMIAL, CLOSEST

F = np.float32
SIDE, AROUND = len(BINOMIAL), len(BINOMIAL) // 2
OUTER, INNER, MIDDLE = F(BINOMIAL[0]), F(BINOMIAL[1]), F(BINOMIAL[2])
NOWHERE = F(1e9)  # a difference where no view is; infinite is not for fast arithmetic
LEAST_SHARE = F(1e-6)  # of a mean, that is there


@compiled
def _insert(value, least):  # type: ignore[no-untyped-def]
    """Sort a row of values (w) into the least ones so far (n, w); what falls out is left in it."""
    for rank in range(len(least)):
        for q in range(len(value)):
            old, new = least[rank, q], value[q]
            least[rank, q], value[q] = min(old, new), max(old, new)


@compiled
def _differ(picture, compared, y, sy, sx, margin, stride, out):  # type: ignore[no-untyped-def]
    """Summed colour difference of a picture (c, ...), moved, at every so many pixels of a row.

    NOWHERE where there is no sample.
    """
    bottom, right = picture.shape[1] - 1, picture.shape[2] - 1
    py = F(y + margin) + sy
    inside = py >= -ROUNDING and py <= F(bottom) + ROUNDING
    top = int(min(max(np.floor(py), ZERO), F(bottom - 1)))
    fy = min(max(py - F(top), ZERO), ONE)
    fy = ZERO if fy < 2 * ROUNDING else F(fy)
    for q in range(len(out)):
        px = F(q * stride + margin) + sx
        left = int(min(max(np.floor(px), ZERO), F(right - 1)))
        fx = min(max(px - F(left), ZERO), ONE)
        fx = ZERO if fx < 2 * ROUNDING else F(fx)
        total = ZERO
        for c in range(len(picture)):
            a, b = picture[c, top, left], picture[c, top, left + 1]
            d, e = picture[c, top + 1, left], picture[c, top + 1, left + 1]
            above, below = a + fx * (b - a), d + fx * (e - d)
            total += abs(above + fy * (below - above) - compared[c, y, q * stride])
        is_there = inside and px >= -ROUNDING and px <= F(right) + ROUNDING and total < PRESENT
        out[q] = total if is_there else NOWHERE


@compiled
def differences(  # type: ignore[no-untyped-def]
    start, stop, pictures, chosen, compared, steps, margin, levels, stride, out
):
    """Mean difference (h, w), per channel, of the views that differ least, at the best level.

    At every so many pixels; NOWHERE where no view is there.
    """
    n = out.shape[1]
    least, one, channels = np.empty((CLOSEST, n), F), np.empty(n, F), F(len(compared))
    for row in range(start, stop):
        best = out[row]
        best[:] = NOWHERE
        for level in range(len(levels)):
            least[:] = NOWHERE
            for number in range(len(chosen)):
                k, d = chosen[number], levels[level]
                sy, sx = steps[k, 0] * d, steps[k, 1] * d
                _differ(pictures[k], compared, row * stride, sy, sx, margin, stride, one)
                _insert(one, least)
            for q in range(n):
                total, count = ZERO, ZERO
                for rank in range(CLOSEST):
                    there = least[rank, q] < PRESENT
                    total += least[rank, q] if there else ZERO
                    count += ONE if there else ZERO
                mean = total / (count * channels) if count > ZERO else NOWHERE
                best[q] = min(best[q], mean)


@compiled
def ranked(start, stop, x, radius, rank, out):  # type: ignore[no-untyped-def]
    """The value (h, w) of a rank, from 1 on, around each pixel; the frame goes on beyond itself."""
    height, width = x.shape
    least, one = np.empty((rank, width), F), np.empty(width, F)
    for y in range(start, stop):
        least[:] = NOWHERE
        for i in range(y - radius, y + radius + 1):
            row = x[min(max(i, 0), height - 1)]
            for j in range(-radius, radius + 1):
                for q in range(width):
                    one[q] = row[min(max(q + j, 0), width - 1)]
                _insert(one, least)
        for q in range(width):
            out[y, q] = least[rank - 1, q]


@compiled
def _extend(row):  # type: ignore[no-untyped-def]
    """Let the values of a row go on beyond its ends, AROUND to the left and to the right."""
    last = len(row) - 1
    for q in range(AROUND):
        row[q], row[last - q] = row[AROUND], row[last - AROUND]


@compiled
def _sum_along(wide, out):  # type: ignore[no-untyped-def]
    """Weighted sums along a row."""
    for q in range(len(out)):
        out[q] = OUTER * (wide[q] + wide[q + 4]) + INNER * (wide[q + 1] + wide[q + 3])
        out[q] += MIDDLE * wide[q + 2]


@compiled
def _along(row, wide, values, there):  # type: ignore[no-untyped-def]
    """Weighted sums (w) along a row: of what is there, and of how much of it is there.

    `wide` (w + 4) is scratch. Returns whether all is there.
    """
    inner, most = wide[AROUND : AROUND + len(row)], ZERO
    for q in range(len(row)):
        inner[q] = row[q] if row[q] <= ONE else ZERO
        most = max(most, row[q])
    _extend(wide)
    _sum_along(wide, values)
    if most <= ONE:
        there[:] = ONE
        return True
    for q in range(len(row)):
        inner[q] = ONE if row[q] <= ONE else ZERO
    _extend(wide)
    _sum_along(wide, there)
    return False


@compiled
def _sum_down(rows, y, out):  # type: ignore[no-untyped-def]
    """Weighted sums of the five rows around one, which lie in turn in (5, w)."""
    a, b, c = rows[(y - 2) % SIDE], rows[(y - 1) % SIDE], rows[y % SIDE]
    d, e = rows[(y + 1) % SIDE], rows[(y + 2) % SIDE]
    for q in range(len(out)):
        out[q] = OUTER * (a[q] + e[q]) + INNER * (b[q] + d[q]) + MIDDLE * c[q]


@compiled
def _mix(row, share, mean, there):  # type: ignore[no-untyped-def]
    """A share of a row smoothed, where it is there: in place of the smoothed sums."""
    for q in range(len(row)):
        old, new = row[q], mean[q] / max(there[q], LEAST_SHARE)
        mean[q] = old + share[q] * (new - old) if old <= ONE else old


@compiled
def smooth(start, stop, pictures, share, out):  # type: ignore[no-untyped-def]
    """A share (h, w) of pictures (n, h, w) smoothed, as `noise.smoothed`; `out` may be the same."""
    height, width = share.shape
    values, there = np.empty((SIDE, width), F), np.empty((SIDE, width), F)
    wide, mean, known = np.empty(width + 2 * AROUND, F), np.empty(width, F), np.empty(width, F)
    for k in range(start, stop):
        picture, whole = pictures[k], 0  # rows so far without anything absent
        for y in range(-AROUND, height + AROUND):
            place = y % SIDE
            row = picture[min(max(y, 0), height - 1)]
            whole = whole + 1 if _along(row, wide, values[place], there[place]) else 0
            middle = y - AROUND
            if middle >= 0:
                _sum_down(values, middle, mean)
                if whole >= SIDE:
                    known[:] = ONE
                else:
                    _sum_down(there, middle, known)
                _mix(picture[middle], share[middle], mean, known)
                into = out[k, middle]
                for q in range(width):  # not before, where it is the picture itself
                    into[q] = mean[q]
