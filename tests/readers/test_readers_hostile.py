"""Files made to hang, to fill the memory, to reach other files or to start other programs."""

import io
import os
import resource
import socket
import struct
import warnings
import zipfile
import zlib

import cv2
import lightfield_files as files
import numpy as np
import pytest
from PIL import Image
from trouble import run_child

from oaccdepth import readers
from oaccdepth.batch.job import fingerprint
from oaccdepth.errors import OaccDepthError, UnreadableFile
from oaccdepth.files.atomic import remove_leftovers
from oaccdepth.files.limits import COMPRESSION, FREE_BYTES, MOST_BYTES, allowed
from oaccdepth.files.regular import open_regular
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.options import ReadOptions
from oaccdepth.readers import matlab5, png
from oaccdepth.readers.decoding import decode, decode_jpeg

VIEWS, TRUTH = files.render((3, 3), (12, 16))
OURS = LightField(
    VIEWS, np.eye(3, dtype=bool), camera=Camera(1.0, 2.0, 3.0, 4.0), disparity_range=(-1.0, 1.0)
)


def make_special(kind, path):
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's whole path must be short
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path.name)
        finally:
            os.chdir(here)
    else:
        path.symlink_to("/dev/zero")


def try_everything(path):
    for attempt in (
        lambda: readers.read(path),
        lambda: readers.read(path, ReadOptions(views=(3, 3), pattern=r"(\d+)")),
        lambda: readers.read_ground_truth(path),
        lambda: readers.find(path),
        lambda: readers.find(path.parent),
        lambda: readers.find_unread(path.parent, []),
    ):
        try:
            attempt()
        except OaccDepthError as error:
            assert "\n" not in str(error)


NAMES = [
    "input_Cam004.png",
    "input_Cam004.tif",
    "parameters.cfg",
    "gt_disp_lowres.pfm",
    "disparity.npy",
    "lf.h5",
    "a.mat",
    "a.npz",
    "a.npy",
    "a_eslf.png",
    "a.lfp",
    "a_qs8x6a0.75.png",
]


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
@pytest.mark.parametrize("is_linked", [False, True])
def test_only_regular_files_are_opened(soon, tmp_path, kind, is_linked):
    """Named like a view, a container or parameters.cfg, even behind a link: reading never hangs."""
    for name in NAMES:
        scene = tmp_path / name.replace(".", "_") / "scene"
        files.hci(scene, VIEWS, TRUTH)
        (scene / name).unlink(missing_ok=True)
        make_special(kind, tmp_path / "special" if is_linked else scene / name)
        if is_linked:
            (scene / name).symlink_to(tmp_path / "special")
        try_everything(scene)
        try_everything(scene / name)
        if is_linked:
            (tmp_path / "special").unlink()


@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="needs Linux")
def test_files_of_the_system_are_not_waited_for(soon, tmp_path):
    """They claim to be regular files, but reading /proc/kmsg waits for the next message."""
    for name in ("a.png", "a.jpg", "a.tif", "a.h5", "a.mat", "a.npy", "a.npz", "a.pfm"):
        (tmp_path / name).symlink_to("/proc/kmsg")
        try_everything(tmp_path / name)
    (tmp_path / "a.png").unlink()
    (tmp_path / "a.png").symlink_to("/proc/version")
    with pytest.raises(UnreadableFile) as caught:
        open_regular(tmp_path / "a.png")
    assert str(caught.value) == (f"{tmp_path}/a.png: is a system file, expected a regular file.")


def test_an_empty_file_is_a_regular_one(tmp_path):
    (tmp_path / "a.png").touch()
    with open_regular(tmp_path / "a.png") as file:
        assert file.read() == b""


def test_a_pipe_is_named_as_such(soon, tmp_path):
    os.mkfifo(tmp_path / "view.png")
    with pytest.raises(UnreadableFile) as caught:
        decode(tmp_path / "view.png")
    assert str(caught.value) == (
        f"{tmp_path / 'view.png'}: is a named pipe, expected a regular file."
    )


@pytest.fixture
def deep(tmp_path):
    """1100 nested folders, with paths too long for the system; pytest itself cannot remove them."""
    here, top = os.getcwd(), tmp_path / "deep"
    top.mkdir()
    try:
        os.chdir(top)
        for _ in range(1100):
            os.mkdir("deep")
            os.chdir("deep")
        os.chdir(here)
        yield top
    finally:
        os.chdir(here)
        while (top / "deep").exists():
            if (top / "deep" / "deep").exists():
                os.rename(top / "deep" / "deep", top / "next")
            os.rmdir(top / "deep")
            if (top / "next").exists():
                os.rename(top / "next", top / "deep")


def test_deep_folders_and_loops_of_links(soon, deep):
    (deep / "loop").symlink_to("loop")
    (deep / "round").symlink_to(".")
    (deep / "gone.npy").symlink_to("nowhere")
    files.hci(deep / "scene", VIEWS, TRUTH)
    assert readers.find(deep) == [deep / "scene"]
    assert readers.find_unread(deep, [deep / "scene"]) == []
    try_everything(deep)
    remove_leftovers(deep)
    assert len(fingerprint(deep, deep / "out")) == 64


# Unwanted formats.


def test_pillow_decodes_documented_formats_only(tmp_path, monkeypatch):
    from PIL import EpsImagePlugin

    def started(*_, **__):
        raise AssertionError("Ghostscript")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", started)
    picture = Image.fromarray(VIEWS[0, 0])
    for kind in ("EPS", "ICO", "GIF", "PPM", "PCX", "TGA", "ICNS", "JPEG2000"):
        path = tmp_path / f"{kind}.png"
        picture.save(path, format=kind)
        with pytest.raises(UnreadableFile, match="damaged or not a picture"):
            decode(path)


@pytest.mark.parametrize("kind", ["JPEG", "MPO"])  # MPO: several JPEG pictures in one file
def test_a_jpeg_of_very_many_scans(tmp_path, kind):
    """Each scan covers the whole picture: 320 kB took minutes."""
    picture = Image.new("RGB", (64, 64))
    several = {"save_all": True, "append_images": [picture]} if kind == "MPO" else {}
    picture.save(tmp_path / "a.jpg", kind, progressive=True, **several)
    data = (tmp_path / "a.jpg").read_bytes()
    with Image.open(tmp_path / "a.jpg") as opened:
        assert opened.format == kind
    assert decode(tmp_path / "a.jpg").shape == (64, 64, 3)
    end = data.index(b"\xff\xd9")
    last = data[data.rfind(b"\xff\xda", 0, end) : end]
    data = data[:end] + 100 * last + data[end:]
    (tmp_path / "a.jpg").write_bytes(data)
    with pytest.raises(UnreadableFile, match="damaged or not a picture"):
        decode(tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="not a JPEG picture"):
        decode_jpeg(data)


def chunk(kind, content):
    data = struct.pack(">I", len(content)) + kind + content
    return data + struct.pack(">I", zlib.crc32(kind + content))


def small_png(*before, depth=8, rows=None):
    header = struct.pack(">IIBBBBB", 4, 3, depth, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(4 * depth // 8) for _ in range(3)) if rows is None else rows
    parts = [chunk(b"IHDR", header), *before, chunk(b"IDAT", zlib.compress(rows))]
    return png.SIGNATURE + b"".join(parts) + chunk(b"IEND", b"")


@pytest.mark.parametrize("depth", [8, 16])
def test_a_second_header_does_not_count(tmp_path, depth):
    large = struct.pack(">IIBBBBB", 30000, 30000, depth, 0, 0, 0, 0)
    (tmp_path / "a.png").write_bytes(small_png(chunk(b"IHDR", large), depth=depth))
    with pytest.raises(UnreadableFile, match="damaged or not a picture"):
        decode(tmp_path / "a.png")


NOISY = {
    "profile": small_png(chunk(b"iCCP", b"x\0\0" + zlib.compress(b"no profile")), depth=16),
    "gamma": small_png(chunk(b"gAMA", b"\0\0\0\0"), depth=16),
    "physical size": small_png(chunk(b"pHYs", b"abc"), depth=16),
    "unknown chunk": small_png(chunk(b"abcd", b"x"), depth=16),
    "filter": small_png(depth=16, rows=b"\x09" + bytes(26)),
    "too many rows": small_png(depth=16, rows=bytes(900)),
    "too few rows": small_png(depth=16, rows=bytes(9)),
    "no rows": small_png(depth=16, rows=b""),
    "more after the rows": small_png(depth=16).replace(
        chunk(b"IEND", b""), chunk(b"IDAT", b"more") + chunk(b"IEND", b"")
    ),
    "palette of 16 bits": small_png(depth=16).replace(
        chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 3, 16, 0, 0, 0, 0)),
        chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 3, 16, 3, 0, 0, 0)),
    ),
}


@pytest.mark.parametrize("name", NOISY)
def test_no_library_talks_to_the_terminal(tmp_path, capfd, name):
    (tmp_path / "a.png").write_bytes(NOISY[name])
    try:
        assert decode(tmp_path / "a.png").shape == (3, 4)
        assert name in ("profile", "gamma", "physical size", "unknown chunk")
    except UnreadableFile as error:
        assert str(error).endswith("damaged or not a picture. Copy or export it again.")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("size", [(1, 1), (2, 7), (5, 3), (20, 33)])
def test_interlaced_pictures_of_16_bits(tmp_path, size):
    """Every pass of Adam7, checked against OpenCV's own reading of the same rows."""
    height, width = size
    values = np.arange(height * width, dtype=np.uint16).reshape(size) * 257
    rows = b""
    for row, column, row_step, column_step in png.ADAM7:
        part = values[row::row_step, column::column_step]
        if part.size:
            rows += b"".join(b"\0" + line.astype(">u2").tobytes() for line in part)
    header = struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 1)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    (tmp_path / "a.png").write_bytes(png.SIGNATURE + b"".join(parts))
    assert np.array_equal(decode(tmp_path / "a.png"), values)


# Memory.


def test_one_budget():
    assert allowed(0) == allowed(1000) == FREE_BYTES
    assert allowed(10 << 20) == COMPRESSION * (10 << 20)
    assert allowed(1 << 40) == MOST_BYTES


def grown(act):
    """MiB by which the process grows during the call."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    act()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10


def assert_modest(path):
    def act():
        assert grown(lambda: try_everything(path)) < 120

    assert run_child(act) == 0


@pytest.mark.parametrize("kind, channels", [(np.float32, 4), (np.uint16, 4)])
def test_a_tiff_of_wide_numbers(small_budget, tmp_path, kind, channels):
    """The budget counts the bytes of the file's own type: 16 per pixel, not 6."""
    size = (2000, 2000, channels)
    deflate = [cv2.IMWRITE_TIFF_COMPRESSION, 8]
    assert cv2.imwrite(str(tmp_path / "a.tif"), np.zeros(size, kind), deflate)
    with pytest.raises(UnreadableFile, match=r"claims 2000 x 2000 pixels in \d+ bytes, too few"):
        decode(tmp_path / "a.tif")
    small = np.arange(12 * 16 * channels).reshape(12, 16, channels).astype(kind)
    assert cv2.imwrite(str(tmp_path / "a.tif"), small)
    assert np.array_equal(decode(tmp_path / "a.tif")[..., :3], small[..., 2::-1])


def test_a_picture_with_alpha(small_budget, tmp_path):
    Image.new("RGBA", (2700, 2700)).save(tmp_path / "a.webp", lossless=True)
    with pytest.raises(UnreadableFile, match=r"claims 2700 x 2700 pixels in \d+ bytes, too few"):
        decode(tmp_path / "a.webp")


def element(kind, content):
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def packed_matrix(head, zeros_after):
    """A compressed MATLAB variable: a struct's head, and then nothing but zeros."""
    packer = zlib.compressobj(1)
    size = len(head) + zeros_after
    parts = [packer.compress(struct.pack("<II", 14, min(size, 2**32 - 1)) + head)]
    parts += [packer.compress(bytes(1 << 20)) for _ in range(zeros_after >> 20)]
    content = b"".join(parts) + packer.flush()
    return struct.pack("<II", 15, len(content)) + content


STRUCT_HEAD = (
    element(6, struct.pack("<II", 2, 0)) + element(5, struct.pack("<ii", 1, 1)) + element(1, b"LF")
)


@pytest.mark.parametrize("count, size", [(1, 20), (1, 300), (12, 20)])
def test_a_matlab_struct_of_zeros(small_budget, tmp_path, count, size):
    """20 MiB fit into the budget, but not as 20 million field names; 12 such variables do not."""
    names = element(5, struct.pack("<i", 1)) + struct.pack("<II", 1, size << 20)
    variable = packed_matrix(STRUCT_HEAD + names, size << 20)
    start = b"MATLAB 5.0".ljust(124) + b"\0\1IM"
    (tmp_path / "a.mat").write_bytes(start + count * variable)
    assert_modest(tmp_path / "a.mat")


def test_a_matlab_array_of_very_many_axes(small_budget, tmp_path):
    head = element(6, struct.pack("<II", 6, 0)) + struct.pack("<II", 5, 20 << 20)
    start = b"MATLAB 5.0".ljust(124) + b"\0\1IM"
    (tmp_path / "a.mat").write_bytes(start + packed_matrix(head, 20 << 20))
    assert_modest(tmp_path / "a.mat")


@pytest.mark.parametrize("name", ["valid", "camera", "disparity_range", "disparity", "views"])
def test_members_of_our_archives_are_checked(small_budget, tmp_path, name):
    arrays = {"views": VIEWS, "written_by_oaccdepth": np.array(1), "disparity": TRUTH}
    path = tmp_path / "a.npz"
    np.savez(path, **{key: value for key, value in arrays.items() if key != name})
    header = io.BytesIO()
    shape = (3, 3, 1 << 15, 1 << 15) if name == "valid" else (1 << 15, 1 << 18)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": shape}
    )
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(f"{name}.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.getvalue())
        for _ in range(40):
            member.write(bytes(1 << 20))
    assert_modest(path)
    with pytest.raises(OaccDepthError):
        readers.read_ground_truth(path)


@pytest.mark.parametrize("second", ["views.npy", "views"])
def test_two_arrays_of_one_name(small_budget, tmp_path, second):
    """Otherwise the first would be checked, but the second read."""
    path = tmp_path / "a.npz"
    np.savez(path, views=VIEWS)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two equal names
        archive.writestr(second, npy_file(np.zeros((3, 3, 4096, 4096), np.uint8)))
    assert_modest(path)
    with pytest.raises(UnreadableFile, match="damaged or not a NumPy file"):
        readers.read(path)


def npy_file(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_that_numpy_does_not_write(small_budget, tmp_path, packing):
    """zipfile would unpack such a member all at once: 8 kB to 2 GB."""
    path = tmp_path / "a.npz"
    np.savez(path, views=VIEWS)
    with zipfile.ZipFile(path, "a", packing) as archive:
        archive.writestr("other.npy", npy_file(np.zeros(1 << 28, np.uint8)))
    assert_modest(path)
    with pytest.raises(UnreadableFile, match="damaged or not a NumPy file"):
        readers.read(path)


def test_a_header_that_never_ends(small_budget, tmp_path):
    path = tmp_path / "a.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("views.npy", "w", force_zip64=True) as member,
    ):
        member.write(b"\x93NUMPY\2\0" + struct.pack("<I", 2**31))
        for _ in range(150):
            member.write(b" " * (1 << 20))
    assert_modest(path)


# Endless names.


def test_a_matlab_file_of_very_many_fields(tmp_path):
    """A compressed struct of 900 fields takes 2 kB: 20 MB took minutes."""
    matrix = element(6, struct.pack("<II", 6, 0)) + element(5, struct.pack("<ii", 1, 1))
    field = element(14, matrix + element(1, b"") + element(9, bytes(8)))
    names = element(1, b"".join(b"%8d" % number for number in range(900)))
    fields = struct.pack("<HHi", 5, 4, 8) + names + 900 * field
    packed = zlib.compress(element(14, STRUCT_HEAD + fields))
    variable = struct.pack("<II", 15, len(packed)) + packed
    path, start = tmp_path / "a.mat", b"MATLAB 5.0".ljust(124) + b"\0\1IM"
    path.write_bytes(start + 11 * variable)
    assert len(matlab5.list_arrays(path)) == 9900
    path.write_bytes(start + 12 * variable)
    with pytest.raises(UnreadableFile, match="damaged or not a MATLAB file"):
        readers.read(path)
