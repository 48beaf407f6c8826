"""Signs of pixels on edges, in fused loops for the CPU. `edges.py` has the plain version."""

from __future__ import annotations

import numpy as np

from oaccdepth.compiling import compiled
from oaccdepth.evidence.edges import MAPS, OWN, TRUSTED
from oaccdepth.evidence.kernels import ONE, ZERO

F, U64 = np.float32, np.uint64
LITTLE_TRUST = F(TRUSTED)


@compiled
def _sample(maps, y, x, into):  # type: ignore[no-untyped-def]
    """Bilinear samples of maps (h, w, 3), the nearest ones beyond the frame."""
    height, width = maps.shape[:2]
    y = min(max(y, ZERO), F(height - 1))
    x = min(max(x, ZERO), F(width - 1))
    top, left = U64(y), U64(x)
    bottom, right = U64(min(top + U64(1), height - 1)), U64(min(left + U64(1), width - 1))
    fy, fx = y - F(top), x - F(left)
    for number in range(MAPS):
        upper = (ONE - fx) * maps[top, left, number] + fx * maps[top, right, number]
        lower = (ONE - fx) * maps[bottom, left, number] + fx * maps[bottom, right, number]
        into[number] = (ONE - fy) * upper + fy * lower


@compiled
def gather(start, stop, own, maps, where, normals, spots, weights, spans, out):  # type: ignore[no-untyped-def]
    """Fill `out` (n, SIGNS): own signs (10, h * w), then means over spots around each pixel.

    The pixels are `where` (n). Spots (s, 2) are px along and across an edge with normals
    (2, h * w); only those within the span of each mean have a weight.
    """
    width = maps.shape[1]
    found = np.empty((len(spots), MAPS), F)
    for n in range(start, stop):
        pixel = where[n]
        y, x = F(pixel // width), F(pixel % width)
        down, right = normals[0, pixel], normals[1, pixel]
        for number in range(OWN):
            out[n, number] = own[number, pixel]
        for s in range(len(spots)):
            along, across = spots[s, 0], spots[s, 1]
            at_y, at_x = y + along * right + across * down, x - along * down + across * right
            _sample(maps, at_y, at_x, found[s])
        for k in range(len(weights)):
            a, b, c = ZERO, ZERO, ZERO
            for s in range(spans[k, 0], spans[k, 1]):
                weight = weights[k, s]
                a += weight * found[s, 0]
                b += weight * found[s, 1]
                c += weight * found[s, 2]
            at = OWN + MAPS * k
            out[n, at], out[n, at + 1], out[n, at + 2] = a, b, c / (a + LITTLE_TRUST)
