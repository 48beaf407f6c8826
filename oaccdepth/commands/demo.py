"""`oaccdepth demo`: try every feature on a rendered scene whose disparity is known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import EstimateOptions, WriteOptions
from oaccdepth.progress import share

if TYPE_CHECKING:
    from oaccdepth.disparity import DisparityMap
    from oaccdepth.rendering.scenes import RenderedScene

FOLDER = Path("oaccdepth-demo")
SCENE, MASKS = "still-life", "masks"  # sub-folders
RENDERED, ESTIMATED = 0.5, 0.92  # share of the work done after each


@takes(estimating=(EstimateOptions, "weights", "device"))
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Folder to write to.")
    ] = FOLDER,
    overwrite: shared.Overwrite = False,
    opened: shared.Open = False,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    estimating: EstimateOptions,
) -> None:
    """Try every feature on a rendered scene.

    Renders a small light field, estimates its disparity, compares it with the ground truth and
    writes every kind of output.

    For example:
      oaccdepth demo -o demo
    """
    from oaccdepth.batch.job import open_network
    from oaccdepth.pipeline import process
    from oaccdepth.rendering import still_life
    from oaccdepth.writers import results

    shared.configure_logging(quiet, verbose)
    writing = WriteOptions(formats=tuple(results.FORMATS), view=True)
    camera, pages = still_life.demo_rig().camera(), [results.VIEWER_FILE]
    with shared.progress_bar(quiet) as progress:
        # checked first, so that an error does not come after the work
        results.prepare(output, writing, camera=camera, overwrite=overwrite, beside=pages)
        estimate = open_network(estimating)
        progress("rendering", 0.0)
        scene = still_life.demo_scene(progress=share(progress, 0.0, RENDERED))
        # `view` and `figure` look for it next to the result
        light_field = replace(scene.light_field, source=SCENE)
        done = process(
            light_field,
            output,
            estimating=estimating,
            writing=writing,
            overwrite=overwrite,
            progress=share(progress, RENDERED, ESTIMATED),
            estimate=estimate,
            truth=scene.disparity,
            write_beside=partial(_write_beside, scene),
        )
    shared.print_notes(done.notes, quiet)
    scores = _score(scene, done.result)
    if as_json:
        shared.print_json({"output": str(output), **scores})
    elif not quiet:
        _print_result(scores, done.result, output)
    if opened:
        shared.open_page(output / results.VIEWER_FILE)


def _write_beside(scene: RenderedScene, folder: Path, result: DisparityMap) -> dict[str, str]:
    """Write the scene and the masks; `run.json` lists neither."""
    from oaccdepth.writers import masks, scenes

    assert result.masks is not None  # the page has them
    plain = scenes.with_8_bits(scene.light_field)
    scenes.write_light_field(plain, folder / SCENE, truth=scene.disparity)
    masks.write_masks({".": result.masks}, folder / MASKS, made_with=result.made_with)
    return {}


def _score(scene: RenderedScene, result: DisparityMap) -> dict[str, float]:
    """The benchmark's scores without its 15 px border, and the share of correct mask pixels."""
    from oaccdepth.evaluation import metrics

    assert result.masks is not None  # the page has them
    scored = metrics.scored_pixels(scene.disparity)
    agreeing = (result.masks > 0.5) == scene.visibility
    return {
        **metrics.main_scores(result.disparity, scene.disparity),
        "masks_right_percent": 100 * float(agreeing[:, :, scored].mean()),
        "seconds": result.made_with.seconds["total"],
    }


def _print_result(scores: dict[str, float], result: DisparityMap, output: Path) -> None:
    made = result.made_with
    height, width = result.disparity.shape
    shared.echo(
        f"9x9 views of {width}x{height} px, {scores['seconds']:.1f} s on {made.device} "
        f"with weights {made.weights}",
        "",
        f"MSE x100      {scores['mse_100']:8.3f}",
        f"BadPix 0.07   {scores['badpix_0070']:8.2f} %",
        f"masks correct {scores['masks_right_percent']:8.2f} %",
        "",
        "Look at",
        f"  {output / 'view.html'}  (in a browser)",
        f"  {output / 'disparity.png'}",
        f"  {output / MASKS / 'contact_sheet.png'}",
        f"  {output / 'points.ply'}",
        "",
        "Next",
        f"  oaccdepth info {output / SCENE}",
        f"  oaccdepth evaluate {output / 'disparity.pfm'} {output / SCENE}",
        "  oaccdepth estimate YOUR_LIGHT_FIELD -o OUT",
    )
