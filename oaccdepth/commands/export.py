"""`oaccdepth export`: the network for one tile as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands.shared import Overwrite, print_message
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.files.atomic import check_file
from oaccdepth.options import EstimateOptions, parse_pair


@takes(estimating=(EstimateOptions, "weights"))
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE.onnx", help="File to write.")],
    tile: Annotated[
        int, typer.Option("--tile", metavar="PX", min=16, help="Side of a tile.")
    ] = 128,
    grid: Annotated[
        str, typer.Option("--grid", metavar="UxV", help="Number of views, 3x3 to 9x9.")
    ] = "9x9",
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", metavar="N", min=1, help="Passes. Default: as trained."),
    ] = None,
    overwrite: Overwrite = False,
    *,
    estimating: EstimateOptions,
) -> None:
    """Export the network for one tile as ONNX.

    Its input is `views` (1, U, V, TILE + 32, TILE + 32): grey in [0, 1] with a margin of 16 px,
    and -1 where there is no picture. Its outputs are `disparity` in px and `confidence`, both
    (1, TILE, TILE). Needs the extra 'onnx'.

    For example:
      oaccdepth export fast.onnx --tile 256
    """
    from oaccdepth.networks import checkpoint
    from oaccdepth.networks.onnx import export_onnx

    check_file(file, overwrite)
    network, _ = checkpoint.load(checkpoint.find_weights(estimating.weights))
    pair = parse_pair(grid, "--grid")
    export_onnx(network, file, tile=tile, grid=pair, iterations=iterations)
    print_message(f"{file}: {file.stat().st_size / 1e6:.1f} MB, tiles of {tile} px.")
