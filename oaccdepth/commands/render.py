"""`oaccdepth render`: light fields with ground truth, rendered at random, for training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.errors import InvalidOption
from oaccdepth.options import RenderOptions, declarations

FREE = ("grid", "samples")  # options that also apply to the stress scenes
SECONDS_PER_SCENE = 10.0  # of the default size, on two cores


@takes(options=RenderOptions)
def render(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DATA", help="Folder for the scenes."),
    ],
    objects: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Meshes to put into the scenes: .obj with textures. Default: simple shapes.",
        ),
    ] = None,
    stress: Annotated[
        bool, typer.Option("--stress", help="Render the fixed stress scenes for validation.")
    ] = False,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    options: RenderOptions,
) -> None:
    """Render light fields with ground truth, to train on.

    Scenes are random, but the same for the same seed. A run that was stopped continues when it is
    started again: existing scenes are skipped.

    For example:
      oaccdepth render -o scenes --scenes 100
    """
    shared.configure_logging(quiet, verbose)
    if stress:
        _check_fixed(options, objects)
    expected = SECONDS_PER_SCENE * options.scenes
    with shared.progress_bar(quiet or as_json, expected) as progress:
        from oaccdepth.rendering import dataset
        from oaccdepth.rendering.objects import find_objects

        meshes = find_objects(objects) if objects is not None else []
        if stress:
            done = dataset.render_stress(output, options, progress)
        else:
            done = dataset.render_dataset(output, options, meshes, progress)
    if as_json:
        shared.print_json(
            {
                "output": str(output),
                "rendered": [path.name for path in done.rendered],
                "skipped": [path.name for path in done.skipped],
            }
        )
    elif not quiet:
        there = f", {len(done.skipped)} already there" if done.skipped else ""
        shared.echo(f"{output}: {shared.plural(len(done.rendered), 'scene')} rendered{there}")


def _check_fixed(options: RenderOptions, objects: Path | None) -> None:
    """Refuse options that would change the stress scenes; only cameras and samples may be set."""
    given = [
        flag
        for name, (flag, _) in declarations(RenderOptions).items()
        if getattr(options, name) != getattr(RenderOptions, name) and name not in FREE
    ]
    given += ["--objects"] if objects is not None else []
    if given:
        raise InvalidOption(f"--stress: these scenes are fixed. Leave out {', '.join(given)}.")
