"""Votes of a piece of a row by sector, and their means, in fused loops for the CPU.

The room for a piece has rows of PIECE numbers: votes by gain and sector, samples by sector, one
over the samples of each half-plane (16), of each axis (8) and of all (1), and nine means. They all
stay in the cache, and everything is read once.
"""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled
from oaccdepth.evidence.kernels import ONE, PRESENT, ZERO

F, U64 = np.float32, np.uint64
PIECE = 256  # px of a row that are worked on together
SECTORS = 16
COUNTS = 3 * SECTORS  # the first row of samples
SHARES = COUNTS + SECTORS
MEANS = SHARES + 25
ROWS = MEANS + 9
# So that even no vote, by too few views, exceeds all means; more than rounding leaves of none.
RARE, NONE = F(1e9), F(1e-4)


@compiled
def vote(r, weight, z, gains, room):  # type: ignore[no-untyped-def]
    """Add the votes of a view with colour differences `r`, weighted, to those of its sector z."""
    g0, g1, g2 = gains[0], gains[1], gains[2]
    first = U64(z) * U64(PIECE)  # unsigned: see `sample_kernels.py`
    for i in range(len(r)):
        x = first + U64(i)
        w = weight[i] if r[i] < PRESENT else ZERO
        room[x] += min(r[i] * g0, ONE) * w
        room[x + U64(SECTORS * PIECE)] += min(r[i] * g1, ONE) * w
        room[x + U64(2 * SECTORS * PIECE)] += min(r[i] * g2, ONE) * w
        room[x + U64(COUNTS * PIECE)] += w


@compiled
def find_shares(room, least):  # type: ignore[no-untyped-def]
    """One over the samples of each half-plane, each axis and all; RARE where they are too few."""
    for x in range(PIECE):
        own, every = ZERO, ZERO
        for z in range(8):
            own += room[(COUNTS + z) * PIECE + x]
            every += room[(COUNTS + z + 8) * PIECE + x]
        every += own
        room[(SHARES + 24) * PIECE + x] = ONE / every if every >= F(1e-3) else ZERO
        for z in range(8):
            a, b = room[(COUNTS + z) * PIECE + x], room[(COUNTS + z + 8) * PIECE + x]
            other = every - own
            room[(SHARES + z) * PIECE + x] = ONE / own if own >= least else RARE
            room[(SHARES + z + 8) * PIECE + x] = ONE / other if other >= least else RARE
            room[(SHARES + z + 16) * PIECE + x] = ONE / (a + b) if a + b >= least else RARE
            own += b - a


@compiled
def find_means(room):  # type: ignore[no-untyped-def]
    """Means at each gain: over all sectors, the least of a half-plane, the least of an axis."""
    for gain in range(3):
        votes = SECTORS * gain
        for x in range(PIECE):
            own, every, half, axis = ZERO, ZERO, F(2), F(2)
            for z in range(8):
                own += room[(votes + z) * PIECE + x]
                every += room[(votes + z + 8) * PIECE + x]
            every += own
            for z in range(8):
                a, b = room[(votes + z) * PIECE + x], room[(votes + z + 8) * PIECE + x]
                one = (own + NONE) * room[(SHARES + z) * PIECE + x]
                other = (every - own + NONE) * room[(SHARES + z + 8) * PIECE + x]
                half = min(half, min(one, other))
                axis = min(axis, (a + b + NONE) * room[(SHARES + z + 16) * PIECE + x])
                own += b - a
            full = every * room[(SHARES + 24) * PIECE + x]
            room[(MEANS + gain) * PIECE + x] = full
            room[(MEANS + 3 + gain) * PIECE + x] = full if half > F(1.5) else half
            room[(MEANS + 6 + gain) * PIECE + x] = full if axis > F(1.5) else axis
