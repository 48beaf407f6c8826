"""`oaccdepth benchmark`: the time and memory that the networks need on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.options import EstimateOptions

if TYPE_CHECKING:
    from oaccdepth.benchmark import Benchmark

PRESETS = ("fast", "paper")


@takes(estimating=(EstimateOptions, "device"))
def benchmark(
    preset: Annotated[
        list[str] | None,
        typer.Option("--preset", metavar="NAME", help="fast or paper. Default: both."),
    ] = None,
    size: Annotated[
        int, typer.Option("--size", metavar="PX", min=32, help="Width and height of the views.")
    ] = 512,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    *,
    estimating: EstimateOptions,
) -> None:
    """Measure the time and memory of an estimate.

    All presets estimate the same random light field of 9x9 views in the same run, without reading
    or writing files. The paper's network takes minutes on a CPU: try --size 128 first.

    For example:
      oaccdepth benchmark --preset fast --size 256
    """
    from oaccdepth.benchmark import compare_cost_construction, run_benchmark

    presets = preset or list(PRESETS)
    with shared.progress_bar(quiet) as report:
        measured = run_benchmark(presets, size, estimating.device, report)
        construction = compare_cost_construction(min(size, 128), estimating.device)
    if as_json:
        shared.print_json(
            {"benchmarks": [asdict(one) for one in measured], "construction": construction}
        )
    else:
        show(measured, construction)


def show(measured: list[Benchmark], construction: dict[str, float]) -> None:
    """Print the tables."""
    console = shared.tables()
    for one in measured:
        rows, columns = one.grid
        console.print(
            f"{one.preset}: {rows}x{columns} views of {one.side}x{one.side} px, {one.device}, "
            f"{shared.plural(one.threads, 'thread')}, {one.peak_bytes / 2**20:,.0f} MiB, "
            f"{one.parameters:,} parameters, {one.macs / 1e9:,.0f} GMAC"
        )
        console.print(_stage_table(one))
    by_name = {one.preset: one.seconds for one in measured}
    if set(PRESETS) <= by_name.keys():
        ratio = by_name["paper"] / by_name["fast"]
        console.print(f"fast is {ratio:.1f} times faster than paper, in this run.")
    slower = construction["shift-and-concat"] / construction["cost constructor"]
    console.print(
        "Cost construction of the paper's network: "
        + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in construction.items())
        + f" ({slower:.1f} times as long)."
    )


def _stage_table(one: Benchmark) -> Table:
    table = Table("stage")
    table.add_column("seconds", justify="right")
    for name, seconds in one.stages.items():
        table.add_row(name, f"{seconds:.2f}")
    table.add_section()
    table.add_row("total", f"{one.seconds:.2f}")
    return table
