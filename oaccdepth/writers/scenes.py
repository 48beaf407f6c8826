"""LightField -> files that the readers read back as the same light field. No disparity maps.

Grey or RGB, 8 or 16 bits, and validity as alpha; the pictures of floating-point light fields are
rounded to 16 bits, HDF5 and NumPy files keep them.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from oaccdepth.errors import InvalidOption, UnwritableOutput, one_of
from oaccdepth.files.atomic import check_file, prepare_folder, replacing, staged, write_bytes
from oaccdepth.files.limits import MOST_PICTURE_PIXELS
from oaccdepth.files.pfm import write_pfm
from oaccdepth.lightfield import Array, BoolArray, FloatArray, LightField, as_float
from oaccdepth.options import Range
from oaccdepth.readers import png
from oaccdepth.readers.hci import GROUND_TRUTH, VIEW
from oaccdepth.readers.parameters import FILE_NAME, format_parameters
from oaccdepth.writers.pictures import as_bytes

logger = logging.getLogger(__name__)

FORMATS = {
    "hci": "a folder with input_Cam000.png ... and parameters.cfg",
    "h5": "HDF5 with LF, such as scene.h5",
    "npz": "NumPy archive with views",
    "eslf": "one picture of lenslet pixels, such as scene_eslf.png",
    "mosaic": "one picture with all views side by side, such as scene.png",
}
MOST_VIEWS = 1000  # of an HCI scene: their names have three digits
ENDINGS = {"h5": (".h5", ".hdf5"), "npz": (".npz",), "eslf": (".png",), "mosaic": (".png",)}


def choose_format(path: Path) -> str:
    """Choose the format by the name of the output."""
    ending = path.suffix.lower()
    if path.is_dir() or not ending:
        return "hci"
    if ending in (".h5", ".hdf5"):
        return "h5"
    if ending == ".npz":
        return "npz"
    if ending == ".png":
        return "eslf" if re.fullmatch(r".*[._-]eslf", path.stem, re.IGNORECASE) else "mosaic"
    raise InvalidOption(
        f"{path}: no format is written as {ending}. "
        "Use .h5, .npz, _eslf.png or .png, or pass --to hci for a folder of that name."
    )


def write_light_field(
    light_field: LightField,
    path: Path | str,
    *,
    to: str | None = None,
    truth: FloatArray | None = None,
    overwrite: bool = False,
) -> str:
    """Write a light field; existing files are kept unless `overwrite` is given.

    Parameters
    ----------
    to
        One of FORMATS; chosen by the name of the output if None.
    truth
        Disparity of the centre view, (h, w) [px]; folders, HDF5 and NumPy files hold it.

    Returns
    -------
    str
        The format that was written.
    """
    path = Path(path)
    name = prepare(path, to, overwrite)
    _WRITERS[name](light_field, path, truth, overwrite)
    return name


def prepare(path: Path, to: str | None, overwrite: bool) -> str:
    """Check the output before the long work; return the format to write."""
    name = to or choose_format(path)
    if name not in FORMATS:
        raise InvalidOption(f"--to {name}: expected {one_of(FORMATS)}.")
    if name != "hci":  # whose files depend on the light field
        _check_ending(path, name)
        check_file(path, overwrite)
    return name


def _check_ending(path: Path, name: str) -> None:
    """Refuse a name by which the readers would not recognise the format."""
    endings = ENDINGS[name]
    if path.suffix.lower() not in endings:
        raise InvalidOption(
            f"{path}: {name} is written to a file that ends in {' or '.join(endings)}, "
            "or it could not be read back. Choose another name."
        )


def with_8_bits(light_field: LightField) -> LightField:
    """The same light field, its views rounded to 8 bits: small files for rendered scenes."""
    return replace(light_field, views=as_bytes(as_float(light_field.views)))


def _write_hci(
    light_field: LightField, folder: Path, truth: FloatArray | None, overwrite: bool
) -> None:
    rows, columns = light_field.grid
    names = [f"input_Cam{index:03d}.png" for index in range(rows * columns)]
    if len(names) > MOST_VIEWS:
        raise InvalidOption(
            f"{folder}: {rows} x {columns} views, at most {MOST_VIEWS} fit the names of an HCI "
            "scene. Write .h5 or .npz, or use fewer views."
        )
    prepare_folder(folder, [*names, FILE_NAME, GROUND_TRUTH], overwrite)
    pictures = _with_alpha(_as_integers(light_field, folder), light_field.valid)
    text = format_parameters(
        light_field.grid,
        light_field.resolution,
        light_field.views.shape[-1],
        light_field.camera,
        light_field.disparity_range or _range_of(truth),
        folder.resolve().name,
    )

    def clear() -> None:
        if overwrite and os.path.isdir(folder):
            _remove_other_views(folder, set(names), keep_truth=truth is not None)

    with staged(folder, FILE_NAME, clear) as stage:
        for name, picture in zip(names, pictures.reshape(-1, *pictures.shape[2:]), strict=True):
            write_bytes(stage / name, _encode(picture, folder / name))
        if truth is not None:
            write_pfm(stage / GROUND_TRUTH, truth)
        write_bytes(stage / FILE_NAME, text.encode())  # with it, the scene is whole


def _range_of(truth: FloatArray | None) -> Range | None:
    """The range of the ground truth, rounded to a tenth of a pixel as in the benchmark's scenes."""
    finite = truth[np.isfinite(truth)] if truth is not None else np.empty(0)
    if not finite.size:
        return None
    return math.floor(finite.min() * 10) / 10, math.ceil(finite.max() * 10) / 10


def _remove_other_views(folder: Path, names: set[str], keep_truth: bool) -> None:
    """Remove the views of an earlier grid that was larger, or stored differently."""
    for path in folder.iterdir():
        is_other = VIEW.fullmatch(path.name) and path.name not in names
        if is_other or path.name == FILE_NAME or (path.name == GROUND_TRUTH and not keep_truth):
            path.unlink()


def _write_picture(layout: str) -> Callable[[LightField, Path, FloatArray | None, bool], None]:
    def write(
        light_field: LightField, path: Path, truth: FloatArray | None, overwrite: bool
    ) -> None:
        pictures = _with_alpha(_as_integers(light_field, path), light_field.valid)
        axes = (2, 0, 3, 1, 4) if layout == "lenslet" else (0, 2, 1, 3, 4)
        rows, columns, height, width, channels = pictures.shape
        shape = rows * height, columns * width, channels
        if shape[0] * shape[1] > MOST_PICTURE_PIXELS:  # or it could not be read back
            raise InvalidOption(
                f"{path}: {shape[1]} x {shape[0]} pixels are too many for one picture. "
                "Write a folder, .h5 or .npz."
            )
        whole = pictures.transpose(axes).reshape(shape)
        text = json.dumps(_describe(light_field, layout))
        write_bytes(path, _with_text(_encode(whole, path), text))

    return write


def _describe(light_field: LightField, layout: str) -> dict[str, Any]:
    """What the picture itself does not tell a reader."""
    result: dict[str, Any] = {
        "layout": layout,
        "views": list(light_field.grid),
        "channels": light_field.views.shape[-1],
    }
    if light_field.camera is not None:
        result["camera"] = _camera_numbers(light_field)
    if light_field.disparity_range is not None:
        result["disparity_range"] = list(light_field.disparity_range)
    return result


def _camera_numbers(light_field: LightField) -> list[float]:
    camera = light_field.camera
    assert camera is not None  # asked only for light fields with a camera
    numbers = [camera.baseline_mm, camera.focal_mm, camera.sensor_mm, camera.focus_mm]
    is_cropped = camera.right_mm != 0 or camera.down_mm != 0
    return [*numbers, camera.right_mm, camera.down_mm] if is_cropped else numbers


def _as_integers(light_field: LightField, path: Path) -> Array:
    """Views (u, v, h, w, c) as pictures can hold them: 8 or 16 bits."""
    if light_field.views.dtype != np.float32:
        return light_field.views
    logger.warning(
        "warning: %s: floating-point values are rounded to 16 bits; .h5 and .npz keep them.", path
    )
    scaled = np.multiply(light_field.views, 65535, dtype=np.float32)
    return np.asarray(np.rint(scaled), dtype=np.uint16)


def _with_alpha(views: Array, valid: BoolArray | None) -> Array:
    """Views with an alpha channel, RGBA even if grey (OpenCV knows no grey with alpha)."""
    if valid is None:
        return views
    result = np.zeros((*views.shape[:4], 4), dtype=views.dtype)
    result[..., :3] = views
    largest = np.iinfo(views.dtype).max  # type: ignore[type-var]
    result[..., 3] = largest * (valid if valid.ndim == 4 else valid[:, :, None, None])
    return result


def _encode(picture: Array, path: Path) -> bytes:
    """(h, w, 1, 3 or 4) as the bytes of a PNG file."""
    if picture.shape[-1] >= 3:
        picture = picture[..., [2, 1, 0, 3][: picture.shape[-1]]]  # RGB(A) -> BGR(A)
    try:
        _, data = cv2.imencode(".png", np.ascontiguousarray(picture))
    except cv2.error as error:
        raise UnwritableOutput(f"{path}: cannot be encoded as PNG ({error.err}).") from error
    return data.tobytes()


def _with_text(data: bytes, text: str) -> bytes:
    """Put a tEXt chunk into a PNG, right after its header, where readers look for it."""
    content = b"tEXt" + png.KEYWORD.encode() + b"\0" + text.encode("ascii")
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    end_of_header = len(png.SIGNATURE) + 25
    return data[:end_of_header] + chunk + data[end_of_header:]


def _write_hdf5(
    light_field: LightField, path: Path, truth: FloatArray | None, overwrite: bool
) -> None:
    import h5py

    views = light_field.views
    # In memory first: HDF5 ends the process if the disk is full when it closes a file.
    with h5py.File(path.name, "w", driver="core", backing_store=False) as file:
        # One view per chunk: reading a few views reads only them.
        settings = {"chunks": (1, 1, *views.shape[2:]), "compression": "gzip", "shuffle": True}
        file.create_dataset("LF", data=views, **settings)
        if light_field.valid is not None:
            file.create_dataset("valid", data=light_field.valid, compression="gzip")
        if truth is not None:
            file["disp_lowres"] = truth
        if light_field.camera is not None:
            file.attrs["camera"] = _camera_numbers(light_field)
        if light_field.disparity_range is not None:
            file.attrs["disparity_range"] = light_field.disparity_range
        file.attrs["written_by"] = np.bytes_("oaccdepth")
        file.flush()
        image = file.id.get_file_image()
    write_bytes(path, image)


def _write_npz(
    light_field: LightField, path: Path, truth: FloatArray | None, overwrite: bool
) -> None:
    arrays: dict[str, Any] = {"views": light_field.views, "written_by_oaccdepth": np.array(1)}
    if light_field.valid is not None:
        arrays["valid"] = light_field.valid
    if truth is not None:
        arrays["disparity"] = truth
    if light_field.camera is not None:
        arrays["camera"] = np.array(_camera_numbers(light_field))
    if light_field.disparity_range is not None:
        arrays["disparity_range"] = np.array(light_field.disparity_range)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


_WRITERS: dict[str, Callable[[LightField, Path, FloatArray | None, bool], None]] = {
    "hci": _write_hci,
    "h5": _write_hdf5,
    "npz": _write_npz,
    "eslf": _write_picture("lenslet"),
    "mosaic": _write_picture("mosaic"),
}
