"""The sparse system of the last fit in fused loops, for the CPU; `fit.py` has the plain version.

Conjugate gradients as Chronopoulos and Gear (1989) order them: both products of a step are known
together, so each step passes over the arrays once, and the threads meet once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oaccdepth.compiling import compiled, inlined, run_in_threads, split_rows
from oaccdepth.evidence.fit import CREASE, STIFFNESS

Array = NDArray[np.float32]
F = np.float32
ZERO, ONE, TWO, FOUR = F(0), F(1), F(2), F(4)
FULL, PER_CREASE = F(STIFFNESS), F(1 / CREASE)
SMALLEST = 1e-20
CONVERGED = 1e-13  # of the energy at the start: what is left is rounding
REACH = 2  # rows above and below that a row of the matrix takes in
RING = 3  # rows that are kept at a time


@compiled
def stiffen(start, stop, x, down, across):  # type: ignore[no-untyped-def]
    """Fill in how stiff the map is down and across, see `fit.stiffness_of`."""
    height, width = x.shape
    for y in range(start, stop):
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        inside = FULL if y > 0 and y < height - 1 else ZERO
        for i in range(width):
            second = (x[above, i] - TWO * x[y, i] + x[below, i]) * PER_CREASE
            soft = ONE + second * second
            down[y, i] = inside / (soft * soft)
        across[y, 0], across[y, width - 1] = ZERO, ZERO
        for i in range(1, width - 1):
            second = (x[y, i - 1] - TWO * x[y, i] + x[y, i + 1]) * PER_CREASE
            soft = ONE + second * second
            across[y, i] = FULL / (soft * soft)


@inlined
def _bend(values, down, y, bends):  # type: ignore[no-untyped-def]
    """Weighted second differences between row y and those above and below, in turn in (RING, w)."""
    height, width = down.shape
    above, own, below, into = (y - 1) % RING, y % RING, (y + 1) % RING, y % RING
    if y < 1 or y > height - 2:
        for i in range(width):
            bends[into, i] = ZERO
        return
    for i in range(width):
        second = values[above, i] - TWO * values[own, i] + values[below, i]
        bends[into, i] = down[y, i] * second


@inlined
def _multiply(values, firmness, across, y, bends, bent, image):  # type: ignore[no-untyped-def]
    """Row y of the matrix times the values, by what `_bend` found around it: image (w)."""
    width = len(image)
    above, own, below = (y - 1) % RING, y % RING, (y + 1) % RING
    bent[0], bent[width - 1] = ZERO, ZERO
    for i in range(1, width - 1):
        second = values[own, i - 1] - TWO * values[own, i] + values[own, i + 1]
        bent[i] = across[y, i] * second
    for i in range(width):
        image[i] = firmness[y, i] * values[own, i] - TWO * (bent[i] + bends[own, i])
    for i in range(width):
        image[i] += bends[above, i] + bends[below, i]
    for i in range(1, width):
        image[i] += bent[i - 1]
    for i in range(width - 1):
        image[i] += bent[i + 1]


@inlined
def _invert(firmness, down, across, y, inverse):  # type: ignore[no-untyped-def]
    """One over the diagonal of the matrix."""
    height, width = down.shape
    above, below = max(y - 1, 0), min(y + 1, height - 1)  # nothing bends at the frame
    for i in range(width):
        near = across[y, max(i - 1, 0)] + across[y, min(i + 1, width - 1)]
        near += down[above, i] + down[below, i]
        diagonal = firmness[y, i] + FOUR * (across[y, i] + down[y, i]) + near
        inverse[y, i] = ONE / diagonal


@compiled
def begin(start, stop, x, target, firmness, down, across, inverse, residual):  # type: ignore[no-untyped-def]
    """Fill in what is left to explain, of some rows and those next to them, and the inverse."""
    height, width = x.shape
    values, bends = np.zeros((RING, width), F), np.zeros((RING, width), F)
    bent, image = np.empty(width, F), np.empty(width, F)
    for y in range(start - 2 * REACH, stop + 2 * REACH):
        if y >= 0 and y < height:
            for i in range(width):
                values[y % RING, i] = x[y, i]
        _bend(values, down, y - 1, bends)
        row = y - REACH
        if row >= max(start - REACH, 0) and row < min(stop + REACH, height):
            _multiply(values, firmness, across, row, bends, bent, image)
            for i in range(width):
                residual[row - start + REACH, i] = firmness[row, i] * target[row, i] - image[i]
    for y in range(start, stop):
        _invert(firmness, down, across, y, inverse)


@inlined
def _move(y, row, length, share, x, direction, residual, inverse):  # type: ignore[no-untyped-def]
    """The next direction of a row, and the map a length along it."""
    for i in range(x.shape[1]):
        along = inverse[y, i] * residual[row, i] + share * direction[y, i]
        direction[y, i] = along
        x[y, i] += length * along


@inlined
def _follow(y, row, length, share, image, residual, last, inverse, values):  # type: ignore[no-untyped-def]
    """What is left of a row after that, times the inverse; `image` is the direction's."""
    for i in range(residual.shape[1]):
        along = last[y, i] + share * image[row, i]
        image[row, i] = along
        residual[row, i] -= length * along
    for i in range(residual.shape[1]):
        values[y % RING, i] = inverse[y, i] * residual[row, i]


@inlined
def _product(a, b, row):  # type: ignore[no-untyped-def]
    """The sum of the products of two rows."""
    total = ZERO
    for i in range(len(a)):
        total += a[i] * b[row, i]
    return total


@compiled
def advance(  # type: ignore[no-untyped-def]
    start, stop, length, share, x, direction, residual, image, last, new, matrix, products
):
    """One step for some rows; `new` is the matrix times what is left, times the inverse.

    `residual` and `image` also have the rows next to these, which other threads have, too: only
    `last`, the matrix times what was left, comes from them. Products: energy, and that times the
    matrix.
    """
    inverse, firmness, down, across = matrix
    height, width = x.shape
    values, bends = np.zeros((RING, width), F), np.zeros((RING, width), F)
    bent = np.empty(width, F)
    energy, curvature = 0.0, 0.0
    for y in range(start - REACH, stop + REACH):
        row = y - start + REACH
        if y >= start and y < stop:
            _move(y, row, length, share, x, direction, residual, inverse)
        if y >= 0 and y < height:
            _follow(y, row, length, share, image, residual, last, inverse, values)
        if y >= start and y < stop:
            energy += _product(residual[row], values, y % RING)
        _bend(values, down, y - 1, bends)
        done = y - REACH
        if done >= start:
            _multiply(values, firmness, across, done, bends, bent, new[done])
            curvature += _product(new[done], values, done % RING)
    products[0], products[1] = energy, curvature


@dataclass
class Part:
    """Some rows, and what a thread knows of these and of REACH rows on either side."""

    start: int
    stop: int
    residual: Array
    image: Array
    products: NDArray[np.float64]

    @classmethod
    def of(cls, rows: tuple[int, int], width: int) -> Part:
        """Nothing yet."""
        known = (rows[1] - rows[0] + 2 * REACH, width)
        return cls(*rows, np.zeros(known, F), np.zeros(known, F), np.zeros(2))


def solve(arrays: Sequence[Array], steps: int) -> Array:
    """Conjugate gradients, preconditioned by the diagonal.

    Of start, target, firmness, and the stiffness of second differences down and across around
    each pixel, all (h, w); the last two are 0 at the frame.
    """
    start, target, *matrix = arrays
    x, inverse = start.copy(), np.empty_like(start)
    direction, last, new = np.zeros_like(x), np.zeros_like(x), np.empty_like(x)
    parts = [Part.of(rows, x.shape[1]) for rows in split_rows(len(x), 1)]
    known = (x, target, *matrix, inverse)
    run_in_threads(begin, [(part.start, part.stop, *known, part.residual) for part in parts])
    length, share, energy, first = 0.0, 0.0, 0.0, 0.0
    for number in range(steps + 1):  # the first only multiplies
        scales, images = (F(length), F(share)), (last, new, (inverse, *matrix))
        run_in_threads(
            advance,
            [
                (p.start, p.stop, *scales, x, direction, p.residual, p.image, *images, p.products)
                for p in parts
            ],
        )
        last, new = new, last
        before = energy
        energy, curvature = np.sum([part.products for part in parts], 0).tolist()
        if number:
            share = energy / before
            curvature -= share * energy / length
        first = first or energy
        if energy <= CONVERGED * first or curvature <= SMALLEST:
            break
        length = energy / curvature
    return x
