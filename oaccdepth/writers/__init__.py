"""DisparityMap or occlusion masks -> a folder of files, all of them or none.

`run.json` (of masks: `masks.json`) appears last: a folder that has it holds a finished result.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from oaccdepth.disparity import DisparityMap, Provenance
from oaccdepth.errors import InvalidOption
from oaccdepth.files.atomic import prepare_folder, staged, write_bytes, write_json
from oaccdepth.files.pfm import write_pfm
from oaccdepth.lightfield import Camera, FloatArray, LightField, as_float
from oaccdepth.options import Range
from oaccdepth.writers.pictures import (
    COLORMAPS,
    as_bytes,
    check_colormap,
    choose_range,
    colourise,
    contact_sheet,
    with_colour_bar,
    write_png,
)

RUN_FILE = "run.json"
VIEWER_FILE = "view.html"
MASKS_FILE = "masks.json"  # of another name, so that masks and disparity can share a folder
MASKS_GROUND = 128  # grey between the masks of a contact sheet: most masks are white
PASS_FOLDER = re.compile(r"\.|pass_\d+")  # names that `oaccdepth masks` gives

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
    *,
    formats: Sequence[str] = (),
    colormap: str = COLORMAPS[0],
    camera: Camera | None = None,
    overwrite: bool = False,
    beside: Sequence[str] = (),
) -> None:
    """Check all that `write` needs, before the long work starts; nothing is made yet.

    `beside` names further files that the caller will write there.

    Raises
    ------
    InvalidOption
        A format or colour map that does not exist, or depth without a camera.
    OutputExists, UnwritableOutput
        The folder already holds a result, or cannot be written to.
    """
    check_colormap(colormap)
    for name in formats:
        if name not in FORMATS:
            raise InvalidOption(f"--format {name}: no such format. Use {', '.join(FORMATS)}.")
    if "depth" in formats and camera is None:
        raise InvalidOption(
            "--format depth: the input says nothing about its camera, so disparity cannot become "
            "depth. Add a parameters.cfg with baseline, focal length and sensor size, or leave "
            "this format out."
        )
    prepare_folder(Path(folder), [*output_names(formats), *beside], overwrite)


def write(
    result: DisparityMap,
    folder: Path | str,
    *,
    formats: Sequence[str] = (),
    colormap: str = COLORMAPS[0],
    value_range: Range | None = None,
    overwrite: bool = False,
    centre: FloatArray | None = None,
    write_beside: Callable[[Path], Mapping[str, str]] = lambda folder: {},
) -> list[Path]:
    """Write a disparity map as PFM and pictures, with `run.json` beside it; return the paths.

    All files appear together, or none.

    Parameters
    ----------
    formats
        Further files: any of npy, png16, depth, ply.
    value_range
        Disparities [px] at the ends of the colour bar; None: what occurs.
    centre
        The centre view, (h, w, c) in [0, 1]: colours of the point cloud.
    write_beside
        Writes further files to the folder that it is given; returns their names and what they
        hold, for `run.json`.
    """
    folder = Path(folder)
    prepare(folder, formats=formats, colormap=colormap, camera=result.camera, overwrite=overwrite)
    with staged(folder, RUN_FILE, lambda: _remove_previous(folder)) as stage:
        beside = dict(write_beside(stage))
        details = _write_files(result, stage, formats, colormap, value_range, centre)
        about = _contents(formats) | beside
        details = {"result": _summary(result), "files": about, **details}
        _write_run(stage / RUN_FILE, result.made_with, details)
    return [folder / name for name in (*output_names(formats), *beside)]


def _contents(formats: Sequence[str]) -> dict[str, str]:
    """Names of the files of a result, and what they hold."""
    return FILES | dict(FORMATS[name] for name in FORMATS if name in formats)


def _write_files(
    result: DisparityMap,
    folder: Path,
    formats: Sequence[str],
    colormap: str,
    value_range: Range | None,
    centre: FloatArray | None,
) -> dict[str, Any]:
    """Write all but `run.json`; return what that must say for them to be read."""
    shown = value_range or choose_range(result.disparity)
    coloured = colourise(result.disparity, shown, colormap)
    write_pfm(folder / "disparity.pfm", result.disparity)
    write_png(folder / "disparity.png", with_colour_bar(coloured, shown, colormap))
    write_png(folder / "confidence.png", as_bytes(np.nan_to_num(result.confidence)))
    details: dict[str, Any] = {"colours": {"colormap": colormap, "range": list(shown)}}
    for name in FORMATS:
        if name in formats:
            details |= _write_format(name, folder / FORMATS[name][0], result, centre)
    return details


def _write_format(
    name: str, path: Path, result: DisparityMap, centre: FloatArray | None
) -> dict[str, Any]:
    """Write one of FORMATS; return what `run.json` must say for it to be read."""
    if name == "npy":
        write_bytes(path, _saved(np.save, result.disparity))
    elif name == "png16":
        return {"png16": _write_png16(path, result.disparity)}
    elif name == "depth":
        depth = result.depth_mm()
        assert depth is not None  # `prepare` has checked the camera
        write_pfm(path, depth)
    else:
        from oaccdepth.writers.point_cloud import write_ply

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


def mask_names(grid: tuple[int, int]) -> list[str]:
    """Names of the files that `write_masks` makes for one pass."""
    views = [f"mask_{u:02d}_{v:02d}.png" for u, v in np.ndindex(*grid)]
    return [*views, "contact_sheet.png", "visibility.png", "masks.npz"]


def prepare_masks(folder: Path | str, grid: tuple[int, int], *, overwrite: bool = False) -> None:
    """Check all that `write_masks` needs, before the long work starts; nothing is made yet.

    The number of passes is not known yet; a finished result is recognised by its last file.
    """
    prepare_folder(Path(folder), [*mask_names(grid), MASKS_FILE], overwrite)


def write_masks(
    passes: Mapping[str, FloatArray],
    folder: Path | str,
    *,
    made_with: Provenance | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write occlusion masks for inspection; return the paths.

    Parameters
    ----------
    passes
        Masks (u, v, h, w) in [0, 1] of each pass, under the name of the sub-folder that they go to;
        "." is the folder itself.
    """
    folder = Path(folder)
    grid = next(iter(passes.values())).shape[:2]
    prepare_masks(folder, (grid[0], grid[1]), overwrite=overwrite)
    summary = {
        name: {"mean_visibility": round(float(masks.mean()), 6)} for name, masks in passes.items()
    }
    about = {
        "mask_UU_VV.png": "mask of the view in row UU, column VV, 8 bit: 255 is seen, 0 is hidden",
        "contact_sheet.png": "the masks of all views in their grid",
        "visibility.png": "mean over the views, 8 bit",
        "masks.npz": "array 'masks', (u, v, h, w) float32 in [0, 1]",
    }
    details = {"grid": list(grid), "passes": summary, "files": about}
    with staged(folder, MASKS_FILE, lambda: _remove_previous_masks(folder)) as stage:
        for name, masks in passes.items():
            _write_pass(masks, stage / name)
        _write_run(stage / MASKS_FILE, made_with or Provenance(), details)
    names = mask_names((grid[0], grid[1]))
    return [*(folder / place / name for place in passes for name in names), folder / MASKS_FILE]


def _remove_previous_masks(folder: Path) -> None:
    """Remove the masks that an earlier run says it wrote here: it may have had more passes."""
    file = folder / MASKS_FILE
    if not file.exists():
        return
    try:
        earlier = json.loads(file.read_text(encoding="utf-8"))
        rows, columns = (min(int(size), 99) for size in earlier["grid"])
        places = [folder / name for name in earlier["passes"] if PASS_FOLDER.fullmatch(name)]
    except (OSError, ValueError, KeyError, TypeError):
        rows, columns, places = 0, 0, []  # not ours: only files of the same names are replaced
    file.unlink(missing_ok=True)
    for place in places:
        for name in mask_names((rows, columns)):
            (place / name).unlink(missing_ok=True)
        if place != folder:
            with suppress(OSError):  # it holds something else
                place.rmdir()


def _write_pass(masks: FloatArray, folder: Path) -> None:
    pictures = as_bytes(masks)  # (u, v, h, w)
    for u, v in np.ndindex(masks.shape[:2]):
        write_png(folder / f"mask_{u:02d}_{v:02d}.png", pictures[u, v])
    sheet = contact_sheet(pictures, ground=MASKS_GROUND)
    write_png(folder / "contact_sheet.png", sheet)
    write_png(folder / "visibility.png", as_bytes(masks.mean(axis=(0, 1))))
    masks = np.ascontiguousarray(masks, np.float32)
    write_bytes(folder / "masks.npz", _saved(np.savez, masks=masks))


def write_scene(
    light_field: LightField, folder: Path | str, truth: FloatArray | None = None
) -> list[Path]:
    """Write a light field as a scene of the HCI benchmark: 8-bit views, camera, ground truth.

    Files that are there are replaced. `truth` is the disparity of the centre view, (h, w) [px].
    """
    folder = Path(folder)
    names = []
    with staged(folder, "parameters.cfg") as stage:
        for index, (u, v) in enumerate(np.ndindex(*light_field.grid)):
            view = as_bytes(as_float(light_field.views[u, v]))
            names.append(f"input_Cam{index:03d}.png")
            write_png(stage / names[-1], view if view.shape[-1] == 3 else view[..., 0])
        if truth is not None:
            names.append("gt_disp_lowres.pfm")
            write_pfm(stage / names[-1], truth)
        if light_field.camera is not None:
            names.append("parameters.cfg")
            parameters = _parameters(light_field, light_field.camera, truth)
            write_bytes(stage / names[-1], parameters.encode())
    return [folder / name for name in names]


def _parameters(light_field: LightField, camera: Camera, truth: FloatArray | None) -> str:
    """What `parameters.cfg` of a scene says, as far as readers use it."""
    (rows, columns), (height, width) = light_field.grid, light_field.resolution
    lines = [
        "[intrinsics]",
        f"focal_length_mm = {camera.focal_mm}",
        f"image_resolution_x_px = {width}",
        f"image_resolution_y_px = {height}",
        f"sensor_size_mm = {camera.sensor_mm}",
        "",
        "[extrinsics]",
        f"num_cams_x = {columns}",
        f"num_cams_y = {rows}",
        f"baseline_mm = {camera.baseline_mm}",
        f"focus_distance_m = {camera.focus_mm / 1000}",
        "",
        "[meta]",
        f"scene = {light_field.source}",
    ]
    if truth is not None:
        lines.append(f"disp_min = {np.floor(truth.min() * 10) / 10:.1f}")
        lines.append(f"disp_max = {np.ceil(truth.max() * 10) / 10:.1f}")
    return "\n".join(lines) + "\n"


def _saved(save: Callable[..., None], *arrays: FloatArray, **named: FloatArray) -> bytes:
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


def _write_run(path: Path, made_with: Provenance, details: dict[str, Any]) -> None:
    known = {key: value for key, value in asdict(made_with).items() if value not in ({}, ())}
    write_json(path, _shareable(known | details))


def _shareable(value: Any) -> Any:
    """Leave the user's folders out: of every absolute path only the name stays."""
    if isinstance(value, dict):
        return {key: _shareable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shareable(item) for item in value]
    if isinstance(value, str) and ": " in value:  # a sentence
        return " ".join(_shareable(word) for word in value.split(" "))
    if isinstance(value, PurePath) or (isinstance(value, str) and PurePath(value).is_absolute()):
        return PurePath(value).name
    return value


def _remove_previous(folder: Path) -> None:
    """Remove what an earlier run says it wrote here, so that no file of it stays behind."""
    run = folder / RUN_FILE
    if not run.exists():
        return
    try:
        earlier = set(json.loads(run.read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        earlier = set()  # not ours: only the files of the same names are replaced
    run.unlink(missing_ok=True)
    for name in {*output_names(list(FORMATS)), VIEWER_FILE} & earlier:
        (folder / name).unlink(missing_ok=True)
