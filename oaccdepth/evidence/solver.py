"""The sparse system of the last fit in fused loops, for the CPU; `fit.py` has the plain version."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oaccdepth.compiling import compiled, run_by_rows

Array = NDArray[np.float32]
F = np.float32
TWO, FOUR = F(2), F(4)
SMALLEST = F(1e-20)


@compiled
def _bend_across(x, across, y, bent):  # type: ignore[no-untyped-def]
    """Weighted second differences along a row; 0 at its ends."""
    width = x.shape[1]
    row = x[y]
    bent[0] = F(0)
    bent[width - 1] = F(0)
    for i in range(1, width - 1):
        bent[i] = across[y, i] * (row[i - 1] - TWO * row[i] + row[i + 1])


@compiled
def _bend_down(x, down, y, bent):  # type: ignore[no-untyped-def]
    """Weighted second differences of a row and those above and below; 0 at the frame."""
    height, width = x.shape
    if y <= 0 or y >= height - 1:
        bent[:] = F(0)
        return
    above, row, below = x[y - 1], x[y], x[y + 1]
    for i in range(width):
        bent[i] = down[y, i] * (above[i] - TWO * row[i] + below[i])


@compiled
def multiply(start, stop, x, firmness, across, down, out, products):  # type: ignore[no-untyped-def]
    """Rows of the system's matrix times x, and for each row the product with x."""
    width = x.shape[1]
    bx = np.empty(width, F)
    above, by, below = np.empty(width, F), np.empty(width, F), np.empty(width, F)
    _bend_down(x, down, start - 1, above)
    _bend_down(x, down, start, by)
    for y in range(start, stop):
        _bend_across(x, across, y, bx)
        _bend_down(x, down, y + 1, below)
        row, image = x[y], out[y]
        for i in range(width):
            image[i] = firmness[y, i] * row[i] - TWO * (bx[i] + by[i]) + above[i] + below[i]
        for i in range(1, width):
            image[i] += bx[i - 1]
            image[i - 1] += bx[i]
        product = F(0)
        for i in range(width):
            product += image[i] * row[i]
        products[y] = product
        above, by, below = by, below, above


@compiled
def advance(start, stop, length, x, residual, direction, image, diagonal, energies):  # type: ignore[no-untyped-def]
    """Go along the direction; for each row, the energy of what is left."""
    for y in range(start, stop):
        energy = F(0)
        for i in range(x.shape[1]):
            x[y, i] += length * direction[y, i]
            left = residual[y, i] - length * image[y, i]
            residual[y, i] = left
            energy += left * left / diagonal[y, i]
        energies[y] = energy


@compiled
def redirect(start, stop, share, residual, direction, diagonal):  # type: ignore[no-untyped-def]
    """The next direction."""
    for y in range(start, stop):
        for i in range(residual.shape[1]):
            direction[y, i] = residual[y, i] / diagonal[y, i] + share * direction[y, i]


def solve(arrays: Sequence[Array], steps: int) -> Array:
    """Conjugate gradients, preconditioned by the diagonal.

    Of start, target, firmness, across and down, all (h, w); the last two hold the stiffness
    of the second difference around each pixel, 0 at the ends of its row and column.
    """
    start, target, firmness, across, down = arrays
    x = start.copy()
    image = np.empty_like(x)
    sums = np.empty(len(x), F)
    diagonal = firmness + FOUR * (across + down)
    diagonal[:, :-1] += across[:, 1:]
    diagonal[:, 1:] += across[:, :-1]
    diagonal[:-1] += down[1:]
    diagonal[1:] += down[:-1]
    rows = len(x)

    matrix = (firmness, across, down)
    run_by_rows(multiply, rows, x, *matrix, image, sums, parts=1)
    residual = firmness * target - image
    direction = np.asarray(residual / diagonal, dtype=F)
    energy = float((residual * direction).sum(dtype=np.float64))
    for _ in range(steps):
        run_by_rows(multiply, rows, direction, *matrix, image, sums, parts=1)
        length = energy / max(float(sums.sum(dtype=np.float64)), float(SMALLEST))
        moved = (F(length), x, residual, direction, image, diagonal, sums)
        run_by_rows(advance, rows, *moved, parts=1)
        after = float(sums.sum(dtype=np.float64))
        share = F(after / max(energy, float(SMALLEST)))
        run_by_rows(redirect, rows, share, residual, direction, diagonal, parts=1)
        energy = after
    return x
