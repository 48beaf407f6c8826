"""The configuration in a weights file -> that of a network: every field of its type, in bounds.

Driven by the fields of the configuration's dataclass. A network that needs other bounds than those
below declares them beside its fields, as `BOUNDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TypeVar, get_type_hints

from oaccdepth.files.fields import BadField, Bounds, as_dataclass, parse_json

USUAL: Mapping[str, Bounds] = {
    "grid": (1, 9),  # views per axis
    "reach": (1, 64),  # px
    "iterations": (1, 64),
    "decay": (0, 1000),
}
BLOCKS: Bounds = (0, 64)  # of fields named ..._blocks, and the like: layers in a row
COUNT: Bounds = (0, 2048)  # of any other whole number: channels, levels, a radius
NUMBER: Bounds = (-1e6, 1e6)

T = TypeVar("T")


def parse_config(kind: type[T], text: str) -> T:
    """Make the configuration that a weights file describes; anything odd is a `BadField`.

    Nothing is built from it yet: the numbers in it say how much memory that takes.
    """
    try:
        config = as_dataclass(kind, parse_json(text), _bounds(kind))
    except (TypeError, ValueError) as error:  # also of the configuration's own checks
        raise BadField(str(error)) from error
    return config


def _bounds(kind: type) -> dict[str, Bounds]:
    own: Mapping[str, Bounds] = getattr(kind, "BOUNDS", {})
    hints = get_type_hints(kind)
    found = {}
    for field in fields(kind):
        is_blocks = field.name.endswith(("_blocks", "_layers", "depth"))
        is_channels = field.name.endswith("channels")  # without any, a network is nothing
        default = NUMBER if hints[field.name] is float else BLOCKS if is_blocks else COUNT
        default = (1, COUNT[1]) if is_channels else default
        found[field.name] = own.get(field.name, USUAL.get(field.name, default))
    return found
