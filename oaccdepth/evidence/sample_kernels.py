"""Samples at a disparity of each pixel's own, in fused loops for the CPU; `plain.py` says the same.

What makes them quick: the three colours of a pixel are packed into one number, so a sample fetches
four numbers instead of twelve; and fetching, which no processor does side by side, has loops of its
own, so that all arithmetic runs on many pixels at once.
"""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled, inlined
from oaccdepth.evidence.kernels import COLOUR, GONE, GREEN, GREY, ONE, PRESENT, ROUNDING, ZERO
from oaccdepth.evidence.sector_kernels import (
    MEANS,
    PIECE,
    ROWS,
    SHARES,
    find_means,
    find_shares,
    vote,
)

F, I32, U64 = np.float32, np.int32, np.uint64
FULL, PER_FULL, PER_COLOURS, HALF = F(GREY), F(1 / GREY), F(1 / (3 * GREY)), F(0.5)
LEAST_FRACTION = F(2 * ROUNDING)  # of a pixel: less is only rounding
VERY = F(1e6)  # what is absent differs by far too much


@inlined
def _place(size, y, x, su, sv, disparity, at, fraction):  # type: ignore[no-untyped-def]
    """Where a row of samples lies: numbers of the pixels before them, fractions, px outside.

    `y` and `x` are the place of the row's first pixel in the picture, its margin included.
    """
    bottom, right, width = F(size[0] - 1), F(size[1] - 1), I32(size[1])
    for i in range(len(disparity)):
        py, px = F(y) + su * disparity[i], F(x) + F(I32(i)) + sv * disparity[i]
        y0 = np.floor(min(max(py, ZERO), bottom - ONE))
        x0 = np.floor(min(max(px, ZERO), right - ONE))
        fy, fx = min(py - y0, ONE), min(px - x0, ONE)
        fraction[0, i] = fy if fy >= LEAST_FRACTION else ZERO
        fraction[1, i] = fx if fx >= LEAST_FRACTION else ZERO
        at[i] = I32(y0) * width + I32(x0)
        fraction[2, i] = max(max(-py, py - bottom), max(-px, px - right))


@inlined
def _fetch_pair(packed, k, at, n, down, taps, first):  # type: ignore[no-untyped-def]
    """So often two pixels in a row, `down` pixels further on than `at`: into two of the taps."""
    for i in range(n):
        place = at[i] + U64(down)
        taps[first, i], taps[first + 1, i] = packed[k, place], packed[k, place + U64(1)]


@compiled
def rooms(width):  # type: ignore[no-untyped-def]
    """Scratch for a row: places (w), taps (4, w), fractions and px outside (3, w), colours (4, w).

    Places are unsigned: numbers that could be negative take twice as long to fetch by.
    """
    taps, fractions = np.empty((4, width), I32), np.empty((3, width), F)
    return np.empty(width, U64), taps, fractions, np.empty((4, width), F)


@inlined
def _blend(taps, fraction, n, colour):  # type: ignore[no-untyped-def]
    """What lies between four taps each: colours, and PRESENT or more where nothing is (4, w)."""
    for i in range(n):
        down, across = fraction[0, i], fraction[1, i]
        w11 = down * across
        w10, w01 = down - w11, across - w11
        w00 = ONE - down - w01
        a, b, c, d = taps[0, i], taps[1, i], taps[2, i], taps[3, i]
        f = w00 * F(I32(a >> GONE)) + w01 * F(I32(b >> GONE))
        f += w10 * F(I32(c >> GONE)) + w11 * F(I32(d >> GONE))
        colour[3, i] = PRESENT if fraction[2, i] > ROUNDING else f * VERY
        f = w00 * F(I32(a & COLOUR)) + w01 * F(I32(b & COLOUR))
        colour[0, i] = f + w10 * F(I32(c & COLOUR)) + w11 * F(I32(d & COLOUR))
        a, b, c, d = I32(a >> GREEN), I32(b >> GREEN), I32(c >> GREEN), I32(d >> GREEN)
        f = w00 * F(I32(a & COLOUR)) + w01 * F(I32(b & COLOUR))
        colour[1, i] = f + w10 * F(I32(c & COLOUR)) + w11 * F(I32(d & COLOUR))
        a, b, c, d = I32(a >> GREEN), I32(b >> GREEN), I32(c >> GREEN), I32(d >> GREEN)
        f = w00 * F(I32(a & COLOUR)) + w01 * F(I32(b & COLOUR))
        colour[2, i] = f + w10 * F(I32(c & COLOUR)) + w11 * F(I32(d & COLOUR))


@compiled
def sample(packed, k, size, y, x, su, sv, disparity, room):  # type: ignore[no-untyped-def]
    """A row of bilinear samples of packed picture k of a size: three colours in 0..1020; absence.

    Into the colours of the room (4, w); the last is 0 where there is a sample, PRESENT or more
    where there is none.
    """
    at, taps, fraction, colour = room
    n = len(disparity)
    _place(size, y, x, su, sv, disparity, at, fraction)
    _fetch_pair(packed, k, at, n, 0, taps, 0)
    _fetch_pair(packed, k, at, n, size[1], taps, 2)
    _blend(taps, fraction, n, colour)


@inlined
def differ(colour, red, green, blue, r):  # type: ignore[no-untyped-def]
    """Mean colour difference of samples to a row of the reference, which is in 0..1020.

    PRESENT or more where there is no sample.
    """
    for i in range(len(r)):
        total = abs(colour[0, i] - red[i]) + abs(colour[1, i] - green[i])
        total += abs(colour[2, i] - blue[i])
        r[i] = total * PER_COLOURS + colour[3, i]


@compiled
def differences(  # type: ignore[no-untyped-def]
    start, stop, packed, size, reference, steps, margin, disparity, out
):
    """Mean colour difference of all views (k, h, w) at a disparity (h, w)."""
    room = rooms(disparity.shape[1])
    for y in range(start, stop):
        red, green, blue = reference[0, y], reference[1, y], reference[2, y]
        for k in range(len(packed)):
            su, sv = steps[k, 0], steps[k, 1]
            sample(packed, k, size, y + margin, margin, su, sv, disparity[y], room)
            differ(room[3], red, green, blue, out[k, y])


@compiled
def mean_colours(start, stop, picture, disparity, packed, size, steps, margin, out):  # type: ignore[no-untyped-def]
    """What the views see, on average, at a disparity (h, w) of each pixel: into out (c, h, w)."""
    n = disparity.shape[1]
    room, mean = rooms(n), np.empty((4, n), F)
    for y in range(start, stop):
        mean_colour(packed, size, steps, y + margin, margin, disparity[y], room, mean)
        seen = mean[3]
        for c in range(len(out)):
            into, own, found = out[c, y], picture[c, y], mean[c]
            for x in range(n):
                into[x] = found[x] if seen[x] > ZERO else own[x]


@compiled
def mean_colour(packed, size, steps, y, x, disparity, room, mean):  # type: ignore[no-untyped-def]
    """Three mean colours of a row in 0..1, and how many views they come from: mean (4, w)."""
    n, colour = len(disparity), room[3]
    mean[:] = ZERO
    for k in range(len(packed)):
        sample(packed, k, size, y, x, steps[k, 0], steps[k, 1], disparity, room)
        for i in range(n):
            there = ONE if colour[3, i] < PRESENT else ZERO
            mean[0, i] += there * colour[0, i]
            mean[1, i] += there * colour[1, i]
            mean[2, i] += there * colour[2, i]
            mean[3, i] += there
    for i in range(n):
        share = PER_FULL / max(mean[3, i], ONE)
        mean[0, i] *= share
        mean[1, i] *= share
        mean[2, i] *= share


@compiled
def _masks(  # type: ignore[no-untyped-def]
    packed, size, colours, y, x, steps, margin, base, sight, squarings, room, r, mask, share
):
    """Masks (k, n) of a piece of a row, Eq. 8, and their mean over the samples there.

    All ones if squarings is negative; 0 where a view cannot see the point, by `sight` (k, h, w).
    """
    n = len(base)
    red, green, blue = colours
    there = np.zeros(n, F)
    share[:] = ZERO
    for k in range(len(packed)):
        step = steps[k, 0], steps[k, 1]
        sample(packed, k, size, y + margin, x + margin, step[0], step[1], base, room)
        differ(room[3], red, green, blue, r)
        visible = sight[k, y, x : x + n]
        for i in range(n):
            value = max(ONE - r[i], ZERO)
            for _ in range(squarings):
                value *= value
            if squarings < 0:
                value = ONE
            present = ONE if r[i] < PRESENT else ZERO
            value *= present * F(visible[i])
            mask[k, i] = value
            share[i] += value
            there[i] += present
    for i in range(n):
        share[i] /= max(there[i], ONE)


@compiled
def look(  # type: ignore[no-untyped-def]
    start,
    stop,
    packed,
    size,
    reference,
    steps,
    sectors,
    margin,
    candidates,
    base,
    sight,
    squarings,
    gains,
    least,
    order,
    out,
):
    """Votes at candidates (n, h, w), weighted by the masks of a base disparity (h, w).

    Into out (h, w, n * 9 + 1): for each candidate the mean over all views, the least over a
    half-plane and the least over an axis, each for every gain; last the mean mask. Eq. 5 to 8,
    gathered by sector. In the order of the sectors, whose sums then stay in the cache.
    """
    n, count_views, w = len(candidates), len(packed), base.shape[1]
    m = min(PIECE, w)
    mask, share, r = np.empty((count_views, m), F), np.empty(m, F), np.empty(m, F)
    heard, room = np.zeros(ROWS * PIECE, F), rooms(m)
    for y in range(start, stop):
        for piece in range(0, w, m):
            x = min(piece, w - m)  # the last piece overlaps the one before it
            red, green, blue = reference[0, y, x:], reference[1, y, x:], reference[2, y, x:]
            row = (y, x, steps, margin, base[y, x : x + m], sight, squarings)
            _masks(packed, size, (red, green, blue), *row, room, r, mask, share)
            for i in range(m):
                out[y, x + i, 9 * n] = share[i]
            for number in range(n):
                heard[: SHARES * PIECE] = ZERO
                here = candidates[number, y, x : x + m]
                for k in order:
                    su, sv = steps[k, 0], steps[k, 1]
                    sample(packed, k, size, y + margin, x + margin, su, sv, here, room)
                    differ(room[3], red, green, blue, r)
                    vote(r, mask[k], sectors[k], gains, heard)
                find_shares(heard, least)
                find_means(heard)
                for i in range(m):
                    for kind in range(9):
                        out[y, x + i, 9 * number + kind] = heard[(MEANS + kind) * PIECE + i]


@inlined
def _cubic(t, n, weights, first):  # type: ignore[no-untyped-def]
    """Weights of four neighbours at fractions t in [0, 1], then their derivatives: eight rows."""
    for i in range(n):
        f = t[i]
        weights[first, i] = f * (F(-0.5) + f * (ONE - HALF * f))
        weights[first + 1, i] = ONE + f * f * (F(-2.5) + F(1.5) * f)
        weights[first + 2, i] = f * (HALF + f * (F(2) - F(1.5) * f))
        weights[first + 3, i] = f * f * (F(-0.5) + HALF * f)
    for i in range(n):
        f = t[i]
        weights[first + 4, i] = F(-0.5) + f * (F(2) - F(1.5) * f)
        weights[first + 5, i] = f * (F(-5) + F(4.5) * f)
        weights[first + 6, i] = HALF + f * (F(4) - F(4.5) * f)
        weights[first + 7, i] = f * (F(-1) + F(1.5) * f)


@inlined
def _fetch_around(packed, k, at, n, width, taps):  # type: ignore[no-untyped-def]
    """4x4 pixels each, of which those at the places are the second ones: taps (16, w)."""
    for row in range(4):
        down = row * width
        for i in range(n):
            place = at[i] + U64(down)
            taps[4 * row, i] = packed[k, place]
            taps[4 * row + 1, i] = packed[k, place + U64(1)]
            taps[4 * row + 2, i] = packed[k, place + U64(2)]
            taps[4 * row + 3, i] = packed[k, place + U64(3)]


@inlined
def _hear(taps, outside, sight, share, heard):  # type: ignore[no-untyped-def]
    """How much each sample counts: a share if it is seen, there, and a pixel within the frame."""
    for i in range(len(heard)):
        gone = I32(0)
        for tap in range(16):
            gone |= taps[tap, i]
        is_there = I32(gone >> GONE) == 0 and outside[i] <= -ONE
        heard[i] = share * F(sight[i]) if is_there else ZERO


@inlined
def _push(taps, low, weights, step, own, softness, heard, slope, curvature):  # type: ignore[no-untyped-def]
    """Add what one colour, from bit `low` on, says to half the derivatives of the misfit."""
    for i in range(len(heard)):
        value, down, across = ZERO, ZERO, ZERO
        for row in range(4):
            a = F(I32(I32(taps[4 * row, i] >> low) & COLOUR))
            b = F(I32(I32(taps[4 * row + 1, i] >> low) & COLOUR))
            c = F(I32(I32(taps[4 * row + 2, i] >> low) & COLOUR))
            d = F(I32(I32(taps[4 * row + 3, i] >> low) & COLOUR))
            along = weights[8, i] * a + weights[9, i] * b + weights[10, i] * c + weights[11, i] * d
            turn = weights[12, i] * a + weights[13, i] * b + weights[14, i] * c + weights[15, i] * d
            value += weights[row, i] * along
            down += weights[4 + row, i] * along
            across += weights[row, i] * turn
        change, r = step[0] * down + step[1] * across, value - own[i]
        weight = heard[i] / (ONE + r * r * softness)
        weight = weight if abs(r) < FULL else ZERO
        slope[i] += weight * change * r
        curvature[i] += weight * change * change


@compiled
def misfit(  # type: ignore[no-untyped-def]
    start,
    stop,
    packed,
    size,
    reference,
    steps,
    margin,
    disparity,
    seen,
    channels,
    tolerance,
    slope,
    curvature,
):
    """Half the first and second derivative (h, w) of the views' squared misfit, by disparity.

    Of the views that see a point: seen (k, h, w) uint8. `reference` (3, h, w) is in 0..1020.
    """
    n, before = disparity.shape[1], size[1] + 1
    at, _, fraction, _ = rooms(n)
    taps, weights, heard = np.empty((16, n), I32), np.empty((16, n), F), np.empty(n, F)
    softness, share = ONE / (tolerance * FULL) ** 2, channels / F(3) * PER_FULL * PER_FULL
    for y in range(start, stop):
        s, q, here = slope[y], curvature[y], disparity[y]
        s[:] = ZERO
        q[:] = ZERO
        for k in range(len(packed)):
            step = steps[k, 0], steps[k, 1]
            _place(size, y + margin, margin, step[0], step[1], here, at, fraction)
            for i in range(n):
                at[i] = max(np.int64(at[i]) - before, 0)
            _cubic(fraction[0], n, weights, 0)
            _cubic(fraction[1], n, weights, 8)
            _fetch_around(packed, k, at, n, size[1], taps)
            _hear(taps, fraction[2], seen[k, y], share, heard)
            for colour in range(3):
                own, low = reference[colour, y], I32(10 * colour)
                _push(taps, low, weights, step, own, softness, heard, s, q)
