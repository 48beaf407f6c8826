"""Our reader of MATLAB 5 files against SciPy's writer and reader."""

import lightfield_files as files
import numpy as np
import pytest
import scipy.io

from oaccdepth import readers
from oaccdepth.readers import matlab5

TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "?"]


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_arrays_of_every_type(tmp_path, kind, compressed):
    path = tmp_path / "a.mat"
    values = np.random.default_rng(0).integers(0, 100, (3, 4, 5)).astype(kind)
    scipy.io.savemat(path, {"x": values, "text": "abc", "y": values[0]}, do_compression=compressed)
    expected = scipy.io.loadmat(path)
    assert [(a.name, a.shape) for a in matlab5.list_arrays(path)] == [
        ("x", (5, 4, 3)),
        ("y", (5, 4)),
    ]
    for name in ("x", "y"):
        found = matlab5.load_array(path, name)
        assert np.array_equal(found.T, expected[name])


@pytest.mark.parametrize("compressed", [False, True])
def test_structs(tmp_path, compressed):
    path = tmp_path / "a.mat"
    inner = {
        "f": 3.5,
        "big": np.zeros((200, 300)),
        "LF": np.arange(24).reshape(2, 3, 4),
        "name": "x",
        "deep": {"a": 1},
    }
    scipy.io.savemat(path, {"LF": inner, "z": np.eye(3)}, do_compression=compressed)
    names = {array.name: array.shape for array in matlab5.list_arrays(path)}
    assert names == {"LF/f": (1, 1), "LF/big": (300, 200), "LF/LF": (4, 3, 2), "z": (3, 3)}
    assert np.array_equal(matlab5.load_array(path, "LF/LF").T, inner["LF"])


def test_cells_and_strings_are_passed_over(tmp_path):
    path = tmp_path / "a.mat"
    cell = np.empty((2,), dtype=object)
    cell[:] = [np.zeros(3), "abc"]
    scipy.io.savemat(path, {"cell": cell, "text": ["a", "b"], "many": [{"a": 1}], "n": 7})
    assert "n" in [array.name for array in matlab5.list_arrays(path)]


def test_whole_numbers_stored_as_such(tmp_path):
    # MATLAB stores doubles that are whole numbers in fewer bytes; SciPy does not.
    path = tmp_path / "a.mat"
    values = np.arange(12, dtype=np.uint8).reshape(3, 4)
    scipy.io.savemat(path, {"x": values})
    data = bytearray(path.read_bytes())
    assert data[144] == 9  # class uint8 ...
    data[144] = 6  # ... declared as double
    path.write_bytes(data)
    found = matlab5.load_array(path, "x")
    assert found.dtype == np.float32
    assert np.array_equal(found.T, scipy.io.loadmat(path)["x"])


def test_big_endian(tmp_path):
    path = tmp_path / "a.mat"
    values = np.arange(300, 312, dtype="<u2").reshape(3, 4)
    scipy.io.savemat(path, {"abcdefgh": values})
    data = path.read_bytes()
    # Swap the bytes of every tag and number: 4-byte words, then the sizes of name and array.
    words = np.frombuffer(data[128:], "<u4").astype(">u4").tobytes()
    name_at = data[128:].index(b"abcdefgh")
    body_at = data[128:].index(values.T.tobytes())
    turned = bytearray(words)
    turned[name_at : name_at + 8] = b"abcdefgh"
    turned[body_at : body_at + 24] = values.T.astype(">u2").tobytes()
    path.write_bytes(data[:124] + b"\x01\x00MI" + bytes(turned))
    assert np.array_equal(matlab5.load_array(path, "abcdefgh").T, values)


def test_uncompressed_arrays_are_mapped(tmp_path):
    path = tmp_path / "a.mat"
    views, truth = files.render()
    scipy.io.savemat(path, {"LF": views})
    assert isinstance(matlab5.load_array(path, "LF"), np.memmap)
    found = readers.read(path)
    assert np.array_equal(found.views, views)
    assert files.is_oriented(found.views, truth)
