"""Mutated headers, sizes and names: every reader soon raises one of our errors."""

import time

import fuzz
import lightfield_files as files
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from oaccdepth import readers
from oaccdepth.errors import OaccDepthError
from oaccdepth.options import ReadOptions
from oaccdepth.readers.names import parse_names

VIEWS = files.render((3, 3), (12, 16))[0]


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


SETTINGS = settings(
    max_examples=15 if settings().derandomize else 300,  # more if they are new every time
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# Files that only tests write; tools/fuzz.py damages all others, and tests/tools runs it.
OTHERS = {"a.lfp": files.lytro_container, "a.h5": lambda path: files.basic_lfsr(path, VIEWS)}


@pytest.mark.parametrize("name", OTHERS)
def test_damaged_bytes(tmp_path, name):
    path = tmp_path / name
    OTHERS[name](path)
    whole = path.read_bytes()
    for seed in range(20):
        path.write_bytes(fuzz.damage(whole, np.random.default_rng(seed)))
        read_everything(path)


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
