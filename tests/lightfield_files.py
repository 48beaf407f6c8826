"""A small rendered scene of known disparity, laid out in every format that the readers know."""

import io
import json
import struct
import zlib
from functools import lru_cache
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
from PIL import Image

from oaccdepth import readers
from oaccdepth.options import ReadOptions

SLOPE, OFFSET, NEAR = 0.012, -0.9, 1.2  # background disparity along x; foreground disparity [px]
GRID, SIZE = (5, 5), (60, 76)


def _texture(y, x, seed):
    """A smooth, aperiodic RGB texture in [0.1, 0.9], at any real position."""
    rng = np.random.default_rng(seed)
    total = np.zeros((*np.broadcast(y, x).shape, 3))
    for _ in range(14):
        angle, period = rng.uniform(0, 2 * np.pi), rng.uniform(5, 18)
        phase = rng.uniform(0, 2 * np.pi, 3)
        wave = 2 * np.pi / period * (np.cos(angle) * x + np.sin(angle) * y)
        total += np.sin(wave[..., None] + phase)
    return 0.5 + 0.4 * np.tanh(total / 3)


def _is_near(y, x, size):
    """An L-shaped foreground: no symmetry could hide a flipped axis."""
    height, width = size
    upright = (x > 0.2 * width) & (x < 0.45 * width) & (y > 0.15 * height) & (y < 0.85 * height)
    foot = (x > 0.2 * width) & (x < 0.8 * width) & (y > 0.6 * height) & (y < 0.85 * height)
    return upright | foot


def render(grid=GRID, size=SIZE):
    """Views (u, v, h, w, 3) uint8 in our convention, and the centre view's disparity (h, w)."""
    views, truth = _render(grid, size)
    return views.copy(), truth.copy()


@lru_cache(maxsize=8)
def _render(grid, size):
    y, x = np.mgrid[: size[0], : size[1]].astype(float)
    views = np.empty((*grid, *size, 3), dtype=np.uint8)
    for u, v in np.ndindex(*grid):
        du, dv = u - grid[0] // 2, v - grid[1] // 2
        # The pixel of the centre view that is seen at (y, x): p + d(p) * (du, dv) = (y, x) ...
        far_x = (x + OFFSET * dv) / (1 - SLOPE * dv)
        far_y = y + (OFFSET + SLOPE * far_x) * du
        near_y, near_x = y + NEAR * du, x + NEAR * dv
        near = _is_near(near_y, near_x, size)[..., None]
        colour = np.where(near, _texture(near_y, near_x, 1), _texture(far_y, far_x, 2))
        views[u, v] = np.rint(colour * 255)
    truth = np.where(_is_near(y, x, size), NEAR, OFFSET + SLOPE * x).astype(np.float32)
    return views, truth


def mismatch(views, disparity):
    """Mean difference between the centre view and its neighbours warped to it; 8-bit values."""
    rows, columns = views.shape[:2]
    centre = views[rows // 2, columns // 2].astype(np.float32)
    height, width = disparity.shape
    y, x = np.mgrid[:height, :width].astype(np.float32)
    total = []
    for du, dv in ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1)):
        view = views[rows // 2 + du, columns // 2 + dv].astype(np.float32)
        moved = cv2.remap(view, x - disparity * dv, y - disparity * du, cv2.INTER_LINEAR)
        moved = moved.reshape(centre.shape)
        total.append(np.abs(moved - centre)[6:-6, 6:-6].mean())
    return float(np.mean(total))


def is_oriented(views, truth):
    """Whether the known disparity explains the views much better than any wrong orientation."""
    right = mismatch(views, truth)
    wrong = [
        mismatch(views, -truth),
        mismatch(views[::-1], truth),
        mismatch(views[:, ::-1], truth),
        mismatch(views.swapaxes(0, 1), truth) if views.shape[0] == views.shape[1] else np.inf,
    ]
    # Swapped axes with a slanted background differ least.
    return right < 0.5 * min(wrong)


# Folders of pictures


def write_picture(path, view):
    """Write a view as PNG (or as the extension says): RGB(A) or grey, 8 or 16 bits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if view.ndim == 3 and view.shape[2] >= 3:
        view = view[..., [2, 1, 0, 3][: view.shape[2]]]
    assert cv2.imwrite(str(path), view)


def each(views):
    """Positions and views."""
    for u, v in np.ndindex(*views.shape[:2]):
        yield u, v, views[u, v]


def pairs(folder, views, name, base=0):
    """Row and column in the name: name.format(row, column)."""
    for u, v, view in each(views):
        write_picture(folder / name.format(u + base, v + base), view)


def numbered(folder, views, name, base=0):
    """A number in the name, row after row."""
    for u, v, view in each(views):
        write_picture(folder / name.format(u * views.shape[1] + v + base), view)


CFG = """[intrinsics]
focal_length_mm = 100.0
image_resolution_x_px = {width}
image_resolution_y_px = {height}
sensor_size_mm = 35.0
fstop = 100.0

[extrinsics]
num_cams_x = {columns}
num_cams_y = {rows}
baseline_mm = 50.0
focus_distance_m = 8.0
center_cam_x_m = 1.0

[meta]
scene = test
disp_min = -1.2
disp_max = 1.4
"""


def hci(folder, views, truth=None):
    """HCI benchmark scene with parameters.cfg (CRLF, as some copies have it)."""
    numbered(folder, views, "input_Cam{:03d}.png")
    rows, columns, height, width = views.shape[:4]
    text = CFG.format(rows=rows, columns=columns, height=height, width=width)
    (folder / "parameters.cfg").write_bytes(text.replace("\n", "\r\n").encode())
    write_picture(folder / "unused_blenderender_output.png", views[0, 0])
    if truth is not None:
        pfm(folder / "gt_disp_lowres.pfm", truth)


def pfm(path, values):
    """A hand-written PFM: bottom row first, little endian."""
    header = f"Pf\n{values.shape[1]} {values.shape[0]}\n-1\n".encode()
    path.write_bytes(header + values[::-1].astype("<f4").tobytes())


def gantry(folder, views, ending="_.png"):
    """Stanford gantry, stored with its columns from the right and its rows from the bottom."""
    rows, columns = views.shape[:2]
    rng = np.random.default_rng(5)
    for u, v, view in each(views):
        y, x = -380 + 3.7 * u + rng.uniform(-0.3, 0.3), 1103 + 3.8 * v + rng.uniform(-0.3, 0.3)
        name = f"out_{rows - 1 - u:02d}_{columns - 1 - v:02d}_{y:.6f}_{x:.6f}{ending}"
        write_picture(folder / name, view)


def serpentine_counter(folder, views):
    """IMG_0001_NNN_SS_TT.png: SS column, TT row, the counter goes down one column, up the next."""
    rows, columns = views.shape[:2]
    counter = 0
    for v in range(columns):
        for u in range(rows) if v % 2 == 0 else range(rows - 1, -1, -1):
            counter += 1
            write_picture(
                folder / f"IMG_0001_{counter:03d}_{v + 1:02d}_{u + 1:02d}.png", views[u, v]
            )


def urban(folder, views, truth):
    """UrbanLF: R_C.png beside labels and disparities of every view."""
    pairs(folder, views, "{}_{}.png", 1)
    for u, v, view in each(views):
        write_picture(folder / f"{u + 1}_{v + 1}_label.png", view)
        write_picture(folder / f"{u + 1}_{v + 1}_disparity.png", view)
        np.save(folder / f"{u + 1}_{v + 1}_disparity.npy", truth + (u - 2) + 10 * (v - 2))


def dlfd(folder, views, truth):
    """DLFD and SLFD: lf_R_C.png and disparity_R_C.npy."""
    pairs(folder, views, "lf_{}_{}.png", 1)
    for u, v, _ in each(views):
        np.save(folder / f"disparity_{u + 1}_{v + 1}.npy", truth + (u - 2) + 10 * (v - 2))


def sintel(folder, views, truth):
    """Sintel: a folder per view, with frames and their disparity."""
    for u, v, view in each(views):
        write_picture(folder / f"{u:02d}_{v:02d}" / "000.png", view)
        write_picture(folder / f"{u:02d}_{v:02d}" / "001.png", view[::-1])
        np.save(folder / f"{u:02d}_{v:02d}" / "000.npy", truth + (u - 2) + 10 * (v - 2))


# One picture


def mosaic(views, order="rows"):
    """All views side by side, as (U*h, V*w, c); every second column may run backwards."""
    if order == "serpentine-columns":
        views = views.copy()
        views[:, 1::2] = views[::-1, 1::2]
    if order == "serpentine":
        views = views.copy()
        views[1::2] = views[1::2, ::-1]
    rows, columns, height, width, channels = views.shape
    return views.transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, channels)


def lenslet(views):
    """All views as pixels behind lenses, as (h*U, w*V, c)."""
    rows, columns, height, width, channels = views.shape
    return views.transpose(2, 0, 3, 1, 4).reshape(rows * height, columns * width, channels)


# MATLAB


def matlab_73(path, variables, compression="gzip"):
    """MATLAB 7.3: 512 bytes of header, then HDF5 with the axes of every array reversed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in variables.items():
            file.create_dataset(name, data=values.T, chunks=True, compression=compression)
    text = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Nov 16 2026 HDF5 schema 1.00 ."
    header = text.ljust(116) + bytes(8) + struct.pack("<H", 0x0200) + b"IM"
    with path.open("r+b") as file:
        file.write(header.ljust(512, b"\0"))


def decoded(views, weight=None):
    """LFToolbox: linear uint16 [t, s, v, u, 4] with a weight in the last channel."""
    linear = ((views / 255.0) ** 2.2 * 0.5 * 65535).astype(np.uint16)
    if weight is None:
        weight = np.ones(views.shape[:4])
    channel = (weight * 65535).astype(np.uint16)[..., None]
    return np.concatenate([linear, channel], axis=-1)


def vignetted(grid=(15, 15), size=(24, 32), radius=6.2):
    """A light field of a Lytro camera: views outside a circle are black; and the truth."""
    views, truth = render(grid, size)
    u, v = np.ogrid[: grid[0], : grid[1]]
    centre = (grid[0] - 1) / 2, (grid[1] - 1) / 2
    distance = np.hypot(u - centre[0], v - centre[1])
    return (views * (distance < radius)[..., None, None, None]).astype(np.uint8), truth


# HDF5


def hci_old(path, views, truth):
    """HCI's old benchmark: columns reversed, depth instead of disparity."""
    step, focal, shift = 0.5, 300.0, 4.0
    depth = step * focal / (truth + shift)
    with h5py.File(path, "w") as file:
        file["LF"] = views[:, ::-1]
        file["GT_DEPTH"] = np.broadcast_to(depth, (*views.shape[:2], *depth.shape)).astype("f4")
        for name, value in {"dH": step, "dV": step, "focalLength": focal, "shift": shift}.items():
            file.attrs[name] = np.array([value])


def h5(path, arrays):
    """Plain datasets."""
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values


def basic_lfsr(path, views):
    """BasicLFSR: luminance of all views side by side, transposed, float32."""
    grey = mosaic(views).mean(axis=-1) / 255
    h5(path, {"Hr_SAI_y": grey.T.astype("f4"), "Lr_SAI_y": grey[::2, ::2].T.astype("f4")})


# Lytro containers


def lytro_container(path):
    """A raw Lytro picture with metadata only: LFP header, LFM and LFC sections."""

    def section(kind, data):
        head = b"\x89" + kind + b"\r\n\x1a\n" + struct.pack(">I", 0) + struct.pack(">I", len(data))
        return head + b"sha1-" + b"0" * 40 + bytes(35) + data + bytes(-len(data) % 16)

    frame = {"metadataRef": "sha1-" + "0" * 40, "imageRef": "sha1-" + "1" * 40}
    table = json.dumps({"picture": {"frameArray": [{"frame": frame}]}}).encode()
    metadata = json.dumps(
        {
            "camera": {"make": "Lytro, Inc.", "model": "ILLUM"},
            "image": {"width": 7728, "height": 5368, "iso": 80},
            "devices": {
                "clock": {"zuluTime": "2015-03-01T10:00:00.000Z"},
                "lens": {"focalLength": 0.0095, "fNumber": 2.0},
                "shutter": {"frameExposureDuration": 0.004},
            },
        }
    ).encode()
    head = b"\x89LFP\r\n\x1a\n" + struct.pack(">I", 1) + struct.pack(">I", 0)
    path.write_bytes(head + section(b"LFM", table) + section(b"LFC", metadata))


def png_bytes(view):
    """A view as the bytes of a PNG file."""
    file = io.BytesIO()
    Image.fromarray(view).save(file, "PNG")
    return file.getvalue()


def png_claiming(width, height, path: Path):
    """A PNG of a few bytes whose header claims a huge picture."""
    data = png_bytes(np.zeros((8, 8), dtype=np.uint8))
    body = b"IHDR" + struct.pack(">II", width, height) + data[24:29]
    fixed = data[:8] + data[8:12] + body + struct.pack(">I", zlib.crc32(body)) + data[33:]
    path.write_bytes(fixed)


def fails(error, path, message, **options):
    """Reading raises this error, with exactly this message after the path."""
    with pytest.raises(error) as caught:
        readers.read(path, ReadOptions(**options))
    assert str(caught.value) == message
    assert "\n" not in message
