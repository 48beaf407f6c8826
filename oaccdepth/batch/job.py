"""One light field of a batch: runs the pipeline and records the outcome.

The record of a finished scene is in its `run.json`, together with the input, options and weights.
From these, a later run knows that the scene is done and what to report about it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from oaccdepth.batch.memory import PeakMemory
from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import (
    ADVICE_ON_MEMORY,
    OaccDepthError,
    UnreadableFile,
    is_out_of_memory,
)
from oaccdepth.evaluation import scores
from oaccdepth.files.fields import BadField, as_dataclass, as_type
from oaccdepth.files.regular import is_regular, open_regular, walk
from oaccdepth.files.shareable import shareable
from oaccdepth.lightfield import LightField
from oaccdepth.options import EstimateOptions, ReadOptions, WriteOptions
from oaccdepth.pipeline import Estimate, process, read_truth
from oaccdepth.printable import printable
from oaccdepth.progress import ReportProgress
from oaccdepth.writers.results import RUN_FILE, read_run

logger = logging.getLogger(__name__)

BLOCK = 1 << 20  # bytes read at a time

Report = Callable[[str, str, float], None]  # scene, stage, progress (0..1)
RunVersion = tuple[int, int, int] | None


class Stopped(Exception):
    """The batch is stopping: raised while a scene is processed, caught by the batch."""


@dataclass(frozen=True)
class Job:
    """One light field to process."""

    scene: str  # path relative to the root: "training/boxes"
    source: Path
    folder: Path  # for its results


@dataclass(frozen=True)
class Record:
    """The outcome of one light field."""

    scene: str
    status: str  # done, skipped (done by an earlier run) or failed
    message: str = ""  # why it failed
    format: str = ""
    grid: tuple[int, ...] = ()
    resolution: tuple[int, ...] = ()  # height, width [px]
    seconds: float | None = None  # time in the network, without reading and writing
    peak_memory_bytes: int | None = None  # of the process while the network ran
    disparity_range: tuple[float, ...] = ()  # smallest and largest estimated [px]
    scores: dict[str, float | None] = field(default_factory=dict)  # if there is ground truth
    notes: tuple[str, ...] = ()  # what was left out, corrected or assumed


def open_network(options: EstimateOptions) -> Estimate:
    """Load the weights once; return a function that estimates any number of light fields."""
    from oaccdepth.estimation import inference
    from oaccdepth.estimation.weights import load_network

    network = load_network(options.weights, options.device)

    def estimate(
        light_field: LightField, options: EstimateOptions, progress: ReportProgress
    ) -> DisparityMap:
        return inference.estimate(light_field, options, network=network, progress=progress)

    return estimate


@dataclass(frozen=True)
class Settings:
    """Settings that all light fields of a batch share; sent to every process."""

    reading: ReadOptions = ReadOptions()
    estimating: EstimateOptions = EstimateOptions()
    writing: WriteOptions = WriteOptions()
    weights_sha256: str = ""
    redo: bool = False
    output: Path = Path()  # never part of an input, even if it is inside one
    open_network: Callable[[EstimateOptions], Estimate] = open_network

    def made_from(self, source: Path) -> dict[str, Any]:
        """Return everything that determines a result: input, options and weights.

        The device is left out, because a batch may use several.
        """
        estimating = asdict(self.estimating)
        del estimating["device"], estimating["weights"]
        made_from = {
            "input_sha256": fingerprint(source, self.output),
            "weights_sha256": self.weights_sha256,
            "reading": asdict(self.reading),
            "estimating": estimating,
            **asdict(self.writing),
        }
        plain: dict[str, Any] = json.loads(json.dumps(made_from))  # tuples become lists, as in JSON
        return plain


def fingerprint(source: Path, output: Path) -> str:
    """Compute the SHA-256 of the names and contents of a light field's files.

    Modification times do not count, so a copied dataset is the same dataset.
    """
    digest = hashlib.sha256()
    for path in _files(source, output):
        name = path.relative_to(source).as_posix() if path != source else path.name
        try:
            digest.update(os.fsencode(f"{name}\0{path.stat().st_size}\0"))
            with open_regular(path) as file:
                while block := file.read(BLOCK):
                    digest.update(block)
        except OSError as error:
            raise UnreadableFile(f"{path}: cannot be read ({error.strerror or error}).") from error
    return digest.hexdigest()


def _files(source: Path, output: Path) -> list[Path]:
    """List every file of a light field, except hidden ones, which file managers change."""
    if is_regular(source):
        return [source]
    holds_output = source in output.parents
    return sorted(
        path
        for path in walk(source)
        if is_regular(path)
        and not (holds_output and output in path.parents)
        and not any(part.startswith(".") for part in path.relative_to(source).parts)
    )


def earlier_record(job: Job, made_from: dict[str, Any]) -> Record | None:
    """Return the record of an earlier run with the same input and options, if its files exist."""
    made_earlier_from, record = _read_run(job)
    if record is None or made_earlier_from != made_from:
        return None
    return replace(record, scene=job.scene, status="skipped")


def record_since(job: Job, version: RunVersion) -> Record | None:
    """Return the record of a scene if its files were written after `run_version` was called."""
    if run_version(job) in (None, version):
        return None
    return _read_run(job)[1]


def run_version(job: Job) -> RunVersion:
    """Identify the version of a scene's `run.json` without reading it; None if there is none."""
    try:
        found = (job.folder / RUN_FILE).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read_run(job: Job) -> tuple[Any, Record | None]:
    """Read what a scene was made from, and its record, if all its files exist."""
    try:
        run = read_run(job.folder / RUN_FILE)
        if not all(is_regular(job.folder / name) for name in as_type(run["files"], dict[str, Any])):
            return None, None
        batch = as_type(run["batch"], dict[str, Any])
        return batch["made_from"], as_dataclass(Record, batch["record"])
    except (OSError, BadField, KeyError):  # no run.json, or not one of ours
        return None, None


def relative(text: str, job: Job) -> str:
    """Remove the user's folders from a message about a scene, because reports are shared."""
    place = PurePosixPath(job.scene).parent / job.source.name
    text = text.replace(str(job.source), place.as_posix()).replace(str(job.folder), job.scene)
    return str(shareable(text))


class Pipeline:
    """Runs light fields through one network.

    Several threads call `process` at the same time: while one light field is in the network, the
    next is read and the previous one is written. The network has its own thread and processes one
    light field at a time.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = threading.Event()
        self._network = ThreadPoolExecutor(1, "network")
        opening = self._network.submit(settings.open_network, settings.estimating)
        self._estimate = opening.result()  # raises errors that affect all: bad weights, no device

    def process(self, job: Job, report: Report) -> Record:
        """Process one light field; the record also says if it failed, and why."""
        try:
            return self._process(job, report)
        except Stopped:
            raise
        except OaccDepthError as error:
            return Record(job.scene, "failed", relative(str(error), job))
        except Exception as error:  # a bad scene never stops the others: report it
            if is_out_of_memory(error):
                return Record(job.scene, "failed", ADVICE_ON_MEMORY)
            logger.info("%s: unexpected error", job.scene, exc_info=error)
            message = printable(f"unexpected {type(error).__name__}: {error}")
            return Record(job.scene, "failed", relative(message, job))

    def stop(self) -> None:
        """Cancel the estimation at the end of the current tile."""
        self._stop.set()
        self._network.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Stop, and wait until that tile is finished."""
        self.stop()
        self._network.shutdown()

    def _process(self, job: Job, report: Report) -> Record:
        settings = self._settings
        report(job.scene, "checking", 0.0)
        made_from = settings.made_from(job.source)
        earlier = None if settings.redo else earlier_record(job, made_from)
        if earlier is not None:
            return earlier
        records = []

        def estimate(
            light_field: LightField, options: EstimateOptions, progress: ReportProgress
        ) -> DisparityMap:
            result, measured = self._in_network(light_field, options, progress)
            records.append(_describe(job, light_field, result, settings.reading, **measured))
            batch = {"made_from": made_from, "record": asdict(records[0])}
            return replace(result, made_with=replace(result.made_with, batch=batch))

        process(
            job.source,
            job.folder,
            settings.reading,
            settings.estimating,
            settings.writing,
            overwrite=True,
            progress=partial(report, job.scene),
            estimate=estimate,
        )
        return records[0]

    def _in_network(
        self, light_field: LightField, options: EstimateOptions, progress: ReportProgress
    ) -> tuple[DisparityMap, dict[str, Any]]:
        """Estimate in the network's thread; return the result, with its time and peak memory."""

        def check_and_report(stage: str, fraction: float) -> None:
            if self._stop.is_set():
                raise Stopped
            progress(stage, fraction)

        def estimate() -> tuple[DisparityMap, dict[str, Any]]:
            check_and_report("estimating", 0.0)
            memory = PeakMemory()
            start = time.perf_counter()
            result = self._estimate(light_field, options, check_and_report)
            seconds = time.perf_counter() - start
            return result, {"seconds": round(seconds, 3), "peak_memory_bytes": memory.read()}

        progress("waiting", 0.0)
        try:
            return self._network.submit(estimate).result()
        except (RuntimeError, CancelledError) as error:
            if self._stop.is_set():  # the thread accepts no more work
                raise Stopped from error
            raise


def _describe(
    job: Job,
    light_field: LightField,
    result: DisparityMap,
    reading: ReadOptions,
    **measured: Any,
) -> Record:
    finite = result.disparity[np.isfinite(result.disparity)]
    scores, not_scored = _score(job, result, reading)
    notes = (*light_field.notes, *result.made_with.notes, *not_scored)
    return Record(
        job.scene,
        "done",
        format=light_field.format,
        grid=light_field.grid,
        resolution=light_field.resolution,
        disparity_range=(float(finite.min()), float(finite.max())) if finite.size else (),
        scores=scores,
        notes=tuple(relative(note, job) for note in dict.fromkeys(notes)),
        **measured,
    )


def _score(
    job: Job, result: DisparityMap, reading: ReadOptions
) -> tuple[dict[str, float | None], tuple[str, ...]]:
    """Compute the scores if there is ground truth; if it is damaged, add a note."""
    truth, notes = read_truth(job.source, reading)
    if truth is None:
        return {}, notes
    try:
        score = scores.evaluate_maps(job.scene, result.disparity, truth)
    except OaccDepthError as error:
        return {}, (f"not scored: {error}",)
    return scores.finite(score.values), ()
