import os
from pathlib import Path

import numpy as np
import pytest

from oaccdepth.errors import UnreadableFile
from oaccdepth.files.pfm import read_pfm, write_pfm

HCI_FILE = Path(__file__).parents[3] / "shared/hci/validation/cotton.gt_disp_lowres.pfm"


def values(shape=(4, 6)):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_written_values_come_back(tmp_path):
    data = values()
    write_pfm(tmp_path / "a.pfm", data)
    again = read_pfm(tmp_path / "a.pfm")
    assert again.dtype == np.float32 and again.dtype.isnative
    np.testing.assert_array_equal(again, data)


def test_the_bytes_are_those_of_the_benchmarks_own_files(tmp_path):
    # Header `Pf\n512 512\n-1\n`, then little-endian rows from the bottom (formats.md, 3).
    data = values((512, 512))
    write_pfm(tmp_path / "a.pfm", data)
    expected = b"Pf\n512 512\n-1\n" + data[::-1].astype("<f4").tobytes()
    assert (tmp_path / "a.pfm").read_bytes() == expected


@pytest.mark.skipif(not HCI_FILE.is_file(), reason="no HCI ground truth beside the repository")
def test_a_file_of_the_benchmark_is_written_again_byte_for_byte(tmp_path):
    write_pfm(tmp_path / "a.pfm", read_pfm(HCI_FILE))
    assert (tmp_path / "a.pfm").read_bytes() == HCI_FILE.read_bytes()


def test_big_endian_files(tmp_path):
    data = values()
    (tmp_path / "a.pfm").write_bytes(b"Pf\n6 4\n1.0\n" + data[::-1].astype(">f4").tobytes())
    again = read_pfm(tmp_path / "a.pfm")
    assert again.dtype.isnative
    np.testing.assert_array_equal(again, data)


def test_values_that_are_not_finite_come_back(tmp_path):
    data = np.array([[np.nan, np.inf, -np.inf, 1.0]], np.float32)
    write_pfm(tmp_path / "a.pfm", data)
    np.testing.assert_array_equal(read_pfm(tmp_path / "a.pfm"), data)


def test_a_missing_file(tmp_path):
    path = tmp_path / "a.pfm"
    with pytest.raises(UnreadableFile) as caught:
        read_pfm(path)
    assert str(caught.value) == f"{path}: no such file. Give a PFM file."


def test_a_scale_that_leads_to_infinity(tmp_path):
    """The scale is in the header; NumPy prints no warning."""
    path = tmp_path / "a.pfm"
    path.write_bytes(b"Pf\n2 1\n-1e38\n" + np.array([100, -100], "<f4").tobytes())
    assert read_pfm(path).tolist() == [[np.inf, -np.inf]]


def test_numbers_that_are_no_disparities(tmp_path):
    """3e38 px could neither be squared nor drawn."""
    values = np.array([[3e38, -3e38, 1.5], [1e6, -1e6, -1.5]], np.float32)
    write_pfm(tmp_path / "a.pfm", values)
    known = [[np.nan, np.nan, 1.5], [1e6, -1e6, -1.5]]
    np.testing.assert_array_equal(read_pfm(tmp_path / "a.pfm"), np.float32(known))


def test_a_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "a.pfm"
    os.mkfifo(path)
    with pytest.raises(UnreadableFile) as caught:
        read_pfm(path)
    assert str(caught.value) == f"{path}: is a named pipe, expected a regular file."


@pytest.mark.parametrize(
    "content",
    [b"", b"Pf\n", b"P5\n2 2\n255\n", b"Pf\n6 4\n-1\n\0\0\0\0", b"Pf\nx y\n-1\n", b"\x89PNG\r\n"],
)
def test_a_damaged_or_foreign_file(tmp_path, content):
    path = tmp_path / "a.pfm"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        read_pfm(path)
    assert str(caught.value).startswith(f"{path}: not a readable PFM file (")


def test_a_header_that_claims_too_much(tmp_path):
    path = tmp_path / "a.pfm"
    path.write_bytes(b"Pf\n1000000 1000000\n-1\n" + b"\0" * 64)
    with pytest.raises(UnreadableFile, match="not a readable PFM file"):
        read_pfm(path)


def test_colour_is_refused(tmp_path):
    path = tmp_path / "a.pfm"
    path.write_bytes(b"PF\n2 1\n-1\n" + np.zeros(6, "<f4").tobytes())
    with pytest.raises(UnreadableFile) as caught:
        read_pfm(path)
    assert str(caught.value) == f"{path}: has 3 channels, expected one (header 'Pf')."
