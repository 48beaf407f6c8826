"""read -> estimate -> write: a light field in, a folder of results out.

The API, `estimate`, `demo` and every worker of `batch` use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from oaccdepth import readers
from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import (
    InvalidLightField,
    InvalidOption,
    OaccDepthError,
    UnknownFormat,
    UnreadableFile,
)
from oaccdepth.files.fields import BadField, as_dataclass
from oaccdepth.files.pfm import write_pfm
from oaccdepth.lightfield import FloatArray, LightField
from oaccdepth.looking.viewer import write_viewer
from oaccdepth.options import EstimateOptions, ReadOptions, WriteOptions, with_voters
from oaccdepth.progress import ReportProgress, ignore, share
from oaccdepth.writers import results

Estimate = Callable[[LightField, EstimateOptions, ReportProgress], DisparityMap]

# Shares of the time: reading (and importing torch), writing, and the page if there is one.
# Measured with 9x9 views of 512x512 px and the weights `fast`: 2.3, 0.1 and 0.7 s of about 15 s on
# one core; a second core makes only the estimate faster.
READING, WRITING, PAGE = 0.2, 0.01, 0.04
VIEW_FILE = "views/disparity_{:02d}_{:02d}.pfm"


@dataclass(frozen=True, eq=False)
class Processed:
    """What was read, estimated and written."""

    light_field: LightField
    result: DisparityMap
    files: tuple[Path, ...]
    notes: tuple[str, ...]  # what was left out, corrected or assumed


def process(
    source: Path | str | LightField,
    output: Path | str,
    reading: ReadOptions = ReadOptions(),
    estimating: EstimateOptions = EstimateOptions(),
    writing: WriteOptions = WriteOptions(),
    *,
    overwrite: bool = False,
    progress: ReportProgress = ignore,
    estimate: Estimate | None = None,
    truth: FloatArray | None = None,
    write_beside: Callable[[Path, DisparityMap], Mapping[str, str]] = lambda folder, result: {},
) -> Processed:
    """Read a light field, estimate its disparity and write the results to a folder.

    Parameters
    ----------
    source
        A path, or a light field in memory.
    progress
        Called with what is going on and how much of the whole is done, 0 to 1.
    estimate
        Called instead of `oaccdepth.estimate`, with options and progress.
    truth
        Disparity of the centre view, (h, w) [px], for the page's error map; read from a path.
    write_beside
        Writes more files to the given folder; returns their names and descriptions.
    """
    output = Path(output)
    if not isinstance(source, LightField):
        progress("reading", 0.0)
    light_field, truth, remarks = _read_all(source, reading, writing, truth)
    light_field = _choose_reference(light_field, estimating, writing)
    estimating = with_voters(estimating, reading)
    if writing.view:
        estimating = replace(estimating, keep_masks=True, keep_passes=True, keep_evidence=True)
    pages = [results.VIEWER_FILE] if writing.view else []
    results.prepare(output, writing, camera=light_field.camera, overwrite=overwrite, beside=pages)
    end = 1 - WRITING - PAGE * writing.view
    others = _views(light_field) if writing.all_views else []
    middle = READING + (end - READING) / (1 + len(others))
    estimate = estimate or _estimate
    result = estimate(light_field, estimating, share(progress, READING, middle))
    if not isinstance(source, LightField):
        result = _with_way_back(result, Path(source), output, reading)

    def beside(stage: Path) -> dict[str, str]:
        page = _write_page(stage, light_field, result, truth) if writing.view else {}
        report = share(progress, middle, end)
        page |= _write_views(stage, light_field, others, estimating, report, estimate)
        progress("writing", 1 - WRITING)
        return page | dict(write_beside(stage, result))

    progress("writing", middle if others else end)
    files = results.write(
        result, output, writing, overwrite=overwrite, centre=light_field.centre, write_beside=beside
    )
    progress("writing", 1.0)
    notes = dict.fromkeys((*light_field.notes, *result.made_with.notes, *remarks))
    return Processed(light_field, result, tuple(files), tuple(notes))


def _read_all(
    source: Path | str | LightField,
    reading: ReadOptions,
    writing: WriteOptions,
    truth: FloatArray | None,
) -> tuple[LightField, FloatArray | None, tuple[str, ...]]:
    """Read the light field, unless it is in memory; ground truth for the page, with notes."""
    if isinstance(source, LightField):
        return source, truth, ()
    light_field = read(source, reading)
    if truth is not None or not writing.view:
        return light_field, truth, ()
    return light_field, *read_truth(source, reading)


def _choose_reference(
    light_field: LightField, estimating: EstimateOptions, writing: WriteOptions
) -> LightField:
    """The light field with the requested reference view; a page only works for the centre view."""
    chosen = replace(light_field, reference=estimating.reference or light_field.reference)
    if writing.view and chosen.reference_view != replace(chosen, reference=None).reference_view:
        raise InvalidOption("--view: the page is about the centre view. Leave out --reference.")
    return chosen


def _with_way_back(
    result: DisparityMap, source: Path, output: Path, reading: ReadOptions
) -> DisparityMap:
    """Note where the views are, relative to the result, and how they were read."""
    known = dict(result.made_with.input)
    with suppress(ValueError, RuntimeError):  # other drive, or no home: keep only the name
        way = Path(os.path.relpath(source.resolve(), output.resolve()))
        if Path.home().name not in way.parts:  # it would reveal the user's name
            known["path"] = way.as_posix()
    typed = {
        one.name: value
        for one in fields(reading)
        if (value := getattr(reading, one.name)) != one.default
    }
    known |= {"reading": typed} if typed else {}
    return replace(result, made_with=replace(result.made_with, input=known))


def read_again(
    folder: Path,
    result: DisparityMap,
    options: ReadOptions = ReadOptions(),
    given: Path | None = None,
) -> tuple[Path, ReadOptions] | None:
    """Where the views of a result are, and how they were read; None if they are not found.

    Looks where `run.json` says, then for the same name in the folder, next to it, one level up,
    and in the current folder; nowhere if the path is given. Given options take precedence over
    `run.json`.
    """
    about = result.made_with.input
    if given is not None:
        return given, _merged(options, about.get("reading"), folder / results.RUN_FILE)
    name = str(about.get("source") or "")
    above = folder.resolve().parent
    candidates = [folder / str(about["path"])] if about.get("path") else []
    if name and Path(name).name == name:
        candidates += [place / name for place in (folder, above, above.parent, Path())]
    known = about.get("reading")
    for candidate in candidates:
        # os.path, because Path.exists() raises if a name is too long
        if os.path.exists(candidate) and candidate.resolve() != folder.resolve():
            return candidate, _merged(options, known, folder / results.RUN_FILE)
    return None


def _merged(options: ReadOptions, known: object, path: Path) -> ReadOptions:
    """Take options from `run.json` where none are given."""
    free = {one.name for one in fields(options) if getattr(options, one.name) == one.default}
    stored = known.items() if isinstance(known, dict) else ()
    try:
        checked = as_dataclass(ReadOptions, {name: value for name, value in stored if name in free})
    except (BadField, InvalidOption) as error:
        raise UnreadableFile(f"{path}: damaged (reading: {error}). Estimate again.") from error
    return replace(options, **{name: getattr(checked, name) for name in free})


def _views(light_field: LightField) -> list[tuple[int, int]]:
    """Grid positions of all existing views."""
    rows, columns = light_field.grid
    missing = set(light_field.missing_views)
    everywhere = ((u, v) for u in range(rows) for v in range(columns))
    return [view for view in everywhere if view not in missing]


def read(path: Path | str, options: ReadOptions = ReadOptions()) -> LightField:
    """Read a light field; if it is a result instead, say what to do with it."""
    try:
        return readers.read(path, options)
    except (UnknownFormat, InvalidLightField) as error:
        if results.is_result(Path(path)):
            raise UnknownFormat(
                f"{path}: holds a result, not a light field. "
                f"To look at it, run: oaccdepth view {path}"
            ) from error
        raise


def read_truth(
    path: Path | str, options: ReadOptions = ReadOptions()
) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Ground truth next to a light field, if there is any; a note if it cannot be used."""
    try:
        return readers.read_ground_truth(Path(path), options), ()
    except OaccDepthError as error:
        return None, (f"ground truth not used: {error}",)


def _estimate(
    light_field: LightField, options: EstimateOptions, progress: ReportProgress
) -> DisparityMap:
    from oaccdepth.estimation import inference  # importing torch takes seconds

    return inference.estimate(light_field, options, progress=progress)


def _write_views(
    folder: Path,
    light_field: LightField,
    views: list[tuple[int, int]],
    options: EstimateOptions,
    progress: ReportProgress,
    estimate: Estimate,
) -> dict[str, str]:
    """Estimate and write the disparity of these views; return the files and their descriptions."""
    written = {}
    for number, view in enumerate(views):
        part = share(progress, number / len(views), (number + 1) / len(views))
        own = replace(options, reference=view, keep_masks=False, keep_evidence=False)
        name = VIEW_FILE.format(*view)
        write_pfm(folder / name, estimate(light_field, own, part).disparity)
        written[name] = f"disparity of view {view[0]},{view[1]} [px per view step]"
    return written


def _write_page(
    folder: Path, light_field: LightField, result: DisparityMap, truth: FloatArray | None
) -> dict[str, str]:
    """Write the interactive page; return its name and what it is, for `run.json`."""
    # If an existing page must not be replaced, `prepare` has already refused.
    page = folder / results.VIEWER_FILE
    write_viewer(page, light_field, result, truth=truth, overwrite=True)
    return {results.VIEWER_FILE: "interactive page; open it in a browser"}
