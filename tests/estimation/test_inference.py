"""estimate() as a whole: sign, range, tiles, missing views, masks, provenance."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from layered import Plane, Surface, cloud_texture, render, scene_between
from small_networks import PAPER

from oaccdepth.errors import DeviceUnavailable, InvalidLightField, OaccDepthError
from oaccdepth.estimation import inference
from oaccdepth.estimation.device import choose_device
from oaccdepth.estimation.disparity_range import Coverage
from oaccdepth.estimation.inference import (
    SAME_PICTURE,
    estimate,
    masks_from_disparity,
    remark_on_depth,
)
from oaccdepth.estimation.weights import LoadedWeights, load_network
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.networks.paper import OACCNet
from oaccdepth.options import EstimateOptions


@pytest.fixture(scope="module")
def bundled():
    return load_network("fast", "cpu")


def bad_share(disparity, truth, threshold, border=6):
    inner = np.s_[border:-border, border:-border]
    return np.mean(np.abs(disparity - truth)[inner] > threshold)


def test_a_rendered_scene_comes_out_right(bundled, demo):
    result = estimate(demo.light_field, network=bundled)
    assert result.disparity.shape == demo.disparity.shape
    assert bad_share(result.disparity, demo.disparity, 0.25) < 0.07
    assert bad_share(result.disparity, demo.disparity, 0.07) < 0.15
    assert result.confidence.min() >= 0
    assert result.confidence.max() <= 1
    wrong = np.abs(result.disparity - demo.disparity) > 0.07
    assert result.confidence[~wrong].mean() > result.confidence[wrong].mean()


@pytest.mark.parametrize("between", [(9.0, 14.0), (-15.0, 15.0)])
def test_disparities_far_from_zero_come_out_right(between, untrained):
    """The whole range in one volume, found automatically."""
    scene = scene_between(*between, grid=(5, 5))
    result = estimate(scene.light_field, network=untrained)
    assert bad_share(result.disparity, scene.disparity, 0.25) < 0.15
    assert np.median(np.abs(result.disparity - scene.disparity)) < 0.05
    assert result.made_with.range_source == "estimated"


@pytest.mark.parametrize(("precision", "share", "most"), [("fp32", 0.0, 1e-3), ("bf16", 5e-3, 0.1)])
def test_the_result_does_not_depend_on_the_tile(bundled, precision, share, most):
    """Except for rounding, which is coarser with 16 bits."""
    scene = scene_between(-2.0, 3.0, size=(72, 256), grid=(5, 5))
    options = EstimateOptions(disparity_range=(-2.2, 3.2), precision=precision)
    whole = estimate(scene.light_field, options, network=bundled)
    tiled = estimate(scene.light_field, replace(options, tile=64), network=bundled)
    for name in ("disparity", "confidence"):
        difference = np.abs(getattr(tiled, name) - getattr(whole, name))
        assert np.mean(difference > 1e-3) <= share
        assert difference.max() < most


@pytest.mark.parametrize("grid", [(3, 3), (1, 9), (9, 1), (2, 2), (5, 9), (6, 3)])
def test_any_array(grid, untrained):
    scene = scene_between(-1.5, 2.0, grid=grid, size=(64, 80))
    options = EstimateOptions(disparity_range=(-2, 2.5), keep_masks=True)
    result = estimate(scene.light_field, options, network=untrained)
    assert result.masks.shape == (*grid, 64, 80)
    assert np.median(np.abs(result.disparity - scene.disparity)) < 0.1


CROSS = np.zeros((9, 9), bool)
CROSS[4] = CROSS[:, 4] = True
HALF = np.random.default_rng(0).random((9, 9)) < 0.5
HALF[4, 4] = True


@pytest.mark.parametrize("valid", [CROSS, HALF], ids=["cross", "half of the views"])
def test_arrays_with_holes(valid, scene, untrained):
    light_field = replace(scene.light_field, valid=valid)
    result = estimate(light_field, EstimateOptions(disparity_range=(-2, 2)), network=untrained)
    assert np.median(np.abs(result.disparity - scene.disparity)) < 0.08
    assert bad_share(result.disparity, scene.disparity, 0.25) < 0.25


def test_cameras_at_fractional_places(untrained):
    """Cameras are 1.5 steps apart; disparity is per single step."""
    scene = scene_between(-1.5, 1.5, grid=(5, 5), size=(64, 80))
    apart = replace(scene.light_field, places=1.5 * scene.light_field.camera_places)
    options = EstimateOptions(disparity_range=(-1.5, 1.5))
    result = estimate(apart, options, network=untrained)
    assert np.median(np.abs(result.disparity - scene.disparity / 1.5)) < 0.05


def test_another_view_as_reference(untrained):
    """A plane has the same disparity in every view."""
    texture = cloud_texture(np.random.default_rng(2), 256, 1.0)
    light_field = render([Surface(Plane(1.3), texture)], (5, 5), (64, 80)).light_field
    options = EstimateOptions(disparity_range=(0, 2), reference=(0, 4), keep_masks=True)
    result = estimate(light_field, options, network=untrained)
    error = np.abs(result.disparity - 1.3)[8:-8, 8:-8]
    assert np.median(error) < 0.01 and np.mean(error > 0.1) < 0.05
    assert (result.masks[0, 4] == 1).all()


def test_missing_views_and_pixels_do_not_vote(scene, untrained):
    """The values where there is no picture do not affect the result."""
    valid = np.ones((9, 9, 48, 64), bool)
    valid[0, 3] = False
    valid[2, 2, 5:20, 10:30] = False
    views = scene.light_field.views.copy()
    views[~valid] = 0.9
    options = EstimateOptions(disparity_range=(-4, 4), keep_masks=True)
    results = [
        estimate(
            replace(scene.light_field, views=pictures, valid=valid), options, network=untrained
        )
        for pictures in (scene.light_field.views, views)
    ]
    np.testing.assert_array_equal(results[0].disparity, results[1].disparity)
    assert not results[0].masks[0, 3].any()
    assert results[0].masks[4, 4].all()


def test_masks_and_passes_are_kept_on_request(scene, untrained):
    options = EstimateOptions(keep_masks=True, keep_passes=True, keep_evidence=True, iterations=3)
    result = estimate(scene.light_field, options, network=untrained)
    assert len(result.passes) == 3
    assert not np.array_equal(result.passes[0].masks, result.masks)
    np.testing.assert_array_equal(result.passes[-1].disparity, result.disparity)
    np.testing.assert_array_equal(result.passes[-1].masks, result.masks)
    assert result.evidence.shape == (len(result.levels), 48, 64)
    np.testing.assert_allclose(result.evidence.sum(0), 1, atol=1e-5)
    np.testing.assert_allclose(np.diff(result.levels), 0.25)
    low, high = result.made_with.disparity_range
    assert result.levels[0] <= low and result.levels[-1] >= high
    assert estimate(scene.light_field, network=untrained).masks is None


def test_provenance(scene, bundled):
    made_with = estimate(scene.light_field, network=bundled).made_with
    assert made_with.weights == "fast"
    assert len(made_with.weights_sha256) == 64
    assert made_with.device == "cpu"
    assert made_with.seconds["total"] >= made_with.seconds["first pass"] > 0
    assert made_with.input["grid"] == [9, 9]
    assert made_with.options["iterations"] == bundled.network.config.iterations


def test_the_papers_network_runs_in_tiles(scene):
    torch.manual_seed(0)
    network = OACCNet(replace(PAPER, grid=(3, 3))).eval()
    options = EstimateOptions(keep_masks=True, keep_passes=True)
    light_field = LightField(scene.light_field.views[3:6, 3:6])
    result = estimate(light_field, options, network=network)
    assert len(result.passes) == 2
    assert result.masks.shape == (3, 3, 48, 64)
    tiled = estimate(light_field, replace(options, tile=32), network=network)
    assert tiled.disparity.shape == (48, 64)
    assert np.isfinite(tiled.disparity).all()


def test_masks_of_the_true_disparity_are_the_true_visibility(scene):
    masks = masks_from_disparity(scene.light_field, scene.disparity)
    hidden = ~scene.visibility
    assert masks[scene.visibility].mean() > 0.95
    assert masks[hidden].mean() < 0.85


@pytest.mark.parametrize(
    "out_of_memory",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("MPS backend out of memory (MPS allocated: 8.10 GB)."),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=["cuda", "mps", "cudnn", "cpu"],
)
def test_a_device_that_runs_out_of_memory_gets_smaller_tiles(
    scene, untrained, monkeypatch, out_of_memory
):
    tiles = []
    run = inference.run

    def limited(task, tile, clock, report):
        tiles.append(tile)
        if tile > 64:
            raise out_of_memory
        return run(task, tile, clock, report)

    monkeypatch.setattr(inference, "run", limited)
    result = estimate(scene.light_field, EstimateOptions(tile=256), network=untrained)
    assert tiles == [256, 128, 64]
    assert "The device ran out of memory: tiles halved to 64 px." in result.made_with.notes
    monkeypatch.setattr(inference, "SMALLEST_TILE", 100)
    with pytest.raises(DeviceUnavailable, match=r"of 128 px\. Use smaller views\.$"):
        estimate(scene.light_field, EstimateOptions(tile=128), network=untrained)


def test_other_faults_of_a_device_are_not_taken_for_a_lack_of_memory(scene, untrained, monkeypatch):
    def broken(*arguments):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(inference, "run", broken)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        estimate(scene.light_field, network=untrained)


def test_what_is_going_on_is_logged(scene, untrained, caplog):
    with caplog.at_level("INFO"):
        estimate(scene.light_field, EstimateOptions(disparity_range=(-6.0, 6.0)), network=untrained)
    assert caplog.messages[0] == (
        f"Weights untitled on cpu, {untrained.config.iterations} passes, "
        f"tiles of {inference.TILES['fast']} px; disparities "
        "from -6.0 to 6.0 px (option)."
    )
    assert re.fullmatch(r"Seconds: range \d+\.\d, .*, total \d+\.\d\.", caplog.messages[1])


def test_a_device_that_is_not_there():
    with pytest.raises(DeviceUnavailable) as caught:
        choose_device("cuda:99")
    there = "cpu" + "".join(f", cuda:{n}" for n in range(torch.cuda.device_count()))
    expected = f"--device cuda:99: not available. Use {there} or auto."
    assert str(caught.value) == expected
    for name in ("gpu", "cpu:1", "cuda:x", "tpu"):
        with pytest.raises(DeviceUnavailable):
            choose_device(name)


def test_pictures_smaller_than_the_smallest_tile(untrained):
    light_field = LightField(np.zeros((3, 3, 12, 40, 3), np.uint8), source="tiny")
    with pytest.raises(InvalidLightField) as caught:
        estimate(light_field, network=untrained)
    assert str(caught.value) == (
        "tiny: views are 40x12 px, smaller than the smallest tile, 16x16. Use larger pictures."
    )


@pytest.mark.parametrize(
    ("grid", "reference", "message"),
    [
        ((1, 1), None, "it: a single view. Disparity needs two views or more of the same scene."),
        (
            (1, 5),
            None,
            "it: 1x5 views, but these weights need 3x3 or more. Use --weights fast.",
        ),
        ((3, 3), (0, 1), "--reference: these weights work only for the centre view. Use fast."),
    ],
)
def test_what_the_papers_network_cannot_do(grid, reference, message):
    light_field = LightField(np.zeros((*grid, 32, 32, 3), np.uint8), source="it")
    with pytest.raises(OaccDepthError) as caught:
        estimate(light_field, EstimateOptions(reference=reference), network=OACCNet(PAPER))
    assert str(caught.value) == message


def test_converted_weights_give_the_authors_numerics():
    """No shear, whatever the range: their program has none."""
    from oaccdepth.networks.authors import estimate_like_authors

    torch.manual_seed(0)
    network = OACCNet(replace(PAPER, grid=(3, 3))).eval()
    noise = np.random.default_rng(0).random((3, 3, 40, 48, 1)).astype(np.float32)
    result = estimate(LightField(noise), network=LoadedWeights(network, compat="authors"))
    expected = estimate_like_authors(network, torch.from_numpy(noise[..., 0]))[-1]
    np.testing.assert_allclose(result.disparity, expected.disparity[0].numpy(), atol=1e-5)
    assert result.made_with.range_source == "weights"


def test_every_second_view_of_an_array_gives_disparities_per_step_of_the_array(untrained):
    """The network sees the same as for views one step apart; only the unit differs."""
    views = scene_between(-0.5, 1.0, size=(48, 64), grid=(9, 9)).light_field.views[::2, ::2]
    places = 2 * LightField(views).camera_places
    options = EstimateOptions(keep_masks=True)
    apart = estimate(LightField(views, places=places), options, network=untrained)
    beside = estimate(LightField(views), options, network=untrained)
    np.testing.assert_allclose(apart.disparity, beside.disparity / 2, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(apart.masks, beside.masks)
    expected = np.array(beside.made_with.disparity_range) / 2
    np.testing.assert_allclose(apart.made_with.disparity_range, expected)


def test_levels_are_closer_together_in_a_wide_array(untrained):
    """Its outermost views move between two levels by no more than those of 9x9 views."""
    views = scene_between(-0.4, 0.3, size=(48, 64), grid=(17, 17)).light_field.views
    options = EstimateOptions(keep_evidence=True, disparity_range=(-0.5, 0.5))
    usual = estimate(LightField(views[4:13, 4:13]), options, network=untrained)
    wide = estimate(LightField(views), options, network=untrained)
    assert np.diff(usual.levels) == pytest.approx(0.25)
    assert np.diff(wide.levels) == pytest.approx(0.125)
    assert wide.made_with.disparity_range == (-0.5, 0.5)
    assert wide.levels[0] < -0.5 and wide.levels[-1] > 0.5


def test_notes_about_the_range_are_in_steps_of_the_capture(untrained, monkeypatch):
    views = scene_between(-0.7, 0.7, size=(48, 64), grid=(9, 9)).light_field.views[::2, ::2]
    narrow = Coverage((-1.6, 0.2), "estimated")
    monkeypatch.setattr(inference, "choose_coverage", lambda light_field, wanted: narrow)
    places = 2 * LightField(views).camera_places
    result = estimate(LightField(views, places=places), network=untrained)
    assert "found first (-0.8 to 0.1 px)" in result.made_with.notes[0]


@pytest.mark.parametrize(
    ("focus_mm", "infinity"),
    [(0.0, "0 px, as the cameras are parallel"), (2000.0, "-1.00 px")],
)
def test_disparities_beyond_infinity_are_said(focus_mm, infinity):
    """They have no depth. Baseline 20 mm and 100 px of focal length: 1 px at 2 m."""
    camera = Camera(20.0, 36.0, 36.0, focus_mm)
    at_infinity = -1.0 if focus_mm else 0.0
    disparity = np.full((50, 100), at_infinity - 0.05, np.float32)  # the sky, nearly
    disparity[:10] = at_infinity + 2.0
    assert remark_on_depth(disparity, None) == remark_on_depth(disparity, camera) == []
    disparity[40:] = at_infinity - 0.5
    assert remark_on_depth(disparity, camera) == [
        "20 % of the picture has no finite depth: its disparity is less than that of infinity "
        f"({infinity}). Check --focus-distance-mm, --baseline-mm and the focal length."
    ]


def test_a_scene_beyond_infinity_has_a_note(untrained):
    light_field = scene_between(-1.0, 1.0, size=(48, 64), grid=(3, 3)).light_field
    parallel = replace(light_field, camera=Camera(20.0, 36.0, 36.0, 0.0))
    [note] = estimate(parallel, network=untrained).made_with.notes
    assert "% of the picture has no finite depth" in note


def test_views_that_are_one_picture_are_said(scene, untrained):
    views = scene.light_field.views.copy()
    views[:] = views[4, 4]
    options = EstimateOptions(disparity_range=(-1, 1))
    assert SAME_PICTURE in estimate(LightField(views), options, network=untrained).made_with.notes
    views[2, 3, 5, 5] = 1 - views[2, 3, 5, 5]
    notes = estimate(LightField(views), options, network=untrained).made_with.notes
    assert SAME_PICTURE not in notes
