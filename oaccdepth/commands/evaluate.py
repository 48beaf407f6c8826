"""`oaccdepth evaluate`: scores against ground truth, beside those of published methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from oaccdepth.commands import shared
from oaccdepth.errors import InvalidOption
from oaccdepth.evaluation.metrics import BORDER
from oaccdepth.printable import printable

if TYPE_CHECKING:
    from oaccdepth.evaluation.scores import Evaluation

THIS_RESULT = "this result"
LEGEND = (
    "error.png: red is too near, blue too far, full colour at 0.2 px, black not finite; "
    "badpix.png: red is off by more than 0.07 px; grey: no ground truth"
)

Prediction = Annotated[
    Path,
    typer.Argument(
        metavar="PREDICTION",
        help="A PFM file; with --dataset, a folder of results.",
    ),
]
GroundTruth = Annotated[
    Path | None,
    typer.Argument(
        metavar="[GROUND_TRUTH]", help="A PFM file, or the scene's folder.", show_default=False
    ),
]
Dataset = Annotated[
    Path | None,
    typer.Option("--dataset", metavar="ROOT", help="Folder of scenes with ground truth."),
]
Border = Annotated[
    int, typer.Option("--border", metavar="PX", min=0, help="Pixels to ignore on each side.")
]
ErrorMaps = Annotated[
    Path | None,
    typer.Option(
        "--error-maps",
        metavar="DIR",
        help="Write pictures of the error to this folder, a subfolder for each scene.",
    ),
]


def evaluate(
    prediction: Prediction,
    ground_truth: GroundTruth = None,
    dataset: Dataset = None,
    border: Border = BORDER,
    error_maps: ErrorMaps = None,
    as_json: shared.AsJson = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV, with the published methods.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables as Markdown.")
    ] = False,
) -> None:
    """Score disparity maps against ground truth and published methods.

    The scores are those of the HCI benchmark: MSE x100, BadPix (the percentage of pixels that are
    off by more than 0.07, 0.03 or 0.01 px) and Q25 x100. Smaller is better, and a prediction that
    is not finite counts as bad. With --dataset, a map that cannot be scored does not stop the
    others; the exit code is 1.

    For example:
      oaccdepth evaluate results/town/disparity.pfm scenes/town
      oaccdepth evaluate results --dataset scenes --markdown
    """
    from oaccdepth.evaluation import scores

    shared.configure_logging(quiet=False, verbose=False)
    if as_json + as_csv + as_markdown > 1:
        raise InvalidOption("--json, --csv and --markdown: choose one of them.")
    if (ground_truth is None) == (dataset is None):
        raise InvalidOption(
            "evaluate: give either GROUND_TRUTH (a PFM file) or --dataset ROOT, and not both."
        )
    if dataset is not None:
        scored = scores.evaluate_folder(prediction, dataset, border, error_maps)
    else:
        assert ground_truth is not None  # one of the two is given, see above
        scored = scores.evaluate_files(prediction, ground_truth, border, error_maps)

    if as_json:
        shared.print_json(scores.as_json(scored, THIS_RESULT))
    elif as_csv:
        shared.echo(*scores.as_csv(scored, THIS_RESULT).removesuffix("\n").split("\n"))
    elif as_markdown:
        shared.echo(*scores.as_markdown(scored, THIS_RESULT).removesuffix("\n").split("\n"))
    else:
        _print_tables(scored)
    _print_what_is_missing(scored)
    if error_maps is not None:
        shared.print_message(f"error maps: {error_maps}: {LEGEND}")
    if scored.failed:
        raise typer.Exit(1)


def _print_tables(scored: Evaluation) -> None:
    from oaccdepth.evaluation.scores import show, tables

    console = shared.tables()
    for found in tables(scored, THIS_RESULT):
        table = Table(found.first)
        for title in found.titles.values():
            table.add_column(title, justify="right")
        for label, values in found.rows.items():
            cells = (show(values.get(name)) for name in found.titles)
            style = "bold green" if label == found.highlighted else ""
            table.add_row(escape(printable(label)), *cells, style=style)
        if found.heading:
            console.print(f"\n{found.heading}")
        console.print(table)


def _print_what_is_missing(scored: Evaluation) -> None:
    for score in scored.scores:
        if score.missing:
            count = shared.plural(score.missing, "pixel")
            shared.print_message(
                f"{score.scene}: {count} without a finite prediction, counted as bad."
            )
    if scored.without_prediction:
        shared.print_message(f"no prediction for: {', '.join(scored.without_prediction)}")
    if scored.failed:
        shared.print_message(f"not scored: {', '.join(scored.failed)}")
