"""The page as a PDF: its text is text, its bars are shadings, its pictures are kept exactly."""

import re
import shutil
import subprocess
import zlib

import cv2
import numpy as np
import pytest

from oaccdepth.writers.drawing import Bar, Drawing, Line, Photo, Text, as_pdf, rasterise


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def page(picture):
    ramp = np.linspace(0, 255, 256).astype(np.uint8)
    colours = np.stack([ramp, ramp[::-1], np.zeros_like(ramp)], axis=1)
    parts = [
        Text(20, 20, 24, "A (b) \\c"),
        Photo(20, 60, 140, 100, picture),
        Bar(180, 60, 20, 100, colours),
        Line(200, 206, 110),
        Text(212, 110, 20, "-0.5", is_middle=True),
    ]
    return Drawing(300, 200, parts)


def objects(data):
    """Number -> body of every object, found through the table at the end."""
    start = int(re.search(rb"startxref\n(\d+)\n%%EOF", data)[1])
    lines = data[start:].split(b"\n")
    assert lines[0] == b"xref"
    places = [int(line[:10]) for line in lines[3 : 2 + int(lines[1].split()[1])]]
    bodies = {}
    for number, place in enumerate(places, start=1):
        head = f"{number} 0 obj\n".encode()
        assert data[place : place + len(head)] == head
        bodies[number] = data[place + len(head) : data.index(b"\nendobj", place)]
    return bodies


def stream(body):
    return zlib.decompress(body[body.index(b"stream\n") + 7 : body.rindex(b"\nendstream")])


def find(bodies, mark):
    return next(body for body in bodies.values() if mark in body)


def test_text_is_text_in_an_embedded_font(page):
    bodies = objects(as_pdf(page, "town"))
    shown = find(bodies, b"/Contents")
    content = stream(bodies[int(re.search(rb"/Contents (\d+)", shown)[1])])
    assert rb"(A \(b\) \\c) Tj" in content and b"(-0.5) Tj" in content
    font = bodies[
        int(re.search(rb"/FontFile2 (\d+)", find(bodies, b"/FontDescriptor /FontName"))[1])
    ]
    assert stream(font)[:4] == b"\0\1\0\0"  # TrueType
    title = re.search(rb"/Title <(\w+)>", find(bodies, b"/Title"))[1]
    assert bytes.fromhex(title.decode()).decode("utf-16") == "town"


def test_pictures_are_exact(page, picture):
    body = find(objects(as_pdf(page, "")), b"/Subtype /Image")
    rows = np.frombuffer(stream(body), np.uint8).reshape(5, 22)
    assert (rows[:, 0] == 2).all()  # each row is stored as the difference to the one above
    stored = np.cumsum(rows[:, 1:], axis=0, dtype=np.uint8).reshape(5, 7, 3)
    assert (stored == picture).all()


def test_bars_are_shadings(page):
    bodies = objects(as_pdf(page, ""))
    shading = find(bodies, b"/ShadingType 2")
    function = bodies[int(re.search(rb"/Function (\d+)", shading)[1])]
    assert stream(function) == page.parts[2].colours.tobytes()


@pytest.mark.skipif(not shutil.which("pdftoppm"), reason="needs poppler-utils")
def test_another_program_sees_the_same_page(page, tmp_path):
    (tmp_path / "page.pdf").write_bytes(as_pdf(page, "town"))
    words = subprocess.run(
        ["pdftotext", "page.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert words.stdout.split() == ["A", "(b)", "\\c", "-0.5"]
    subprocess.run(
        ["pdftoppm", "-r", "300", "-png", "-singlefile", "page.pdf", "page"],
        cwd=tmp_path,
        check=True,
    )
    seen = cv2.imread(str(tmp_path / "page.png"))[..., ::-1].astype(int)
    expected = rasterise(page).astype(int)
    assert seen.shape == expected.shape
    off = np.abs(seen - expected).max(axis=2) > 40
    assert off.mean() < 0.02  # letters and edges differ by parts of a pixel
