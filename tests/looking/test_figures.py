"""Figures and animations: the right pictures in the right places, in files that others can read."""

from dataclasses import replace

import cv2
import imageio.v3 as imageio
import numpy as np
import pytest
from PIL import ImageDraw, ImageFont

from oaccdepth.disparity import DisparityMap, Pass
from oaccdepth.errors import InvalidOption
from oaccdepth.lightfield import LightField
from oaccdepth.looking import figures
from oaccdepth.writers.drawing import rasterise
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
        "Hidden: left view orange, right blue",
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
        "Use view, disparity, confidence, masks, truth, error or passes."
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
    """The first panel's picture is where it should be, and the page has room for all."""
    panels = figures.make_panels(material, ["view", "disparity", "error"])
    page = rasterise(figures.compose(panels, columns, side=128))
    head, gap = round(1.7 * 11), 8  # a line of 11 px letters; a sixteenth of the side
    assert page.shape[0] == rows * (96 + head + gap) + gap
    top = gap + head
    enlarged = cv2.resize(panels[0].picture, (128, 96), interpolation=cv2.INTER_NEAREST)
    assert (page[top : top + 96, gap : gap + 128] == enlarged).all()
    assert (page[0] == 255).all() and (page[:, 0] == 255).all()


def test_colour_bar_runs_from_high_to_low(material):
    panel = figures.make_panels(material, ["disparity"])[0]
    page = rasterise(figures.compose([panel], side=256))
    bar = page[16 + 19 : 16 + 19 + 192, 16 + 256 + 8]  # one column through its middle
    bottom, top = panel.colours[[0, -1]]
    assert bar[0].tolist() == top.tolist() and bar[-1].tolist() == bottom.tolist()


def test_the_font_has_every_letter_that_is_written(material, monkeypatch):
    """Letters that a font lacks come out as boxes."""
    written = set()
    write = ImageDraw.ImageDraw.text

    def listen(pen, place, text, *arguments, **options):
        written.update(text)
        write(pen, place, text, *arguments, **options)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", listen)
    rasterise(figures.compose(figures.make_panels(material)))
    font = ImageFont.load_default(20)
    box = bytes(font.getmask("\uffff"))
    assert "-" in written
    assert [letter for letter in written if bytes(font.getmask(letter)) == box] == []


def test_masks_show_what_the_outer_views_do_not_see(material, scene):
    """Orange where the rendered scene is hidden from the left view; blue, from the right one."""
    picture = figures.make_panels(material, ["masks"])[0].picture.astype(int)
    red_less_blue = picture[..., 0] - picture[..., 2]
    left, right = ~scene.visibility[4, 0], ~scene.visibility[4, 8]
    assert left.any() and right.any()
    assert ((red_less_blue > 100) == (left & ~right)).all()
    assert ((red_less_blue < -100) == right).all()


def test_masks_of_a_single_column(material, scene):
    result = replace(material.result, masks=material.result.masks[:, 4:5])
    light_field = LightField(scene.light_field.views[:, 4:5])
    panel = figures.make_panels(
        replace(material, light_field=light_field, result=result), ["masks"]
    )
    assert titles(panel) == ["Hidden: top view orange, bottom blue"]
    orange = panel[0].picture[..., 0].astype(int) - panel[0].picture[..., 2] > 100
    top, bottom = ~scene.visibility[0, 4], ~scene.visibility[8, 4]
    assert (orange == (top & ~bottom)).all()


def test_figures_are_stored_as_they_are(tmp_path, material):
    page = figures.compose(figures.make_panels(material, ["view", "disparity"]))
    figures.write_figure(tmp_path / "figure.png", page)
    assert (imageio.imread(tmp_path / "figure.png") == rasterise(page)).all()
    figures.write_figure(tmp_path / "figure.PDF", page)
    assert (tmp_path / "figure.PDF").read_bytes().startswith(b"%PDF-")
    with pytest.raises(InvalidOption) as caught:
        figures.write_figure(tmp_path / "figure.svg", page)
    assert str(caught.value) == f"{tmp_path / 'figure.svg'}: cannot make .svg; use .png or .pdf."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.PDF", "figure.png"]
