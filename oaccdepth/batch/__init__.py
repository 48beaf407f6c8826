"""Processes many light fields: finds them, skips finished ones, runs the rest, writes a report.

`job` processes one light field; `crew` distributes them over workers, `cluster` over machines.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from oaccdepth import readers
from oaccdepth.batch.crew import Crew, LocalWorker, ProcessWorker, Worker
from oaccdepth.batch.job import (
    Job,
    Record,
    Report,
    RunVersion,
    Settings,
    earlier_record,
    record_since,
    run_version,
)
from oaccdepth.batch.report import remove_report, write_index, write_report
from oaccdepth.errors import InvalidOption, UnreadableFile, UnwritableOutput
from oaccdepth.evaluation import scores
from oaccdepth.files.atomic import remove_leftovers, told
from oaccdepth.files.signals import heed, undisturbed, uninterrupted
from oaccdepth.options import BatchOptions, EstimateOptions, ReadOptions, WriteOptions
from oaccdepth.version import __version__
from oaccdepth.writers import results

logger = logging.getLogger(__name__)

__all__ = ["Job", "Record", "Summary", "find_jobs", "plan_batch", "run_batch"]


@dataclass(frozen=True)
class Summary:
    """The outcome of a batch."""

    records: tuple[Record, ...]  # in the order of the jobs
    not_reached: tuple[str, ...] = ()  # scenes left when a signal stopped the batch
    not_read: tuple[tuple[str, str], ...] = ()  # paths that were not read, and why
    stopped: int = 0  # exit code if a signal stopped it: 130 for Ctrl-C

    @property
    def failed(self) -> list[Record]:
        """Records of the scenes that failed."""
        return [record for record in self.records if record.status == "failed"]


def find_jobs(root: Path, output: Path, options: BatchOptions = BatchOptions()) -> list[Job]:
    """Find every light field under `root` and choose a folder for its results."""
    if not root.exists():
        raise UnreadableFile(f"{root}: no such folder. Give the folder that holds the scenes.")
    root, output = root.resolve(), output.resolve()
    found = readers.find(root)
    if output in found:
        raise _among_views(output, output.name)
    sources = [path for path in found if not _is_result(path, root, output)]
    if len(sources) < len(found):
        count = len(found) - len(sources)
        logger.warning("ignored light fields inside --output %s: %d found.", output, count)
    names = scores.name_scenes(root, sources)
    jobs = [
        Job(name, source, output / name)
        for name, source in names.items()
        if _is_wanted(name, options)
    ]
    if not jobs:
        for path, reason in () if sources else find_unread(root, output):
            logger.warning("not read: %s: %s", path, reason)
        raise UnreadableFile(
            f"{root}: no light field to process ({len(sources)} found). "
            "`oaccdepth formats` lists what is recognised; check --include and --exclude."
        )
    for job in jobs:
        if job.folder in (job.source, *job.source.parents):
            raise _among_views(output, job.scene)
    return jobs[: options.limit]


def find_unread(root: Path, output: Path) -> tuple[tuple[str, str], ...]:
    """Find paths that look like light fields but are not read; return each with the reason."""
    root, output = root.resolve(), output.resolve()
    return tuple(
        (str(path.relative_to(root)), reason)
        for path, reason in readers.find_unread(root, readers.find(root))
        if not _is_result(path, root, output)
    )


def _among_views(output: Path, scene: str) -> InvalidOption:
    return InvalidOption(
        f"--output {output}: results would lie among the views of {scene}. Choose another --output."
    )


def _is_result(path: Path, root: Path, output: Path) -> bool:
    """Whether a path is in the output folder, if that folder is inside `root`."""
    return root in output.parents and output in (path, *path.parents)


def _is_wanted(name: str, options: BatchOptions) -> bool:
    """Apply --include and --exclude to the full name ("training/boxes") and the last part."""

    def matches(patterns: Sequence[str]) -> bool:
        return any(
            fnmatchcase(text, pattern) for pattern in patterns for text in (name, Path(name).name)
        )

    return (not options.include or matches(options.include)) and not matches(options.exclude)


def plan_batch(
    root: Path,
    output: Path,
    options: BatchOptions = BatchOptions(),
    reading: ReadOptions = ReadOptions(),
    estimating: EstimateOptions = EstimateOptions(),
    writing: WriteOptions = WriteOptions(),
) -> list[tuple[Job, bool]]:
    """List what `run_batch` would do: every light field, and whether it is already done."""
    settings = make_settings(output, options, reading, estimating, writing)
    return [
        (job, not options.redo and earlier_record(job, settings.made_from(job.source)) is not None)
        for job in find_jobs(root, output, options)
    ]


def make_settings(
    output: Path,
    options: BatchOptions,
    reading: ReadOptions,
    estimating: EstimateOptions,
    writing: WriteOptions,
) -> Settings:
    """Collect the settings that all light fields share; raise if the weights are bad."""
    from oaccdepth.networks import checkpoint

    return Settings(
        reading=reading,
        estimating=estimating,
        writing=writing,
        weights_sha256=checkpoint.sha256(checkpoint.find_weights(estimating.weights)),
        redo=options.redo,
        output=output.resolve(),
    )


def run_batch(
    root: Path,
    output: Path,
    options: BatchOptions = BatchOptions(),
    reading: ReadOptions = ReadOptions(),
    estimating: EstimateOptions = EstimateOptions(),
    writing: WriteOptions = WriteOptions(),
    *,
    on_start: Callable[[int], None] = lambda count: None,
    report: Report = lambda scene, stage, fraction: None,
    on_record: Callable[[Record], None] = lambda record: None,
) -> Summary:
    """Estimate every light field under `root`, mirroring the tree under `output`.

    A scene is skipped if its `run.json` names the same input, options and weights. If a scene
    fails, the failure is recorded and the batch continues. The report is written even after
    Ctrl-C.

    Parameters
    ----------
    on_start
        Called with the number of scenes.
    report
        Called from several threads with the scene, the current stage and its progress (0 to 1).
    on_record
        Called when a scene is finished.
    """
    jobs = find_jobs(root, output, options)
    settings = make_settings(output, options, reading, estimating, writing)
    on_start(len(jobs))
    not_read = find_unread(root, output)
    return run_jobs(jobs, settings, options, report=report, on_record=on_record, not_read=not_read)


def run_jobs(
    jobs: Sequence[Job],
    settings: Settings,
    options: BatchOptions = BatchOptions(),
    *,
    report: Report = lambda scene, stage, fraction: None,
    on_record: Callable[[Record], None] = lambda record: None,
    not_read: tuple[tuple[str, str], ...] = (),
) -> Summary:
    """Run the jobs and write the report, which also lists `not_read`."""
    # Raise errors that affect every scene now. Whether depth is possible depends on the scene.
    common = tuple(name for name in settings.writing.formats if name != "depth")
    results.prepare(settings.output, replace(settings.writing, formats=common), overwrite=True)
    with told(settings.output):
        settings.output.mkdir(parents=True, exist_ok=True)
    records: dict[str, Record] = {}
    with _claimed(settings.output):
        remove_leftovers(settings.output)
        remove_report(settings.output)
        scenes = {job.scene: job for job in jobs}
        before = {scene: run_version(job) for scene, job in scenes.items()}
        crew: Crew | None = None
        try:
            crew = make_crew(settings, options, report)
            with closing(crew.run(jobs)) as finished:
                for found in finished:
                    scene = found.scene
                    records[scene] = _as_done_now(found, scenes[scene], before[scene])
                    on_record(records[scene])
        except KeyboardInterrupt as error:
            with undisturbed():  # a second Ctrl-C must not prevent the report
                if crew is not None:
                    crew.close()
                remove_leftovers(settings.output)  # left by workers that were killed
                records |= _untold(jobs, records, before)
                summary = _finish(jobs, records, settings, not_read)
                return replace(summary, stopped=heed(error) or 0)
        with uninterrupted():
            return _finish(jobs, records, settings, not_read)


def _as_done_now(record: Record, job: Job, before: RunVersion) -> Record:
    """Correct the record of a scene that this run wrote, but whose worker died before it said so.

    Its next worker found the files, and took them for those of an earlier run.
    """
    return (record_since(job, before) if record.status == "skipped" else None) or record


def _untold(
    jobs: Sequence[Job], records: Mapping[str, Record], before: Mapping[str, RunVersion]
) -> dict[str, Record]:
    """Find scenes that finished while the batch was stopping and were not reported."""
    found = {
        job.scene: record_since(job, before[job.scene]) for job in jobs if job.scene not in records
    }
    return {scene: record for scene, record in found.items() if record is not None}


def _finish(
    jobs: Sequence[Job],
    records: Mapping[str, Record],
    settings: Settings,
    not_read: tuple[tuple[str, str], ...],
) -> Summary:
    """Write the report."""
    ordered = [records[job.scene] for job in jobs if job.scene in records]
    not_reached = [job.scene for job in jobs if job.scene not in records]
    about = {
        "version": __version__,
        "weights": Path(settings.estimating.weights).name,
        "weights_sha256": settings.weights_sha256,
        "not_reached": not_reached,
        "not_read": [{"path": path, "reason": reason} for path, reason in not_read],
    }
    write_report(settings.output, ordered, about)
    if settings.writing.view:
        write_index(settings.output, jobs, records)
    return Summary(tuple(ordered), tuple(not_reached), not_read)


def make_crew(settings: Settings, options: BatchOptions, report: Report) -> Crew:
    """Make the workers: this process, several processes, or a Ray cluster."""
    if options.ray is not None:
        from oaccdepth.batch.cluster import make_ray_crew

        return make_ray_crew(settings, options.ray, options.jobs, report)
    jobs = options.jobs or 1
    if jobs == 1:
        return Crew(lambda place: LocalWorker(settings, report), 1)
    devices = choose_devices(settings.estimating.device, jobs)
    num_threads = max(1, (os.cpu_count() or 1) // jobs)

    def hire(place: int) -> Worker:
        estimating = replace(settings.estimating, device=devices[place])
        return ProcessWorker(replace(settings, estimating=estimating), report, num_threads)

    return Crew(hire, jobs)


def choose_devices(device: str, jobs: int, num_gpus: int | None = None) -> list[str]:
    """Choose a device for each process: the GPUs in turn, unless the user named a device."""
    if device not in ("auto", "cuda"):
        return [device] * jobs
    if num_gpus is None:
        import torch

        num_gpus = torch.cuda.device_count()
    return [f"cuda:{place % num_gpus}" if num_gpus else device for place in range(jobs)]


@contextmanager
def _claimed(output: Path) -> Iterator[None]:
    """Lock the output folder against other batches until this process ends, even by a crash.

    The folder itself is locked, so no lock file is left behind.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    handle = os.open(output, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise UnwritableOutput(
            f"{output}: another batch is writing here. Wait for it, or choose another --output."
        ) from error
    except OSError as error:
        logger.info("%s: cannot be locked (%s)", output, error.strerror)  # e.g. a network drive
    try:
        yield
    finally:
        os.close(handle)
