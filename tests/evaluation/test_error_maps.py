"""Pictures of the error: their colours, and the files."""

import numpy as np
import pytest
from trouble import fill_disk_at, run_child

from oaccdepth.errors import UnwritableOutput
from oaccdepth.evaluation import error_maps
from oaccdepth.readers.decoding import decode
from oaccdepth.writers.pictures import NOT_KNOWN, colour_difference

TRUTH = np.array([[0, 0, 0, 0, np.nan]], dtype=np.float32)
PREDICTION = np.array([[0.0, 5.0, -0.1, np.nan, 0.0]], dtype=np.float32)


def test_signed_error():
    picture = error_maps.draw_error(PREDICTION, TRUTH)[0].tolist()
    assert picture[0] == [247, 244, 241]  # right: almost white
    assert picture[1] == [138, 16, 32]  # far too near: red
    assert picture[2] == colour_difference(np.float32([[-0.5]]), 1.0)[0, 0].tolist()  # half too far
    assert picture[3] == [0, 0, 0]  # no prediction
    assert picture[4] == list(NOT_KNOWN)  # no ground truth


def test_bad_pixels():
    picture = error_maps.draw_bad_pixels(PREDICTION, TRUTH)[0].tolist()
    bad, good = list(error_maps.BAD), list(error_maps.GOOD)
    assert picture == [good, bad, bad, bad, list(NOT_KNOWN)]


def test_files(tmp_path):
    written = error_maps.write_error_maps(tmp_path / "boxes", PREDICTION, TRUTH)
    assert written == [tmp_path / "boxes" / "error.png", tmp_path / "boxes" / "badpix.png"]
    assert decode(written[0]).tolist() == error_maps.draw_error(PREDICTION, TRUTH).tolist()


def test_both_or_none(tmp_path, monkeypatch):
    """The first file fits on the disk, the second does not."""
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    monkeypatch.setattr(error_maps, "draw_bad_pixels", lambda *_: noise)

    def act():
        fill_disk_at(5000)
        with pytest.raises(UnwritableOutput, match=r"boxes/badpix\.png: cannot be written"):
            error_maps.write_error_maps(tmp_path / "boxes", PREDICTION, TRUTH)

    assert run_child(act) == 0
    assert not list(tmp_path.iterdir())
