"""Votes at the levels of a sweep, in fused loops for the CPU; `plain.sweep` says the same.

What makes them quick: interpolated rows are kept for all the levels that share their fraction
(`shifts.py`); colours are 16-bit integers, so that 32 pixels are worked on at a time; and a piece
of a row stays in the cache until all views have voted on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oaccdepth.compiling import compiled
from oaccdepth.evidence.sector_kernels import (
    MEANS,
    PIECE,
    ROWS,
    SECTORS,
    SHARES,
    find_means,
    find_shares,
)

F, U8, U16, I32, I64 = np.float32, np.uint8, np.uint16, np.int32, np.int64
ZERO, ONE, HALF, FULL = F(0), F(1), F(0.5), F(255)
THIRD, NINTH = F(FULL / 3), F(FULL / 9)  # of a full vote
SCALE = 10200  # a full colour: forty times 255, so that pictures of 8 bits stay exact
# Red of a pixel that is absent in a view and in the reference; differences are larger only then.
GONE, MISSING, FAR = U16(65535), U16(37000), U16(20000)


def whole_numbers(reference: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The reference (c, h, w) as three colours of whole numbers."""
    absent = reference[0] > 1
    found = np.floor(np.minimum(reference, 1) * SCALE + HALF).astype(U16)
    found = np.broadcast_to(found, (3, *absent.shape)).copy()
    found[0, absent] = MISSING
    return found


@compiled
def _blend(picture, y, fy, fx, into):  # type: ignore[no-untyped-def]
    """A row of a picture (c, h, w) between its pixels: three colours, into (3, w)."""
    down, right = 1 if fy > ZERO else 0, 1 if fx > ZERO else 0
    w11 = fy * fx
    w10, w01 = fy - w11, fx - w11
    w00 = ONE - fy - w01
    for colour in range(3):
        channel = picture[min(colour, picture.shape[0] - 1)]
        a, b, out = channel[y], channel[y + down], into[colour]
        c, d = a[right:], b[right:]
        gone = GONE if colour == 0 else U16(0)
        for x in range(len(c)):
            v = w00 * a[x] + w01 * c[x] + w10 * b[x] + w11 * d[x]
            out[x] = U16(I32(min(v, ONE) * F(SCALE) + HALF)) if v < F(1.5) else gone


@compiled
def _fill(pictures, shifts, y, ready, rows):  # type: ignore[no-untyped-def]
    """Interpolate what the views' rows around y still lack; a view's rows are a ring."""
    height = pictures.shape[2]
    for k in range(len(shifts.number)):
        last = y + shifts.lowest[k] + shifts.height[k]
        for phase in range(shifts.phases[k]):
            fy, fx = shifts.fraction[k, phase]
            end = min(last, height if fy == ZERO else height - 1)
            for row in range(max(ready[k], 0), end):
                place = shifts.first[k] + phase * shifts.height[k] + row % shifts.height[k]
                _blend(pictures[shifts.number[k]], row, fy, fx, rows[place])
        ready[k] = last


@compiled
def _hear(row, own, start, left, a, b, limits, heard):  # type: ignore[no-untyped-def]
    """Add a view's votes on the pixels a to b of a piece, and its samples, to those heard (4, w).

    A vote is the colour difference, up to a limit for each gain.
    """
    r, g, c = row[0][left + a :], row[1][left + a :], row[2][left + a :]
    m0, m1, m2 = own[0][start + a :], own[1][start + a :], own[2][start + a :]
    h0, h1, h2, samples = heard[0][a:], heard[1][a:], heard[2][a:], heard[3][a:]
    g0, g1, g2 = limits[0], limits[1], limits[2]
    for x in range(b - a):
        t = U16(max(r[x], m0[x]) - min(r[x], m0[x]))
        there = U16(1) if t < FAR else U16(0)
        t = U16(t + U16(max(g[x], m1[x]) - min(g[x], m1[x])))
        t = U16(t + U16(max(c[x], m2[x]) - min(c[x], m2[x])))
        h0[x] = U16(h0[x] + U16(min(t, g0) * there))
        h1[x] = U16(h1[x] + U16(min(t, g1) * there))
        h2[x] = U16(h2[x] + U16(min(t, g2) * there))
        samples[x] = U16(samples[x] + there)


@compiled
def _note(heard, sector, gains, room):  # type: ignore[no-untyped-def]
    """Add what a group of views said to its sector."""
    for kind in range(4):
        place = (SECTORS * kind + sector) * PIECE
        into, found, gain = room[place : place + PIECE], heard[kind], gains[kind]
        for x in range(PIECE):
            into[x] += F(found[x]) * gain


@compiled
def _gather(start, n, y, level, margin, rows, pictures, own, shifts, limits, gains, heard, room):  # type: ignore[no-untyped-def]
    """Votes and samples of a piece by sector; whether all views have a sample everywhere in it."""
    height, width = pictures.shape[2:]
    is_whole = True
    room[: SHARES * PIECE] = ZERO
    for group in range(len(shifts.sectors)):
        heard[:] = U16(0)
        for k in range(shifts.groups[group], shifts.groups[group + 1]):
            phase = shifts.phase[k, level]
            fy, fx = shifts.fraction[k, phase]
            row = y + shifts.whole[k, level, 0]
            left = start + margin + shifts.whole[k, level, 1]
            a, b = max(0, -left), min(n, width - left - (1 if fx > ZERO else 0))
            is_whole = is_whole and a == 0 and b == n
            if row < 0 or row > height - (2 if fy > ZERO else 1) or b <= a:
                is_whole = False
                continue
            place = shifts.first[k]
            if shifts.phases[k] > 0:
                place += phase * shifts.height[k] + row % shifts.height[k]
            else:
                _blend(pictures[shifts.number[k]], row, fy, fx, rows[place])
            _hear(rows[place], own, start, left, a, b, limits, heard)
        _note(heard, shifts.sectors[group], gains, room)
    return is_whole


@compiled
def _store(room, n, out, side, costs):  # type: ignore[no-untyped-def]
    """Means of a piece as bytes, into out (w, >= 18), and their costs (3, w), see `plain.mix`."""
    for x in range(n):
        every, behind, faint = ZERO, ZERO, ZERO
        for gain in range(3):
            full = room[(MEANS + gain) * PIECE + x]
            half, axis = room[(MEANS + 3 + gain) * PIECE + x], room[(MEANS + 6 + gain) * PIECE + x]
            out[x, 2 * gain + side] = U8(full * FULL + HALF)
            out[x, 6 + 2 * gain + side] = U8(half * FULL + HALF)
            out[x, 12 + 2 * gain + side] = U8(axis * FULL + HALF)
            faint = full + half + axis
            every += faint
            behind += min(half, axis)
        costs[0, x] = U8(every * NINTH + HALF)
        costs[1, x] = U8(behind * THIRD + HALF)
        costs[2, x] = U8(faint * THIRD + HALF)


@compiled
def sweep(  # type: ignore[no-untyped-def]
    start, stop, pictures, reference, shifts, margin, is_complete, limits, least, volume, costs
):
    """Votes at every level: volume (l/2, h, w, >= 18), and three costs of them (3, h, w, l).

    In the volume's last axis: mean over all views, least mean over a half-plane, least mean over
    an axis, each for every gain, and of that for two levels side by side. Pictures (k, c, h, w),
    ABSENT where nothing is, unless they are complete; reference (3, h, w) uint16; a vote is full at
    a summed colour difference of `limits` (3).
    """
    width, padded = reference.shape[2], reference.shape[2] + PIECE
    rows = np.zeros((shifts.first[-1], 3, pictures.shape[3] + PIECE), U16)
    ready = start + margin + shifts.lowest
    own, heard, room = (
        np.zeros((3, padded), U16),
        np.empty((4, PIECE), U16),
        np.empty(ROWS * PIECE, F),
    )
    gains = np.ones(4, F)
    for gain in range(3):
        gains[gain] /= F(limits[gain])
    for y in range(start, stop):
        _fill(pictures, shifts, y + margin, ready, rows)
        for colour in range(3):
            for x in range(width):
                own[colour, x] = reference[colour, y, x]
        for begin in range(0, width, PIECE):
            n, is_shared = min(PIECE, width - begin), False
            for level in range(costs.shape[3]):
                place = (begin, n, y + margin, level, margin)
                views = (rows, pictures, own, shifts)
                is_whole = _gather(*place, *views, limits, gains, heard, room) and is_complete
                if not (is_whole and is_shared):
                    find_shares(room, least)
                is_shared = is_whole  # then the next whole level has the same shares
                find_means(room)
                out = volume[level >> 1, y, begin:]
                _store(room, n, out, level & 1, costs[:, y, begin:, level])
