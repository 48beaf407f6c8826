"""Damage files of every kind and read them: `python tools/fuzz.py --cases 10000`.

A case is clean if it ends with a result or with one of our errors in one printable line, if no
library has written to stderr, and if it took neither too long nor too much memory. Case n of a seed
is always the same: `--seed S --first N --cases 1` repeats it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import cv2
import h5py
import numpy as np
import torch

from oaccdepth import readers
from oaccdepth.disparity import DisparityMap, Provenance
from oaccdepth.errors import OaccDepthError
from oaccdepth.files.pfm import write_pfm
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.looking.gallery import read_frames
from oaccdepth.looking.viewer import write_viewer
from oaccdepth.networks import authors, checkpoint
from oaccdepth.networks.paper import OACCNet, OACCNetConfig
from oaccdepth.options import ReadOptions
from oaccdepth.rendering import objects
from oaccdepth.training.scenes import read_valid_mask
from oaccdepth.writers import results
from oaccdepth.writers.scenes import write_light_field

CHUNK = 50  # cases in one process
Random = np.random.Generator

# Texts to put in place of a number, a name or a list.
NASTY = (
    *("1e999999999", "-1", "0", "nan", "inf", "1e308", "99999999999999999999", "0.5", "4"),
    *("", "null", "[]", "{}", "true", '"text"', "[1, 2]", "\\u001b[2J", "\x1b[2J", "\u202e"),
)


@dataclass(frozen=True)
class Target:
    """A file to damage, and how to read it afterwards."""

    name: str
    damaged: Path
    read: Callable[[], None]


# Files to damage.


def make_targets(folder: Path) -> list[Target]:
    """Write a small file of every kind that is read."""
    rng = np.random.default_rng(0)
    views = cv2.GaussianBlur(rng.random((12, 16, 27), np.float32), (5, 5), 1.5)
    views = (255 * views.reshape(12, 16, 3, 3, 3).transpose(2, 3, 0, 1, 4)).astype(np.uint8)
    light_field = LightField(
        views, np.eye(3, dtype=bool), camera=Camera(1.0, 2.0, 3.0, 4.0),
        disparity_range=(-1.0, 1.0),
    )  # fmt: skip
    targets = [*_scene_targets(folder, light_field), *_picture_targets(folder, views)]
    for name in ("mosaic.png", "a_eslf.png", "ours.npz", "ours.h5"):
        path = folder / name.replace(".", "_") / name
        path.parent.mkdir()
        write_light_field(light_field, path, truth=_truth())
        targets.append(_reading(f"ours, {name}", path, path))
    targets += _array_targets(folder, views)
    targets += [*_result_targets(folder), *_weights_targets(folder)]
    return [*targets, *_mesh_targets(folder), *_other_targets(folder, light_field)]


def _truth() -> np.ndarray:
    return np.linspace(-1, 1, 12 * 16, dtype=np.float32).reshape(12, 16)


def _reading(name: str, damaged: Path, path: Path) -> Target:
    """Read a light field in every possible way."""

    def read() -> None:
        for attempt in (
            lambda: readers.read(path),
            lambda: readers.read(path, ReadOptions(views=(3, 3), allow_missing=True)),
            lambda: readers.read_ground_truth(path),
            lambda: readers.find(path.parent),
        ):
            _survive(attempt)

    return Target(name, damaged, read)


def _survive(act: Callable[[], object]) -> None:
    try:
        act()
        OUTCOMES["answered"] += 1
    except OaccDepthError as error:
        assert str(error).isprintable(), repr(error)
        OUTCOMES["refused"] += 1


OUTCOMES: Counter[str] = Counter()


def _scene_targets(folder: Path, light_field: LightField) -> Iterator[Target]:
    scene = folder / "hci"
    write_light_field(light_field, scene, truth=_truth())
    for name in ("input_Cam004.png", "parameters.cfg", "gt_disp_lowres.pfm"):
        yield _reading(f"scene, {name}", scene / name, scene)


def _picture_targets(folder: Path, views: np.ndarray) -> Iterator[Target]:
    for ending, deep in (("png", True), ("tif", False), ("tif", True), ("jpg", False),
                         ("bmp", False), ("webp", False)):  # fmt: skip
        place = folder / f"{ending} {'16' if deep else '8'} bit"
        place.mkdir()
        for u, v in np.ndindex(3, 3):
            view = views[u, v].astype(np.uint16) * 257 if deep else views[u, v]
            assert cv2.imwrite(str(place / f"{u + 1}_{v + 1}.{ending}"), view)
        yield _reading(f"folder of {place.name}", place / f"2_2.{ending}", place)


def _array_targets(folder: Path, views: np.ndarray) -> Iterator[Target]:
    for name in ("a.npy", "old.h5", "a.mat", "packed.mat", "seven.mat"):
        path = folder / name.replace(".", "_") / name
        path.parent.mkdir()
        if name == "a.npy":
            np.save(path, views)
        elif name in ("old.h5", "seven.mat"):
            with h5py.File(path, "w", userblock_size=512 if name == "seven.mat" else 0) as file:
                file["LF"] = views if name == "old.h5" else views.transpose()
                file["GT_DEPTH"] = np.ones((3, 3, 12, 16), np.float32)
                file.attrs.update({"dH": 1.0, "focalLength": 2.0, "shift": 0.5})
        else:
            try:
                import scipy.io
            except ImportError:  # needed only by the tests
                continue
            content = {"LF": {"LF": views}} if name == "a.mat" else {"LF": views}
            scipy.io.savemat(path, content, do_compression=name == "packed.mat")
        yield _reading(f"array, {name}", path, path)


def _result_targets(folder: Path) -> Iterator[Target]:
    place = folder / "result"
    made_with = Provenance(version="0", seconds={"total": 1.0}, notes=("a note",))
    truth = _truth()
    results.write(
        DisparityMap(truth, np.ones_like(truth), camera=Camera(1, 2, 3, 4), made_with=made_with),
        place,
    )
    write_pfm(place / "disparity.pfm", truth)
    for name in ("run.json", "confidence.png", "disparity.pfm"):
        read = lambda: _survive(lambda: results.read_result(place))  # noqa: E731
        yield Target(f"result, {name}", place / name, read)


def _weights_targets(folder: Path) -> Iterator[Target]:
    torch.manual_seed(0)
    config = OACCNetConfig(
        feature_blocks=1, matching_channels=4, cost_channels=8, volume_channels=4
    )
    path = folder / "a.safetensors"
    checkpoint.save(path, OACCNet(config), {"steps": "3", "hours": "1", "scores": "{}"})
    yield Target("weights", path, lambda: _survive(lambda: checkpoint.load(path)))
    foreign = folder / "a.pth.tar"
    torch.save({"state_dict": {"lastconv.weight": torch.zeros(3)}}, foreign)
    yield Target("checkpoint", foreign, lambda: _survive(lambda: authors.load_authors(foreign)))


def _mesh_targets(folder: Path) -> Iterator[Target]:
    place = folder / "meshes"
    place.mkdir()
    corners = "v 0 0 2\nv 4 0 2\nv 4 2.5 2\nvt 0 0\nvt 1 0\nvt 1 1\n"
    (place / "a.obj").write_text(
        f"mtllib a.mtl\n{corners}usemtl paint\nf 1/1 2/2 3/3\nf -3 -2 -1\n"
    )
    (place / "a.mtl").write_text("newmtl paint\nKd 0.5 0.25 1\nmap_Kd a.png\n")
    arrays = {"vertices": np.eye(3, dtype=np.int16), "uv": np.eye(3, 2, dtype=np.uint16)}
    arrays |= dict.fromkeys(("faces", "uv_faces"), np.array([[0, 1, 2]], np.uint16))
    np.savez(place / "a.npz", **arrays)
    assert cv2.imwrite(str(place / "a.png"), np.full((8, 8, 3), 99, np.uint8))
    for damaged, mesh in (("a.obj", "a.obj"), ("a.mtl", "a.obj"), ("a.npz", "a.npz")):
        read = lambda path=place / mesh: _survive(lambda: objects.read_object(path))  # noqa: E731
        yield Target(f"mesh, {damaged}", place / damaged, read)


def _other_targets(folder: Path, light_field: LightField) -> Iterator[Target]:
    """What `train` reads besides the views, and the pages that `batch` indexes."""
    mask = folder / "mask" / "valid_mask.png"
    mask.parent.mkdir()
    assert cv2.imwrite(str(mask), np.eye(12, 16, dtype=np.uint8))
    yield Target(
        "valid mask", mask, lambda: _survive(lambda: read_valid_mask(mask.parent, (12, 16)))
    )
    page = folder / "view.html"
    write_viewer(page, light_field, DisparityMap(_truth(), np.ones_like(_truth())))
    yield Target("page", page, lambda: _survive(lambda: read_frames(page)))


# How to damage them.


def damage(data: bytes, random: Random) -> bytes:
    """Change a few bytes, words, lengths or values; most often near the beginning."""
    for _ in range(random.integers(1, 5)):
        if not data:
            break
        data = DAMAGES[random.integers(len(DAMAGES))](data, random)
    return data


def _place(data: bytes, random: Random) -> int:
    reach = min(len(data), 200) if random.random() < 0.5 else len(data)
    return int(random.integers(reach))


def _set_byte(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + bytes([random.integers(256)]) + data[at + 1 :]


def _set_word(data: bytes, random: Random) -> bytes:
    at, size = _place(data, random), int(random.choice([2, 4, 8]))
    value = int(random.choice([0, 1, 255, 2**16 - 1, 2**31 - 1, 2**32 - 1])) % 256**size
    word = value.to_bytes(size, "little" if random.random() < 0.5 else "big")
    return data[:at] + word + data[at + size :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: _place(data, random)]


def _remove(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + data[at + int(random.integers(1, 64)) :]


def _repeat(data: bytes, random: Random) -> bytes:
    at, length = _place(data, random), int(random.integers(1, 400))
    return data[: at + length] + data[at:]


def _exchange_value(data: bytes, random: Random) -> bytes:
    """Replace a number or a quoted text by a nasty one: in configurations, JSON, headers."""
    found = list(re.finditer(rb'-?\d+(\.\d+)?|"[^"]*"|true|false|null', data[:100_000]))
    if not found:
        return data
    match = found[random.integers(len(found))]
    text = str(NASTY[random.integers(len(NASTY))]).encode("utf-8", "surrogatepass")
    return data[: match.start()] + text + data[match.end() :]


DAMAGES = (_set_byte, _set_byte, _set_word, _cut, _remove, _repeat, _exchange_value)


# One case, and many.


@dataclass
class Summary:
    """How the cases went."""

    cases: int = 0
    failures: list[int] = field(default_factory=list)
    slowest: float = 0.0  # seconds of processor time
    largest: float = 0.0  # MiB that a process grew by
    outcomes: Counter[str] = field(default_factory=Counter)

    def fail(self, seed: int, number: int, fault: str) -> None:
        """Record a case that was not clean, and print it at once."""
        self.failures.append(number)
        print(f"\ncase {number} (--seed {seed} --first {number} --cases 1):\n{fault}", flush=True)


def run_case(targets: list[Target], seed: int, number: int) -> None:
    """Damage one file, read it, and restore it."""
    random = np.random.default_rng([seed, number])
    target = targets[int(random.integers(len(targets)))]
    data = target.damaged.read_bytes()
    try:
        target.damaged.write_bytes(damage(data, random))
        target.read()
    finally:
        target.damaged.write_bytes(data)


def _serve(targets: list[Target], args: argparse.Namespace, numbers: range, pipe: int) -> None:
    """Run some cases in this process; write one line of JSON for each."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"more than {args.seconds} s")

    signal.signal(signal.SIGALRM, too_long)
    with tempfile.TemporaryFile() as noise:
        os.dup2(noise.fileno(), 2)
        for number in numbers:
            line = _measure(targets, args, number, noise)
            os.write(pipe, json.dumps(line).encode() + b"\n")


def _measure(
    targets: list[Target], args: argparse.Namespace, number: int, noise: IO[bytes]
) -> list[object]:
    """Run one case: what went wrong, the time and memory that it took, the outcomes."""
    OUTCOMES.clear()
    noise.seek(0)
    noise.truncate()
    begun, fault = time.process_time(), ""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_REAL, args.seconds)
    try:
        run_case(targets, args.seed, number)
    except BaseException:
        fault = traceback.format_exc()
    signal.setitimer(signal.ITIMER_REAL, 0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    noise.seek(0)
    written = noise.read().decode(errors="replace")
    if not fault and written:
        fault = f"written to stderr: {written}"
    if not fault and grown > args.memory:
        fault = f"took {grown:.0f} MiB"
    return [number, fault[-3000:], time.process_time() - begun, grown, dict(OUTCOMES)]


def run_cases(args: argparse.Namespace, folder: Path) -> Summary:
    """Run all cases, some per process; if a process dies, its current case has failed."""
    targets = make_targets(folder)
    whole = {target.damaged: target.damaged.read_bytes() for target in targets}
    summary, number, end = Summary(), args.first, args.first + args.cases
    stop = time.monotonic() + 60 * args.minutes
    while number < end and time.monotonic() < stop:
        numbers = range(number, min(end, number + CHUNK))
        lines, status = _fork(targets, args, numbers)
        for case, fault, seconds, grown, outcomes in lines:
            summary.cases += 1
            summary.slowest = max(summary.slowest, seconds)
            summary.largest = max(summary.largest, grown)
            summary.outcomes.update(outcomes)
            if fault:
                summary.fail(args.seed, case, fault)
        number += len(lines)
        if len(lines) < len(numbers):  # the process died
            summary.cases += 1
            summary.fail(args.seed, number, f"the process ended with {status}")
            number += 1
            for path, data in whole.items():
                path.write_bytes(data)
        if number % 1000 < CHUNK:
            print(f"{number - args.first} cases, {len(summary.failures)} not clean", flush=True)
    return summary


def _fork(
    targets: list[Target], args: argparse.Namespace, numbers: range
) -> tuple[list[list], int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _serve(targets, args, numbers, writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = [json.loads(line) for line in pipe.read().splitlines()]
    return lines, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Parse, run, print; exit code 1 if a case was not clean."""
    logging.getLogger("oaccdepth").addHandler(logging.NullHandler())  # our own warnings are fine
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--minutes", type=float, default=600, help="stop after so long")
    parser.add_argument("--seconds", type=float, default=60, help="limit of one case")
    parser.add_argument("--memory", type=float, default=1024, help="limit of one case, MiB")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        summary = run_cases(args, Path(folder))
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(summary.outcomes.items()))
    print(
        f"seed {args.seed}: {summary.cases} cases, {len(summary.failures)} not clean; readings: "
        f"{outcomes}; slowest {summary.slowest:.2f} s of processor time, "
        f"largest growth {summary.largest:.0f} MiB"
    )
    sys.exit(1 if summary.failures else 0)


if __name__ == "__main__":
    main()
