"""Disparity maps -> the zip file to submit to the HCI benchmark, checked before it is written."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from oaccdepth.errors import InvalidPrediction, UnreadableFile
from oaccdepth.evaluation.scores import find_prediction
from oaccdepth.files.atomic import check_file, replacing
from oaccdepth.files.fields import BadField, as_type
from oaccdepth.files.pfm import read_pfm
from oaccdepth.files.regular import read_small
from oaccdepth.writers import results

SCENES = (
    *("backgammon", "dots", "pyramids", "stripes"),  # stratified
    *("boxes", "cotton", "dino", "sideboard"),  # training
    *("bedroom", "bicycle", "herbs", "origami"),  # test: their ground truth is not published
)
SIZE = (512, 512)  # height, width [px]
MOST_BYTES = 2 << 20  # of a PFM file of this size, whatever its header holds
DATE = (1980, 1, 1, 0, 0, 0)  # of every file, so that the same results give the same bytes


def write_submission(
    output: Path, path: Path, *, runtime: float | None = None, overwrite: bool = False
) -> dict[str, float]:
    """Write the submission of the results under `output`; return the runtimes [s] by scene.

    Parameters
    ----------
    runtime
        Seconds for scenes without a runtime in `run.json`.
    """
    check_file(path, overwrite)
    predictions = find_predictions(output)
    maps = {scene: read_pfm(file) for scene, file in predictions.items()}
    _refuse("not 512x512 pixels", [s for s, values in maps.items() if values.shape != SIZE])
    _refuse("not finite everywhere", [s for s, v in maps.items() if not np.isfinite(v).all()])
    runtimes = find_runtimes(predictions, runtime)
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for scene in SCENES:
            _add(archive, f"disp_maps/{scene}.pfm", read_small(predictions[scene], MOST_BYTES))
            _add(archive, f"runtimes/{scene}.txt", f"{runtimes[scene]:.3f}\n".encode())
    return runtimes


def find_predictions(output: Path) -> dict[str, Path]:
    """The disparity map of each of the twelve scenes."""
    if not output.is_dir():
        raise UnreadableFile(f"{output}: no such folder. Give a folder that `batch` has written.")
    found = {scene: find_prediction(output, scene) for scene in SCENES}
    missing = [scene for scene, path in found.items() if path is None]
    if missing:
        raise InvalidPrediction(
            f"{output}: {len(missing)} of the twelve scenes are missing: {', '.join(missing)}. "
            "Expected SCENE/disparity.pfm or SCENE.pfm; `oaccdepth batch` writes them."
        )
    return {scene: path for scene, path in found.items() if path is not None}


def find_runtimes(predictions: dict[str, Path], runtime: float | None) -> dict[str, float]:
    """Seconds of each scene, from the `run.json` beside it."""
    found = {
        scene: _read_seconds(path.with_name("run.json")) for scene, path in predictions.items()
    }
    seconds = {scene: runtime if value is None else value for scene, value in found.items()}
    missing = [scene for scene, value in seconds.items() if value is None]
    if missing:
        raise InvalidPrediction(
            f"no runtime in run.json: {', '.join(missing)}. Pass --runtime SECONDS."
        )
    return {scene: value for scene, value in seconds.items() if value is not None}


def _read_seconds(path: Path) -> float | None:
    try:
        seconds = as_type(results.read_run(path).get("seconds"), dict[str, float])
        return float(seconds["total"])
    except (OSError, BadField, KeyError):  # not there, or not one of ours
        return None


def _refuse(what: str, scenes: list[str]) -> None:
    if scenes:
        raise InvalidPrediction(
            f"the benchmark does not accept disparity maps that are {what}: {', '.join(scenes)}. "
            "Estimate the whole scenes again."
        )


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, DATE)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
