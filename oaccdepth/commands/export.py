"""`oaccdepth export`: the network for one tile as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands.shared import Overwrite, messages
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.errors import OutputExists
from oaccdepth.options import EstimateOptions, parse_pair


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(export)


@takes(estimating=(EstimateOptions, "weights"))
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE.onnx", help="The file to write.")],
    tile: Annotated[int, typer.Option("--tile", min=16, help="Side of a tile in px.")] = 128,
    grid: Annotated[
        str, typer.Option("--grid", metavar="UxV", help="Views, 3x3 up to 9x9.")
    ] = "9x9",
    iterations: Annotated[
        int | None, typer.Option("--iterations", min=1, help="Passes; as trained if not given.")
    ] = None,
    overwrite: Overwrite = False,
    *,
    estimating: EstimateOptions,
) -> None:
    """Write the network for one tile as ONNX; needs the extra `onnx`.

    Input `views` (1, U, V, TILE + 32, TILE + 32): grey in [0, 1] with a margin of 16 px, -1 where
    there is no picture. Outputs `disparity` in px and `confidence`, (1, TILE, TILE).
    """
    from oaccdepth.networks import checkpoint
    from oaccdepth.networks.onnx import export_onnx

    if file.exists() and not overwrite:
        raise OutputExists(f"{file}: is already there. Pass --overwrite to replace it.")
    network, _ = checkpoint.load(checkpoint.find_weights(estimating.weights))
    pair = parse_pair(grid, "--grid")
    export_onnx(network, file, tile=tile, grid=pair, iterations=iterations)
    messages().print(f"{file}: {file.stat().st_size / 1e6:.1f} MB, tiles of {tile} px.")
