"""Arrays -> the data blocks of a page, compressed without a visible loss. No files.

Disparities are kept exactly (float32). Views and masks become JPEG pictures; confidence and
evidence are rounded to a few steps. `notes`, which the page shows, lists what was reduced.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np

from oaccdepth.disparity import DisparityMap
from oaccdepth.lightfield import Array, FloatArray, LightField, as_float
from oaccdepth.writers.pictures import Picture

VIEW_QUALITIES = (92, 88, 84, 80, 75, 70, 60, 50)  # JPEG; the best that fits is taken
CENTRE_QUALITY = 95
MIN_VIEWS_BYTES = 3_000_000  # the views get at least this much, whatever else the page holds
MAX_VIEW_PIXELS = 24_000_000  # of all views together: 96 MB of graphics memory
MAX_MASKS_BYTES = 1_400_000
MASK_TRIALS = ((1, 80), (1, 65), (1, 50), (2, 70), (2, 50), (4, 50))  # step [px], JPEG quality
MAX_EVIDENCE_BYTES = 1_000_000
EVIDENCE_STEPS = 63
NOT_A_NUMBER = np.float32(-1e30)  # replaces NaN and infinity, which graphics cards may lose


@dataclass
class Payload:
    """The data of a page: blocks of bytes by name, and the JSON that describes them."""

    blocks: dict[str, bytes] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes that the blocks take in a page, encoded in base64."""
        return sum(-(-len(block) // 3) * 4 for block in self.blocks.values())


def pack_result(payload: Payload, result: DisparityMap, truth: FloatArray | None) -> None:
    """Disparity, confidence, passes, truth, masks and evidence."""
    height, width = result.disparity.shape
    payload.meta["size"] = [width, height]
    payload.blocks["disparity"] = pack_floats(result.disparity)
    payload.blocks["confidence"] = pack_bytes(_quantised(result.confidence, 255))
    payload.notes.append("Disparity is exact (float32); confidence has 256 steps.")
    payload.meta["passes"] = _pack_passes(payload, result)
    if truth is not None:
        payload.blocks["truth"] = pack_floats(truth)
    if result.masks is not None:
        _pack_masks(payload, result.masks)
    if result.evidence is not None and result.levels:
        _pack_evidence(payload, result.evidence, result.levels)


def _pack_passes(payload: Payload, result: DisparityMap) -> list[str]:
    """Names of the blocks of all passes; the last is usually the result itself, stored once."""
    names = []
    for number, one_pass in enumerate(result.passes, start=1):
        if np.array_equal(one_pass.disparity, result.disparity, equal_nan=True):
            names.append("disparity")
        else:
            names.append(f"pass-{number}")
            payload.blocks[names[-1]] = pack_floats(one_pass.disparity)
    return names


def _pack_masks(payload: Payload, masks: FloatArray) -> None:
    """One grey JPEG per view: deflating 81 masks takes a minute, and a little noise is fine."""
    rows, columns = masks.shape[:2]
    places = list(np.ndindex(rows, columns))
    for step, quality in MASK_TRIALS:
        pictures = [_smaller(_quantised(masks[place], 255)[..., None], step) for place in places]
        trial = [encode_jpeg(picture, quality) for picture in pictures[:: max(1, len(places) // 6)]]
        if sum(map(len, trial)) / len(trial) * len(places) <= MAX_MASKS_BYTES:
            break
    for (u, v), picture in zip(places, pictures, strict=True):
        payload.blocks[f"mask-{u}-{v}"] = encode_jpeg(picture, quality)
    height, width = pictures[0].shape[:2]
    payload.meta["masks"] = {"size": [width, height], "grid": [rows, columns]}
    payload.notes.append(
        f"Masks as JPEG of quality {quality}, {width} x {height} px: a value may be off by a few %."
    )


def _pack_evidence(payload: Payload, evidence: FloatArray, levels: tuple[float, ...]) -> None:
    steps = _quantised(evidence, EVIDENCE_STEPS)  # (d, h, w)
    for step in (1, 2, 4, 8):
        part = steps[:, ::step, ::step]
        block = pack_bytes(part)
        if len(block) <= MAX_EVIDENCE_BYTES:
            break
    payload.blocks["evidence"] = block
    payload.meta["evidence"] = {
        "size": [part.shape[2], part.shape[1]],
        "step": step,
        "largest": EVIDENCE_STEPS,
        "levels": [round(float(level), 6) for level in levels],
    }
    payload.notes.append(f"Evidence has {EVIDENCE_STEPS + 1} steps, {_every(step)}.")


def _every(step: int) -> str:
    return "every pixel" if step == 1 else f"one pixel in {step} x {step}"


def pack_views(payload: Payload, light_field: LightField, budget_bytes: int) -> None:
    """All views as JPEG within the budget (in base64), and the centre view in its full size."""
    rows, columns = light_field.grid
    height, width = light_field.resolution
    missing = set(light_field.missing_views)
    places = [(u, v) for u in range(rows) for v in range(columns) if (u, v) not in missing]
    payload.blocks["centre"] = encode_jpeg(_as_bytes(light_field.centre), CENTRE_QUALITY)
    budget = max(MIN_VIEWS_BYTES, budget_bytes) * 3 // 4 - len(payload.blocks["centre"])
    step = _scale_for(len(places) * height * width, MAX_VIEW_PIXELS)
    pictures, quality = _encode_views(light_field, places, step, budget)
    while sum(map(len, pictures)) > budget and min(height, width) // (2 * step) >= 64:
        step *= 2
        pictures, quality = _encode_views(light_field, places, step, budget)
    for (u, v), picture in zip(places, pictures, strict=True):
        payload.blocks[f"view-{u}-{v}"] = picture
    size = [max(1, width // step), max(1, height // step)]
    payload.meta["views"] = {"size": size, "places": places}
    payload.notes.append(
        f"{len(places)} views as JPEG of quality {quality}, {size[0]} x {size[1]} px"
        + (f" (made {step} times smaller)" if step > 1 else "")
        + "; the centre view in full size."
    )


def _scale_for(pixels: int, most: int) -> int:
    step = 1
    while pixels // step**2 > most:
        step *= 2
    return step


def _encode_views(
    light_field: LightField, places: list[tuple[int, int]], step: int, budget: int
) -> tuple[list[bytes], int]:
    """Every view as JPEG at the best quality that fits the budget, and that quality."""
    pictures = [_smaller(_as_bytes(light_field.views[u, v]), step) for u, v in places]
    for quality in VIEW_QUALITIES:
        # A few views predict the total size within a few per cent; encoding all takes seconds.
        trial = pictures[:: max(1, len(pictures) // 4)]
        mean = sum(len(encode_jpeg(picture, quality)) for picture in trial) / len(trial)
        if mean * len(pictures) * 1.03 <= budget:
            break
    return [encode_jpeg(picture, quality) for picture in pictures], quality


def _smaller(picture: Picture, step: int) -> Picture:
    if step == 1:
        return picture
    height, width = picture.shape[:2]
    size = max(1, width // step), max(1, height // step)
    smaller = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    # OpenCV drops the axis of a grey picture.
    return np.asarray(smaller, dtype=np.uint8).reshape(*smaller.shape[:2], -1)


def _as_bytes(picture: Array) -> Picture:
    """Stored values as uint8."""
    if picture.dtype == np.uint8:
        return picture.astype(np.uint8, copy=False)
    return _quantised(as_float(picture), 255)


def encode_jpeg(picture: Picture, quality: int) -> bytes:
    """(h, w, 1 or 3) uint8 as JPEG."""
    ordered = picture[..., ::-1] if picture.shape[2] == 3 else picture  # OpenCV wants BGR
    ok, data = cv2.imencode(
        ".jpg", np.ascontiguousarray(ordered), [cv2.IMWRITE_JPEG_QUALITY, quality]
    )
    assert ok, "OpenCV encodes any uint8 picture"
    return data.tobytes()


def pack_floats(values: FloatArray) -> bytes:
    """(h, w) float32, lossless: differences along the rows, bytes sorted by weight, deflated.

    Neighbours share their sign, exponent and upper bits, so their difference as integers is small
    and the upper bytes are nearly all zero: half the size of deflating the values themselves.
    """
    finite = np.where(np.isfinite(values), values, NOT_A_NUMBER).astype("<f4")
    bits = finite.view("<u4")
    steps = bits.copy()
    steps[:, 1:] -= bits[:, :-1]  # modulo 2**32
    planes = steps.view(np.uint8).reshape(*values.shape, 4).transpose(2, 0, 1)  # (4, h, w)
    return pack_bytes(planes)


def pack_bytes(values: Array) -> bytes:
    """Any uint8 array in C order, deflated (zlib)."""
    return zlib.compress(np.ascontiguousarray(values).tobytes(), 6)


def _quantised(values: FloatArray, largest: int) -> Picture:
    """[0, 1] as integers in 0..largest; NaN becomes 0."""
    clean = np.clip(np.nan_to_num(values), 0, 1)
    return np.asarray(np.rint(clean * np.float32(largest)), dtype=np.uint8)
