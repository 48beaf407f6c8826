"""Devices to compute on: which one, what it can do, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from oaccdepth.errors import DeviceUnavailable, one_of
from oaccdepth.options import PRECISIONS

# By their names among the options.
DTYPES = dict(zip(PRECISIONS[1:], (torch.float32, torch.float16, torch.bfloat16), strict=True))


def choose_device(name: str) -> torch.device:
    """The device of this name; auto: the best there is."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind, _, number = name.partition(":")
    count = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }.get(kind, 0)
    if (number and not (kind == "cuda" and number.isdecimal())) or int(number or 0) >= count:
        there = ["cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]
        if torch.backends.mps.is_available():
            there.append("mps")
        raise DeviceUnavailable(f"--device {name}: not available. Use {one_of([*there, 'auto'])}.")
    return torch.device(name)


def half_is_quick() -> bool:
    """Whether this CPU multiplies numbers of 16 bits faster than those of 32."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


@dataclass
class Clock:
    """Seconds per stage; every reading waits for the device."""

    device: torch.device
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time until the block's work is really done."""
        start = time.perf_counter()
        yield
        synchronize(self.device)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def empty_cache(device: torch.device) -> None:
    """Give back what the device's allocator holds in reserve."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
