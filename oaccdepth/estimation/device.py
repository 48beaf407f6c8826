"""Devices to compute on: which one, and what it can do."""

from __future__ import annotations

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
