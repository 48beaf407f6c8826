"""What training minimises, against literal versions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_networks import FAST, PAPER

from oaccdepth.evidence.edges import SIGNS
from oaccdepth.evidence.views import ABSENT, Views
from oaccdepth.networks.answers import EXTRA, OFFSETS, Answer, choose_candidates
from oaccdepth.networks.fast import FastNet, edge_choice
from oaccdepth.networks.paper import OACCNet
from oaccdepth.training.edges import EdgeBatch, cost
from oaccdepth.training.losses import (
    BAD,
    BETTER,
    USUAL,
    EdgeLoss,
    FastLoss,
    PaperLoss,
    RefinementLoss,
    answer_loss,
    candidate_divergence,
    level_divergence,
    loss_module,
)
from oaccdepth.training.pieces import GreyBatch, PatchBatch
from oaccdepth.training.prepared import PreparedBatch, prepare
from oaccdepth.training.variants import Variant


def divergence(scores, position):
    """Kullback-Leibler divergence from the two levels around a position to log-probabilities."""
    position = min(max(position, 0), len(scores) - 1)
    low = min(int(position), len(scores) - 2)
    shares = {low: 1 - (position - low), low + 1: position - low}
    return sum(share * (np.log(share) - scores[at]) for at, share in shares.items() if share)


def normalised(scores):
    return scores - np.log(np.exp(scores).sum())


def test_divergence_over_levels():
    torch.manual_seed(0)
    logits, truth = torch.randn(2, 6, 2, 3), 3 * torch.randn(2, 2, 3)
    levels = torch.stack([torch.arange(6) * 0.25 - 1, torch.arange(6) * 0.5])
    found = level_divergence(logits, levels, truth)
    for b, y, x in np.ndindex(2, 2, 3):
        step = float(levels[b, 1] - levels[b, 0])
        position = (float(truth[b, y, x]) - float(levels[b, 0])) / step
        expected = divergence(normalised(logits[b, :, y, x].double().numpy()), position)
        assert float(found[b, y, x]) == pytest.approx(expected, abs=1e-4)


def test_no_divergence_at_the_truth():
    levels = torch.arange(9) - 4.0
    truth = torch.full((1, 2, 2), 1.25)
    logits = torch.full((1, 9, 2, 2), -50.0)
    logits[:, 5], logits[:, 6] = np.log(0.75), np.log(0.25)
    assert level_divergence(logits, levels, truth).abs().max() < 1e-6
    assert (level_divergence(logits.roll(1, 1), levels, truth) > 1).all()


def test_divergence_over_candidates():
    """To the offsets around the truth, or to another surface if that is clearly nearer."""
    torch.manual_seed(0)
    step = 0.1
    candidates = choose_candidates(torch.randn(1, 4, 5), torch.randn(1, EXTRA, 4, 5), step)
    logits, truth = torch.randn(1, OFFSETS + EXTRA, 4, 5), torch.randn(1, 4, 5)
    found = candidate_divergence(logits, candidates, truth)
    others = 0
    for y, x in np.ndindex(4, 5):
        scores = normalised(logits[0, :, y, x].double().numpy())
        own, true = float(candidates[0, OFFSETS // 2, y, x]), float(truth[0, y, x])
        distances = [abs(float(c) - true) for c in candidates[0, OFFSETS:, y, x]]
        if min(distances) + BETTER < abs(true - own) - step * (OFFSETS // 2):
            expected = -scores[OFFSETS + int(np.argmin(distances))]
            others += 1
        else:
            expected = divergence(scores[:OFFSETS], (true - own) / step + OFFSETS // 2)
        assert float(found[0, y, x]) == pytest.approx(expected, abs=1e-4)
    assert 0 < others < 20


def test_the_loss_of_an_answer():
    """Errors count where the truth is known, per patch; the certainty, where a pixel is valid."""
    disparity = torch.tensor([[[0.0, 0.5, 9.0]], [[2.0, 0.0, 5.0]]])
    truth = torch.tensor([[[0.05, 0.0, 100.0]], [[0.0, 0.01, 7.0]]])
    certainty = torch.tensor([[[2.0, 1.0, -1.0]], [[0.0, 3.0, 4.0]]])
    valid = torch.tensor([[[True, True, True]], [[True, True, False]]])
    levels = (torch.arange(9) - 4.0).expand(2, 9)
    answer = Answer(disparity, disparity, torch.randn(2, 9, 1, 3), certainty, hypotheses=levels)
    diverged = level_divergence(answer.logits, levels, truth)[:, 0, :2].tolist()
    patches = [
        sum(e + 0.1 * e / (e + BAD) + k for e, k in zip(errors, extra, strict=True)) / 2
        for errors, extra in zip(([0.05, 0.5], [2.0, 0.01]), diverged, strict=True)
    ]
    expected = USUAL * np.mean([np.log(1 + patch / USUAL) for patch in patches])
    wrong = [-2.0, 1.0, -1.0, 0.0, -3.0]  # the certainty against what was right
    expected += 0.1 * np.mean(np.log1p(np.exp(wrong)))
    found = answer_loss(answer, truth, valid)
    assert float(found) == pytest.approx(expected, abs=1e-5)


@pytest.fixture
def batch():
    """Two patches of noise; the truth of half of them is not valid."""
    torch.manual_seed(0)
    steps = torch.tensor([(0, 1), (0, -1), (1, 0), (-1, 0)], dtype=torch.float32)
    views = [Views(torch.rand(4, 3, 56, 56), torch.rand(3, 16, 16), steps, 20) for _ in range(2)]
    valid = torch.ones(2, 16, 16, dtype=torch.bool)
    valid[:, :8] = False
    return PatchBatch(
        torch.randint(256, (2, 4, 24, 16, 16), dtype=torch.uint8),
        (torch.arange(8) * 0.25 - 1).expand(2, 8),
        torch.rand(2, 16, 16),
        valid,
        views,
    )


def make_network():
    torch.manual_seed(0)
    return FastNet(FAST)


def test_pixels_that_are_not_valid_do_not_matter(batch):
    module = FastLoss(make_network().eval())
    with torch.no_grad():
        first, parts = module(batch, 2)
        batch.truth[:, :8] += 7.0
        second, _ = module(batch, 2)
    torch.testing.assert_close(first, second)
    assert set(parts) == {"l1_first", "l1", "bad"}


def prepared(batch):
    """The input of the refinement for the two patches."""
    variants = [
        Variant(*parts)
        for parts in zip(
            batch.views, batch.volume, batch.levels, batch.truth, batch.valid, strict=True
        )
    ]
    given = zip(*(prepare(make_network().eval(), variant, 0) for variant in variants), strict=True)
    return PreparedBatch(*(torch.stack(maps) for maps in given), batch.truth, batch.valid)


@pytest.mark.parametrize("part", ["", "first", "refinement"])
def test_gradients_reach_the_part_that_is_trained(batch, part):
    network = make_network()
    passes = 1 if part == "first" else 2
    module = loss_module(network, part).train()
    batch = prepared(batch) if part == "refinement" else batch
    losses = []
    optimiser = torch.optim.AdamW(network.parameters(), 3e-3)
    for _ in range(6):
        loss, _ = module(batch, passes)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    for name, parameter in network.named_parameters():
        is_later = name.startswith("refinement")
        is_trained = {"": True, "first": not is_later, "refinement": is_later}[part]
        has_gradient = parameter.grad is not None and bool(parameter.grad.abs().sum() > 0)
        assert has_gradient == is_trained, name


def test_the_refinement_alone_has_the_loss_of_its_pass(batch):
    """The same, whether prepared beforehand or together with the first pass."""
    network = make_network().eval()
    with torch.no_grad():
        first, _ = FastLoss(network)(batch, 1)
        both, parts = FastLoss(network)(batch, 2)
        alone, same = RefinementLoss(network.refinement)(prepared(batch), 2)
    torch.testing.assert_close(alone, both - first, rtol=0.02, atol=1e-3)  # prepared in bf16
    torch.testing.assert_close(same["l1"], parts["l1"], rtol=0.02, atol=1e-3)


def edge_batch(count=400):
    """Pixels of which the first sign tells the right choice."""
    torch.manual_seed(1)
    signs = torch.randn(count, SIGNS)
    far, near = torch.tensor([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]])
    errors = torch.where(signs[:, :1] > 0, far, near)
    return EdgeBatch(signs, errors)


def test_edges_are_learnt():
    """From nothing: at first, every pixel stays as it is."""
    torch.manual_seed(0)
    module, batch = EdgeLoss(edge_choice(16)), edge_batch()
    optimiser = torch.optim.AdamW(module.parameters(), 1e-2)
    first = module(batch, 2)[1]
    assert float(first["bad"]) == 100
    assert float(first["l1"]) == pytest.approx(0.4)
    for _ in range(60):
        loss, parts = module(batch, 2)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert float(parts["bad"]) < 5
    assert float(parts["l1"]) < 0.05


def test_the_cost_of_an_error_at_an_edge():
    errors = torch.tensor([0.0, 0.07, -0.08, 1.0, -5.0])
    expected = [0, 0.0049 + 0.15, 1 + 0.0064 + 0.16, 2 + 0.3 / 1.07, 10 + 1.5 / 5.07]
    assert cost(errors).tolist() == pytest.approx(expected, abs=1e-5)


def test_nothing_at_stake_costs_nothing():
    loss, parts = EdgeLoss(edge_choice(4))(EdgeBatch(torch.rand(5, SIGNS), torch.zeros(5, 3)), 2)
    assert float(loss.detach()) == 0
    assert float(parts["bad"]) == 0
    nothing = EdgeBatch(torch.empty(0, SIGNS), torch.empty(0, 3))
    assert float(EdgeLoss(edge_choice(4))(nothing, 2)[0].detach()) == 0


def test_the_papers_loss_is_l1_with_the_mask_of_the_truth():
    torch.manual_seed(0)
    network = OACCNet(PAPER).eval()
    views, truth = torch.rand(1, 9, 9, 8, 8), torch.rand(1, 8, 8)
    views[0, 0, :, :4] = ABSENT
    valid = torch.ones(1, 8, 8, dtype=torch.bool)
    valid[0, :4] = False
    loss, parts = PaperLoss(network)(GreyBatch(views, truth, valid), 1)
    present = (views < ABSENT).float()
    error = (network(views * present, truth, present) - truth).abs()
    torch.testing.assert_close(loss, error[0, 4:].mean())
    assert parts["l1"] == loss
