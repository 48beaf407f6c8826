"""Scores on the regions of a scene that its `mask_*` files mark, as in the HCI benchmark.

Some are meant for ground truth of ten times the resolution. If a scene has it, it is used (with
the prediction enlarged, each pixel to a block); otherwise they are computed at the prediction's
own resolution and differ a little from the benchmark's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oaccdepth.errors import InvalidPrediction, UnreadableFile
from oaccdepth.evaluation import metrics
from oaccdepth.files.pfm import read_pfm
from oaccdepth.lightfield import Array, BoolArray, Camera, FloatArray
from oaccdepth.readers.decoding import decode
from oaccdepth.readers.parameters import FILE_NAME, read_parameters

FOREGROUND_COLUMN = 14  # of the backgammon scene, at the low resolution: left of all gaps
BACKGROUND_COLUMN = -11  # right of all teeth
MOST_DOT_LABEL = 8  # smaller dots, which have larger labels, are not counted


@dataclass(frozen=True, eq=False)
class Maps:
    """What a region's score is computed from, at one resolution."""

    prediction: FloatArray  # (h, w) [px]
    truth: FloatArray  # (h, w) [px]
    labels: tuple[Array, ...]  # the region's masks, (h, w) each
    scored: BoolArray  # (h, w): inside the border, where the ground truth is finite
    factor: int  # times the low resolution
    camera: Camera | None

    @property
    def mask(self) -> BoolArray:
        """Where to score: in one of the masks. What is not black belongs to the region."""
        joined = np.any([label != 0 for label in self.labels], axis=0)
        return np.asarray(joined & self.scored)


Metric = Callable[[FloatArray, FloatArray, BoolArray], float]
Scorer = Callable[[Maps], float | None]


@dataclass(frozen=True)
class Region:
    """A score and the masks on which it is computed."""

    title: str
    score: Scorer  # None: something that it needs is not there
    masks: tuple[str, ...]
    fine: bool  # meant for the high resolution
    beside: tuple[str, ...] = ()  # masks that identify the scene it is meant for


def _joined(metric: Metric) -> Scorer:
    """Score on the masks, joined."""
    return lambda maps: metric(maps.prediction, maps.truth, maps.mask)


def _fattening_between(maps: Maps) -> float:
    """Backgammon: the foreground's disparity is known from a column where nothing else is."""
    column = min(FOREGROUND_COLUMN * maps.factor, maps.truth.shape[1] - 1)
    foreground = maps.truth[:, [column]]
    return metrics.fattening_between(maps.prediction, maps.truth, maps.mask, foreground)


def _thinning_between(maps: Maps) -> float:
    background = maps.truth[:, [max(BACKGROUND_COLUMN, -maps.truth.shape[1])]]
    return metrics.thinning_between(maps.prediction, maps.truth, maps.mask, background)


def _missed_dots(maps: Maps) -> float:
    """Dots: each box has dots of the same sizes; box and size together identify a dot."""
    boxes, sizes = (label.astype(np.int64) for label in maps.labels)
    is_dot = (boxes > 0) & (sizes > 0) & (sizes <= MOST_DOT_LABEL) & np.isfinite(maps.truth)
    dots = np.where(is_dot, boxes * (MOST_DOT_LABEL + 1) + sizes, 0)
    return metrics.missed(maps.prediction, maps.truth, dots)


def _median_angle(maps: Maps) -> float | None:
    if maps.camera is None:
        return None
    return metrics.median_angle(maps.prediction, maps.truth, maps.mask, maps.camera)


_bad_pix, _bumpiness = _joined(metrics.bad_pix), _joined(metrics.bumpiness_100)

# The toolkit's names. Smaller is better.
REGIONS = {
    "discontinuities_0070": Region("Discont.", _bad_pix, ("discontinuities",), True),
    "bumpiness_planes_100_0050": Region("Planes", _bumpiness, ("planes",), False),
    "bumpiness_contin_surfaces_100_0050": Region(
        "Surfaces", _bumpiness, ("smooth_surfaces",), False
    ),
    "mae_planes": Region("MAE Planes", _median_angle, ("planes",), False),
    "mae_contin_surfaces": Region("MAE Surfaces", _median_angle, ("smooth_surfaces",), False),
    "fine_fattening_0150": Region(
        "Fine Fat", _joined(metrics.fattening), ("fine_surrounding",), True
    ),
    "fine_thinning_0150": Region("Fine Thin", _joined(metrics.thinning), ("fine",), True),
    "backgammon_fattening_0070": Region(
        "Fattening", _fattening_between, ("foreground_fattening",), True
    ),
    "backgammon_thinning_0070": Region(
        "Thinning", _thinning_between, ("foreground_thinning",), True
    ),
    "bumpiness_slanted_100_0050": Region(
        "Slanted", _bumpiness, ("pyramids", "sphere_in", "sphere_out"), False
    ),
    "bumpiness_parallel_100_0050": Region("Parallel", _bumpiness, ("plane",), False),
    "background_mse_100": Region(
        "Backgr. MSE", _joined(metrics.mse_100), ("background",), True, beside=("boxes",)
    ),
    "missed_dots_50_0400": Region("Missed Dots", _missed_dots, ("boxes", "dots_by_size"), True),
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
    if not _are_there(scene, region, "lowres"):
        return None
    labels = _read_masks(scene, region.masks, "lowres", truth.shape)
    scored = metrics.scored_pixels(truth, border)
    return region.score(Maps(prediction, truth, labels, scored, 1, _find_camera(scene)))


def _score_high(scene: Path, region: Region, prediction: FloatArray, border: int) -> float | None:
    path = scene / "gt_disp_highres.pfm"
    if not path.is_file() or not _are_there(scene, region, "highres"):
        return None
    truth = read_pfm(path)
    factor = truth.shape[0] // prediction.shape[0]
    enlarged = np.repeat(np.repeat(prediction, factor, axis=0), factor, axis=1)
    if enlarged.shape != truth.shape:
        raise InvalidPrediction(
            f"{path}: {truth.shape[1]}x{truth.shape[0]} pixels, expected a multiple of the "
            f"prediction's {prediction.shape[1]}x{prediction.shape[0]}."
        )
    labels = _read_masks(scene, region.masks, "highres", truth.shape)
    scored = metrics.scored_pixels(truth, border * factor)
    return region.score(Maps(enlarged, truth, labels, scored, factor, _find_camera(scene)))


def _find_camera(scene: Path) -> Camera | None:
    try:
        return read_parameters(scene / FILE_NAME).camera
    except UnreadableFile:  # not there, or broken, which `info` tells: no angles, but the rest
        return None


def _are_there(scene: Path, region: Region, resolution: str) -> bool:
    names = (*region.masks, *region.beside)
    return all((scene / f"mask_{name}_{resolution}.png").is_file() for name in names)


def _read_masks(
    scene: Path, names: tuple[str, ...], resolution: str, shape: tuple[int, ...]
) -> tuple[Array, ...]:
    """The masks as (h, w) numbers; colours become one number, alpha is ignored."""
    masks = []
    for name in names:
        path = scene / f"mask_{name}_{resolution}.png"
        picture = decode(path)
        if picture.ndim == 3:
            picture = picture[:, :, : 1 if picture.shape[2] == 2 else 3].max(axis=2)
        if picture.shape != shape:
            raise InvalidPrediction(
                f"{path}: {picture.shape[1]}x{picture.shape[0]} pixels, "
                f"expected {shape[1]}x{shape[0]} as the ground truth."
            )
        masks.append(picture)
    return tuple(masks)
