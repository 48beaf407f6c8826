"""Training a part of the network alone: on its true inputs, and nothing else changes."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from oaccdepth.errors import InvalidOption
from oaccdepth.networks import checkpoint
from oaccdepth.networks.fast import PassState
from oaccdepth.options import TrainOptions
from oaccdepth.training.loop import train
from oaccdepth.training.losses import PartLoss, choice_loss, pass_loss
from oaccdepth.training.parts import (
    KEPT,
    PARTS,
    VARIANTS,
    PartBatches,
    collect_inputs,
    parameters_of,
)
from oaccdepth.training.patches import load_scenes

MARGIN = 16


def options_of(part, weights_file, **changes):
    tiny = {
        "steps": 2,
        "batch": 2,
        "patch": 32,
        "workers": 0,
        "warm_up": 1,
        "validate_steps": 0,
        "iterations": 3,
        "checkpoint_minutes": 0.0,
        "part": part,
        "initial": str(weights_file),
    }
    return TrainOptions(**tiny | changes)


@pytest.fixture(params=PARTS)
def collected(request, scene_folder, weights_file, tmp_path):
    network, _ = checkpoint.load(weights_file)
    options = options_of(request.param, weights_file)
    paths = collect_inputs(network, load_scenes(scene_folder), tmp_path, options, 0, 1)
    return network, options, paths


def test_inputs_are_what_the_whole_network_hands_on(collected):
    network, options, paths = collected
    assert len(paths) == VARIANTS
    inputs = load_file(paths[0])
    with torch.no_grad():
        passes = network(inputs["views"][None].float(), 3)
    for run, state in enumerate(passes[1:]):
        given = passes[run] if options.part == "edges" else state.choice
        # views are kept in half precision, here and there a choice falls otherwise
        difference = (inputs["disparity"][run] - given.disparity[0]).abs()
        assert difference.median() < 1e-3
        assert (difference > 0.02).float().mean() < 0.02
    torch.testing.assert_close(
        inputs["summary"].float(), passes[0].summary[0], atol=0.02, rtol=0.02
    )


def test_patches_are_cut_alike_and_always_the_same(collected):
    _, options, paths = collected
    batches = PartBatches(paths, options, MARGIN, 0, 1)
    batch = dict(zip(KEPT, batches[3], strict=True))
    assert batch["views"].shape == (2, 9, 9, 64, 64)
    assert batch["valid"].shape == batch["disparity"].shape == batch["truth"].shape == (2, 32, 32)
    for ours, again in zip(batches[3], batches[3], strict=True):
        assert torch.equal(ours, again)
    # the centre view and the logits, which have not the same margin, belong to the same place
    centre = batch["views"][0, 4, 4, MARGIN:-MARGIN, MARGIN:-MARGIN]
    file = next(load_file(path) for path in paths if contains(load_file(path), centre))
    top, left = place_of(file, centre)
    logits = file["logits"][:, top : top + 32, left : left + 32].float()
    assert torch.equal(batch["logits"][0], logits)
    truth = file["truth"][top : top + 32, left : left + 32]
    assert torch.equal(batch["truth"][0], truth)


def place_of(file, centre):
    """Where a patch was cut from, by looking everywhere."""
    whole = file["views"][4, 4, MARGIN:-MARGIN, MARGIN:-MARGIN].float()
    for top in range(0, whole.shape[0] - 31, 8):
        for left in range(0, whole.shape[1] - 31, 8):
            if torch.equal(whole[top : top + 32, left : left + 32], centre):
                return top, left
    return None


def contains(file, centre):
    return place_of(file, centre) is not None


def test_loss_of_a_part_is_its_share_of_the_whole(collected):
    network, options, paths = collected
    batch = dict(zip(KEPT, PartBatches(paths, options, MARGIN, 0, 1)[0], strict=True))
    loss, parts = PartLoss(network, options.part)(*batch.values(), 3)
    last = PassState(
        batch["disparity"], batch["spread"], batch["logits"], batch["logits"], batch["summary"]
    )
    truth, valid = batch["truth"], batch["valid"]
    if options.part == "edges":
        choice = network.settle(batch["views"], last, last, batch["context"])
        expected = choice_loss(choice, truth, valid)
        answer = choice.disparity
    else:
        network.settle = lambda *given: last  # what was chosen, as it is
        state = network.refine(batch["views"], last, last, batch["context"])
        expected = pass_loss(state, truth)[valid].mean()
        answer = state.disparity
    bad = ((answer - truth).abs() > 0.07)[valid].float().mean()
    assert parts["bad"].item() == pytest.approx(100 * bad.item(), rel=1e-4)
    # with the refinement there is a little more, for knowing where it is right
    assert expected.item() <= loss.item() + 1e-5 < expected.item() + 0.2


def test_only_the_part_is_trained(scene_folder, weights_file, tmp_path):
    before = load_file(weights_file)
    for part in PARTS:
        train(scene_folder, tmp_path / part, options_of(part, weights_file))
        after = load_file(tmp_path / part / "latest.safetensors")
        changed = {name for name in after if not torch.equal(after[name], before[name])}
        network, _ = checkpoint.load(weights_file)
        trained = {id(value) for value in parameters_of(network, part)}
        names = {name for name, value in network.named_parameters() if id(value) in trained}
        assert changed <= names
        assert len(changed) > len(names) / 2  # untrained outputs are zero, so not all move at once


def test_a_resumed_part_goes_on(scene_folder, weights_file, tmp_path):
    train(scene_folder, tmp_path / "run", options_of("edges", weights_file, steps=1))
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "inputs").iterdir()}
    options = options_of("edges", weights_file)
    assert train(scene_folder, tmp_path / "run", options, resume=True).step == 2
    assert all(path.stat().st_mtime_ns == when for path, when in made.items())


def test_parts_that_cannot_be_trained(scene_folder, weights_file, tmp_path):
    cases = [
        ({"part": "corners"}, "--part corners: no such part. Known: edges, refinement."),
        ({"initial": None}, "--part: only for --preset fast, and with --initial for the others."),
        ({"iterations": 1}, "--part: it begins with the second pass. Use --iterations 2 or more."),
        ({"patch": 64}, "--patch 64: larger than a scene. Use at most 48."),
    ]
    for changes, message in cases:
        with pytest.raises(InvalidOption) as caught:
            options = options_of(**{"part": "edges", "weights_file": weights_file, **changes})
            train(scene_folder, tmp_path, options)
        assert str(caught.value) == message
