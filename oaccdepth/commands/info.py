"""`oaccdepth info`: what a light field is, and the time and memory that `estimate` needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from oaccdepth.commands import shared
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.errors import InvalidLightField
from oaccdepth.options import EstimateOptions, ReadOptions, with_voters

if TYPE_CHECKING:
    from oaccdepth.estimation.weights import LoadedWeights
    from oaccdepth.lightfield import LightField

BITS = {"uint8": 8, "uint16": 16, "float32": 32}
RANGE_SOURCES = {
    "file": "given by the files",
    "estimated": "estimated",
    "weights": "the whole range of the converted weights",
    "none": "a guess: nothing in the views matches (black, constant or only noise?)",
}


@takes(estimating=(EstimateOptions, "weights", "device"), reading=ReadOptions)
def info(
    path: shared.Input,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
    *,
    estimating: EstimateOptions,
    reading: ReadOptions,
) -> None:
    """Describe a light field, and the time and memory that `estimate` needs.

    For example:
      oaccdepth info scenes/town
    """
    from oaccdepth import readers
    from oaccdepth.estimation.weights import load_network

    shared.configure_logging(quiet, verbose)
    # Before the first progress line: if this fails, the error should be the only line.
    light_field = readers.read(path, reading)
    network = load_network(estimating.weights, estimating.device)
    with shared.progress_bar(quiet or as_json) as progress:
        progress("measuring", 0.0)
        facts = _describe(light_field)
        facts |= _plan(light_field, with_voters(estimating, reading), network)
    if as_json:
        shared.print_json(facts)
    else:
        for name, text in _lines(facts):
            shared.echo(f"{name:<14}{text}".rstrip())


def _describe(light_field: LightField) -> dict[str, Any]:
    """Facts from the light field itself."""
    from dataclasses import asdict

    return {
        "source": light_field.source,
        "format": light_field.format,
        "reason": light_field.reason,
        "grid": list(light_field.grid),
        "resolution": list(light_field.resolution),
        "channels": light_field.views.shape[-1],
        "bits": BITS[str(light_field.views.dtype)],
        "camera": asdict(light_field.camera) if light_field.camera else None,
        "missing_views": [list(place) for place in light_field.missing_views],
        "notes": list(light_field.notes),
    }


def _plan(
    light_field: LightField, options: EstimateOptions, network: LoadedWeights
) -> dict[str, Any]:
    """Disparity range, memory and time; or why `estimate` would fail."""
    from oaccdepth.estimation import forecast

    try:
        plan = forecast.plan(light_field, options, network=network)
    except InvalidLightField as error:  # the light field can still be described
        return {"disparity_range": None, "estimate": {"impossible": str(error)}}
    low, high = plan.coverage.disparity_range
    return {
        "disparity_range": {"min": low, "max": high, "from": plan.coverage.source},
        "estimate": {
            "seconds": plan.seconds,
            "memory_bytes": plan.memory_bytes,
            "weights": Path(options.weights).stem,
            "device": str(network.device),
        },
    }


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts as (name, text) for people."""
    (rows, columns), (height, width) = facts["grid"], facts["resolution"]
    kind = "float" if facts["bits"] == 32 else f"{facts['bits']} bit"
    colour = "colour" if facts["channels"] == 3 else "grey"
    missing = ", ".join(f"({u}, {v})" for u, v in facts["missing_views"])
    lines = [
        ("source", facts["source"]),
        ("format", f"{facts['format']}: {facts['reason']}"),
        ("grid", f"{rows}x{columns} views"),
        ("resolution", f"{width}x{height} px, {kind}, {colour}"),
        ("camera", _camera_text(facts["camera"])),
        ("disparity", _range_text(facts["disparity_range"])),
        (
            "missing",
            f"{shared.plural(len(facts['missing_views']), 'view')}: {missing}"
            if missing
            else "none",
        ),
        ("estimate", _plan_text(facts["estimate"])),
    ]
    return lines + [("note", note) for note in facts["notes"]]


def _camera_text(camera: dict[str, float] | None) -> str:
    if camera is None:
        return "unknown, so there is no depth in millimetres"
    focus = f"focus at {camera['focus_mm']:g} mm" if camera["focus_mm"] else "parallel"
    return (
        f"baseline {camera['baseline_mm']:g} mm, focal length {camera['focal_mm']:g} mm, "
        f"sensor {camera['sensor_mm']:g} mm, {focus}"
    )


def _range_text(searched: dict[str, Any] | None) -> str:
    if searched is None:
        return "not known"
    return f"{searched['min']:.1f} to {searched['max']:.1f} px, {RANGE_SOURCES[searched['from']]}"


def _plan_text(plan: dict[str, Any]) -> str:
    if "impossible" in plan:
        return f"not possible: {plan['impossible']}"
    memory = plan["memory_bytes"] / 2**30
    seconds = f"about {plan['seconds']:.0f} s" if plan["seconds"] >= 1 else "less than 1 s"
    return f"{seconds} and {memory:.1f} GiB on {plan['device']} with weights {plan['weights']}"
