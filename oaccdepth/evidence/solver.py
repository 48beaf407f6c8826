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
def _bend(x, across, down, y, along_x, along_y):  # type: ignore[no-untyped-def]
    """Weighted second differences of one row, along it and across rows; 0 at the ends."""
    height, width = x.shape
    row = x[y]
    along_x[0] = F(0)
    along_x[width - 1] = F(0)
    for i in range(1, width - 1):
        along_x[i] = across[y, i] * (row[i - 1] - TWO * row[i] + row[i + 1])
    if y == 0 or y == height - 1:
        along_y[:] = F(0)
        return
    above, below = x[y - 1], x[y + 1]
    for i in range(width):
        along_y[i] = down[y, i] * (above[i] - TWO * row[i] + below[i])


@compiled
def _apply(x, firmness, bent_x, bent_y, y, out):  # type: ignore[no-untyped-def]
    """One row of the system's matrix times x; its product with x."""
    height, width = x.shape
    row, bx, by = x[y], bent_x[y], bent_y[y]
    above = bent_y[max(y - 1, 0)]
    below = bent_y[min(y + 1, height - 1)]
    product = F(0)
    for i in range(width):
        value = firmness[y, i] * row[i] - TWO * (bx[i] + by[i]) + above[i] + below[i]
        value += (bx[i - 1] if i > 0 else F(0)) + (bx[i + 1] if i < width - 1 else F(0))
        out[i] = value
        product += value * row[i]
    return product


@compiled
def bend(start, stop, x, across, down, bent_x, bent_y):  # type: ignore[no-untyped-def]
    """Weighted second differences of rows."""
    for y in range(start, stop):
        _bend(x, across, down, y, bent_x[y], bent_y[y])


@compiled
def multiply(start, stop, x, firmness, bent_x, bent_y, out, products):  # type: ignore[no-untyped-def]
    """Rows of the system's matrix times x, and for each row the product with x."""
    for y in range(start, stop):
        products[y] = _apply(x, firmness, bent_x, bent_y, y, out[y])


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
    bent_x, bent_y, image = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    sums = np.empty(len(x), F)
    diagonal = firmness + FOUR * (across + down)
    diagonal[:, :-1] += across[:, 1:]
    diagonal[:, 1:] += across[:, :-1]
    diagonal[:-1] += down[1:]
    diagonal[1:] += down[:-1]
    rows = len(x)

    def apply(values: Array) -> None:
        run_by_rows(bend, rows, values, across, down, bent_x, bent_y)
        run_by_rows(multiply, rows, values, firmness, bent_x, bent_y, image, sums)

    apply(x)
    residual = firmness * target - image
    direction = np.asarray(residual / diagonal, dtype=F)
    energy = float((residual * direction).sum(dtype=np.float64))
    for _ in range(steps):
        apply(direction)
        length = energy / max(float(sums.sum(dtype=np.float64)), float(SMALLEST))
        run_by_rows(advance, rows, F(length), x, residual, direction, image, diagonal, sums)
        after = float(sums.sum(dtype=np.float64))
        share = F(after / max(energy, float(SMALLEST)))
        run_by_rows(redirect, rows, share, residual, direction, diagonal)
        energy = after
    return x
