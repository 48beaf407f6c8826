"""Animations: the right views in the right order, in files that others can read."""

import sys

import cv2
import numpy as np
import pytest
from PIL import Image

from oaccdepth.errors import InvalidOption, MissingDependency
from oaccdepth.lightfield import LightField
from oaccdepth.looking import animations
from oaccdepth.looking.refocus import refocus
from oaccdepth.writers.pictures import as_bytes


def test_parallax_goes_round(scene):
    frames = animations.parallax_frames(scene.light_field)
    views = as_bytes(scene.light_field.views)
    assert (frames[0] == views[4, 8]).all()
    places = [
        next(place for place in np.ndindex(9, 9) if (views[place] == frame).all())
        for frame in frames
    ]
    assert {(0, 4), (8, 4), (4, 0), (4, 8)} <= set(places)
    for a, b in zip(places, places[1:] + places[:1], strict=True):
        assert max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1  # no jumps, not even at the end


def test_parallax_leaves_missing_views_out(scene):
    valid = np.ones((9, 9), dtype=bool)
    valid[4, 8] = False
    light_field = LightField(scene.light_field.views[..., :1], valid=valid)
    frames = animations.parallax_frames(light_field)
    missing = as_bytes(light_field.views[4, 8])
    assert not any((frame[..., :1] == missing).all() for frame in frames)
    assert frames[0].shape == (48, 64, 3)


def test_refocusing_goes_there_and_back(scene):
    seen = []
    frames = list(
        animations.refocus_frames(
            scene.light_field, (-1.0, 1.0), 8, lambda *call: seen.append(call)
        )
    )
    assert len(frames) == 8
    for number, disparity in enumerate((-1.0, -0.5, 0.0, 0.5, 1.0, 0.5, 0.0, -0.5)):
        expected = as_bytes(refocus(scene.light_field, disparity))
        assert (frames[number] == expected).all()
    assert seen[0] == ("refocusing", 0.0) and len(seen) == 5


def test_gif(tmp_path, scene):
    frames = animations.parallax_frames(scene.light_field)
    animations.write_animation(tmp_path / "trip.gif", frames, frames_per_second=10)
    with Image.open(tmp_path / "trip.gif") as stored:
        assert stored.n_frames == len(frames)
        assert stored.info["duration"] == 100 and stored.info["loop"] == 0
        first = np.asarray(stored.convert("RGB")).astype(int)
    assert np.abs(first - frames[0]).mean() < 6


def test_mp4(tmp_path, scene):
    pytest.importorskip("imageio_ffmpeg")
    frames = [
        frame[:47, :63] for frame in animations.parallax_frames(scene.light_field)
    ]  # odd sizes
    animations.write_animation(tmp_path / "trip.mp4", frames)
    stored = cv2.VideoCapture(str(tmp_path / "trip.mp4"))
    assert stored.get(cv2.CAP_PROP_FRAME_COUNT) == len(frames)
    _, first = stored.read()
    stored.release()
    assert np.abs(first[..., ::-1].astype(int) - frames[0][:46, :62]).mean() < 12


def test_mp4_without_ffmpeg_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingDependency) as caught:
        animations.write_animation(tmp_path / "trip.mp4", [np.zeros((8, 8, 3), np.uint8)])
    assert str(caught.value) == (
        "MP4 needs imageio-ffmpeg. "
        'Install it with: pip install "oaccdepth[video]", or write a .gif.'
    )


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(InvalidOption) as caught:
        animations.write_animation(tmp_path / "trip.avi", [])
    assert str(caught.value) == f"{tmp_path / 'trip.avi'}: cannot make .avi; use .gif or .mp4."
