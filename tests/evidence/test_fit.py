"""The last fit: fused and plain versions, a dense system, and what it must not change."""

import numpy as np
import pytest
import torch

from oaccdepth import compiling
from oaccdepth.evidence import fit
from oaccdepth.evidence.views import Views


@pytest.fixture
def random_views():
    torch.manual_seed(3)
    steps = torch.tensor([[1.0, 0.0], [0.0, -1.0], [0.5, 0.7], [-1.0, 1.0]])
    pictures, middle = (
        (255 * torch.rand(size)).round() / 255 for size in ((4, 3, 24, 30), (3, 20, 26))
    )
    return Views(pictures, middle, steps, margin=2)


def textured(height, width, shift_y=0.0, shift_x=0.0):
    """A smooth picture (3, h, w), moved by a fraction of a pixel without any interpolation."""
    y = torch.arange(height)[:, None] - shift_y
    x = torch.arange(width) - shift_x
    tones = [torch.sin(0.4 * y + 0.3 * x), torch.cos(0.5 * x - 0.2 * y), torch.sin(0.6 * y) + 0 * x]
    return 0.5 + 0.3 * torch.stack(tones)


def moved_views(disparity, height=40, width=48):
    """Four views of a frontal plane at a disparity."""
    steps = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    # a point of the reference is at + disparity * step of a view
    views = [textured(height, width, disparity * dy, disparity * dx) for dy, dx in steps.tolist()]
    pictures = [(1020 * one).round() / 1020 for one in (*views, textured(height, width))]
    return Views(torch.stack(pictures[:-1]), pictures[-1], steps)


def test_fused_misfit_is_the_plain_one(random_views):
    disparity = torch.randn(20, 26)
    for ours, plain in zip(
        fit.misfit(random_views, disparity), fit.plain_misfit(random_views, disparity), strict=True
    ):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=5e-4)


def test_misfit_is_the_derivative_of_the_squared_difference():
    """Where all samples fit well, the robust weight is almost 1: a finite difference will do."""
    views, at, step = moved_views(0.3), 0.3005, 1e-3

    def squared(d):
        total = torch.zeros(views.size)
        for picture, direction in zip(views.pictures, views.steps, strict=True):
            value, _, _ = fit.sample(picture, direction, 0, torch.full(views.size, d))
            total += ((value - views.reference) ** 2).sum(0)
        return total

    expected = (squared(at + step) - squared(at - step)) / (4 * step)
    slope, curvature = fit.misfit(views, torch.full(views.size, at))
    inner = np.s_[4:-4, 4:-4]
    torch.testing.assert_close(slope[inner], expected[inner], rtol=0.05, atol=2e-5)
    assert (curvature[inner] > 0).all()


def test_solvers_agree_with_a_dense_system(monkeypatch):
    monkeypatch.setattr(fit, "STEPS", 60)  # enough for an exact solution
    torch.manual_seed(1)
    height, width = 7, 8
    start, target = torch.randn(height, width), torch.randn(height, width)
    firmness = torch.rand(height, width) + 0.2
    stiffness = torch.zeros(2, height, width)
    creases = [stiffness[0, 1:-1], stiffness[1, :, 1:-1]]
    for inner in creases:
        inner[:] = torch.rand(inner.shape)
    matrix = torch.diag(firmness.flatten()).double()
    index = torch.arange(height * width).view(height, width)
    for axis, weights in enumerate(creases):
        n = index.shape[axis] - 2
        triples = [index.narrow(axis, offset, n).flatten() for offset in range(3)]
        for a, b, c, weight in zip(*triples, weights.flatten().double(), strict=True):
            row = torch.zeros(height * width, dtype=torch.float64)
            row[a], row[b], row[c] = 1, -2, 1
            matrix += weight * torch.outer(row, row)
    expected = torch.linalg.solve(matrix, (firmness * target).flatten().double())
    for solver in (fit.solve, fit.plain_solve):
        found = solver(start, target, firmness, tuple(stiffness))
        torch.testing.assert_close(found.flatten().double(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("size", [(2, 3), (3, 5), (40, 33)])
def test_fused_and_plain_solvers_agree(size, cores, monkeypatch):
    """The frame, and where the rows of two threads meet."""
    monkeypatch.setattr(compiling, "_cores", lambda: cores)
    torch.manual_seed(2)
    start, target, firmness = torch.randn(size), torch.randn(size), 10 * torch.rand(size) + 1
    stiffness = fit.stiffness_of(start / 20)
    torch.testing.assert_close(stiffness, fit.plain_stiffness_of(start / 20), rtol=1e-4, atol=1e-4)
    found = fit.solve(start, target, firmness, stiffness)
    expected = fit.plain_solve(start, target, firmness, stiffness)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_solution_stays():
    plane = torch.full((12, 9), 0.7)
    assert torch.equal(fit.solve(plane, plane, plane, fit.stiffness_of(plane)), plane)


def test_a_wrong_answer_moves_to_what_the_views_say():
    views = moved_views(0.3)
    found, information = fit.fit(views, torch.full(views.size, 0.36))
    assert (found - 0.3).abs()[6:-6, 6:-6].max() < 0.03
    assert information[6:-6, 6:-6].min() > 0.01


def test_where_the_views_say_nothing_planes_stay_planes():
    grey = torch.full((3, 30, 32), 0.5)
    views = Views(grey.expand(4, -1, -1, -1).contiguous(), grey, moved_views(0).steps)
    y, x = torch.meshgrid(torch.arange(30.0), torch.arange(32.0), indexing="ij")
    plane = 0.01 * y - 0.02 * x
    found, information = fit.fit(views, plane)
    torch.testing.assert_close(found, plane, atol=1e-4, rtol=0)
    assert information.abs().max() < 1e-9


def test_a_step_stays_a_step():
    grey = torch.full((3, 24, 24), 0.5)
    views = Views(grey.expand(4, -1, -1, -1).contiguous(), grey, moved_views(0).steps)
    step = torch.where(torch.arange(24) < 12, 0.0, 1.0).expand(24, 24).contiguous()
    found, _ = fit.fit(views, step)
    assert (found - step).abs().max() < 0.03
