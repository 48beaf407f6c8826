"""`oaccdepth weights`: list, show and convert weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oaccdepth.commands import shared
from oaccdepth.commands.shared.help import Command, Group
from oaccdepth.files.atomic import check_file

File = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="Bundled weights, or a .safetensors file.")
]
Source = Annotated[
    Path, typer.Argument(metavar="CHECKPOINT", help="The authors' file, OACC-Net.pth.tar.")
]

Converted = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")]

LICENCE_WIDTH = 20  # characters shown in the list

weights = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="List, show and convert weights.\n\nFor example:\n  oaccdepth weights list",
)


@weights.command("list", cls=Command)
def list_weights(as_json: shared.AsJson = False) -> None:
    """List the bundled weights: licence and scores side by side.

    They are in the package, or in the folder that the variable OACCDEPTH_WEIGHTS names.

    For example:
      oaccdepth weights list
    """
    from oaccdepth.networks import checkpoint

    found = [_describe(path) for path in checkpoint.bundled()]
    if as_json:
        shared.print_json(found)
        return
    if not found:
        shared.echo("none")
        return
    rows = [_list_row(facts) for facts in found]
    titles = ("name", "network", "size", "licence", "benchmark", "stress")
    widths = [max(len(row[n]) for row in (titles, *rows)) for n in range(len(titles))]
    for row in (titles, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        shared.echo("  ".join(cells).rstrip())
    shared.echo(
        "",
        "Scores: mean MSE x100 / BadPix 0.07 of the HCI benchmark's scenes and of the stress",
        "scenes. Weights have the licence of the data that they were trained on.",
    )


def _list_row(facts: dict[str, Any]) -> tuple[str, ...]:
    """The cells of one line of the list."""
    from oaccdepth.networks import checkpoint

    metadata = facts["metadata"]
    means = []
    for key in ("scores", "stress"):
        scores = checkpoint.mean_scores(checkpoint.read_scores(metadata, key))
        means.append(f"{scores[0]:.2f} / {scores[1]:.2f}" if scores else "unknown")
    licence = metadata.get("licence", "").strip().split("\n")[0].split(":")[0] or "not stated"
    size = f"{facts['bytes'] / 1e6:.1f} MB"
    return (facts["name"], facts["network"], size, licence[:LICENCE_WIDTH], *means)


@weights.command("show", cls=Command)
def show_weights(file: File, as_json: shared.AsJson = False) -> None:
    """Show how weights were made, their size and their SHA-256.

    For example:
      oaccdepth weights show fast
    """
    from oaccdepth.networks import checkpoint

    facts = _describe(checkpoint.find_weights(file))
    if as_json:
        shared.print_json(facts)
        return
    facts |= facts.pop("metadata")
    facts["parameters"] = f"{facts['parameters']:,}"
    if "scores" in facts:
        facts["scores"] = _in_words(checkpoint.read_scores(facts))
    if "stress" in facts:
        facts["stress"] = _in_words(checkpoint.read_scores(facts, "stress"))
    width = max(len(name) for name in facts) + 2
    for name, text in facts.items():
        shared.echo(f"{name:<{width}}{text}")


def _in_words(scores: dict[str, dict[str, float]]) -> str:
    parts = [
        f"{scene} {score['mse_100']:.3f} / {score['badpix_0070']:.2f}"
        for scene, score in scores.items()
    ]
    return ", ".join(parts) + " (MSE x100 / BadPix 0.07)" if parts else "none"


@weights.command("card", cls=Command)
def print_card(file: File) -> None:
    """Print a model card as Markdown, as in weights/README.md.

    For example:
      oaccdepth weights card fast
    """
    from oaccdepth.networks import checkpoint

    facts = _describe(checkpoint.find_weights(file))
    metadata = facts["metadata"]
    shared.echo(f"- `{facts['name']}.safetensors`, {facts['bytes']:,} bytes")
    shared.echo(f"- SHA-256 `{facts['sha256']}`")
    shared.echo(f"- network `{facts['network']}`, {facts['parameters']:,} parameters")
    shared.echo(f"- {metadata.get('steps', '?')} steps in {metadata.get('hours', '?')} hours")
    shared.echo(f"- passes: {facts['passes']}")
    licence = " ".join(metadata.get("licence", "not stated").split())
    shared.echo(f"- licence: {licence}")
    _print_scores("scene", checkpoint.read_scores(metadata))
    if "stress" in metadata:
        _print_scores("stress scene", checkpoint.read_scores(metadata, "stress"))


def _print_scores(title: str, scores: dict[str, dict[str, float]]) -> None:
    """Print a table of scores and their mean."""
    from oaccdepth.networks import checkpoint

    shared.echo("", f"| {title} | MSE x100 | BadPix 0.07 |", "|---|---|---|")
    for scene, score in scores.items():
        shared.echo(f"| {scene} | {score['mse_100']:.3f} | {score['badpix_0070']:.2f} |")
    means = checkpoint.mean_scores(scores)
    if means:
        shared.echo(f"| **mean** | **{means[0]:.3f}** | **{means[1]:.2f}** |")


@weights.command("convert", cls=Command)
def convert_weights(source: Source, output: Converted, overwrite: shared.Overwrite = False) -> None:
    """Convert the authors' released checkpoint to a .safetensors file.

    Estimates with these weights reproduce the numbers of the authors' program, with its quirks.

    For example:
      oaccdepth weights convert OACC-Net.pth.tar -o authors.safetensors
    """
    from oaccdepth.networks import authors, checkpoint

    check_file(output, overwrite)
    authors.convert(source, output)
    shared.echo(f"{output}: sha256 {checkpoint.sha256(output)}")


def _describe(path: Path) -> dict[str, Any]:
    """What is known about a weights file; it is loaded to check that it is complete."""
    from oaccdepth.networks import checkpoint

    network, metadata = checkpoint.load(path)
    return {
        "name": path.stem,
        "file": str(path),
        "network": metadata.pop("network"),
        "passes": network.config.iterations,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "bytes": path.stat().st_size,
        "sha256": checkpoint.sha256(path),
        "metadata": {name: metadata[name] for name in sorted(metadata)},
    }
