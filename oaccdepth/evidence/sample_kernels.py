"""Samples at a disparity of each pixel's own, in fused loops for the CPU; `plain.py` says the same.

What makes them quick: the three colours of a pixel are packed into one number, so a sample fetches
four numbers instead of twelve; and fetching, which no processor does side by side, has loops of its
own, so that all arithmetic runs on many pixels at once.
"""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled, inlined
from oaccdepth.evidence import kernels
from oaccdepth.evidence.kernels import COLOUR, GONE, GREEN, GREY, ONE, PRESENT, ROUNDING, ZERO

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
def _fetch_pair(picture, at, n, down, taps, first):  # type: ignore[no-untyped-def]
    """So often two pixels in a row, `down` pixels further on than `at`: into two of the taps."""
    for i in range(n):
        place = at[i] + U64(down)
        taps[first, i], taps[first + 1, i] = picture[place], picture[place + U64(1)]


@inlined
def _fetch_four(picture, at, n, down, taps):  # type: ignore[no-untyped-def]
    """The same with four pixels."""
    for i in range(n):
        place = at[i] + U64(down)
        taps[0, i], taps[1, i] = picture[place], picture[place + U64(1)]
        taps[2, i], taps[3, i] = picture[place + U64(2)], picture[place + U64(3)]


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
def sample(picture, size, y, x, su, sv, disparity, room):  # type: ignore[no-untyped-def]
    """A row of bilinear samples of a packed picture of a size: three colours in 0..1020; absence.

    Into the colours of the room (4, w); the last is 0 where there is a sample, PRESENT or more
    where there is none.
    """
    at, taps, fraction, colour = room
    n = len(disparity)
    _place(size, y, x, su, sv, disparity, at, fraction)
    _fetch_pair(picture, at, n, 0, taps, 0)
    _fetch_pair(picture, at, n, size[1], taps, 2)
    _blend(taps, fraction, n, colour)


@inlined
def differ(colour, reference, y, x, r):  # type: ignore[no-untyped-def]
    """Mean colour difference of samples to the reference (3, h, w), which is in 0..1020, from x on.

    PRESENT or more where there is no sample.
    """
    for i in range(len(r)):
        total = abs(colour[0, i] - reference[0, y, x + i])
        total += abs(colour[1, i] - reference[1, y, x + i])
        total += abs(colour[2, i] - reference[2, y, x + i])
        r[i] = total * PER_COLOURS + colour[3, i]


@compiled
def differences(  # type: ignore[no-untyped-def]
    start, stop, packed, size, reference, steps, margin, disparity, out
):
    """Mean colour difference of all views (k, h, w) at a disparity (h, w)."""
    room = rooms(disparity.shape[1])
    for y in range(start, stop):
        for k in range(len(packed)):
            su, sv = steps[k, 0], steps[k, 1]
            sample(packed[k], size, y + margin, margin, su, sv, disparity[y], room)
            differ(room[3], reference, y, 0, out[k, y])


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
    n = len(disparity)
    red, green, blue, count = mean[0], mean[1], mean[2], mean[3]
    mean[:] = ZERO
    for k in range(len(packed)):
        sample(packed[k], size, y, x, steps[k, 0], steps[k, 1], disparity, room)
        a, b, c, gone = room[3][0], room[3][1], room[3][2], room[3][3]
        for i in range(n):
            there = ONE if gone[i] < PRESENT else ZERO
            count[i] += there
            red[i] += there * a[i]
            green[i] += there * b[i]
            blue[i] += there * c[i]
    for i in range(n):
        share = PER_FULL / max(count[i], ONE)
        red[i] *= share
        green[i] *= share
        blue[i] *= share


@compiled
def _masks(  # type: ignore[no-untyped-def]
    packed, size, reference, y, steps, margin, base, sight, squarings, room, mask, share
):
    """Masks (k, w) of one row at its disparity, Eq. 8, and their mean over the samples there.

    All ones if squarings is negative; 0 where a view cannot see the point, by `sight` (k, h, w).
    """
    w = len(base)
    r = np.empty(w, F)
    seen, there = np.zeros(w, F), np.zeros(w, F)
    for k in range(len(packed)):
        sample(packed[k], size, y + margin, margin, steps[k, 0], steps[k, 1], base, room)
        differ(room[3], reference, y, 0, r)
        m, visible = mask[k], sight[k, y]
        for x in range(w):
            value = max(ONE - r[x], ZERO)
            for _ in range(squarings):
                value *= value
            if squarings < 0:
                value = ONE
            present = ONE if r[x] < PRESENT else ZERO
            m[x] = value * present * F(visible[x])
            seen[x] += m[x]
            there[x] += present
    for x in range(w):
        share[x] = seen[x] / max(there[x], ONE)


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
    out,
):
    """Votes at candidates (n, h, w), weighted by the masks of a base disparity (h, w).

    Into out (h, w, n * 9 + 1): for each candidate the mean over all views, the least over a
    half-plane and the least over an axis, each for every gain; last the mean mask. Eq. 5 to 8,
    gathered by sector.
    """
    n, count_views = len(candidates), len(packed)
    w = base.shape[1]
    mask, share, r = np.empty((count_views, w), F), np.empty(w, F), np.empty(w, F)
    votes, count, means = np.empty((3, 16, w), F), np.empty((16, w), F), np.empty((9, w), F)
    scratch, room = np.empty((29, w), F), rooms(w)
    for y in range(start, stop):
        row = (y, steps, margin, base[y], sight, squarings)
        _masks(packed, size, reference, *row, room, mask, share)
        out[y, :, 9 * n] = share
        for i in range(n):
            votes[:] = ZERO
            count[:] = ZERO
            here = candidates[i, y]
            for k in range(count_views):
                sample(packed[k], size, y + margin, margin, steps[k, 0], steps[k, 1], here, room)
                differ(room[3], reference, y, 0, r)
                kernels.vote(r, mask, k, sectors[k], gains, count, votes)
            kernels.means(votes, count, least, scratch, means[:3], means[3:6], means[6:])
            for number in range(9):
                out[y, :, 9 * i + number] = means[number]


@compiled
def _cubic(t, weights):  # type: ignore[no-untyped-def]
    """Weights of four neighbours at fractions t in [0, 1], then their derivatives: (8, w)."""
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    d0, d1, d2, d3 = weights[4], weights[5], weights[6], weights[7]
    for i in range(len(t)):
        f = t[i]
        w0[i] = f * (F(-0.5) + f * (ONE - HALF * f))
        w1[i] = ONE + f * f * (F(-2.5) + F(1.5) * f)
        w2[i] = f * (HALF + f * (F(2) - F(1.5) * f))
        w3[i] = f * f * (F(-0.5) + HALF * f)
        d0[i] = F(-0.5) + f * (F(2) - F(1.5) * f)
        d1[i] = f * (F(-5) + F(4.5) * f)
        d2[i] = HALF + f * (F(4) - F(4.5) * f)
        d3[i] = f * (F(-1) + F(1.5) * f)


@compiled
def _add_row(taps, across, wy, dy, su, sv, value, change):  # type: ignore[no-untyped-def]
    """Add one of the four rows of cubic samples to their values and changes per px (4, w)."""
    a, b, c, d = taps[0], taps[1], taps[2], taps[3]
    w0, w1, w2, w3 = across[0], across[1], across[2], across[3]
    d0, d1, d2, d3 = across[4], across[5], across[6], across[7]
    for colour in range(3):
        v, s, low = value[colour], change[colour], I32(10 * colour)
        for i in range(len(wy)):
            e, f = F(I32(I32(a[i] >> low) & COLOUR)), F(I32(I32(b[i] >> low) & COLOUR))
            g, h = F(I32(I32(c[i] >> low) & COLOUR)), F(I32(I32(d[i] >> low) & COLOUR))
            along = w0[i] * e + w1[i] * f + w2[i] * g + w3[i] * h
            slope = d0[i] * e + d1[i] * f + d2[i] * g + d3[i] * h
            v[i] += wy[i] * along
            s[i] += su * dy[i] * along + sv * wy[i] * slope
    gone = value[3]
    for i in range(len(wy)):
        left = abs(w0[i]) * F(I32(a[i] >> GONE)) + abs(w1[i]) * F(I32(b[i] >> GONE))
        right = abs(w2[i]) * F(I32(c[i] >> GONE)) + abs(w3[i]) * F(I32(d[i] >> GONE))
        gone[i] += abs(wy[i]) * (left + right)


@compiled
def _curve(picture, size, y, x, su, sv, disparity, room, value, change, weights):  # type: ignore[no-untyped-def]
    """Cubic samples of a row and their changes per px (4, w), in 0..1020; `value[3]`: absent.

    Samples within a pixel of the frame are absent.
    """
    at, taps, fraction, _ = room
    n = len(disparity)
    _place(size, y, x, su, sv, disparity, at, fraction)
    down, across = weights[:8], weights[8:]
    _cubic(fraction[0], down)
    _cubic(fraction[1], across)
    value[:] = ZERO
    change[:] = ZERO
    gone, before = value[3], size[1] + 1
    for i in range(n):
        gone[i] = ONE if fraction[2, i] > -ONE else ZERO
        at[i] = max(np.int64(at[i]) - before, 0)
    for row in range(4):
        _fetch_four(picture, at, n, row * size[1], taps)
        _add_row(taps, across, down[row], down[4 + row], su, sv, value, change)


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
    n = disparity.shape[1]
    room, weights = rooms(n), np.empty((16, n), F)
    value, change, heard = np.empty((4, n), F), np.empty((4, n), F), np.empty(n, F)
    softness, share = ONE / (tolerance * FULL) ** 2, channels / F(3) * PER_FULL * PER_FULL
    for y in range(start, stop):
        s, q = slope[y], curvature[y]
        s[:] = ZERO
        q[:] = ZERO
        for k in range(len(packed)):
            su, sv, sight = steps[k, 0], steps[k, 1], seen[k, y]
            row = (y + margin, margin, su, sv, disparity[y])
            _curve(packed[k], size, *row, room, value, change, weights)
            gone = value[3]
            for x in range(n):
                heard[x] = share * F(sight[x]) if gone[x] == ZERO else ZERO
            for colour in range(3):
                v, d, own = value[colour], change[colour], reference[colour, y]
                for x in range(n):
                    r = v[x] - own[x]
                    weight = heard[x] / (ONE + r * r * softness)
                    weight = weight if abs(r) < FULL else ZERO
                    s[x] += weight * d[x] * r
                    q[x] += weight * d[x] * d[x]
