"""The paper's network against slow literal versions of its equations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
import torch
from small_networks import PAPER
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from oaccdepth.networks.paper import (
    ConvNorm,
    OACCNet,
    OACCNetConfig,
    angular_patch,
    dilated_convolution,
    occlusion_mask,
)

H, W = 7, 10  # not square
MARGIN = 16


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


def small_network(config=PAPER):
    """An untrained network, but with norms that have an effect."""
    network = OACCNet(config).eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.3)
    return network


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def padded(values):
    return nn.functional.pad(values, (MARGIN,) * 4)


def test_number_of_parameters_per_stage():
    network = OACCNet()
    assert count(network.features) == 41_888
    assert count(network.cost) == 41_472
    assert count(network.aggregation) == 4_934_620
    assert count(network) == 5_017_980


def test_views_of_a_plane_agree_at_its_disparity():
    picture = torch.rand(60, 70)
    views = torch.zeros(1, 9, 9, 20, 30)
    for u in range(9):
        for v in range(9):  # a nearer point is further to the right in the views to the left
            top, left = 20 + 3 * (u - 4), 20 + 3 * (v - 4)
            views[0, u, v] = picture[top : top + 20, left : left + 30]
    samples = angular_patch(padded(views), 3, MARGIN)[..., 12:-12, 12:-12]
    assert torch.equal(samples, samples[:, 4:5, 4:5].expand_as(samples))


@pytest.mark.parametrize("grid", [(9, 9), (5, 9), (3, 3)])
def test_angular_patch_is_equation_1(grid):
    views = torch.rand(1, *grid, H, W)
    for d in reference.LEVELS:
        patch = angular_patch(padded(views), d, MARGIN)[0].numpy()
        for y, x in ((0, 0), (3, 4), (H - 1, W - 1), (2, 9)):
            assert np.array_equal(
                patch[:, :, y, x], reference.angular_patch(views[0].numpy(), y, x, d)
            )


@pytest.mark.parametrize("d", reference.LEVELS)
def test_dilated_convolution_is_shift_and_concat(d):
    """The paper's central claim (Eq. 2 to 4)."""
    features = torch.randn(1, 9, 9, 2, H, W)
    weight = torch.randn(6, 1, 9, 9)  # outputs 0 to 2 see channel 0, 3 to 5 channel 1
    array = features[0].permute(0, 1, 3, 4, 2).double().numpy()
    shifted = reference.shift_and_concat(array, d)  # (h, w, u, v, c)
    expected = np.einsum("yxuvc,couv->coyx", shifted, weight.double().view(2, 3, 9, 9).numpy())
    found = dilated_convolution(features, weight, d, MARGIN)[0].numpy()
    assert np.abs(found - expected.reshape(6, H, W)).max() < 1e-5
    strided = angular_patch(padded(features), d, MARGIN)[0].numpy()  # (u, v, c, h, w)
    assert np.abs(strided - shifted.transpose(2, 3, 4, 0, 1)).max() == pytest.approx(0, abs=1e-7)


def test_modulated_convolution_is_equation_5():
    network = small_network()
    features, mask = torch.randn(1, 9, 9, 4, H, W), torch.rand(1, 9, 9, H, W)
    with torch.no_grad():
        cost = network.full_cost(features, mask, None)[0].double().numpy()  # (24, d, h, w)
    weights = network.cost.weight.detach().double().numpy()
    samples, modulation = features[0].double().numpy(), mask[0].double().numpy()
    for channel, d, y, x in ((0, -4, 0, 0), (7, 0, 3, 5), (13, 2, 6, 9), (23, 4, 2, 4)):
        patch = reference.angular_patch(samples[:, :, channel // 6], y, x, d)
        kernel, scalars = weights[channel, 0], modulation[:, :, y, x]
        expected = reference.modulated_convolution(patch, kernel, scalars)
        assert cost[channel, d + 4, y, x] == pytest.approx(expected, abs=1e-5)


def test_samples_outside_the_frame_or_absent_have_mask_0():
    network = small_network()
    features, mask = torch.randn(1, 9, 9, 4, H, W), torch.rand(1, 9, 9, H, W)
    validity = (torch.rand(1, 9, 9, H, W) > 0.3).float()
    with torch.no_grad():
        cost = network.full_cost(features, mask, validity)[0].double().numpy()
    weights = network.cost.weight.detach().double().numpy()
    samples, present = features[0].double().numpy(), validity[0].double().numpy()
    for channel, d, y, x in ((0, -4, 0, 0), (13, 2, 6, 9), (23, 4, 2, 4)):
        patch = reference.angular_patch(samples[:, :, channel // 6], y, x, d)
        scalars = mask[0, :, :, y, x].numpy() * reference.angular_patch(present, y, x, d)
        expected = reference.modulated_convolution(patch, weights[channel, 0], scalars)
        assert cost[channel, d + 4, y, x] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("grid", [(9, 9), (5, 9), (3, 3)])
@pytest.mark.parametrize("with_validity", [False, True])
def test_fused_cost_is_the_literal_one(grid, with_validity):
    network = small_network()
    features, mask = torch.randn(2, *grid, 4, H, W), torch.rand(2, *grid, H, W)
    validity = (torch.rand(2, *grid, H, W) > 0.3).float() if with_validity else None
    with torch.no_grad():
        literal = network.aggregation.squeeze(network.full_cost(features, mask, validity))
        fused = network.construct_cost(features, mask, validity)
    assert fused.shape == (2, 6, 9, H, W)
    assert (fused - literal).abs().max() < 1e-5


class LargestTensor(TorchDispatchMode):
    """Records the size of the largest tensor that any operation makes."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.numel())
        return result


def test_inference_never_holds_the_volume_of_all_cost_channels():
    network = OACCNet().eval()
    features, mask = torch.randn(1, 9, 9, 8, 28, 30), torch.ones(1, 9, 9, 28, 30)
    full = 512 * 9 * 28 * 30
    with torch.no_grad(), LargestTensor() as literal:
        network.full_cost(features, mask, mask)
    with torch.no_grad(), LargestTensor() as fused:
        network.construct_cost(features, mask, mask)
    assert literal.largest >= full
    assert fused.largest < 0.7 * full  # the padded features


@pytest.mark.parametrize("activation", [False, True])
@pytest.mark.parametrize("conv", [nn.Conv2d(3, 5, 3, padding=1), nn.Conv3d(3, 5, 1, bias=False)])
def test_norm_folded_into_convolution(conv, activation):
    layer = ConvNorm(conv, activation)
    layer.norm.running_mean.normal_()
    layer.norm.running_var.uniform_(0.5, 2)
    nn.init.normal_(layer.norm.weight)
    nn.init.normal_(layer.norm.bias)
    x = torch.randn(2, 3, *([6] * (conv.weight.ndim - 2)))
    with torch.no_grad():
        expected = layer.eval().norm(conv(x))
        expected = nn.functional.leaky_relu(expected, 0.1) if activation else expected
        assert torch.allclose(layer(x), expected, atol=1e-6)


def test_statistics_of_large_batches_are_precise():
    layer = ConvNorm(nn.Conv2d(1, 2, 1, bias=False), activation=False).train()
    x = (2 * torch.randn(96, 1, 128, 128) + 1).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        y = layer(x).double()
    assert y.mean((0, 2, 3)).abs().max() < 1e-5
    assert (y.std((0, 2, 3)) - 1).abs().max() < 1e-4


@pytest.mark.parametrize(("grid", "decay"), [((9, 9), 2.0), ((3, 5), 3.5)])
def test_occlusion_mask_is_equations_6_to_8(grid, decay):
    views = torch.rand(2, *grid, H, W)
    disparity = torch.randint(-16, 17, (2, H, W)) / 4  # no sample within rounding of the frame
    masks = occlusion_mask(views, disparity, decay).numpy()
    for index in range(2):
        expected = reference.occlusion_masks(
            views[index].double().numpy(), disparity[index].double().numpy(), decay
        )
        assert np.abs(masks[index] - expected).max() < 1e-4
        assert (masks[index][grid[0] // 2, grid[1] // 2] == 1).all()


def test_occlusion_mask_of_absent_pixels_is_0():
    views = torch.full((1, 3, 3, H, W), 0.5)
    validity = torch.ones_like(views)
    validity[0, 0, 1] = 0  # a view
    validity[0, 1, 2, 3, 6] = 0  # a pixel of the view to the right
    masks = occlusion_mask(views, torch.full((1, H, W), 2.0), 2.0, validity)[0]
    assert (masks[0, 1] == 0).all()
    assert masks[1, 2, 3, 8] == 0  # reads 2 px further left
    assert masks[1, 2, 3, 7] == 1
    assert (masks[2, 1, 2:] == 1).all() and (masks[2, 1, :2] == 0).all()  # 2 px further up


def test_without_a_centre_view_masks_follow_validity():
    views, validity = torch.rand(1, 3, 3, H, W), torch.ones(1, 3, 3, H, W)
    validity[0, 1, 1] = 0
    assert torch.equal(occlusion_mask(views, torch.zeros(1, H, W), 2.0, validity), validity)


def test_regression_is_equation_9():
    logits = 3 * torch.randn(1, 9, H, W)
    disparity, confidence, probability = OACCNet(PAPER).regress(logits)
    expected = reference.regression(logits[0].double().numpy())
    assert np.abs(disparity[0].numpy() - expected).max() < 1e-5
    assert confidence.shape == (1, H, W) and probability.shape == (1, 9, H, W)
    assert confidence.min() >= 0 and confidence.max() <= 1


def test_confidence_is_the_probability_within_a_level():
    network = OACCNet(PAPER)
    spread = torch.zeros(1, 9, 1, 1)
    sure = torch.full((1, 9, 1, 1), -50.0)
    sure[0, 6] = 50.0
    torn = torch.full((1, 9, 1, 1), -50.0)
    torn[0, [0, 8]] = 50.0  # the mean lies on neither
    confidences = [network.regress(logits)[1].item() for logits in (spread, sure, torn)]
    assert confidences == pytest.approx([3 / 9, 1, 0], abs=1e-6)


@pytest.mark.parametrize("grid", [(3, 3), (5, 9), (7, 7), (4, 6)])
def test_smaller_array_is_the_full_one_with_absent_views(grid):
    network = small_network()
    top, left = 4 - grid[0] // 2, 4 - grid[1] // 2
    inside = (slice(None), slice(top, top + grid[0]), slice(left, left + grid[1]))
    views, validity = torch.rand(1, 9, 9, H, W), torch.zeros(1, 9, 9, H, W)
    validity[inside] = 1
    with torch.no_grad():
        embedded = network.estimate_passes(views, validity)[-1]
        small = network.estimate_passes(views[inside])[-1]
    assert (small.disparity - embedded.disparity).abs().max() < 1e-5
    assert torch.allclose(small.mask, embedded.mask[inside], atol=1e-4)


def test_larger_array_is_refused():
    with pytest.raises(ValueError, match="11x9 views, expected at most 9x9"):
        small_network().estimate_passes(torch.rand(1, 11, 9, H, W))


def test_passes_start_without_occlusion_and_follow_each_other():
    network = small_network()
    views = torch.rand(2, 9, 9, H, W)
    with torch.no_grad():
        passes = network.estimate_passes(views, iterations=3)
        assert len(network.estimate_passes(views)) == 2
        assert torch.equal(network(views), passes[1].disparity)
    assert (passes[0].mask == 1).all()
    for before, after in itertools.pairwise(passes):
        assert torch.equal(after.mask, occlusion_mask(views, before.disparity, 2.0))
    assert not torch.equal(passes[0].disparity, passes[1].disparity)


def test_pictures_of_a_batch_do_not_mix():
    network = small_network()
    views = torch.rand(2, 5, 5, H, W)
    with torch.no_grad():
        both, second = network(views), network(views[1:])
    assert torch.allclose(both[1:], second, atol=1e-5)


def test_training_takes_one_pass_with_the_mask_of_the_truth():
    network = small_network().train()
    views, truth = torch.rand(2, 5, 5, H, W), torch.randn(2, H, W)
    found = network(views, truth)
    features = network.extract_features(views)
    cost = network.full_cost(features, occlusion_mask(views, truth, 2.0), torch.ones_like(views))
    logits = network.aggregation(network.aggregation.squeeze(cost))
    assert torch.allclose(found, network.regress(logits)[0], atol=1e-5)
    found.sum().backward()
    unused = [n for n, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    # A bias before a norm, and the score's effect on constants, have no gradient in theory.
    assert [name for name in unused if not name.endswith("conv.bias")] == []


def test_configuration_from_json_lists():
    assert OACCNetConfig(grid=[9, 9]) == OACCNetConfig()  # type: ignore[arg-type]
