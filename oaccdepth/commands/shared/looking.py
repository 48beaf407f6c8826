"""What `view` and `figure` share: their argument is a finished result, or a light field."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oaccdepth.errors import InvalidOption
from oaccdepth.options import EstimateOptions, ReadOptions, with_voters
from oaccdepth.progress import ReportProgress, share

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap
    from oaccdepth.lightfield import FloatArray, LightField

ResultOrInput = Annotated[
    Path,
    typer.Argument(
        metavar="RESULT|INPUT",
        help="A folder written by `estimate`, or a light field to estimate first.",
    ),
]
LightFieldPath = Annotated[
    Path | None,
    typer.Option(
        "--input",
        metavar="LIGHTFIELD",
        help="The light field of the result, if it is not next to it.",
    ),
]


@dataclass(frozen=True)
class Shown:
    """What `view` and `figure` show."""

    light_field: LightField | None
    result: DisparityMap
    truth: FloatArray | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loading:
    """Where to find it, and how to read or estimate it."""

    path: Path
    light_field_path: Path | None
    reading: ReadOptions
    options: EstimateOptions
    progress: ReportProgress

    def load(self) -> Shown:
        """Read a result and find its light field again, or read a light field and estimate."""
        from oaccdepth import pipeline
        from oaccdepth.estimation import inference

        if self._is_result():
            return _load_result(self.path, self.light_field_path, self.reading)
        self.progress("reading", 0.0)
        light_field = pipeline.read(self.path, self.reading)
        truth, remarks = pipeline.read_truth(self.path, self.reading)
        report = share(self.progress, pipeline.READING, 1 - pipeline.PAGE)
        options = with_voters(self.options, self.reading)
        result = inference.estimate(light_field, options, progress=report)
        notes = (*light_field.notes, *result.made_with.notes, *remarks)
        return Shown(light_field, result, truth, notes)

    def light_field(self) -> tuple[LightField | None, tuple[str, ...]]:
        """Only the light field and the notes; nothing is estimated."""
        from oaccdepth.pipeline import read

        if self._is_result():
            shown = _load_result(self.path, self.light_field_path, self.reading)
            return shown.light_field, shown.notes
        light_field = read(self.path, self.reading)
        return light_field, light_field.notes

    def _is_result(self) -> bool:
        from oaccdepth.writers.results import is_result

        if is_result(self.path):
            return True
        if self.light_field_path is not None:
            raise InvalidOption(
                f"--input {self.light_field_path}: belongs to a RESULT, but {self.path} is not a "
                "folder with run.json and disparity.pfm. Give a folder written by `estimate`, or "
                "leave --input out."
            )
        return False


def _load_result(folder: Path, light_field_path: Path | None, reading: ReadOptions) -> Shown:
    from oaccdepth.pipeline import read, read_again, read_truth
    from oaccdepth.writers import results

    result = results.read_result(folder)
    found = read_again(folder, result, reading, light_field_path)
    if found is None:
        source = str(result.made_with.input.get("source") or "")
        name = f"the light field {source}".rstrip()
        note = f"{name} is not next to {folder}, so there are no views. Give it with --input."
        return Shown(None, result, None, (note,))
    path, reading = found
    light_field = read(path, reading)
    if light_field.resolution != result.disparity.shape:
        (height, width), (rows, columns) = light_field.resolution, result.disparity.shape
        what = (
            f"{path}: views of {width}x{height} px do not belong to {folder}, "
            f"which has {columns}x{rows} px."
        )
        if light_field_path is not None:
            raise InvalidOption(f"--input {what} Give the light field that it was estimated from.")
        return Shown(None, result, None, (f"{what} Give the right one with --input.",))
    camera = result.camera or light_field.camera
    truth, remarks = read_truth(path, reading)
    notes = (*light_field.notes, *remarks)
    return Shown(light_field, replace(result, camera=camera), truth, notes)
