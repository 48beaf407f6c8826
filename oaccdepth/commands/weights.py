"""`oaccdepth weights`: list, show and convert weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from oaccdepth.commands.shared import AsJson, Output, Overwrite
from oaccdepth.errors import OutputExists

File = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="Bundled weights, or a .safetensors file.")
]
Source = Annotated[
    Path, typer.Argument(metavar="CHECKPOINT", help="The authors' file, OACC-Net.pth.tar.")
]


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(no_args_is_help=True, help="List, show and convert weights.")
    group.command("list")(list_weights)
    group.command("show")(show_weights)
    group.command("card")(print_card)
    group.command("convert")(convert_weights)
    app.add_typer(group, name="weights")


def list_weights(as_json: AsJson = False) -> None:
    """List the weights that have a name.

    They lie in the folder that the variable OACCDEPTH_WEIGHTS names, or in the package.
    """
    from oaccdepth.networks import checkpoint

    found = [_describe(path) for path in checkpoint.bundled()]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for facts in found:
        size = f"{facts['parameters']:,} parameters, {facts['bytes'] / 1e6:.1f} MB"
        typer.echo(f"{facts['name']:<14}{facts['network']}, {size}, {facts['file']}")
    if not found:
        typer.echo("none")


def show_weights(file: File, as_json: AsJson = False) -> None:
    """Show what weights say of themselves, their size and their SHA-256."""
    from oaccdepth.networks import checkpoint

    facts = _describe(checkpoint.find_weights(file))
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    facts |= facts.pop("metadata")
    facts["parameters"] = f"{facts['parameters']:,}"
    if "scores" in facts:
        facts["scores"] = _in_words(json.loads(facts["scores"]))
    width = max(len(name) for name in facts) + 2
    for name, text in facts.items():
        typer.echo(f"{name:<{width}}{text}")


def _in_words(scores: dict[str, dict[str, float]]) -> str:
    parts = [
        f"{scene} {score['mse_100']:.3f} / {score['badpix_0070']:.2f}"
        for scene, score in scores.items()
    ]
    return ", ".join(parts) + " (MSE x100 / BadPix 0.07)" if parts else "none"


def print_card(file: File) -> None:
    """Print the facts of a model card as Markdown: weights/README.md holds them."""
    from oaccdepth.networks import checkpoint

    facts = _describe(checkpoint.find_weights(file))
    metadata = facts["metadata"]
    scores = json.loads(metadata.get("scores", "{}"))
    typer.echo(f"- `{facts['name']}.safetensors`, {facts['bytes']:,} bytes")
    typer.echo(f"- SHA-256 `{facts['sha256']}`")
    typer.echo(f"- network `{facts['network']}`, {facts['parameters']:,} parameters")
    typer.echo(f"- {metadata.get('steps', '?')} steps in {metadata.get('hours', '?')} hours")
    typer.echo(f"- passes: {json.loads(metadata['config'])['iterations']}")
    typer.echo("\n| scene | MSE x100 | BadPix 0.07 |\n|---|---|---|")
    for scene, score in scores.items():
        typer.echo(f"| {scene} | {score['mse_100']:.3f} | {score['badpix_0070']:.2f} |")
    if scores:
        means = [
            sum(score[name] for score in scores.values()) / len(scores)
            for name in ("mse_100", "badpix_0070")
        ]
        typer.echo(f"| **mean** | **{means[0]:.3f}** | **{means[1]:.2f}** |")


def convert_weights(source: Source, output: Output, overwrite: Overwrite = False) -> None:
    """Convert the authors' released checkpoint to a .safetensors file.

    Estimating with it reproduces the numbers of the authors' program, quirks included.
    """
    from oaccdepth.networks import authors, checkpoint

    if output.exists() and not overwrite:
        raise OutputExists(
            f"{output}: exists. Pass --overwrite to replace, or choose another --output."
        )
    authors.convert(source, output)
    typer.echo(f"{output}: sha256 {checkpoint.sha256(output)}")


def _describe(path: Path) -> dict[str, Any]:
    """What is known of a weights file; loading it shows that it is whole."""
    from oaccdepth.networks import checkpoint

    network, metadata = checkpoint.load(path)
    return {
        "name": path.stem,
        "file": str(path),
        "network": metadata.pop("network"),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "bytes": path.stat().st_size,
        "sha256": checkpoint.sha256(path),
        "metadata": {name: metadata[name] for name in sorted(metadata)},
    }
