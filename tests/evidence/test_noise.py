"""Noise of views is measured where it is, and only noisy views are smoothed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
import torch
from scipy import ndimage

from oaccdepth import evidence
from oaccdepth.evidence import noise, plain
from oaccdepth.evidence.views import ABSENT, Views

LEVELS = torch.arange(-8, 8) * 0.25
STEPS = [(u, v) for u in (-2, -1, 0, 1, 2) for v in (-2, -1, 0, 1, 2) if (u, v) != (0, 0)]


def moved(disparity=1.0, size=(96, 104), deviation=0.0, grain=2.0):
    """A texture at one disparity, in 5x5 views, with noise of a deviation (a number or a map)."""
    rng = np.random.default_rng(3)
    height, width = size
    texture = ndimage.gaussian_filter(rng.random((3, height + 16, width + 16)), (0, grain, grain))
    texture = 0.5 + 0.15 * (texture - texture.mean()) / texture.std()

    def view(u, v):
        shift = (0, -u * disparity, -v * disparity)
        seen = ndimage.shift(texture, shift, order=1)[:, 8:-8, 8:-8]
        return (seen + deviation * rng.standard_normal(seen.shape)).clip(0, 1).astype(np.float32)

    pictures = np.stack([view(-u, -v) for u, v in STEPS])
    return Views(*map(torch.from_numpy, (pictures, view(0, 0))), torch.tensor(STEPS).float())


@pytest.mark.parametrize("deviation", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("disparity", [1.0, -0.6])
def test_noise_is_measured(disparity, deviation):
    found = noise.measured(moved(disparity, deviation=deviation), LEVELS).noise
    assert found.shape == (96, 104)
    assert 0.4 * deviation < found.median() < 2 * deviation  # strong texture hides weak noise


def test_texture_is_no_noise():
    views = noise.measured(moved(0.6, grain=1.5), LEVELS)
    assert views.noise.max() < noise.INTERPOLATION
    assert noise.calmed(views) is views


def test_noise_is_measured_where_it_is():
    there = np.zeros((160, 320))
    there[:, 160:] = 0.1
    found = noise.measured(moved(size=(160, 320), deviation=there), LEVELS).noise
    assert found[:, :80].max() < noise.INTERPOLATION
    assert 0.08 < found[:, 240:].median() < 0.2
    calm = noise.calmed(replace(moved(size=(160, 320), deviation=there), noise=found))
    noisy = moved(size=(160, 320), deviation=there)
    assert torch.equal(calm.pictures[..., :80], noisy.pictures[..., :80])
    assert calm.reference[..., 240:].std() < noisy.reference[..., 240:].std()


def test_views_are_kept_unless_they_may_be_overwritten():
    noisy = noise.measured(moved(deviation=0.1), LEVELS)
    before = noisy.pictures.clone()
    calm = noise.calmed(noisy)
    assert torch.equal(noisy.pictures, before)
    assert not torch.equal(calm.pictures, before)
    again = noise.calmed(noisy, in_place=True)
    assert again.pictures is noisy.pictures
    assert torch.equal(again.pictures, calm.pictures)


def test_deviations_are_those_of_the_literal_version():
    views = moved(deviation=0.03, size=(24, 32))
    views.pictures[3, :, 4:14, 6:20] = ABSENT
    views.reference[:, 16:, 24:] = ABSENT
    levels = LEVELS[2:10]
    found = noise.deviations(views, levels)
    assert torch.allclose(found, literal_deviations(views, levels), atol=1e-5)


def literal_deviations(views, levels):
    """The same, pixel by pixel."""
    order = sorted(range(len(STEPS)), key=lambda k: (np.hypot(*STEPS[k]), k))[: noise.NEAREST]
    pictures, compared = views.pictures.numpy(), views.compared.numpy()
    least = np.zeros((3, 4))
    for i, j in np.ndindex(3, 4):
        means = []
        for level in levels.tolist():
            here = (compared, 8 * i, 8 * j, 0)
            all_of_them = (reference.difference(pictures[k], *here, STEPS[k], level) for k in order)
            there = sorted(d for d in all_of_them if d is not None)[: noise.CLOSEST]
            if there:
                means.append(np.mean(there) / 3)
        least[i, j] = min(means, default=0)
    slope = literal_slope(views.reference.numpy())[::8, ::8]
    nearest = np.mean([np.hypot(*STEPS[k]) for k in order])
    least = np.maximum(least - noise.MISFIT * nearest * slope, 0)
    wide = np.pad(least, noise.AROUND, mode="edge")
    side = 2 * noise.AROUND + 1
    calm = [sorted(wide[i : i + side, j : j + side].flat) for i, j in np.ndindex(3, 4)]
    rank = round(noise.CALM * side**2) - 1
    found = np.array([values[rank] for values in calm]).reshape(3, 4) / noise.PER_DEVIATION
    return torch.from_numpy(found.astype(np.float32))


def literal_slope(picture):
    """Mean length of the gradient of each colour, smoothed."""
    weights = np.outer(noise.BINOMIAL, noise.BINOMIAL)
    lengths = []
    for colour in np.where(picture > 1, 0, picture):
        smooth = np.pad(ndimage.correlate(colour, weights, mode="nearest"), 1, mode="edge")
        down, across = (np.gradient(smooth, axis=axis)[1:-1, 1:-1] for axis in (0, 1))
        lengths.append(np.hypot(down, across))
    return np.mean(lengths, 0)


def test_blur_is_binomial():
    picture = torch.rand(2, 9, 11)
    weights = np.outer(noise.BINOMIAL, noise.BINOMIAL)
    expected = [ndimage.correlate(one, weights, mode="nearest") for one in picture.numpy()]
    assert torch.allclose(noise.blur(picture), torch.from_numpy(np.stack(expected)), atol=1e-6)


def test_what_is_absent_stays_absent_and_is_not_heard():
    picture = torch.full((3, 12, 12), 0.4)
    picture[:, :5] = ABSENT
    smooth = noise.smoothed(picture, torch.ones(12, 12))
    assert (smooth[:, :5] == ABSENT).all()
    assert torch.allclose(smooth[:, 5:], torch.tensor(0.4))


@pytest.mark.parametrize("stride", [1, 3, 8])
def test_every_so_many_pixels(stride):
    views = moved(size=(24, 32))
    some = plain.differences(views, torch.tensor(0.3), stride)
    assert torch.equal(some, plain.differences(views, torch.tensor(0.3))[:, ::stride, ::stride])


def test_smoothing_finds_the_level_in_noise():
    """Without it, the votes of noise as strong as the texture say little."""
    views = moved(1.0, deviation=0.2)

    def right(views):
        votes = evidence.sweep(noise.calmed(views), LEVELS)[:, 0:2].float()  # all views, least gain
        best = votes.flatten(0, 1).argmin(0)
        return float((LEVELS[best] == 1.0).float().mean())

    assert right(noise.measured(views, LEVELS)) > 1.5 * right(views)


@pytest.mark.parametrize("absent", [False, True])
def test_fused_and_plain_versions_agree(absent):
    views = moved(0.6, deviation=0.03, size=(37, 45))
    if absent:
        views.pictures[:4, :, 4:14, 6:20], views.reference[:, 20:, 24:] = ABSENT, ABSENT
    close = torch.arange(3, 11)
    found = noise.differences(views, close, LEVELS)
    expected = noise.plain_differences(views, close, LEVELS)
    there = expected.isfinite()
    assert torch.equal(found < plain.PRESENT, there) and there.all() != absent
    torch.testing.assert_close(found[there], expected[there], atol=1e-5, rtol=0)
    share = torch.rand(37, 45)
    expected = torch.stack([noise.plain_smoothed(one, share) for one in views.pictures])
    for out in (torch.empty_like(views.pictures), views.pictures):  # the last: in place
        noise.smooth(views.pictures, share, out)
        torch.testing.assert_close(out, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [(1, 1), (4, 9), (30, 21)])
def test_ranks_in_two_versions(size):
    x = torch.rand(size)
    for rank in (1, 14):
        assert torch.equal(noise.ranked(x, rank), noise.plain_ranked(x, rank))
