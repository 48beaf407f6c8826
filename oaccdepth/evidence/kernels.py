"""The evidence in fused loops, for the CPU: arrays in, arrays filled. `plain.py` says the same.

What makes them quick: for one view and one level the shift is the same for all pixels, so rows are
added as wholes; shifts without a fraction need no interpolation; costs and paths are integers.
"""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled

F = np.float32
U8 = np.uint8
U16 = np.uint16
ZERO, ONE, HALF, FULL = F(0), F(1), F(0.5), F(255)
THIRD, NINTH = F(85), F(255 / 9)  # of a full vote
PRESENT = F(4)  # summed colour differences from here on come from a sample that is not there
ROUNDING = F(1e-3)  # px: a shift so near a whole number is one
BEYOND = 30000  # cost of a level that does not exist


@compiled
def _difference(pictures, reference, y, sy, sx, margin, r):  # type: ignore[no-untyped-def]  # noqa: C901
    """Summed colour difference of one row to a shifted picture, in r[first:last]."""
    height, width = pictures.shape[1:]
    w = reference.shape[2]
    y0 = int(np.floor(sy + ROUNDING)) + y + margin
    fy = F(max(sy - np.floor(sy + ROUNDING), ZERO))
    ix = int(np.floor(sx + ROUNDING)) + margin
    fx = F(max(sx - np.floor(sx + ROUNDING), ZERO))
    if fy < 2 * ROUNDING:
        fy = ZERO
    if fx < 2 * ROUNDING:
        fx = ZERO
    first = max(0, -ix)
    last = min(w, width - ix - (1 if fx > ZERO else 0))
    if y0 < 0 or y0 + (1 if fy > ZERO else 0) > height - 1 or last <= first:
        return 0, 0
    y1 = y0 + (1 if fy > ZERO else 0)
    n = last - first
    w00 = (ONE - fy) * (ONE - fx)
    w01 = (ONE - fy) * fx
    w10 = fy * (ONE - fx)
    w11 = fy * fx
    out = r[:n]
    out[:] = ZERO
    for c in range(pictures.shape[0]):
        m = reference[c, y, first:last]
        a = pictures[c, y0, first + ix :]
        b = pictures[c, y1, first + ix :]
        if fy == ZERO and fx == ZERO:
            for x in range(n):
                out[x] += abs(a[x] - m[x])
        elif fy == ZERO:
            for x in range(n):
                out[x] += abs(w00 * a[x] + w01 * a[x + 1] - m[x])
        elif fx == ZERO:
            for x in range(n):
                out[x] += abs(w00 * a[x] + w10 * b[x] - m[x])
        else:
            for x in range(n):
                out[x] += abs(w00 * a[x] + w01 * a[x + 1] + w10 * b[x] + w11 * b[x + 1] - m[x])
    return first, last


@compiled
def _slide(values, window):  # type: ignore[no-untyped-def]
    """Sums (16, w) over eight sectors in a row, from each of them on, of values (16, w)."""
    width = values.shape[1]
    first = window[0]
    first[:] = ZERO
    for z in range(8):
        v = values[z]
        for x in range(width):
            first[x] += v[x]
    for z in range(1, 16):
        last, here, gone, come = window[z - 1], window[z], values[z - 1], values[(z + 7) & 15]
        for x in range(width):
            here[x] = last[x] + (come[x] - gone[x])


@compiled
def _shares(count, least, window, share):  # type: ignore[no-untyped-def]
    """One over the samples of each half-plane, each axis and all: share (25, w); 0: too few."""
    width = count.shape[1]
    _slide(count, window)
    for z in range(16):
        q = window[z]
        for x in range(width):
            share[z, x] = ONE / q[x] if q[x] >= least else ZERO
    for z in range(8):
        c0, c1 = count[z], count[z + 8]
        for x in range(width):
            q = c0[x] + c1[x]
            share[16 + z, x] = ONE / q if q >= least else ZERO
    for x in range(width):
        q = window[0, x] + window[8, x]
        share[24, x] = ONE / q if q >= F(1e-3) else ZERO


@compiled
def _means(votes, count, least, room, full, half, axis):  # type: ignore[no-untyped-def]
    """Means (gains, w): over all sectors, the least of a half-plane, the least of an axis.

    `room` (41, w) is scratch.
    """
    gains, _, width = votes.shape
    window, share = room[:16], room[16:]
    _shares(count, least, window, share)
    for g in range(gains):
        v, f, p, q = votes[g], full[g], half[g], axis[g]
        _slide(v, window)
        for x in range(width):
            f[x] = (window[0, x] + window[8, x]) * share[24, x]
            p[x] = F(2)
            q[x] = F(2)
        for z in range(16):
            s, k = window[z], share[z]
            for x in range(width):
                p[x] = min(p[x], s[x] * k[x] if k[x] > ZERO else F(2))
        for z in range(8):
            v0, v1, k = v[z], v[z + 8], share[16 + z]
            for x in range(width):
                s = (v0[x] + v1[x]) * k[x]
                q[x] = min(q[x], s if k[x] > ZERO else F(2))
        for x in range(width):
            p[x] = f[x] if p[x] > F(1.5) else p[x]
            q[x] = f[x] if q[x] > F(1.5) else q[x]


@compiled
def _mix(full, half, axis, cost):  # type: ignore[no-untyped-def]
    """Costs (3, w) of one row at one level, see `plain.mix`."""
    for x in range(full.shape[1]):
        every, behind = ZERO, ZERO
        for g in range(3):
            faint = full[g, x] + half[g, x] + axis[g, x]
            every += faint
            behind += min(half[g, x], axis[g, x])
        cost[0, x] = U8(every * NINTH + HALF)
        cost[1, x] = U8(behind * THIRD + HALF)
        cost[2, x] = U8(faint * THIRD + HALF)


@compiled
def _count(r, gains, count, v0, v1, v2):  # type: ignore[no-untyped-def]
    """Add one view's votes to those of its sector; each sample that is there counts alike."""
    g0, g1, g2 = gains[0], gains[1], gains[2]
    for x in range(len(r)):
        t = r[x]
        there = ONE if t < PRESENT else ZERO
        count[x] += there
        v0[x] += min(t * g0, ONE) * there
        v1[x] += min(t * g1, ONE) * there
        v2[x] += min(t * g2, ONE) * there


@compiled
def _vote(r, weight, gains, count, votes):  # type: ignore[no-untyped-def]
    """Add one view's weighted votes to those of its sector."""
    v0, v1, v2 = votes[0], votes[1], votes[2]
    g0, g1, g2 = gains[0], gains[1], gains[2]
    for x in range(len(r)):
        t = r[x]
        w = weight[x] if t < PRESENT else ZERO
        count[x] += w
        v0[x] += min(t * g0, ONE) * w
        v1[x] += min(t * g1, ONE) * w
        v2[x] += min(t * g2, ONE) * w


@compiled
def sweep(  # type: ignore[no-untyped-def]
    start,
    stop,
    pictures,
    reference,
    steps,
    sectors,
    margin,
    levels,
    gains,
    least,
    volume,
    costs,
):
    """Votes at every level: volume (l/2, h, w, >= 18), and three costs of them (3, h, w, l).

    In the volume's last axis: mean over all views, least mean over a half-plane, least mean over
    an axis, each for every gain, and of that for two levels side by side.
    """
    count_views, count_levels = len(pictures), len(levels)
    width = reference.shape[2]
    for y in range(start, stop):
        votes = np.empty((3, 16, width), F)
        count = np.empty((16, width), F)
        full, half, axis = np.empty((3, width), F), np.empty((3, width), F), np.empty((3, width), F)
        room, r = np.empty((41, width), F), np.empty(width, F)
        for level in range(count_levels):
            d = levels[level]
            votes[:] = ZERO
            count[:] = ZERO
            for k in range(count_views):
                first, last = _difference(
                    pictures[k], reference, y, steps[k, 0] * d, steps[k, 1] * d, margin, r
                )
                n = last - first
                if n <= 0:
                    continue
                z = sectors[k]
                here = slice(first, last)
                v0, v1, v2 = votes[0, z, here], votes[1, z, here], votes[2, z, here]
                _count(r[:n], gains, count[z, here], v0, v1, v2)
            _means(votes, count, least, room, full, half, axis)
            out, side = volume[level >> 1, y], level & 1
            for g in range(3):
                f, h, a = full[g], half[g], axis[g]
                for x in range(width):
                    out[x, 2 * g + side] = U8(f[x] * FULL + HALF)
                    out[x, 6 + 2 * g + side] = U8(h[x] * FULL + HALF)
                    out[x, 12 + 2 * g + side] = U8(a[x] * FULL + HALF)
            _mix(full, half, axis, costs[:, y, :, level])


@compiled
def _walk(cost, total, y, x, dy, dx, n, jump, jy, jx, step, a, b):  # type: ignore[no-untyped-def]
    """Add the costs of the best paths along one line, which come from its beginning."""
    levels = cost.shape[2]
    for i in range(n):
        c, t = cost[y, x], total[y, x]
        if i == 0:
            for l in range(levels):  # noqa: E741
                b[l + 1] = c[l]
        else:
            least = a[1]
            for l in range(1, levels):  # noqa: E741
                least = min(least, a[l + 1])
            far = U16(least + jump[y + jy, x + jx])
            for l in range(levels):  # noqa: E741
                near = min(U16(a[l] + step), U16(a[l + 2] + step))
                b[l + 1] = U16(U16(min(min(a[l + 1], far), near) - least) + c[l])
        for l in range(levels):  # noqa: E741
            t[l] = U16(t[l] + b[l + 1])
        a, b = b, a
        y += dy
        x += dx


@compiled
def aggregate(start, stop, cost, total, dy, dx, jump, step):  # type: ignore[no-untyped-def]
    """Add both directions of one family of lines to the total (h, w, l) uint16.

    `jump` (h, w) is the penalty between a pixel and the one before it, at (y - dy, x - dx).
    """
    height, width, levels = cost.shape
    for line in range(start, stop):
        s = np.int64(line)
        a, b = np.full(levels + 2, U16(BEYOND), U16), np.full(levels + 2, U16(BEYOND), U16)
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
        _walk(cost, total, y, x, dy, dx, n, jump, 0, 0, step, a, b)
        ey, ex = y + dy * (n - 1), x + dx * (n - 1)
        _walk(cost, total, ey, ex, -dy, -dx, n, jump, dy, dx, step, a, b)


@compiled
def excess(start, stop, total, out):  # type: ignore[no-untyped-def]
    """By how much sums over eight directions (h, w, l) exceed the least: uint8."""
    levels = total.shape[2]
    for y in range(start, stop):
        for x in range(total.shape[1]):
            t, o = total[y, x], out[y, x]
            least = t[0]
            for l in range(1, levels):  # noqa: E741
                least = min(least, t[l])
            for l in range(levels):  # noqa: E741
                o[l] = U8(min(U16(U16(t[l] - least) >> U16(3)), U16(255)))


@compiled
def _differences_at(picture, width, reference, y, su, sv, margin, disparity, r):  # type: ignore[no-untyped-def]
    """Summed colour difference of one row to samples at a disparity of each pixel's own.

    `picture` (c, h' * w') is flat and `width` its w': one index a sample instead of two.
    """
    channels, size = picture.shape
    height = size // width
    top, left = F(y + margin), F(margin)
    for x in range(len(r)):
        py = top + su * disparity[x]
        px = left + F(x) + sv * disparity[x]
        inside = py >= -ROUNDING and py <= F(height - 1) + ROUNDING
        inside = inside and px >= -ROUNDING and px <= F(width - 1) + ROUNDING
        y0 = min(max(int(py), 0), height - 2)
        x0 = min(max(int(px), 0), width - 2)
        fy = min(max(py - F(y0), ZERO), ONE)
        fx = min(max(px - F(x0), ZERO), ONE)
        index = y0 * width + x0
        w11 = fy * fx
        w10, w01 = fy - w11, fx - w11
        w00 = ONE - fy - w01
        total = ZERO
        for c in range(channels):
            p = picture[c]
            value = w00 * p[index] + w01 * p[index + 1]
            value += w10 * p[index + width] + w11 * p[index + width + 1]
            total += abs(value - reference[c, y, x])
        r[x] = total if inside else PRESENT


@compiled
def differences(start, stop, pictures, width, reference, steps, margin, base, out):  # type: ignore[no-untyped-def]
    """Summed colour difference of all views (k, h, w) at a disparity (h, w)."""
    for y in range(start, stop):
        for k in range(len(pictures)):
            su, sv = steps[k, 0], steps[k, 1]
            _differences_at(pictures[k], width, reference, y, su, sv, margin, base[y], out[k, y])


@compiled
def _masks(pictures, width, reference, y, steps, margin, base, sight, squarings, mask, share):  # type: ignore[no-untyped-def]
    """Masks (k, w) of one row at its disparity, Eq. 8, and their mean over the samples there.

    All ones if squarings is negative; 0 where a view cannot see the point, by `sight` (k, h, w).
    """
    channels, w = reference.shape[0], len(base)
    r = np.empty(w, F)
    seen, there = np.zeros(w, F), np.zeros(w, F)
    for k in range(len(pictures)):
        su, sv = steps[k, 0], steps[k, 1]
        _differences_at(pictures[k], width, reference, y, su, sv, margin, base, r)
        m = mask[k]
        for x in range(w):
            value = max(ONE - r[x] / F(channels), ZERO)
            for _ in range(squarings):
                value *= value
            if squarings < 0:
                value = ONE
            present = ONE if r[x] < PRESENT else ZERO
            m[x] = value * present * F(sight[k, y, x])
            seen[x] += m[x]
            there[x] += present
    for x in range(w):
        share[x] = seen[x] / max(there[x], ONE)


@compiled
def look(  # type: ignore[no-untyped-def]
    start,
    stop,
    pictures,
    width,
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
    n, count_views = len(candidates), len(pictures)
    w = base.shape[1]
    for y in range(start, stop):
        mask, share, r = np.empty((count_views, w), F), np.empty(w, F), np.empty(w, F)
        votes, count = np.empty((3, 16, w), F), np.empty((16, w), F)
        full, half, axis = np.empty((3, w), F), np.empty((3, w), F), np.empty((3, w), F)
        room = np.empty((41, w), F)
        _masks(pictures, width, reference, y, steps, margin, base[y], sight, squarings, mask, share)
        out[y, :, 9 * n] = share
        for i in range(n):
            votes[:] = ZERO
            count[:] = ZERO
            for k in range(count_views):
                su, sv = steps[k, 0], steps[k, 1]
                here = candidates[i, y]
                _differences_at(pictures[k], width, reference, y, su, sv, margin, here, r)
                z = sectors[k]
                _vote(r, mask[k], gains, count[z], votes[:, z])
            _means(votes, count, least, room, full, half, axis)
            for g in range(3):
                for x in range(w):
                    out[y, x, 9 * i + g] = full[g, x]
                    out[y, x, 9 * i + 3 + g] = half[g, x]
                    out[y, x, 9 * i + 6 + g] = axis[g, x]


@compiled
def _cubic(t, weight, derivative):  # type: ignore[no-untyped-def]
    """Weights of four neighbours at a fraction t in [0, 1], and their derivatives."""
    weight[0] = t * (F(-0.5) + t * (ONE - HALF * t))
    weight[1] = ONE + t * t * (F(-2.5) + F(1.5) * t)
    weight[2] = t * (HALF + t * (F(2) - F(1.5) * t))
    weight[3] = t * t * (F(-0.5) + HALF * t)
    derivative[0] = F(-0.5) + t * (F(2) - F(1.5) * t)
    derivative[1] = t * (F(-5) + F(4.5) * t)
    derivative[2] = HALF + t * (F(4) - F(4.5) * t)
    derivative[3] = t * (F(-1) + F(1.5) * t)


@compiled
def misfit(  # type: ignore[no-untyped-def]
    start,
    stop,
    pictures,
    width,
    reference,
    steps,
    margin,
    disparity,
    seen,
    tolerance,
    slope,
    curvature,
):
    """Half the first and second derivative (h, w) of the views' squared misfit, by disparity.

    Of the views that see a point: seen (k, h, w) uint8.
    """
    channels, size = pictures.shape[1:]
    height = size // width
    w = disparity.shape[1]
    for y in range(start, stop):
        wy, dy, wx, dx = np.empty(4, F), np.empty(4, F), np.empty(4, F), np.empty(4, F)
        slope[y] = ZERO
        curvature[y] = ZERO
        for k in range(len(pictures)):
            su, sv = steps[k, 0], steps[k, 1]
            for x in range(w):
                if not seen[k, y, x]:
                    continue
                py = F(y + margin) + su * disparity[y, x]
                px = F(x + margin) + sv * disparity[y, x]
                if py < ONE or py >= F(height - 2) or px < ONE or px >= F(width - 2):
                    continue
                y0, x0 = int(py), int(px)
                _cubic(py - F(y0), wy, dy)
                _cubic(px - F(x0), wx, dx)
                corner = (y0 - 1) * width + x0 - 1
                for c in range(channels):
                    p = pictures[k, c]
                    value, change = ZERO, ZERO
                    for i in range(4):
                        j = corner + i * width
                        a, b, e, f = p[j], p[j + 1], p[j + 2], p[j + 3]
                        along = wx[0] * a + wx[1] * b + wx[2] * e + wx[3] * f
                        across = dx[0] * a + dx[1] * b + dx[2] * e + dx[3] * f
                        value += wy[i] * along
                        change += su * dy[i] * along + sv * wy[i] * across
                    r = value - reference[c, y, x]
                    if abs(r) < ONE:
                        weight = ONE / (ONE + (r / tolerance) ** 2)
                        slope[y, x] += weight * change * r
                        curvature[y, x] += weight * change * change
