"""Strips cover a picture, and are put together again."""

import torch

from oaccdepth.networks.strips import STRIP_MARGIN, assemble, cut_strips, kept_of


def test_strips_put_together_are_the_picture():
    picture = torch.rand(2, 3, 23, 5)
    strips = cut_strips(23, 8)
    assert [rows.stop - rows.start for rows, _ in strips] == [8, 8, 7]
    assert strips[1][1] == slice(8 - STRIP_MARGIN, 16 + STRIP_MARGIN)
    parts = [(picture[..., wide, :][..., kept_of(rows, wide), :],) for rows, wide in strips]
    found = assemble(iter(parts), 23)
    assert torch.equal(found, picture)
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_a_single_strip_is_not_copied():
    picture = torch.rand(1, 2, 8, 5)
    assert assemble([(picture,)], 8) is picture


def test_strips_of_two_terms_are_added():
    one, other = torch.rand(2, 2, 3, 24, 5)
    parts = [(one[..., rows, :], other[..., rows, :]) for rows, _ in cut_strips(24, 8)]
    assert torch.equal(assemble(parts, 24), one + other)
    assert torch.equal(assemble([(one, other)], 24), one + other)
