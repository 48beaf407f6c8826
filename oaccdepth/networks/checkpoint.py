"""File <-> network: safetensors whose metadata holds the configuration. Never unpickles.

Weights are found by path, then below OACCDEPTH_WEIGHTS, then inside the package (a wheel carries
`weights/` there; a checkout has it beside the package). Never relative to the current directory
unless the user wrote such a path.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from oaccdepth.errors import InvalidCheckpoint, UnreadableFile
from oaccdepth.files.atomic import write_bytes
from oaccdepth.networks.fast import FastConfig, FastNet
from oaccdepth.networks.paper import OACCNet, OACCNetConfig

Network = FastNet | OACCNet
Metadata = dict[str, str]

FORMAT = "oaccdepth-1"
SUFFIX = ".safetensors"
VARIABLE = "OACCDEPTH_WEIGHTS"
KINDS = {"fast": (FastNet, FastConfig), "paper": (OACCNet, OACCNetConfig)}


def weights_folders() -> list[Path]:
    """Where bundled weights may lie, the first to be searched first."""
    package = Path(__file__).resolve().parents[1]
    folders = [Path(os.environ[VARIABLE])] if os.environ.get(VARIABLE) else []
    return [*folders, package / "weights", package.parent / "weights"]


def bundled() -> list[Path]:
    """Every weights file that has a name."""
    found: dict[str, Path] = {}
    for folder in weights_folders():
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            found.setdefault(path.stem, path)
    return list(found.values())


def find_weights(name: str) -> Path:
    """The file of bundled weights, or of a path."""
    path = Path(name)
    if path.suffix == SUFFIX or len(path.parts) > 1:
        if not path.is_file():
            raise UnreadableFile(f"{name}: no such weights file. {_bundled_names()}")
        return path
    for found in bundled():  # before any file of that name that lies where we happen to be
        if found.stem == name:
            return found
    if path.is_file():
        return path
    raise UnreadableFile(f"--weights {name}: no bundled weights of this name. {_bundled_names()}")


def _bundled_names() -> str:
    names = ", ".join(path.stem for path in bundled())
    return f"Bundled: {names or 'none'}. Or give the path of a {SUFFIX} file."


def sha256(path: Path) -> str:
    """Hash of the whole file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def create(kind: str, config: str = "{}") -> Network:
    """An untrained network from its kind and its configuration as JSON."""
    network_class, config_class = KINDS[kind]
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in json.loads(config).items()
    }
    network: Network = network_class(config_class(**values))
    return network


def kind_of(network: Network) -> str:
    """The name under which `create` builds such a network."""
    return "fast" if isinstance(network, FastNet) else "paper"


def save(path: Path, network: Network, metadata: Mapping[str, str]) -> None:
    """Write the weights with all it takes to use them again."""
    described = {
        "format": FORMAT,
        "network": kind_of(network),
        "config": json.dumps(asdict(network.config)),
        **metadata,
    }
    tensors = {name: value.detach().contiguous() for name, value in network.state_dict().items()}
    # as bytes: safetensors writes files through a temporary one of its own, that a kill leaves
    write_bytes(path, safetensors.torch.save(tensors, described))


def read_metadata(path: Path) -> Metadata:
    """What the weights say of themselves."""
    return _open(path)[0]


def load(path: Path) -> tuple[Network, Metadata]:
    """The network in evaluation mode, on the CPU, and its metadata; strict on names and shapes."""
    metadata, tensors = _open(path)
    try:
        network = create(metadata["network"], metadata["config"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InvalidCheckpoint(
            f"{path}: its configuration does not describe a network of this version ({error}). "
            "Update oaccdepth, or use other weights."
        ) from error
    expected = network.state_dict()
    for name in sorted(expected.keys() | tensors.keys()):
        _check(path, name, expected.get(name), tensors.get(name))
    network.load_state_dict(tensors)
    return network.eval(), metadata


def _open(path: Path) -> tuple[Metadata, dict[str, Tensor]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise UnreadableFile(f"{path}: no such weights file. {_bundled_names()}") from error
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise InvalidCheckpoint(
            f"{path}: not a readable safetensors file, or damaged. Download or make it again; "
            "`oaccdepth weights convert` turns the authors' .pth.tar into one."
        ) from error
    if metadata.get("format") != FORMAT or metadata.get("network") not in KINDS:
        raise InvalidCheckpoint(
            f"{path}: not weights of oaccdepth (metadata 'format' is "
            f"{metadata.get('format', 'missing')}, expected {FORMAT}). "
            "`oaccdepth weights convert` turns the authors' .pth.tar into weights."
        )
    return metadata, tensors


def _check(path: Path, name: str, expected: Tensor | None, found: Tensor | None) -> None:
    """One tensor of a file against the network's."""
    if expected is None or found is None:
        state = "is missing" if found is None else "is not part of the network"
        raise InvalidCheckpoint(
            f"{path}: weights do not fit: {name} {state}. Use weights made by this version."
        )
    if expected.shape != found.shape or expected.dtype != found.dtype:
        raise InvalidCheckpoint(
            f"{path}: weights do not fit: {name} is {tuple(found.shape)} {found.dtype}, "
            f"expected {tuple(expected.shape)} {expected.dtype}. Use weights made by this version."
        )
    if found.is_floating_point() and not bool(torch.isfinite(found).all()):
        raise InvalidCheckpoint(f"{path}: damaged: {name} holds values that are not finite.")
