"""Figures and animations: the right pictures in the right places, in files that others can read."""

import sys

import cv2
import imageio.v3 as imageio
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from oaccdepth.disparity import DisparityMap, Pass
from oaccdepth.errors import InvalidOption, MissingDependency
from oaccdepth.lightfield import LightField
from oaccdepth.looking import figures
from oaccdepth.looking.refocus import refocus
from oaccdepth.writers.pictures import as_bytes, choose_range, colourise


@pytest.fixture(scope="module")
def material(scene):
    disparity = scene.disparity + np.float32(0.05)
    result = DisparityMap(
        disparity,
        np.full_like(disparity, 0.5),
        masks=scene.visibility.astype(np.float32),
        passes=(Pass(scene.disparity), Pass(disparity)),
        camera=scene.light_field.camera,
    )
    return figures.Material(scene.light_field, result, scene.disparity)


def titles(panels):
    return [panel.title for panel in panels]


def test_all_panels_that_there_are(material, scene):
    assert titles(figures.make_panels(material)) == [
        "Centre view",
        "Disparity",
        "Confidence",
        "Masks of all views",
        "Ground truth",
        "Error",
    ]
    bare = figures.Material(None, DisparityMap(scene.disparity, scene.disparity))
    assert titles(figures.make_panels(bare)) == ["Disparity", "Confidence"]


def test_panels_by_name(material):
    panels = figures.make_panels(material, ["passes", "error", "view"])
    assert titles(panels) == ["Pass 1", "Pass 2", "Error", "Centre view"]


def test_panels_hold_their_data(material):
    view, disparity, _, _, truth, error = figures.make_panels(material)
    result, light_field = material.result, material.light_field
    assert view.picture.tolist() == as_bytes(light_field.centre).tolist()
    limits = choose_range(result.disparity)
    assert disparity.value_range == truth.value_range == limits  # the same colours, to compare
    assert disparity.picture.tolist() == colourise(result.disparity, limits).tolist()
    assert error.value_range == (-0.2, 0.2)
    red, blue = error.picture[..., 0].astype(int), error.picture[..., 2].astype(int)
    assert (red > blue).all()  # too near everywhere


def test_unknown_panels_and_missing_data_are_refused(material, scene):
    with pytest.raises(InvalidOption) as caught:
        figures.make_panels(material, ["depth"])
    assert str(caught.value) == (
        "--panel depth: no such panel. "
        "Use view, disparity, confidence, masks, truth, error, passes."
    )
    bare = figures.Material(None, DisparityMap(scene.disparity, scene.disparity))
    for name, need in (
        ("view", "a light field (--input)"),
        ("error", "ground truth beside the light field"),
        ("passes", "two passes or more, so give a light field instead of a result"),
    ):
        with pytest.raises(InvalidOption) as caught:
            figures.make_panels(bare, [name])
        assert str(caught.value) == f"--panel {name}: needs {need}."


@pytest.mark.parametrize(("columns", "rows"), [(1, 3), (2, 2), (3, 1)])
def test_layout(material, columns, rows):
    """The first panel's picture stands where it should, and the page has room for all."""
    panels = figures.make_panels(material, ["view", "disparity", "error"])
    page = figures.compose(panels, columns, side=128)
    head, gap = round(1.7 * 11), 8  # a line of letters of 11 px; a sixteenth of the side
    assert page.shape[0] == rows * (96 + head + gap) + gap
    top = gap + head
    enlarged = cv2.resize(panels[0].picture, (128, 96), interpolation=cv2.INTER_NEAREST)
    assert (page[top : top + 96, gap : gap + 128] == enlarged).all()
    assert (page[0] == 255).all() and (page[:, 0] == 255).all()


def test_colour_bar_runs_from_high_to_low(material):
    panel = figures.make_panels(material, ["disparity"])[0]
    page = figures.compose([panel], side=256)
    bar = page[16 + 19 : 16 + 19 + 192, 16 + 256 + 8]  # a column through its middle
    top, bottom = (
        panel.colour(np.array([[value]], np.float32))[0, 0] for value in reversed(panel.value_range)
    )
    assert bar[0].tolist() == top.tolist() and bar[-1].tolist() == bottom.tolist()


def test_the_font_has_every_letter_that_is_written(material, monkeypatch):
    """Letters that a font lacks come out as boxes."""
    written = set()
    write = ImageDraw.ImageDraw.text

    def listen(pen, place, text, *arguments, **options):
        written.update(text)
        write(pen, place, text, *arguments, **options)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", listen)
    figures.compose(figures.make_panels(material))
    font = ImageFont.load_default(20)
    box = bytes(font.getmask("\uffff"))
    assert "-" in written
    assert [letter for letter in written if bytes(font.getmask(letter)) == box] == []


def test_pdf_is_called_by_its_own_name(tmp_path):
    figures.write_figure(tmp_path / "town.pdf", np.zeros((30, 40, 3), np.uint8))
    stored = (tmp_path / "town.pdf").read_bytes()
    assert b"/Title (\xfe\xff" + "town".encode("utf-16-be") + b")" in stored  # not a temporary one


def test_figures_are_stored_as_they_are(tmp_path, material):
    page = figures.compose(figures.make_panels(material, ["view", "disparity"]))
    figures.write_figure(tmp_path / "figure.png", page)
    assert (imageio.imread(tmp_path / "figure.png") == page).all()
    figures.write_figure(tmp_path / "figure.PDF", page)
    assert (tmp_path / "figure.PDF").read_bytes().startswith(b"%PDF-")
    with pytest.raises(InvalidOption) as caught:
        figures.write_figure(tmp_path / "figure.svg", page)
    assert str(caught.value) == f"{tmp_path / 'figure.svg'}: cannot make .svg; use .png or .pdf."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.PDF", "figure.png"]


def test_parallax_goes_round(scene):
    frames = figures.parallax_frames(scene.light_field)
    views = as_bytes(scene.light_field.views)
    assert (frames[0] == views[4, 8]).all()
    places = [
        next(place for place in np.ndindex(9, 9) if (views[place] == frame).all())
        for frame in frames
    ]
    assert {(0, 4), (8, 4), (4, 0), (4, 8)} <= set(places)
    for a, b in zip(places, places[1:] + places[:1], strict=True):
        assert max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1  # no jumps, also not at the end


def test_parallax_leaves_missing_views_out(scene):
    valid = np.ones((9, 9), dtype=bool)
    valid[4, 8] = False
    light_field = LightField(scene.light_field.views[..., :1], valid=valid)
    frames = figures.parallax_frames(light_field)
    missing = as_bytes(light_field.views[4, 8])
    assert not any((frame[..., :1] == missing).all() for frame in frames)
    assert frames[0].shape == (48, 64, 3)


def test_refocusing_goes_there_and_back(scene):
    seen = []
    frames = list(
        figures.refocus_frames(scene.light_field, (-1.0, 1.0), 8, lambda *call: seen.append(call))
    )
    assert len(frames) == 8
    for number, disparity in enumerate((-1.0, -0.5, 0.0, 0.5, 1.0, 0.5, 0.0, -0.5)):
        expected = as_bytes(refocus(scene.light_field, disparity))
        assert (frames[number] == expected).all()
    assert seen[0] == ("refocusing", 0.0) and len(seen) == 5


def test_gif(tmp_path, scene):
    frames = figures.parallax_frames(scene.light_field)
    figures.write_animation(tmp_path / "trip.gif", frames, frames_per_second=10)
    with Image.open(tmp_path / "trip.gif") as stored:
        assert stored.n_frames == len(frames)
        assert stored.info["duration"] == 100 and stored.info["loop"] == 0
        first = np.asarray(stored.convert("RGB")).astype(int)
    assert np.abs(first - frames[0]).mean() < 6


def test_mp4(tmp_path, scene):
    pytest.importorskip("imageio_ffmpeg")
    frames = [frame[:47, :63] for frame in figures.parallax_frames(scene.light_field)]  # odd sizes
    figures.write_animation(tmp_path / "trip.mp4", frames)
    stored = cv2.VideoCapture(str(tmp_path / "trip.mp4"))
    assert stored.get(cv2.CAP_PROP_FRAME_COUNT) == len(frames)
    _, first = stored.read()
    stored.release()
    assert np.abs(first[..., ::-1].astype(int) - frames[0][:46, :62]).mean() < 12


def test_mp4_without_ffmpeg_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingDependency) as caught:
        figures.write_animation(tmp_path / "trip.mp4", [np.zeros((8, 8, 3), np.uint8)])
    assert str(caught.value) == (
        "MP4 needs imageio-ffmpeg. "
        'Install it with: pip install "oaccdepth[video]", or write a .gif.'
    )


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(InvalidOption) as caught:
        figures.write_animation(tmp_path / "trip.avi", [])
    assert str(caught.value) == f"{tmp_path / 'trip.avi'}: cannot make .avi; use .gif or .mp4."
