"""Ground-truth disparity of the centre view, from files named as in the public datasets."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from oaccdepth.files.pfm import read_pfm
from oaccdepth.lightfield import FloatArray
from oaccdepth.readers import matlab
from oaccdepth.readers.arrays import map_array
from oaccdepth.readers.values import as_map

Read = Callable[[], FloatArray]


def find_beside_views(folder: Path, centre: str) -> Read | None:
    """Find the ground truth for the centre view's file; None if there is none.

    UrbanLF writes 5_5_disparity.npy, DLFD and SLFD disparity_5_5.npy or .mat, Sintel NAME.npy
    beside NAME.png, the Cambridge dataset disparity.npy, the HCI benchmark gt_disp_lowres.pfm.
    """
    stem = Path(centre).stem
    numbers = "_".join(re.findall(r"\d+", stem)[-2:])
    candidates = (
        f"{stem}_disparity.npy",
        f"disparity_{numbers}.npy",
        f"disparity_{numbers}.mat",
        f"{stem}.npy",
        "gt_disp_lowres.pfm",
        "disparity.npy",
    )
    for name in candidates:
        path = folder / name
        if path.is_file():
            return lambda: read_disparity(path)
    return None


def read_disparity(path: Path) -> FloatArray:
    """Read one disparity map, (h, w) [px], from a PFM, NPY or MATLAB file."""
    if path.suffix == ".pfm":
        return read_pfm(path)
    if path.suffix == ".mat":
        return as_map(matlab.read_map(path), path)
    return as_map(map_array(path), path)
