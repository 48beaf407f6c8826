"""Scores on the regions of a scene that its `mask_*` files mark, as the HCI benchmark has them.

Some are meant for ground truth of ten times the resolution. Where a scene has it, it is used (with
the prediction enlarged, each pixel to a block); where not, they are computed at the prediction's
own resolution and differ a little from the benchmark's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oaccdepth import metrics
from oaccdepth.errors import InvalidPrediction
from oaccdepth.lightfield import BoolArray, FloatArray
from oaccdepth.pfm import read_pfm
from oaccdepth.readers.decoding import decode

Metric = Callable[[FloatArray, FloatArray, BoolArray], float]


@dataclass(frozen=True)
class Region:
    """A score and the masks, joined, on which it is computed."""

    title: str
    metric: Metric
    masks: tuple[str, ...]
    fine: bool  # meant for the high resolution


def _bad_pix(prediction: FloatArray, truth: FloatArray, mask: BoolArray) -> float:
    return metrics.bad_pix(prediction, truth, mask, 0.07)


# The toolkit's names. Smaller is better.
REGIONS = {
    "discontinuities_0070": Region("Discont.", _bad_pix, ("discontinuities",), True),
    "bumpiness_planes_100_0050": Region("Planes", metrics.bumpiness_100, ("planes",), False),
    "bumpiness_contin_surfaces_100_0050": Region(
        "Surfaces", metrics.bumpiness_100, ("smooth_surfaces",), False
    ),
    "fine_fattening_0150": Region("Fine Fat", metrics.fattening, ("fine_surrounding",), True),
    "fine_thinning_0150": Region("Fine Thin", metrics.thinning, ("fine",), True),
    "bumpiness_slanted_100_0050": Region(
        "Slanted", metrics.bumpiness_100, ("pyramids", "sphere_in", "sphere_out"), False
    ),
    "bumpiness_parallel_100_0050": Region("Parallel", metrics.bumpiness_100, ("plane",), False),
    "background_mse_100": Region("Backgr. MSE", metrics.mse_100, ("background",), True),
    "low_texture_0070": Region("Low Texture", _bad_pix, ("low_texture",), True),
    "dark_stripes_0070": Region("Dark Stripes", _bad_pix, ("high_contrast",), True),
    "bright_stripes_0070": Region("Bright Stripes", _bad_pix, ("low_contrast",), True),
}


def score_regions(
    scene: Path, prediction: FloatArray, truth: FloatArray, border: int = metrics.BORDER
) -> dict[str, float]:
    """Every score for which the scene's folder has all masks.

    Parameters
    ----------
    prediction, truth
        (h, w) float32 [px].
    """
    scores = {}
    for name, region in REGIONS.items():
        score = _score_high(scene, region, prediction, border) if region.fine else None
        if score is None:
            score = _score_low(scene, region, prediction, truth, border)
        if score is not None:
            scores[name] = score
    return scores


def _score_low(
    scene: Path, region: Region, prediction: FloatArray, truth: FloatArray, border: int
) -> float | None:
    mask = _read_masks(scene, region.masks, "lowres", truth.shape)
    if mask is None:
        return None
    return region.metric(prediction, truth, mask & metrics.scored_pixels(truth, border))


def _score_high(scene: Path, region: Region, prediction: FloatArray, border: int) -> float | None:
    path = scene / "gt_disp_highres.pfm"
    if not path.is_file() or not _are_there(scene, region.masks, "highres"):
        return None
    truth = read_pfm(path)
    factor = truth.shape[0] // prediction.shape[0]
    enlarged = np.repeat(np.repeat(prediction, factor, axis=0), factor, axis=1)
    if enlarged.shape != truth.shape:
        raise InvalidPrediction(
            f"{path}: {truth.shape[1]}x{truth.shape[0]} pixels, expected a multiple of the "
            f"prediction's {prediction.shape[1]}x{prediction.shape[0]}."
        )
    mask = _read_masks(scene, region.masks, "highres", truth.shape)
    assert mask is not None  # they are there, see above
    return region.metric(enlarged, truth, mask & metrics.scored_pixels(truth, border * factor))


def _are_there(scene: Path, names: tuple[str, ...], resolution: str) -> bool:
    return all((scene / f"mask_{name}_{resolution}.png").is_file() for name in names)


def _read_masks(
    scene: Path, names: tuple[str, ...], resolution: str, shape: tuple[int, ...]
) -> BoolArray | None:
    """The masks joined; None if one is not there. What is not black belongs to the region."""
    if not _are_there(scene, names, resolution):
        return None
    joined = np.zeros(shape, dtype=np.bool_)
    for name in names:
        path = scene / f"mask_{name}_{resolution}.png"
        picture = decode(path)
        if picture.ndim == 3:  # grey or RGB, perhaps with alpha, which says nothing here
            colours = picture[:, :, : 1 if picture.shape[2] == 2 else 3]
            picture = np.asarray(colours.any(axis=2))
        if picture.shape != shape:
            raise InvalidPrediction(
                f"{path}: {picture.shape[1]}x{picture.shape[0]} pixels, "
                f"expected {shape[1]}x{shape[0]} as the ground truth."
            )
        joined |= picture != 0
    return joined
