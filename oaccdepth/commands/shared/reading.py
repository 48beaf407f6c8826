"""The options of every command that reads a light field, declared once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from oaccdepth.commands.shared import parse_pair
from oaccdepth.options import ReadOptions

PANEL = "Reading"


def _option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=PANEL, **settings)


def read_options(
    views: Annotated[
        str | None,
        _option("--views", metavar="UxV", help="Grid of the file, where it is not obvious."),
    ] = None,
    use_views: Annotated[
        str | None,
        _option("--use-views", metavar="UxV", help="How many central views to use, up to 9x9."),
    ] = None,
    stride: Annotated[
        int, _option("--stride", min=1, help="Use every n-th view, counted from the centre.")
    ] = ReadOptions.stride,
    transpose: Annotated[
        bool, _option("--transpose", help="Exchange camera rows and columns.")
    ] = ReadOptions.transpose,
    flip_u: Annotated[
        bool, _option("--flip-u", help="Reverse the camera rows.")
    ] = ReadOptions.flip_u,
    flip_v: Annotated[
        bool, _option("--flip-v", help="Reverse the camera columns.")
    ] = ReadOptions.flip_v,
    check_orientation: Annotated[
        bool,
        _option(
            "--check-orientation/--no-check-orientation",
            help="Detect and correct exchanged or reversed camera axes.",
        ),
    ] = ReadOptions.check_orientation,
    pattern: Annotated[
        str | None,
        _option(
            "--pattern",
            metavar="REGEX",
            help="Names of the views: two groups (row, column) or one (index).",
        ),
    ] = ReadOptions.pattern,
    axes: Annotated[
        str | None,
        _option("--axes", metavar="ORDER", help="Axes of an array file, such as uvhwc."),
    ] = ReadOptions.axes,
    gamma: Annotated[
        float | None,
        _option("--gamma", help="Display gamma for linear pictures. (default: measured)"),
    ] = ReadOptions.gamma,
    layout: Annotated[
        str | None,
        _option(
            "--layout",
            metavar="LAYOUT",
            help="How one picture holds the views: mosaic or lenslet. (default: measured)",
        ),
    ] = ReadOptions.layout,
    order: Annotated[
        str | None,
        _option(
            "--order",
            metavar="ORDER",
            help="Of numbered views or a mosaic: rows, columns, serpentine or serpentine-columns. "
            "(default: measured)",
        ),
    ] = ReadOptions.order,
    allow_missing: Annotated[
        bool,
        _option("--allow-missing", help="Mask views that are not there, instead of refusing."),
    ] = ReadOptions.allow_missing,
) -> ReadOptions:
    """How to read a light field, from what was typed."""
    return ReadOptions(
        views=parse_pair(views, "--views") if views else None,
        use_views=parse_pair(use_views, "--use-views") if use_views else None,
        stride=stride,
        transpose=transpose,
        flip_u=flip_u,
        flip_v=flip_v,
        check_orientation=check_orientation,
        pattern=pattern,
        axes=axes,
        gamma=gamma,
        layout=layout,
        order=order,
        allow_missing=allow_missing,
    )
