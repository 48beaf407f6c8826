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
from oaccdepth.files.fields import BadField, as_number, as_type, parse_json
from oaccdepth.files.regular import is_regular, open_regular
from oaccdepth.networks.configuration import parse_config
from oaccdepth.networks.fast import FastConfig, FastNet
from oaccdepth.networks.paper import OACCNet, OACCNetConfig

Network = FastNet | OACCNet
Metadata = dict[str, str]

BLOCK = 1 << 20  # bytes read at a time
FORMAT = "oaccdepth-1"
SUFFIX = ".safetensors"
VARIABLE = "OACCDEPTH_WEIGHTS"
MOST_BYTES = 4 << 30  # of a weights file
NUMBERS = ("steps", "hours")  # in the metadata
SCORES = ("mse_100", "badpix_0070")  # in the metadata, of each validation scene
# What may be raised when a network is built from a configuration that makes no sense.
MISFITS = (
    ArithmeticError,
    AssertionError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
KINDS = {"fast": (FastNet, FastConfig), "paper": (OACCNet, OACCNetConfig)}


def weights_folders() -> list[Path]:
    """Where bundled weights may be, in the order in which they are searched."""
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
        if not is_regular(path):
            raise UnreadableFile(f"{name}: no such weights file. {_bundled_names()}")
        return path
    for found in bundled():  # before a file of that name in the current folder
        if found.stem == name:
            return found
    if is_regular(path):
        return path
    raise UnreadableFile(f"--weights {name}: no bundled weights of this name. {_bundled_names()}")


def _bundled_names() -> str:
    names = ", ".join(path.stem for path in bundled())
    return f"Bundled: {names or 'none'}. Or give the path of a {SUFFIX} file."


def sha256(path: Path) -> str:
    """Hash of the whole file."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def create(kind: str, config: str = "{}") -> Network:
    """An untrained network from its kind and its configuration as JSON."""
    network_class, config_class = KINDS[kind]
    network: Network = network_class(parse_config(config_class, config))
    return network


def kind_of(network: Network) -> str:
    """The name under which `create` builds such a network."""
    return "fast" if isinstance(network, FastNet) else "paper"


def save(path: Path, network: Network, metadata: Mapping[str, str]) -> None:
    """Write the weights with all it takes to use them again.

    What the network is comes from the network itself, whatever the metadata of others say.
    """
    described = {
        **metadata,
        "format": FORMAT,
        "network": kind_of(network),
        "config": json.dumps(asdict(network.config)),
    }
    tensors = {name: value.detach().contiguous() for name, value in network.state_dict().items()}
    # as bytes: safetensors writes files through a temporary one of its own, that a kill leaves
    write_bytes(path, safetensors.torch.save(tensors, described))


def read_metadata(path: Path) -> Metadata:
    """What the weights say about themselves."""
    return _open(path)[0]


def load(path: Path) -> tuple[Network, Metadata]:
    """The network in evaluation mode, on the CPU, and its metadata; strict on names and shapes."""
    metadata, tensors = _open(path)
    try:
        with torch.device("meta"):  # takes no memory: the configuration may claim anything
            expected = create(metadata["network"], metadata["config"]).state_dict()
    except MISFITS as error:
        raise InvalidCheckpoint(
            f"{path}: its configuration does not describe a network of this version ({error}). "
            "Update oaccdepth, or use other weights."
        ) from error
    for name in sorted(expected.keys() | tensors.keys()):
        _check(path, name, expected.get(name), tensors.get(name))
    network = create(metadata["network"], metadata["config"])
    network.load_state_dict(tensors)
    return network.eval(), metadata


def read_scores(metadata: Metadata, name: str = "scores") -> dict[str, dict[str, float]]:
    """Scores of each validation scene that the metadata holds; none if it holds anything else."""
    try:
        scores = as_type(parse_json(metadata.get(name, "{}")), dict[str, dict[str, float]])
    except BadField:
        return {}
    return {scene: score for scene, score in scores.items() if {*SCORES} <= score.keys()}


def mean_scores(scores: dict[str, dict[str, float]]) -> tuple[float, float] | None:
    """MSE x100 and BadPix 0.07, the means over all scenes; None without any."""
    if not scores:
        return None
    mse, bad = (sum(one[name] for one in scores.values()) / len(scores) for name in SCORES)
    return mse, bad


def _open(path: Path) -> tuple[Metadata, dict[str, Tensor]]:
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                raise ValueError("too large")
        with safetensors.safe_open(path, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise UnreadableFile(f"{path}: no such weights file. {_bundled_names()}") from error
    except (OSError, ValueError, MemoryError, safetensors.SafetensorError) as error:
        raise InvalidCheckpoint(
            f"{path}: not a readable safetensors file, or damaged. Download or make it again; "
            "`oaccdepth weights convert` turns the authors' .pth.tar into one."
        ) from error
    if metadata.get("format") != FORMAT or metadata.get("network") not in KINDS:
        raise InvalidCheckpoint(
            f"{path}: not weights of oaccdepth (metadata 'format' is "
            f"{metadata.get('format', 'missing')[:40]}, expected {FORMAT}). "
            "`oaccdepth weights convert` turns the authors' .pth.tar into weights."
        )
    _check_numbers(path, metadata)
    return metadata, tensors


def _check_numbers(path: Path, metadata: Metadata) -> None:
    """Refuse metadata whose numbers are none; training goes on counting from them."""
    for name in NUMBERS:
        try:
            as_number(metadata.get(name, "0"), 0)
        except BadField as error:
            raise InvalidCheckpoint(
                f"{path}: damaged: its metadata says {name} = {metadata[name][:40]}."
            ) from error


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
