"""The authors' released checkpoint: their names to ours, and inference with their numerics.

Their program departs from the paper in ways that their weights rely on (docs/method.md). Those are
reproduced here, for converted weights, and nowhere else.
"""

from __future__ import annotations

import pickle
import struct
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oaccdepth.errors import InvalidCheckpoint, InvalidOption, UnreadableFile
from oaccdepth.files.limits import check_array
from oaccdepth.files.regular import is_regular, open_regular
from oaccdepth.networks import checkpoint
from oaccdepth.networks.paper import OACCNet, PassResult
from oaccdepth.progress import ReportProgress, ignore

COMPAT = "authors"  # in the metadata of converted weights
TILE = 128  # px; the central half of each side is kept
TILES_AT_ONCE = 4  # these share the statistics of the batch norms
EXPECTED = "expected the authors' OACC-Net checkpoint (OACC-Net.pth.tar, 9x9 views)"
COUNTER = "num_batches_tracked"  # of every norm; files of old PyTorch versions lack it

# What the unpickler has been seen to raise on cut and on random bytes.
READING_ERRORS = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    struct.error,
    zipfile.BadZipFile,
    pickle.UnpicklingError,
)


def convert(source: Path, target: Path) -> None:
    """Turn the authors' checkpoint into weights of ours, marked as needing their numerics."""
    if target.suffix != checkpoint.SUFFIX:
        raise InvalidOption(f"--output {target}: expected a name that ends in {checkpoint.SUFFIX}.")
    network = load_authors(source)
    origin = f"{source.name} of the authors of OACC-Net, sha256 {checkpoint.sha256(source)}"
    checkpoint.save(target, network, {"compat": COMPAT, "origin": origin})


def load_authors(path: Path) -> OACCNet:
    """Load the authors' checkpoint, `{"state_dict": ...}`; nothing in it is executed."""
    theirs = _read_state(path)
    network = OACCNet()
    ours = network.state_dict()
    names = {_their_name(name): name for name in ours}
    required = {name for name in names if not name.endswith(COUNTER)}
    _refuse(path, "lacks", required - theirs.keys())
    _refuse(path, "holds the unknown", theirs.keys() - names.keys())
    for name in required:
        expected, found = _their_shape(names[name], ours), tuple(theirs[name].shape)
        if found != expected:
            raise InvalidCheckpoint(f"{path}: {name} has shape {found}, {EXPECTED}: {expected}.")
        _check_values(path, name, theirs[name])
    with torch.no_grad():
        for name, tensor in theirs.items():
            if names[name].endswith(COUNTER):
                continue  # of batches in their training: used by nothing
            ours[names[name]].copy_(tensor.reshape(ours[names[name]].shape))
    return network.eval()


def _read_state(path: Path) -> Mapping[str, Tensor]:
    if not is_regular(path):
        raise UnreadableFile(f"{path}: no such file, {EXPECTED}.")
    try:
        _check_archive(path)
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of kinds of tensors that are refused below
            content = torch.load(file, map_location="cpu", weights_only=True)
    except READING_ERRORS as error:
        raise InvalidCheckpoint(
            f"{path}: not a PyTorch checkpoint, or a damaged one; {EXPECTED}. Download it again."
        ) from error
    state: Any = content.get("state_dict") if isinstance(content, Mapping) else None
    if not isinstance(state, Mapping) or not all(isinstance(t, Tensor) for t in state.values()):
        raise InvalidCheckpoint(f"{path}: has no tensors under 'state_dict', {EXPECTED}.")
    return state


def _check_values(path: Path, name: str, tensor: Tensor) -> None:
    """Refuse a tensor that is not a plain one of finite numbers."""
    is_plain = tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_meta
    if not is_plain or not tensor.is_floating_point():
        kind = "sparse" if tensor.layout != torch.strided else str(tensor.dtype)
        raise InvalidCheckpoint(f"{path}: {name} is {kind}, {EXPECTED}: plain floating point.")
    if not bool(torch.isfinite(tensor).all()):
        raise InvalidCheckpoint(f"{path}: damaged: {name} holds values that are not finite.")


def _check_archive(path: Path) -> None:
    """Refuse a checkpoint that unpacks to far more than it holds."""
    with open_regular(path) as file:
        if not zipfile.is_zipfile(file):
            return  # of an old PyTorch version: not compressed
        with zipfile.ZipFile(file) as archive:
            claimed = sum(info.file_size for info in archive.infolist())
    check_array(path, "the archive", claimed, path.stat().st_size)


def _refuse(path: Path, fault: str, names: set[str]) -> None:
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise InvalidCheckpoint(f"{path}: {fault} {min(names)}{more}, {EXPECTED}.")


def _convolutions() -> Iterator[tuple[str, int, str]]:
    """Their sequence, the convolution's number in it, and our `ConvNorm`; their norm comes next."""
    yield "init_feature", 0, "features.enter"
    for block in range(8):
        yield f"init_feature.{block + 2}.conv", 0, f"features.blocks.{block}.first"
        yield f"init_feature.{block + 2}.conv", 3, f"features.blocks.{block}.second"
    yield "init_feature", 10, "features.mix"
    yield "init_feature", 13, "features.narrow"
    yield "aggregate.sq", 0, "aggregation.squeeze"
    yield "aggregate.Conv1", 0, "aggregation.enter.0"
    yield "aggregate.Conv2", 0, "aggregation.enter.1"
    for block in range(2):
        theirs, ours = f"aggregate.Resb{block + 1}", f"aggregation.blocks.{block}"
        yield f"{theirs}.body", 0, f"{ours}.first"
        yield f"{theirs}.body", 3, f"{ours}.second"
        yield f"{theirs}.calayer.conv_du", 0, f"{ours}.attention.reduce"
        yield f"{theirs}.calayer.conv_du", 3, f"{ours}.attention.expand"
    yield "aggregate.Conv3", 0, "aggregation.leave"


# Our layers, and theirs.
LAYERS = {
    "features.leave": "lastconv",
    "cost": "build_cost.oacc.fuse",
    "aggregation.score": "aggregate.Conv4",
    **{f"{ours}.conv": f"{theirs}.{number}" for theirs, number, ours in _convolutions()},
    **{f"{ours}.norm": f"{theirs}.{number + 1}" for theirs, number, ours in _convolutions()},
}


def _their_name(ours: str) -> str:
    layer, _, kind = ours.rpartition(".")
    return f"{LAYERS[layer]}.{kind}"


def _their_shape(name: str, state: Mapping[str, Tensor]) -> tuple[int, ...]:
    shape = tuple(state[name].shape)
    if name == "cost.weight":  # (c, 1, u, v); theirs is 1x1 over u*v channels per group
        return shape[0], shape[2] * shape[3], 1, 1
    if name.startswith("features.") and len(shape) == 4:  # theirs are 1x3x3 over (view, y, x)
        return (*shape[:2], 1, *shape[2:])
    return shape


@torch.inference_mode()
def estimate_like_authors(
    network: OACCNet,
    grey: Tensor,
    iterations: int | None = None,
    validity: Tensor | None = None,
    *,
    tile: int = TILE,
    progress: ReportProgress = ignore,
) -> list[PassResult]:
    """Every pass over the whole picture, as the authors' program computes it.

    Grey and, if not all is there, validity come as (u, v, h, w), on any device; the result is on
    the same, with a batch axis of 1. Four tiles at a time go through the network, in row-major
    order, and the norms use the statistics of these four, so the order and the number matter.
    """
    h, w = grey.shape[2:]
    kept = tile // 2
    corners = [(y, x) for y in range(0, h, kept) for x in range(0, w, kept)]
    groups = [corners[i : i + TILES_AT_ONCE] for i in range(0, len(corners), TILES_AT_ONCE)]
    device = next(network.parameters()).device
    picture: list[PassResult] = []
    with batch_statistics(network):
        for number, group in enumerate(groups):
            views = _cut(grey, group, tile).to(device)
            present = None if validity is None else _cut(validity, group, tile).to(device)
            passes = _estimate_tiles(network, views, present, iterations)
            picture = picture or [_blank(result, grey) for result in passes]
            for whole, part in zip(picture, passes, strict=True):
                _paste(whole, part, group, kept)
            progress("estimating", (number + 1) / len(groups))
    return picture


@contextmanager
def batch_statistics(network: OACCNet) -> Iterator[None]:
    """Let the norms use the statistics of the batch at hand; those they hold stay untouched."""
    was_training = network.training
    network.eval()
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d | nn.BatchNorm3d)]
    for norm in norms:
        norm.train()
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
        network.train(was_training)


def _estimate_tiles(
    network: OACCNet, views: Tensor, validity: Tensor | None, iterations: int | None
) -> list[PassResult]:
    """Run every pass over one group of tiles (b, u, v, h, w)."""
    present = torch.ones_like(views) if validity is None else validity

    def find_mask(disparity: Tensor) -> Tensor:
        return unaligned_mask(views, disparity, network.config.decay) * present

    features = network.extract_features(views)
    return network.passes(features, present, validity, find_mask, iterations)


def unaligned_mask(views: Tensor, disparity: Tensor, decay: float) -> Tensor:
    """Occlusion masks (b, u, v, h, w) with the authors' warp, which is off by up to half a pixel.

    It samples at x * w / (w - 1) - 0.5 + shift, a grid for aligned corners used as an unaligned
    one, with zeros outside the frame. Views (b, u, v, h, w), disparity (b, h, w).
    """
    _, u, v, h, w = views.shape
    centre = views[:, u // 2, v // 2, None]  # (b, 1, h, w)
    rows = torch.linspace(0, 1, h, device=views.device)[:, None]
    columns = torch.linspace(0, 1, w, device=views.device)
    mask = torch.ones_like(views)
    for i in range(u):
        for j in range(v):
            if (i, j) == (u // 2, v // 2):
                continue
            y = rows - (i - u // 2) * disparity / h  # (b, h, w) in [0, 1]
            x = columns - (j - v // 2) * disparity / w
            where = 2 * torch.stack((x, y), -1) - 1
            warped = F.grid_sample(views[:, i, j, None], where, align_corners=False)
            mask[:, i, j] = (1 - (warped - centre).abs()).abs()[:, 0] ** decay
    return mask


def _mirrored(first: int, count: int, size: int, device: torch.device) -> Tensor:
    """Positions first ... first + count - 1, mirrored at both ends; the last pixel is repeated."""
    positions = torch.arange(first, first + count, device=device) % (2 * size)
    return torch.where(positions < size, positions, 2 * size - 1 - positions)


def _cut(values: Tensor, corners: list[tuple[int, int]], tile: int) -> Tensor:
    """Tiles (b, u, v, tile, tile) whose central parts begin at the corners, from (u, v, h, w)."""
    h, w = values.shape[2:]
    tiles = []
    for y, x in corners:
        rows = _mirrored(y - tile // 4, tile, h, values.device)
        columns = _mirrored(x - tile // 4, tile, w, values.device)
        tiles.append(values[:, :, rows[:, None], columns])
    return torch.stack(tiles)


def _tensors(result: PassResult) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return result.disparity, result.confidence, result.mask, result.probability


def _blank(part: PassResult, grey: Tensor) -> PassResult:
    """Make an empty result for the whole picture, where `grey` is."""
    h, w = grey.shape[2:]
    return PassResult(*(grey.new_empty(1, *t.shape[1:-2], h, w) for t in _tensors(part)))


def _paste(whole: PassResult, part: PassResult, corners: list[tuple[int, int]], kept: int) -> None:
    """Put the central part of each tile into its place."""
    for target, tiles in zip(_tensors(whole), _tensors(part), strict=True):
        for (y, x), tile in zip(corners, tiles, strict=True):
            place = target[0, ..., y : y + kept, x : x + kept]  # less than `kept` at the far ends
            h, w = place.shape[-2:]
            place.copy_(tile[..., kept // 2 : kept // 2 + h, kept // 2 : kept // 2 + w])
