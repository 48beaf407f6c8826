"""Mutated headers, sizes and names: every reader answers with one of our errors, and soon."""

import struct
import time
from pathlib import Path

import lightfield_files as files
import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from oaccdepth import readers
from oaccdepth.errors import OaccDepthError
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.options import ReadOptions
from oaccdepth.readers.names import parse_names
from oaccdepth.writers.scenes import write_light_field

VIEWS, TRUTH = files.render((3, 3), (12, 16))
OURS = LightField(VIEWS, valid=np.eye(3, dtype=bool), camera=Camera(1.0, 2.0, 3.0, 4.0))


def scene(name):
    """An HCI scene in which one file is to be damaged."""

    def write(folder):
        files.hci(folder, VIEWS, TRUTH)
        return folder / name

    return write


def one_file(name, write):
    def write_in(folder):
        folder.mkdir(parents=True)
        write(folder / name)
        return folder / name

    return write_in


def pictures(name, dtype=np.uint8):
    def write(folder):
        files.pairs(folder, VIEWS.astype(dtype) * (257 if dtype is np.uint16 else 1), name)
        return folder / name.format(1, 1)

    return write


# What to write, which file to damage, what to read (the file itself, or its folder).
TARGETS = {
    "hci view": (scene("input_Cam004.png"), "folder"),
    "parameters": (scene("parameters.cfg"), "folder"),
    "ground truth": (scene("gt_disp_lowres.pfm"), "folder"),
    "16-bit png": (pictures("{}_{}.png", np.uint16), "folder"),
    "tiff": (pictures("{}_{}.tif"), "folder"),
    "jpeg": (pictures("{}_{}.jpg"), "folder"),
    "bmp": (pictures("{}_{}.bmp"), "folder"),
    "webp": (pictures("{}_{}.webp"), "folder"),
    "our mosaic": (one_file("a.png", lambda p: write_light_field(OURS, p)), "file"),
    "our eslf": (one_file("a_eslf.png", lambda p: write_light_field(OURS, p)), "file"),
    "our npz": (one_file("a.npz", lambda p: write_light_field(OURS, p)), "file"),
    "npy": (one_file("a.npy", lambda p: np.save(p, VIEWS)), "file"),
    "mat 5": (one_file("a.mat", lambda p: scipy.io.savemat(p, {"LF": VIEWS})), "file"),
    "mat 5, compressed": (
        one_file("a.mat", lambda p: scipy.io.savemat(p, {"LF": VIEWS}, do_compression=True)),
        "file",
    ),
    "mat 5, struct": (
        one_file("a.mat", lambda p: scipy.io.savemat(p, {"LF": {"LF": VIEWS}})),
        "file",
    ),
    "lytro": (one_file("a.lfp", files.lytro_container), "file"),
    "our h5": (one_file("a.h5", lambda p: write_light_field(OURS, p)), "file"),
    "hci old": (one_file("lf.h5", lambda p: files.hci_old(p, VIEWS, TRUTH)), "file"),
    "mat 7.3": (one_file("a.mat", lambda p: files.matlab_73(p, {"LF": VIEWS})), "file"),
    "basic lfsr": (one_file("a.h5", lambda p: files.basic_lfsr(p, VIEWS)), "file"),
}

mutations = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.floats(0, 1), st.integers(0, 255)),
        st.tuples(st.just("set in header"), st.integers(0, 150), st.integers(0, 255)),
        st.tuples(st.just("word"), st.integers(0, 150), st.sampled_from([0, 1, 2**16, 2**31 - 1])),
        st.tuples(st.just("cut"), st.floats(0, 1), st.just(0)),
        st.tuples(st.just("insert"), st.floats(0, 1), st.integers(0, 255)),
    ),
    min_size=1,
    max_size=4,
)


def mutate(data, changes):
    data = bytearray(data)
    for kind, place, value in changes:
        if not data:
            break
        at = int(place * (len(data) - 1)) if isinstance(place, float) else min(place, len(data) - 1)
        if kind.startswith("set"):
            data[at] = value
        elif kind == "word":
            data[at : at + 4] = struct.pack("<I" if at % 2 else ">I", value)
        elif kind == "cut":
            del data[at:]
        else:
            data.insert(at, value)
    return bytes(data)


def read_everything(path):
    """Read in every way; anything but our own errors is a bug."""
    start = time.process_time()
    for attempt in (
        lambda: readers.read(path),
        lambda: readers.read(path, ReadOptions(views=(3, 3), allow_missing=True)),
        lambda: readers.read_ground_truth(path),
        lambda: readers.find(path),
    ):
        try:
            attempt()
        except OaccDepthError as error:
            assert "\n" not in str(error)
    assert time.process_time() - start < 20


_prepared: dict[str, tuple[Path, Path, bytes]] = {}


@pytest.fixture
def prepare(tmp_path_factory):
    """Write a target once: what is damaged, what is read, the bytes as they should be."""

    def prepared(name):
        if name not in _prepared:
            write, kind = TARGETS[name]
            damaged = write(tmp_path_factory.mktemp("damaged") / "scene")
            read = damaged if kind == "file" else damaged.parent
            _prepared[name] = damaged, read, damaged.read_bytes()
        return _prepared[name]

    return prepared


SETTINGS = settings(
    max_examples=15 if settings().derandomize else 300,  # more where they differ every time
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("name", TARGETS)
@SETTINGS
@given(changes=mutations)
@example(changes=[("cut", 0.0, 0)])
@example(changes=[("cut", 0.5, 0)])
def test_damaged_bytes(prepare, name, changes):
    damaged, read, data = prepare(name)
    try:
        damaged.write_bytes(mutate(data, changes))
        read_everything(read)
    finally:
        damaged.write_bytes(data)


@SETTINGS
@given(
    shape=st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 9, 12, 16, 25, 70]), max_size=6),
    kind=st.sampled_from(["u1", "u2", "i8", "f2", "f8", "?", "c8", "U3", "M8[s]"]),
    axes=st.none() | st.text("uvhwcnx", max_size=6),
    views=st.none() | st.tuples(st.integers(1, 9), st.integers(1, 9)),
    ending=st.sampled_from(["npy", "npz", "h5", "mat"]),
)
@example(shape=[0, 0, 0], kind="u1", axes=None, views=None, ending="npy")
def test_arrays_of_any_shape(tmp_path_factory, shape, kind, axes, views, ending):
    if np.prod(shape) > 1e6:
        return
    values = np.zeros(shape, dtype=kind)
    path = tmp_path_factory.mktemp("any") / f"a.{ending}"
    if ending == "npy":
        np.save(path, values)
    elif ending == "npz":
        np.savez(path, a=values)
    elif values.dtype.kind in "biuf":
        files.h5(path, {"a": values})
    else:
        return
    for options in (ReadOptions(axes=axes, views=views), ReadOptions(axes=axes, stride=2)):
        try:
            found = readers.read(path, options)
        except OaccDepthError:
            continue
        assert found.grid[0] * found.grid[1] >= 3


@SETTINGS
@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    views=st.none() | st.tuples(st.integers(1, 70), st.integers(1, 70)),
    layout=st.none() | st.sampled_from(["mosaic", "lenslet"]),
    eslf=st.booleans(),
)
def test_pictures_of_any_size(tmp_path_factory, size, views, layout, eslf):
    path = tmp_path_factory.mktemp("any") / ("a_eslf.png" if eslf else "a.png")
    files.write_picture(path, np.arange(np.prod(size), dtype=np.uint8).reshape(size))
    try:
        found = readers.read(path, ReadOptions(views=views, layout=layout))
    except OaccDepthError:
        return
    assert found.grid[0] * found.grid[1] >= 3


NAMES = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=60),
    st.from_regex(
        r"[a-z]{0,5}[-_]?[0-9]{1,3}[_x-][0-9]{1,3}(_-?[0-9]\.[0-9]_[0-9]\.[0-9]_?)?",
        fullmatch=True,
    ),
    st.from_regex(r"(IMG_)?[0-9]{1,200}(_[0-9]{2}){0,3}", fullmatch=True),
)


@SETTINGS
@given(
    stems=st.lists(NAMES, max_size=40),
    views=st.none() | st.tuples(st.integers(1, 9), st.integers(1, 9)),
    pattern=st.none() | st.sampled_from([r"(\d+)", r"(\d+)\D(\d+)", "(", r"\d(.)?(.)?"]),
    order=st.none() | st.sampled_from(["columns", "serpentine-columns"]),
)
@example(
    stems=[f"{number}_{number}" for number in (*range(8), 10**20)],
    views=None,
    pattern=None,
    order=None,
)
@example(stems=["1_1", f"1_{10**20}"], views=None, pattern=r"(\d+)\D(\d+)", order=None)
def test_names_of_any_kind(stems, views, pattern, order):
    start = time.process_time()
    names = [f"{stem}.png" for stem in stems]
    try:
        naming = parse_names(names, ReadOptions(views=views, pattern=pattern, order=order))
    except OaccDepthError:
        naming = None
    if naming is not None:
        assert set(naming.names.values()) <= set(names)
        for u, v in list(naming.absent)[:5]:
            assert naming.name_of(u, v)
    assert time.process_time() - start < 5
