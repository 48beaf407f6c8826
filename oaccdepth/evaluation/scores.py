"""Disparity maps and their ground truth -> tables of scores, beside the published methods'.

Scores only: what a score means is in `metrics`, how the tables look on a terminal in `commands`.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from oaccdepth import readers
from oaccdepth.errors import InvalidPrediction, OaccDepthError, UnreadableFile
from oaccdepth.evaluation import metrics
from oaccdepth.evaluation.error_maps import write_error_maps
from oaccdepth.evaluation.regions import REGIONS, score_regions
from oaccdepth.files.pfm import read_pfm
from oaccdepth.files.regular import walk
from oaccdepth.lightfield import BoolArray, FloatArray
from oaccdepth.readers.hci import GROUND_TRUTH

logger = logging.getLogger(__name__)

PREDICTION = "disparity.pfm"  # what `estimate` and `batch` write into a scene's folder

# The toolkit's names, in the order of the tables. All: smaller is better.
METRICS: dict[str, Callable[[FloatArray, FloatArray, BoolArray], float]] = {
    "mse_100": metrics.mse_100,
    "badpix_0070": metrics.bad_pix,
    "badpix_0030": partial(metrics.bad_pix, threshold=0.03),
    "badpix_0010": partial(metrics.bad_pix, threshold=0.01),
    "q25_100": metrics.q25_100,
}
TITLES = {
    "mse_100": "MSE x100",
    "badpix_0070": "BadPix 0.07",
    "badpix_0030": "BadPix 0.03",
    "badpix_0010": "BadPix 0.01",
    "q25_100": "Q25 x100",
}


@dataclass(frozen=True)
class Score:
    """The scores of one scene."""

    scene: str
    values: Mapping[str, float]  # by the names in METRICS
    missing: int = 0  # scored pixels without a finite prediction
    regions: Mapping[str, float] = field(default_factory=dict)  # by the names in REGIONS


@dataclass(frozen=True)
class Evaluation:
    """The scores of some scenes, and what could not be scored."""

    scores: tuple[Score, ...]
    border: int = metrics.BORDER
    without_prediction: tuple[str, ...] = field(default=())  # scenes of the dataset
    failed: tuple[str, ...] = field(default=())  # scenes whose prediction cannot be scored

    @property
    def scenes(self) -> list[str]:
        """Names of the scenes that were scored."""
        return [score.scene for score in self.scores]

    @property
    def mean(self) -> dict[str, float]:
        """Mean of every score over the scenes."""
        return mean([score.values for score in self.scores])

    @property
    def region_mean(self) -> dict[str, float]:
        """Mean of every region score over the scenes that have it."""
        values = {
            name: [score.regions[name] for score in self.scores if name in score.regions]
            for name in self.regions
        }
        return {name: math.fsum(scores) / len(scores) for name, scores in values.items()}

    @property
    def regions(self) -> dict[str, str]:
        """Names and titles of the region scores that at least one scene has."""
        found = {name for score in self.scores for name in score.regions}
        return {name: region.title for name, region in REGIONS.items() if name in found}


def mean(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean by name."""
    return {name: math.fsum(one[name] for one in values) / len(values) for name in METRICS}


def evaluate_maps(
    scene: str, prediction: FloatArray, truth: FloatArray, border: int = metrics.BORDER
) -> Score:
    """Score one disparity map; both (h, w) [px] and of the same size."""
    if prediction.shape != truth.shape:
        raise InvalidPrediction(
            f"{scene}: the prediction is {_size(prediction)} pixels, the ground truth "
            f"{_size(truth)}. Estimate at the ground truth's size."
        )
    if not np.isfinite(truth).any():
        raise InvalidPrediction(f"{scene}: the ground truth has no finite value. Copy it again.")
    mask = metrics.scored_pixels(truth, border)
    if not mask.any():
        raise InvalidPrediction(
            f"{scene}: a border of {border} px leaves nothing of {_size(truth)} pixels to score. "
            "Use evaluate with a smaller --border."
        )
    missing = int(np.count_nonzero(~np.isfinite(prediction[mask])))
    values = {name: metric(prediction, truth, mask) for name, metric in METRICS.items()}
    return Score(scene, values, missing)


def evaluate_files(
    prediction: Path, truth: Path, border: int = metrics.BORDER, error_maps: Path | None = None
) -> Evaluation:
    """Score one prediction: PFM files, or the folders that hold them.

    Parameters
    ----------
    error_maps
        Folder for pictures of the error, if wanted.
    """
    if prediction.is_dir():
        prediction = prediction / PREDICTION
    is_file = truth.suffix.lower() == ".pfm"
    name = _scene_of(truth) if is_file else truth.resolve().stem
    values = read_pfm(truth) if is_file else _read_truth(truth)
    if values is None:
        raise UnreadableFile(f"{truth}: there is no ground truth. Give a PFM file.")
    source = truth.parent if is_file else truth
    score = _evaluate(name, read_pfm(prediction), values, source, border, error_maps)
    return Evaluation((score,), border)


def evaluate_folder(
    output: Path, dataset: Path, border: int = metrics.BORDER, error_maps: Path | None = None
) -> Evaluation:
    """Score every prediction under `output` that belongs to a scene under `dataset`.

    One that cannot be scored is reported, and does not stop the others.
    """
    for folder in (output, dataset):
        if not folder.is_dir():
            raise UnreadableFile(f"{folder}: no such folder.")
    scores: list[Score] = []
    missing: list[str] = []
    failed: list[str] = []
    sources = name_scenes(dataset, _scenes(dataset))
    times = Counter(Path(name).name for name in sources)
    for name, source in sources.items():
        is_unique = times[Path(name).name] == 1
        scene = Path(name).name if is_unique else name
        truth = _try_truth(source)
        if truth is None:
            continue
        path = find_prediction(output, name, anywhere=is_unique)
        if path is None:
            missing.append(scene)
            continue
        try:
            scores.append(_evaluate(scene, read_pfm(path), truth, source, border, error_maps))
        except (InvalidPrediction, UnreadableFile) as error:
            logger.warning("not scored: %s", error)
            failed.append(scene)
    if not scores:
        _raise_nothing(output, dataset, len(missing), len(failed))
    return Evaluation(tuple(scores), border, tuple(missing), tuple(failed))


def _raise_nothing(output: Path, dataset: Path, num_missing: int, num_failed: int) -> NoReturn:
    """Say why no scene at all has a score."""
    if num_failed:
        raise InvalidPrediction(f"{output}: none of its predictions can be scored.")
    if not num_missing:
        raise UnreadableFile(
            f"{dataset}: holds no scene with ground truth. "
            f"Expected {GROUND_TRUTH} beside the views."
        )
    raise UnreadableFile(
        f"{output}: holds no prediction for the {num_missing} scenes with ground truth under "
        f"{dataset}. Expected SCENE/{PREDICTION} or SCENE.pfm."
    )


def _evaluate(
    scene: str,
    prediction: FloatArray,
    truth: FloatArray,
    source: Path,
    border: int,
    error_maps: Path | None,
) -> Score:
    """Score one disparity map, with the regions that the scene's folder marks."""
    score = evaluate_maps(scene, prediction, truth, border)
    if error_maps is not None:
        write_error_maps(error_maps / scene, prediction, truth)
    folder = source if source.is_dir() else source.parent
    return replace(score, regions=score_regions(folder, prediction, truth, border))


def name_scenes(root: Path, sources: Sequence[Path]) -> dict[str, Path]:
    """Name of each light field: its place under the root, without the ending of a file.

    Files that differ only in their endings keep them.
    """
    relative = {
        path: path.relative_to(root) if path != root else Path(root.name) for path in sources
    }
    short = {path: _without_ending(path, name) for path, name in relative.items()}
    times = Counter(short.values())
    return {
        (short[path] if times[short[path]] == 1 else relative[path]).as_posix(): path
        for path in sources
    }


def _without_ending(path: Path, name: Path) -> Path:
    return name.with_suffix("") if path.is_file() else name


def find_prediction(output: Path, name: str, anywhere: bool = True) -> Path | None:
    """Where the prediction of a scene lies: at its place in the dataset, or anywhere by name."""
    scene = Path(name).name
    for stem in (name, scene) if anywhere else (name,):
        for candidate in (output / stem / PREDICTION, output / f"{stem}.pfm"):
            if candidate.is_file():
                return candidate
    if not anywhere:
        return None
    wanted = (f"{scene}/{PREDICTION}", f"{scene}.pfm")
    found = sorted(
        path
        for path in walk(output)
        if f"/{path.as_posix()}".endswith(tuple(f"/{name}" for name in wanted))
    )
    if len(found) > 1:
        raise InvalidPrediction(
            f"{output}: {len(found)} predictions for {scene}: {found[0]}, {found[1]}. "
            "Keep one, or give the folder that holds it."
        )
    return found[0] if found else None


def _scenes(dataset: Path) -> list[Path]:
    """Every light field, and every folder of ground truth alone."""
    folders = {path.parent for path in walk(dataset) if path.name == GROUND_TRUTH}
    return sorted(folders.union(readers.find(dataset)))


def _read_truth(source: Path) -> FloatArray | None:
    """Ground truth of a scene, where there is one."""
    if (source / GROUND_TRUTH).is_file():  # also where there are no views, or damaged ones
        return read_pfm(source / GROUND_TRUTH)
    return readers.read_ground_truth(source)


def _try_truth(source: Path) -> FloatArray | None:
    """The same for one of many: a damaged one is reported, and does not stop the others."""
    try:
        return _read_truth(source)
    except OaccDepthError as error:
        logger.warning("not scored: %s", error)
        return None


def _scene_of(truth: Path) -> str:
    """Name of the scene that a ground truth file belongs to."""
    return truth.resolve().parent.name if truth.name == GROUND_TRUTH else truth.stem


def _size(values: FloatArray) -> str:
    """Width and height, in the order of all messages."""
    return f"{values.shape[1]}x{values.shape[0]}"


@cache
def published_scores() -> dict[str, dict[str, dict[str, float]]]:
    """Scores of the published methods: method, scene, name of the score."""
    text = (
        files("oaccdepth.evaluation").joinpath("published_scores.json").read_text(encoding="utf-8")
    )
    methods: dict[str, dict[str, dict[str, float]]] = json.loads(text)["methods"]
    return methods


def compare(evaluation: Evaluation, name: str) -> tuple[list[str], dict[str, dict[str, float]]]:
    """Mean scores of this result and of every published method, over the scenes both have.

    Returns those scenes and the scores by method, best MSE first; no scenes if none is published
    or the border is not the benchmark's.
    """
    methods = published_scores()
    known = set(next(iter(methods.values())))
    own = {score.scene: score.values for score in evaluation.scores if score.scene in known}
    if not own or evaluation.border != metrics.BORDER:
        return [], {}
    scenes = list(own)
    table = {
        method: mean([scores[scene] for scene in scenes]) for method, scores in methods.items()
    }
    table[name] = mean(list(own.values()))
    ranked = sorted(table.items(), key=lambda item: item[1]["mse_100"])
    return scenes, dict(ranked)


def as_json(evaluation: Evaluation, name: str) -> dict[str, Any]:
    """Everything for machines; a score that is not finite becomes null, as JSON has no infinity."""
    scenes, methods = compare(evaluation, name)
    return {
        "border": evaluation.border,
        "scenes": {
            score.scene: {
                **finite(score.values),
                **finite(score.regions),
                "missing": score.missing,
            }
            for score in evaluation.scores
        },
        "mean": {**finite(evaluation.mean), **finite(evaluation.region_mean)},
        "without_prediction": list(evaluation.without_prediction),
        "not_scored": list(evaluation.failed),
        "published": {
            "scenes": scenes,
            "mean": {method: finite(values) for method, values in methods.items()},
        },
    }


def finite(values: Mapping[str, float]) -> dict[str, float | None]:
    """The value, or None if it is not finite: JSON has no infinity."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def as_csv(evaluation: Evaluation, name: str) -> str:
    """One row per method and scene, this result first; full precision."""
    columns = [*METRICS, *evaluation.regions]
    rows = [(name, score.scene, {**score.values, **score.regions}) for score in evaluation.scores]
    scenes, _ = compare(evaluation, name)
    for method, scores in published_scores().items():
        rows += [(method, scene, scores[scene]) for scene in scenes]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", "scene", *columns])
    for method, scene, values in rows:
        writer.writerow([method, scene, *(values.get(column) for column in columns)])
    return text.getvalue()


class Table(NamedTuple):
    """Scores to print: a row of values for each label, and a column for each title."""

    heading: str
    titles: Mapping[str, str]  # by name of the score
    rows: Mapping[str, Mapping[str, float]]
    highlighted: str  # label of the row that stands out
    first: str = "scene"  # what the labels are


def tables(evaluation: Evaluation, name: str) -> list[Table]:
    """Every scene with the mean, its regions, then the place among the published methods."""
    rows = {score.scene: score.values for score in evaluation.scores}
    regions = {score.scene: score.regions for score in evaluation.scores if score.regions}
    if len(rows) > 1:
        rows["mean"] = evaluation.mean
    if len(regions) > 1:
        regions["mean"] = evaluation.region_mean
    found = [Table("", TITLES, rows, "mean")]
    if regions:
        found.append(Table("Regions marked in the scenes", evaluation.regions, regions, "mean"))
    scenes, methods = compare(evaluation, name)
    if scenes:
        heading = f"Mean over {', '.join(scenes)}, with published methods"
        found.append(Table(heading, TITLES, methods, name, first="method"))
    return found


def as_markdown(evaluation: Evaluation, name: str) -> str:
    """The same tables, for a document."""
    return "\n".join(map(_markdown_table, tables(evaluation, name)))


def _markdown_table(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    text = f"{table.heading}:\n\n" if table.heading else ""
    text += line([table.first, *table.titles.values()])
    text += line(["---"] + ["---:"] * len(table.titles))
    for label, values in table.rows.items():
        shown = f"**{label}**" if label == table.highlighted else label
        text += line([shown, *(show(values.get(name)) for name in table.titles)])
    return text


def show(value: float | None) -> str:
    """A score for a table: three digits, or nothing."""
    return "" if value is None else f"{value:.3f}"
