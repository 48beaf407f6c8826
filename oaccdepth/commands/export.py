"""`oaccdepth export`: the learnt parts of the network as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.files.atomic import check_file
from oaccdepth.options import EstimateOptions


@takes(estimating=(EstimateOptions, "weights"))
def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the files.")],
    tile: Annotated[
        int, typer.Option("--tile", metavar="PX", min=16, help="Width and height of a tile.")
    ] = 128,
    levels: Annotated[
        int,
        typer.Option(
            "--levels",
            metavar="N",
            min=1,
            help="Disparities that the first pass compares; must be even.",
        ),
    ] = 34,
    overwrite: shared.Overwrite = False,
    *,
    estimating: EstimateOptions,
) -> None:
    """Export the learnt parts of the network as ONNX.

    `first_pass.onnx` takes the evidence of all disparities, `refinement.onnx` that of the
    candidates of a later pass, `edges.onnx` what is known of pixels on edges. Gathering the
    evidence is not part of these files. Needs the extra 'onnx'.

    For example:
      oaccdepth export onnx --tile 256
    """
    from oaccdepth.networks import checkpoint
    from oaccdepth.networks.onnx import EDGES, FIRST, REFINEMENT, export_onnx

    for name in (FIRST, EDGES, REFINEMENT):
        check_file(folder / name, overwrite)
    network, _ = checkpoint.load(checkpoint.find_weights(estimating.weights))
    for path in export_onnx(network, folder, tile=tile, levels=levels):
        shared.print_message(f"{path}: {path.stat().st_size / 1e6:.1f} MB, tiles of {tile} px.")
