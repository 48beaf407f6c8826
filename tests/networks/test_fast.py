"""The compact network: even untrained it works, and its parts do what they say."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from small_networks import FAST

from oaccdepth.estimation.blocks import Wanted, cut_views, in_tiles, plan_levels
from oaccdepth.evidence.views import thin_out
from oaccdepth.networks import checkpoint, fast
from oaccdepth.networks.answers import (
    EXTRA,
    LEAST_BELIEF,
    LEAST_INFORMATION,
    NEAR,
    OFFSETS,
    WINDOW,
    Answer,
    Memory,
    choose_candidates,
    decide,
    describe,
    interpolate_levels,
    otherness,
    signs,
    windowed_mean,
)
from oaccdepth.networks.fast import MEETING, FastNet, colour


@pytest.fixture(scope="module")
def random():
    """Weights without zeros, so that every layer has an effect."""
    torch.manual_seed(1)
    network = FastNet(FAST).eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return network


def of_scene(scene, network):
    """The views of a whole rendered scene, and levels for it."""
    levels = plan_levels(-2.0, 2.0, network.config.level_step)
    wanted = Wanted(levels, 3, 64, (4, 4))
    height, width = scene.light_field.resolution
    region = (slice(0, height), slice(0, width))
    return cut_views(scene.light_field, wanted, region, torch.device("cpu")), levels


@pytest.fixture(scope="module")
def answers(scene, untrained):
    with torch.inference_mode():
        return list(untrained.passes(*of_scene(scene, untrained), iterations=3))


def test_an_untrained_network_answers(scene, answers):
    truth = torch.from_numpy(scene.disparity)
    errors = [(answer.disparity[0] - truth).abs()[4:-4, 4:-4] for answer in answers]
    assert len(errors) == 3
    assert errors[0].median() < 0.06 and (errors[0] > 0.25).float().mean() < 0.15
    assert errors[2].median() < 0.03 and (errors[2] > 0.25).float().mean() < 0.15


def test_answers_are_complete(answers):
    levels = len(plan_levels(-2.0, 2.0, FAST.level_step))
    for answer, count in zip(answers, (levels, 9, 9), strict=True):
        assert answer.disparity.shape == answer.spread.shape == (1, 48, 64)
        assert answer.certainty.shape == (1, 48, 64)
        assert answer.logits.shape == (1, count, 48, 64)
        assert all(torch.isfinite(x).all() for x in vars(answer).values() if x is not None)
        assert (answer.spread >= 0).all()


def test_a_single_pass_is_the_first_and_the_last_fit(scene, untrained, answers):
    views, levels = of_scene(scene, untrained)
    with torch.inference_mode():
        only = list(untrained.passes(views, levels, iterations=1))
        chosen = views.only(thin_out(views.steps, FAST.refine_views))
        expected = untrained.polish(chosen, answers[0], 2)
    assert len(only) == 1
    torch.testing.assert_close(only[0].disparity, expected.disparity)
    assert only[0].information is not None and answers[0].information is None


@pytest.mark.parametrize(("certainty", "lead"), [((0.0, -0.5, -3.0), 0.0), ((0.0, 0.0, -1.0), 4.0)])
def test_an_answer_that_the_views_contradict_is_less_sure(
    scene, untrained, answers, certainty, lead
):
    """However certain the network is: here it is as certain of both."""
    views, _ = of_scene(scene, untrained)
    truth = torch.from_numpy(scene.disparity)[None]
    judge = FastNet(replace(FAST, certainty=certainty, lead=lead))
    right, wrong = (
        judge.confidence(untrained.polish(views, replace(answers[0], disparity=disparity), 2))
        for disparity in (truth, truth + 0.75)
    )
    assert right.mean() > wrong.mean() + 0.2


def test_a_longer_baseline_makes_an_answer_surer(scene, untrained, answers):
    """What is a tenth of a pixel between neighbours is four tenths between views four steps apart.

    Weights that do not know this sign judge as before.
    """
    views, _ = of_scene(scene, untrained)
    close = views.only(views.steps.norm(dim=1).argsort()[:8])
    baselines = [views.baseline.item(), close.baseline.item()]
    assert baselines[1] == pytest.approx((1 + 2**0.5) / 2) and baselines[0] > 2 * baselines[1]
    near, far = (
        replace(untrained.polish(some, answers[0], 2), misfit=None, lead=None, reach=None)
        for some in (close, views)
    )
    judge = FastNet(replace(FAST, certainty=(0.0, 0.0, 0.0), baseline=2.0))
    expected = [1 / (1 + baseline**-2) for baseline in baselines]
    assert judge.confidence(far).unique().item() == pytest.approx(expected[0])
    assert judge.confidence(near).unique().item() == pytest.approx(expected[1])
    torch.testing.assert_close(
        untrained.confidence(near), untrained.confidence(replace(near, baseline=None))
    )


def step_map(covered=0.4):
    """Two surfaces, between which a column of pixels lies; what is seen of them."""
    disparity = torch.zeros(24, 32)
    disparity[:, :14], disparity[:, 14] = 1.0, 0.4
    picture = torch.full((3, 24, 32), 0.7)
    picture[..., :14], picture[..., 14] = 0.2, 0.7 - 0.5 * covered
    return disparity, picture


@pytest.mark.parametrize(("choice", "expected"), [(0, 0.0), (1, 1.0), (2, 0.4)])
def test_edges_are_settled_as_the_network_decides(choice, expected):
    network = FastNet(replace(FAST, edge_channels=4))
    disparity, picture = step_map()
    with torch.no_grad():
        network.edges[-1].bias.copy_(2.0 * torch.eye(3)[choice])
    with torch.autocast("cpu", torch.bfloat16):  # as in use
        settled, doubt = network.settle(disparity, picture)
    assert settled[:, 14].tolist() == pytest.approx([expected] * 24, abs=0.02)
    untouched = doubt == 0
    assert (untouched[:, :11]).all() and untouched[:, 18:].all()
    torch.testing.assert_close(settled[untouched], disparity[untouched])
    unlikely = 2 / (2 + math.exp(2))
    assert doubt[:, 14].tolist() == pytest.approx([unlikely] * 24, abs=1e-5)


@pytest.mark.parametrize("weights", ["fast", "free"])
@pytest.mark.parametrize(("covered", "expected"), [(0.05, 0.0), (0.8, 1.0)])
@pytest.mark.parametrize("turns", range(4))
def test_bundled_weights_know_whose_a_pixel_is(weights, covered, expected, turns):
    """By its colour, whatever the answer was, and whichever way the edge runs."""
    network, _ = checkpoint.load(checkpoint.find_weights(weights))
    disparity, picture = (torch.rot90(x, turns, (-2, -1)) for x in step_map(covered))
    settled, _ = network.settle(disparity.contiguous(), picture.contiguous())
    column = torch.rot90(settled, -turns)[4:-4, 14]
    assert column.tolist() == pytest.approx([expected] * 16, abs=0.05)


def test_without_trained_edges_they_stay(untrained):
    disparity, picture = step_map()
    for network in (untrained, FastNet(replace(FAST, edge_channels=4))):
        settled, _ = network.settle(disparity, picture)
        torch.testing.assert_close(settled, disparity)
    assert not untrained.settle(disparity, picture)[1].any()


def test_a_doubtful_choice_at_an_edge_is_less_sure(answers):
    doubt = torch.zeros(1, 48, 64)
    doubt[0, :, 20] = 0.5
    judge = FastNet(replace(FAST, certainty=(0.0, 0.0, 1.0), doubt=-4.0))
    sure = judge.confidence(replace(answers[0], doubt=doubt))
    assert sure[0, 5, 19].item() == pytest.approx(1 / (1 + math.exp(-1)))
    assert sure[0, 5, 20].item() == pytest.approx(1 / (1 + math.exp(1)))


def test_no_pattern_of_every_other_pixel_is_left_in_the_confidence(answers):
    """Upsampling may leave one in the certainty; a single pixel still counts for a quarter."""
    y, x = torch.meshgrid(torch.arange(48), torch.arange(64), indexing="ij")
    for pattern in (y % 2, x % 2, (y + x) % 2):
        certainty = 2.0 + pattern[None].float()
        left = signs(replace(answers[0], certainty=certainty))[0][:, 1:-1, 1:-1]
        torch.testing.assert_close(left, torch.full_like(left, 2.5))
    single = torch.zeros(1, 48, 64)
    single[0, 20, 30] = 1.0
    assert signs(replace(answers[0], certainty=single))[0][0, 20, 30] == 0.25


def test_steps_between_candidates_shrink(untrained):
    steps = FAST.refine_steps
    assert [untrained.refine_step(number) for number in range(4)] == [*steps, steps[-1], steps[-1]]


@pytest.mark.parametrize("num_levels", [4, 10, 60])
def test_any_number_of_levels(random, num_levels):
    volume = torch.randint(256, (2, num_levels // 2, 24, 8, 16), dtype=torch.uint8)
    levels = torch.arange(num_levels) * 0.25 + 3
    with torch.no_grad():
        answer = Answer(
            *random.first_pass(volume, torch.rand(2, 3, 8, 16), levels), hypotheses=levels
        )
    assert answer.logits.shape == (2, num_levels, 8, 16)
    assert (answer.disparity >= levels[0]).all() and (answer.disparity <= levels[-1]).all()


def test_levels_are_treated_alike(random):
    """What is learnt at one disparity applies to all: shifted evidence gives a shifted answer."""
    torch.manual_seed(0)
    volume = torch.full((1, 24, 24, 8, 8), 255, dtype=torch.uint8)
    volume[:, 10:12] = torch.randint(100, (1, 2, 24, 8, 8), dtype=torch.uint8)
    picture = torch.rand(1, 3, 8, 8)
    levels = torch.arange(48) * 0.25
    with torch.no_grad():
        here = random.first_pass(volume, picture, levels)[2]
        there = random.first_pass(volume.roll(2, 1), picture, levels)[2]
    torch.testing.assert_close(there[:, 24:30], here[:, 20:26], atol=1e-3, rtol=0)


def test_tiles_change_nothing(random):
    """A step sees no farther than the margin of a tile."""
    size = (16, 272)
    torch.manual_seed(0)
    volume = torch.randint(256, (1, 3, 24, *size), dtype=torch.uint8)
    picture = torch.rand(1, 3, *size)
    levels = torch.arange(6) * 0.25
    first = partial(random.first_pass, levels=levels)
    candidates = torch.rand(1, OFFSETS + EXTRA, *size)
    count = random.refinement.net.enter.conv.in_channels
    seen = torch.rand(1, 9 * (OFFSETS + EXTRA) + 1, *size)
    known = torch.rand(1, count - seen.shape[1], *size)
    with torch.no_grad():
        for step, maps in (
            (first, (volume, picture)),
            (random.refinement, (seen, known, candidates)),
        ):
            for ours, expected in zip(in_tiles(64, size)(step, *maps), step(*maps), strict=True):
                torch.testing.assert_close(ours, expected, atol=2e-4, rtol=1e-4)


def test_strips_change_nothing(random, monkeypatch):
    """Full resolution is computed a few rows at a time."""
    torch.manual_seed(0)
    volume = torch.randint(256, (1, 3, 24, 40, 24), dtype=torch.uint8)
    picture, levels = torch.rand(1, 3, 40, 24), torch.arange(6) * 0.25
    answers = []
    for rows in (40, 16, 8):
        monkeypatch.setattr(fast, "STRIP", rows)
        with torch.no_grad():
            answers.append(random.first_pass(volume, picture, levels))
    for other in answers[1:]:
        for ours, expected in zip(other, answers[0], strict=True):
            torch.testing.assert_close(ours, expected, atol=2e-4, rtol=1e-4)


def test_the_mean_stays_near_the_best_level():
    torch.manual_seed(0)
    logits = 3 * torch.randn(1, 20, 2, 3)
    levels = torch.arange(20) * 0.25 - 2
    mean, spread, share = windowed_mean(logits, levels)
    for y, x in np.ndindex(2, 3):
        scores = logits[0, :, y, x].double()
        best = int(scores.argmax())
        near = range(max(0, best - WINDOW), min(20, best + WINDOW + 1))
        weights = {n: math.exp(scores[n] - scores[best]) for n in near}
        expected = sum(w * float(levels[n]) for n, w in weights.items()) / sum(weights.values())
        assert float(mean[0, y, x]) == pytest.approx(expected, abs=1e-5)
        p = torch.softmax(scores, 0)
        apart = sum(float(p[n]) * abs(float(levels[n]) - expected) for n in range(20))
        assert float(spread[0, y, x]) == pytest.approx(apart, abs=1e-5)
        assert float(share[0, y, x]) == pytest.approx(float(p[best]), abs=1e-5)


def test_between_two_surfaces_the_mean_is_on_one():
    logits = torch.full((1, 20, 1, 1), -20.0)
    logits[0, 3], logits[0, 15] = 1.0, 0.9
    mean, spread, _ = windowed_mean(logits, torch.arange(20) * 0.25)
    assert mean.item() == pytest.approx(0.75, abs=1e-4)
    assert spread.item() > 1


def literal_decision(scores, candidates):
    """The pixel's own surface or another one: see `decide`."""
    p = np.exp(scores - scores.max())
    p /= p.sum()
    near = p[:OFFSETS] / p[:OFFSETS].sum()
    own = (near * candidates[:OFFSETS]).sum()
    places, weights = [own], [1.0]
    spread = (near * np.abs(candidates[:OFFSETS] - own)).sum()
    for extra in range(OFFSETS, OFFSETS + EXTRA):
        away = abs(candidates[extra] - candidates[OFFSETS // 2])
        share = p[extra] * min(max((away - NEAR) / NEAR, 0), 1)
        weights[0] -= share
        weights.append(share)
        places.append(candidates[extra])
        spread += share * abs(candidates[extra] - own)
    squares = np.square(weights)
    return (squares * places).sum() / squares.sum(), spread


def test_decisions_are_literal_ones():
    torch.manual_seed(0)
    logits = 2 * torch.randn(1, OFFSETS + EXTRA, 3, 4)
    candidates = choose_candidates(torch.randn(1, 3, 4), torch.randn(1, EXTRA, 3, 4), 0.16)
    disparity, spread = decide(logits, candidates)
    for y, x in np.ndindex(3, 4):
        expected = literal_decision(
            logits[0, :, y, x].double().numpy(), candidates[0, :, y, x].double().numpy()
        )
        found = float(disparity[0, y, x]), float(spread[0, y, x])
        assert found == pytest.approx(expected, abs=1e-5)


def test_a_surface_nearby_may_be_the_own_one():
    own = torch.zeros(1, 1, 1, 1).expand(1, OFFSETS, 1, 1)
    for away, expected in ((0.0, 0), (NEAR, 0), (1.5 * NEAR, 0.5), (-2 * NEAR, 1), (3.0, 1)):
        candidates = torch.cat([own, torch.full((1, EXTRA, 1, 1), away)], 1)
        assert otherness(candidates).flatten().tolist() == pytest.approx([expected] * EXTRA)


def test_a_hundredth_of_another_surface_does_not_move_an_answer():
    logits = torch.full((1, OFFSETS + EXTRA, 1, 1), -30.0)
    logits[0, OFFSETS // 2], logits[0, OFFSETS] = math.log(0.99), math.log(0.01)
    candidates = torch.zeros(1, OFFSETS + EXTRA, 1, 1)
    candidates[0, OFFSETS] = -2.0
    assert abs(decide(logits, candidates)[0].item()) < 1e-3


def test_candidates_lie_around_the_answer_and_on_the_surfaces_nearby():
    others = torch.tensor([-1.0, 2.0]).view(1, EXTRA, 1, 1)
    candidates = choose_candidates(torch.zeros(1, 1, 1), others, 0.1).flatten()
    torch.testing.assert_close(candidates[:OFFSETS], 0.1 * (torch.arange(OFFSETS) - OFFSETS // 2))
    assert candidates[OFFSETS:].tolist() == [-1.0, 2.0]


def test_logits_between_levels_are_relative_to_the_best():
    logits = torch.tensor([1.0, 3.0, -1.0]).view(1, 3, 1, 1)
    position = torch.tensor([-2.0, 0.0, 0.25, 1.0, 1.5, 2.0, 9.0]).view(1, 7, 1, 1)
    found = interpolate_levels(logits, position).flatten()
    torch.testing.assert_close(found, torch.tensor([-2.0, -2.0, -1.5, 0.0, -2.0, -4.0, -4.0]))
    assert interpolate_levels(100 * logits, position).min() == LEAST_BELIEF


def test_what_is_known_of_the_candidates(untrained):
    """Logits of the first pass, surfaces, places, uncertainty, picture, support by the views."""
    levels = torch.arange(8) * 0.25 - 1
    disparity = torch.zeros(1, 16, 16)
    disparity[0, 8, 8] = 0.3
    logits = torch.zeros(1, 8, 16, 16)
    logits[:, 4] = 4.0  # at disparity 0
    doubt, firm = torch.full((1, 16, 16), 5.0), torch.full((1, 16, 16), 0.5)
    answer = Answer(disparity, doubt, logits, disparity, hypotheses=levels, information=firm)
    candidates = choose_candidates(disparity, torch.zeros(1, EXTRA, 16, 16), 0.1)
    memory = Memory(levels, logits, torch.full((1, 3, 16, 16), 0.75))
    known = describe(candidates, answer, memory, 0.1)
    assert known.shape[1] == untrained.refinement.net.enter.conv.in_channels - 82 - MEETING
    middle = known[0, :, 2, 2]
    assert middle[OFFSETS // 2] == 0  # the best level
    assert middle[0] == pytest.approx(-1.0, abs=1e-5)  # 0.3 px away: beyond the next level
    assert known[0, 11, 8, 8] == pytest.approx(0.3 * 8 / 9 / 0.1, abs=1e-4)  # among 3x3 neighbours
    assert middle[13:15].tolist() == pytest.approx([2.0, 0.4])  # uncertainty, clamped; the step
    assert middle[15:18].tolist() == pytest.approx([0.25] * 3)
    assert middle[18] == pytest.approx(math.log(0.5 + LEAST_INFORMATION) / 4)


def test_colours_of_grey_and_absent_pixels():
    picture = torch.tensor([[[0.25, 1e6]]])
    torch.testing.assert_close(colour(picture), torch.tensor([[[0.25, 0.0]]]).expand(3, 1, 2))
