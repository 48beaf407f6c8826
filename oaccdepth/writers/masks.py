"""Occlusion masks -> pictures and one NumPy file, for inspection.

`masks.json` appears last: a folder that has it holds all masks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from oaccdepth.disparity import Provenance
from oaccdepth.files.atomic import prepare_folder, staged, write_bytes
from oaccdepth.files.fields import BadField, as_type
from oaccdepth.lightfield import FloatArray
from oaccdepth.writers.pictures import as_bytes, contact_sheet, write_png
from oaccdepth.writers.results import in_bytes, read_run, write_run

MASKS_FILE = "masks.json"  # of another name, so that masks and disparity can share a folder
MASKS_GROUND = 128  # grey between the masks of a contact sheet: most masks are white
PASS_FOLDER = re.compile(r"\.|pass_\d+")  # names that `oaccdepth masks` gives


def mask_names(grid: tuple[int, int]) -> list[str]:
    """Names of the files that `write_masks` makes for one pass."""
    views = [f"mask_{u:02d}_{v:02d}.png" for u, v in np.ndindex(*grid)]
    return [*views, "contact_sheet.png", "visibility.png", "masks.npz"]


def prepare_masks(folder: Path | str, grid: tuple[int, int], *, overwrite: bool = False) -> None:
    """Check everything that `write_masks` needs, before the long work; create nothing.

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
        write_run(stage / MASKS_FILE, made_with or Provenance(), details)
    names = mask_names((grid[0], grid[1]))
    return [*(folder / place / name for place in passes for name in names), folder / MASKS_FILE]


def _remove_previous_masks(folder: Path) -> None:
    """Remove the masks that an earlier run says it wrote here: it may have had more passes."""
    file = folder / MASKS_FILE
    if not os.path.lexists(file):
        return
    try:
        earlier = read_run(file)
        rows, columns = as_type(earlier["grid"], tuple[int, int], (0, 99))
        passes = as_type(earlier["passes"], dict[str, Any])
        places = [folder / name for name in passes if PASS_FOLDER.fullmatch(name)]
    except (OSError, BadField, KeyError):
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
    write_bytes(folder / "masks.npz", in_bytes(np.savez, masks=masks))
