"""DisparityMap <-> a folder of files, all of them or none.

`run.json` appears last: a folder that has it holds a finished result.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from oaccdepth.disparity import DisparityMap, Provenance
from oaccdepth.errors import InvalidOption, UnreadableFile, one_of
from oaccdepth.files.atomic import prepare_folder, staged, write_bytes, write_json
from oaccdepth.files.fields import MOST_TEXT, BadField, as_camera, as_dataclass, parse_json
from oaccdepth.files.pfm import read_pfm, write_pfm
from oaccdepth.files.regular import is_regular, read_small
from oaccdepth.files.shareable import shareable
from oaccdepth.lightfield import Camera, FloatArray
from oaccdepth.options import WriteOptions
from oaccdepth.readers.decoding import decode, read_header
from oaccdepth.writers.drawing import with_colour_bar
from oaccdepth.writers.pictures import (
    as_bytes,
    choose_range,
    colourise,
    write_png,
)
from oaccdepth.writers.point_cloud import write_ply

RUN_FILE = "run.json"
VIEWER_FILE = "view.html"

# Always written, and what each holds.
FILES = {
    "disparity.pfm": "disparity of the centre view [px per view step], float32; nearer is larger",
    "disparity.png": "the same in colours, with a colour bar",
    "confidence.png": "confidence, 8 bit: 0 is none, 255 is full",
}
# Written on request: format -> file and what it holds.
FORMATS = {
    "npy": ("disparity.npy", "disparity [px], a float32 NumPy array"),
    "png16": ("disparity_16bit.png", "disparity, 16 bit; see 'png16' for scale and offset"),
    "depth": ("depth.pfm", "depth along the camera's axis [mm], float32"),
    "ply": ("points.ply", "point cloud; its header says the unit"),
}


def output_names(formats: Sequence[str] = ()) -> list[str]:
    """Names of the files that `write` makes, in the order in which they appear."""
    return [*_contents(formats), RUN_FILE]


def prepare(
    folder: Path | str,
    options: WriteOptions = WriteOptions(),
    *,
    camera: Camera | None = None,
    overwrite: bool = False,
    beside: Sequence[str] = (),
) -> None:
    """Check everything that `write` needs, before the long work; create nothing.

    `beside` names more files that the caller will write there.

    Raises
    ------
    InvalidOption
        A format or colour map that does not exist, or depth without a camera.
    OutputExists, UnwritableOutput
        The folder already holds a result, or cannot be written to.
    """
    for name in options.formats:
        if name not in FORMATS:
            raise InvalidOption(f"--format {name}: no such format. Use {one_of(FORMATS)}.")
    if "depth" in options.formats and camera is None:
        raise InvalidOption(
            "--format depth: the input says nothing about its camera, so disparity cannot become "
            "depth. Give --baseline-mm and --focal-px, add a parameters.cfg, or leave "
            "this format out."
        )
    prepare_folder(Path(folder), [*output_names(options.formats), *beside], overwrite)


def write(
    result: DisparityMap,
    folder: Path | str,
    options: WriteOptions = WriteOptions(),
    *,
    overwrite: bool = False,
    centre: FloatArray | None = None,
    write_beside: Callable[[Path], Mapping[str, str]] = lambda folder: {},
) -> list[Path]:
    """Write a disparity map as PFM and pictures, with `run.json` beside it; return the paths.

    All files appear together, or none.

    Parameters
    ----------
    centre
        The centre view, (h, w, c) in [0, 1]: colours of the point cloud.
    write_beside
        Writes more files to the folder that it is given; returns their names and what they hold,
        for `run.json`.
    """
    folder = Path(folder)
    prepare(folder, options, camera=result.camera, overwrite=overwrite)
    with staged(folder, RUN_FILE, lambda: _remove_previous(folder)) as stage:
        beside = dict(write_beside(stage))
        details = _write_files(result, stage, options, centre)
        about = _contents(options.formats) | beside
        details = {"result": _summary(result), "files": about, **details}
        write_run(stage / RUN_FILE, result.made_with, details)
    return [folder / name for name in (*output_names(options.formats), *beside)]


def _contents(formats: Sequence[str]) -> dict[str, str]:
    """Names of the files of a result, and what they hold."""
    return FILES | dict(FORMATS[name] for name in FORMATS if name in formats)


def _write_files(
    result: DisparityMap, folder: Path, options: WriteOptions, centre: FloatArray | None
) -> dict[str, Any]:
    """Write all but `run.json`; return what `run.json` must say to read them back."""
    colormap = options.colormap
    shown = options.value_range or choose_range(result.disparity)
    coloured = colourise(result.disparity, shown, colormap)
    write_pfm(folder / "disparity.pfm", result.disparity)
    write_png(folder / "disparity.png", with_colour_bar(coloured, shown, colormap))
    write_png(folder / "confidence.png", as_bytes(np.nan_to_num(result.confidence)))
    details: dict[str, Any] = {"colours": {"colormap": colormap, "range": list(shown)}}
    for name in FORMATS:
        if name in options.formats:
            details |= _write_format(name, folder / FORMATS[name][0], result, centre)
    return details


def _write_format(
    name: str, path: Path, result: DisparityMap, centre: FloatArray | None
) -> dict[str, Any]:
    """Write one of FORMATS; return what `run.json` must say to read it back."""
    if name == "npy":
        write_bytes(path, in_bytes(np.save, result.disparity))
    elif name == "png16":
        return {"png16": _write_png16(path, result.disparity)}
    elif name == "depth":
        depth = result.depth_mm()
        assert depth is not None  # `prepare` has checked the camera
        write_pfm(path, depth)
    else:
        write_ply(path, result, centre)
    return {}


def _write_png16(path: Path, disparity: FloatArray) -> dict[str, Any]:
    """Spread the disparities over 1..65535; 0 is for those that are not finite."""
    finite = np.isfinite(disparity)
    low, high = (
        (float(disparity[finite].min()), float(disparity[finite].max()))
        if finite.any()
        else (0.0, 0.0)
    )
    scale = max(high - low, 1e-6) / 65534
    steps = np.rint((np.where(finite, disparity, low).astype(np.float64) - low) / scale)
    write_png(path, np.where(finite, steps + 1, 0).astype(np.uint16))
    return {
        "file": path.name,
        "scale": scale,
        "offset": low - scale,
        "meaning": "disparity [px] = value * scale + offset; value 0: not known",
    }


def in_bytes(save: Callable[..., None], *arrays: FloatArray, **named: FloatArray) -> bytes:
    """Bytes that one of NumPy's functions writes."""
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    return buffer.getvalue()


def _summary(result: DisparityMap) -> dict[str, Any]:
    finite = result.disparity[np.isfinite(result.disparity)]
    has_any = finite.size > 0
    return {
        "resolution": list(result.disparity.shape),
        "min_px": round(float(finite.min()), 6) if has_any else None,
        "max_px": round(float(finite.max()), 6) if has_any else None,
        "mean_px": round(float(finite.mean()), 6) if has_any else None,
        "mean_confidence": round(float(np.nan_to_num(result.confidence).mean()), 6),
        "camera": None if result.camera is None else asdict(result.camera),
    }


def write_run(path: Path, made_with: Provenance, details: dict[str, Any]) -> None:
    """Write `run.json`, or one like it: how something was made, and what it is."""
    known = {key: value for key, value in asdict(made_with).items() if value not in ({}, ())}
    write_json(path, shareable(known | details))


def _remove_previous(folder: Path) -> None:
    """Remove the files that an earlier run says it wrote here."""
    run = folder / RUN_FILE
    if not os.path.lexists(run):
        return
    try:
        earlier = read_run(run)["files"]
        names = {*earlier} if isinstance(earlier, dict) else set()
    except (OSError, KeyError):
        names = set()  # not ours: only the files of the same names are replaced
    run.unlink(missing_ok=True)
    for name in {*output_names(list(FORMATS)), VIEWER_FILE} & names:
        (folder / name).unlink(missing_ok=True)


def is_result(path: Path) -> bool:
    """Whether this is a folder with a finished result."""
    return is_regular(path / RUN_FILE) and is_regular(path / "disparity.pfm")


def read_result(folder: Path) -> DisparityMap:
    """Read disparity, confidence and how they were made; masks and passes are not kept in files."""
    path = folder / RUN_FILE
    run = read_run(path)
    names = {field.name for field in fields(Provenance)}
    known = {name: value for name, value in run.items() if name in names and value is not None}
    try:
        made_with = as_dataclass(Provenance, known)
        camera = _parse_camera(run.get("result"))
    except BadField as error:
        raise UnreadableFile(f"{path}: damaged ({error}). Estimate again.") from error
    disparity = read_pfm(folder / "disparity.pfm")
    confidence = _read_confidence(folder / "confidence.png", disparity.shape)
    return DisparityMap(disparity, confidence, camera=camera, made_with=made_with)


def read_run(path: Path) -> dict[str, Any]:
    """Read `run.json`, or one like it; what its fields hold is for the caller to check."""
    try:
        run = parse_json(read_small(path, MOST_TEXT))
    except (OSError, BadField) as error:
        raise UnreadableFile(f"{path}: not readable as JSON. Estimate again.") from error
    if not isinstance(run, dict):
        raise UnreadableFile(f"{path}: not what `estimate` writes. Estimate again.")
    return run


def _read_confidence(path: Path, shape: tuple[int, ...]) -> FloatArray:
    try:
        header = read_header(path)
        fits = (header.height, header.width, header.is_deep) == (*shape, False)
        stored = decode(path) if fits else None
    except UnreadableFile:
        stored = None
    if stored is None or stored.shape != shape or stored.dtype != np.uint8:
        raise UnreadableFile(
            f"{path}: expected an 8-bit picture of {shape[1]}x{shape[0]} px. Estimate again."
        )
    return np.asarray(stored, dtype=np.float32) / np.float32(255)


def _parse_camera(result: Any) -> Camera | None:
    known = result.get("camera") if isinstance(result, dict) else None
    if known is None:
        return None
    camera = as_dataclass(Camera, known)
    return as_camera([*asdict(camera).values()])
