"""A page of pictures, colour bars, lines and text -> pixels, or one PDF page with real text.

Lengths are pixels of the page, y downwards. The PDF is written here and not by a library: pictures
in their own resolution, colour bars as shadings, and letters of an embedded font take one page of
code; matplotlib would be a dependency of 30 MB for the same.
"""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass, field
from functools import cache

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from oaccdepth.options import Range
from oaccdepth.writers.pictures import Picture, choose_ticks, colours_of

PAPER, INK = (255, 255, 255), (30, 36, 42)
DPI = 300
POINTS = 72 / DPI  # per pixel
BASELINE = 0.80  # of the letters' size, below their top
MIDDLE = 0.36  # of the letters' size: baseline below the middle of a digit


@dataclass(frozen=True, eq=False)
class Photo:
    """A picture in a rectangle."""

    left: float
    top: float
    width: int
    height: int
    picture: Picture  # (h, w, 3), of any size


@dataclass(frozen=True, eq=False)
class Bar:
    """Colours from top to bottom."""

    left: float
    top: float
    width: int
    height: int
    colours: Picture  # (n, 3)


@dataclass(frozen=True)
class Text:
    """Letters; `top` is the top of the line, or its middle."""

    left: float
    top: float
    size: int
    text: str
    is_middle: bool = False


@dataclass(frozen=True)
class Line:
    """A horizontal line, one pixel thick."""

    left: float
    right: float
    y: float


@dataclass
class Drawing:
    """A white page and what is on it."""

    width: int
    height: int
    parts: list[Photo | Bar | Text | Line] = field(default_factory=list)


def draw_bar(
    page: Drawing,
    corner: tuple[int, int],
    height: int,
    letters: int,
    colours: Picture,
    value_range: Range,
    unit: str,
) -> None:
    """Draw a colour bar, as wide as its letters are high, with numbers and its unit above it.

    `colours` (n, 3) run from the lowest value to the highest, which is at the top.
    """
    left, top = corner
    low, high = value_range
    page.parts.append(Bar(left, top, letters, height, colours[::-1]))
    small = round(0.85 * letters)
    for value, label in choose_ticks(value_range, max(3, min(8, height // (3 * letters)))):
        y = top + round((high - value) / (high - low) * (height - 1))
        y = min(max(y, top + letters // 2), top + height - letters // 2)
        page.parts.append(Line(left + letters, left + letters + letters // 4, y))
        page.parts.append(Text(left + 1.45 * letters, y, small, label, is_middle=True))
    page.parts.append(Text(left, top - 1.1 * letters, small, unit))


def with_colour_bar(picture: Picture, value_range: Range, colormap: str) -> Picture:
    """Put a colour bar to the right of an RGB picture of disparities."""
    height, width = picture.shape[:2]
    tall = max(height, 96)  # below that the numbers would not fit
    letters = max(11, tall // 30)
    page = Drawing(width + 6 * letters, tall, [Photo(0, 0, width, height, picture)])
    corner = width + letters, 2 * letters
    draw_bar(page, corner, tall - 3 * letters, letters, colours_of(colormap), value_range, "px")
    return rasterise(page)


def rasterise(drawing: Drawing) -> Picture:
    """The page as (h, w, 3) pixels."""
    page = Image.new("RGB", (drawing.width, drawing.height), PAPER)
    pen = ImageDraw.Draw(page)
    for part in drawing.parts:
        if isinstance(part, Photo):
            page.paste(_resized(part), (round(part.left), round(part.top)))
        elif isinstance(part, Bar):
            rows = np.linspace(0, len(part.colours) - 1, part.height).round().astype(int)
            colours = np.repeat(part.colours[rows][:, None], part.width, axis=1)
            page.paste(Image.fromarray(colours), (round(part.left), round(part.top)))
        elif isinstance(part, Text):
            font = ImageFont.load_default(part.size)
            pen.text((part.left, _baseline(part)), part.text, fill=INK, font=font, anchor="ls")
        else:
            pen.line([(part.left, part.y), (part.right, part.y)], fill=INK)
    return np.asarray(page)


def _baseline(part: Text) -> float:
    return part.top + (MIDDLE if part.is_middle else BASELINE) * part.size


def _resized(photo: Photo) -> Image.Image:
    enlarging = photo.width > photo.picture.shape[1]
    way = cv2.INTER_NEAREST if enlarging else cv2.INTER_AREA
    resized = cv2.resize(photo.picture, (photo.width, photo.height), interpolation=way)
    return Image.fromarray(np.asarray(resized, dtype=np.uint8))


def as_pdf(drawing: Drawing, title: str) -> bytes:
    """The page as a PDF of 300 pixels per inch: vector text and colour bars, lossless pictures."""
    pdf = _Pdf()
    resources: dict[str, list[str]] = {"XObject": [], "Shading": []}
    content = [f"{POINTS} 0 0 {-POINTS} 0 {drawing.height * POINTS:.3f} cm", _ink()]
    for number, part in enumerate(drawing.parts):
        name = f"/N{number}"
        if isinstance(part, Photo):
            resources["XObject"].append(f"{name} {_add_picture(pdf, part.picture)} 0 R")
            content.append(f"q {_box(part)} cm {name} Do Q")
        elif isinstance(part, Bar):
            resources["Shading"].append(f"{name} {_add_shading(pdf, part.colours)} 0 R")
            content.append(f"q {_box(part)} cm 0 0 1 1 re W n {name} sh Q")
        elif isinstance(part, Text):
            content.append(_text_operators(part))
        else:
            content.append(f"{part.left} {part.y} m {part.right} {part.y} l S")
    names = "".join(f"/{kind} << {' '.join(each)} >> " for kind, each in resources.items())
    stream = pdf.add_stream("", "\n".join(content).encode("latin-1"))
    size = f"{drawing.width * POINTS:.3f} {drawing.height * POINTS:.3f}"
    font = _add_font(pdf)
    page = len(pdf.objects) + 1
    pdf.add(
        f"<< /Type /Page /Parent {page + 1} 0 R /MediaBox [0 0 {size}] /Contents {stream} 0 R "
        f"/Resources << /Font << /F {font} 0 R >> {names}>> >>"
    )
    pages = pdf.add(f"<< /Type /Pages /Kids [{page} 0 R] /Count 1 >>")
    catalogue = pdf.add(f"<< /Type /Catalog /Pages {pages} 0 R >>")
    heading = ("\ufeff" + title).encode("utf-16-be").hex()
    about = pdf.add(f"<< /Title <{heading}> /Producer (oaccdepth) >>")
    return pdf.finish(catalogue, about)


class _Pdf:
    """Numbered objects, then the table that says where each begins."""

    def __init__(self) -> None:
        self.objects: list[bytes] = []

    def add(self, body: str | bytes) -> int:
        self.objects.append(body.encode("latin-1") if isinstance(body, str) else body)
        return len(self.objects)

    def add_stream(self, entries: str, data: bytes) -> int:
        packed = zlib.compress(data, 9)
        head = f"<< {entries} /Filter /FlateDecode /Length {len(packed)} >>\nstream\n"
        return self.add(head.encode("latin-1") + packed + b"\nendstream")

    def finish(self, catalogue: int, about: int) -> bytes:
        text = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
        places = []
        for number, body in enumerate(self.objects, start=1):
            places.append(len(text))
            text += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
        table = len(text)
        count = len(self.objects) + 1
        text += f"xref\n0 {count}\n0000000000 65535 f \n".encode()
        text += b"".join(f"{place:010d} 00000 n \n".encode() for place in places)
        text += f"trailer\n<< /Size {count} /Root {catalogue} 0 R /Info {about} 0 R >>\n".encode()
        return bytes(text + f"startxref\n{table}\n%%EOF\n".encode())


def _ink() -> str:
    colour = " ".join(f"{channel / 255:.3f}" for channel in INK)
    return f"{colour} rg {colour} RG 1 w"


def _box(part: Photo | Bar) -> str:
    """Map the upright unit square to the rectangle of a part."""
    return f"{part.width} 0 0 {-part.height} {part.left} {part.top + part.height}"


def _add_picture(pdf: _Pdf, picture: Picture) -> int:
    height, width = picture.shape[:2]
    # The difference to the row above is packed, as in PNG.
    rows = picture.reshape(height, -1)
    steps = rows.copy()
    steps[1:] -= rows[:-1]
    marked = np.concatenate([np.full((height, 1), 2, np.uint8), steps], axis=1)
    predictor = f"/DecodeParms << /Predictor 15 /Colors 3 /Columns {width} >>"
    entries = (
        f"/Type /XObject /Subtype /Image /Width {width} /Height {height} "
        f"/ColorSpace /DeviceRGB /BitsPerComponent 8 {predictor}"
    )
    return pdf.add_stream(entries, marked.tobytes())


def _add_shading(pdf: _Pdf, colours: Picture) -> int:
    """Colours from the upper to the lower edge of the unit square."""
    function = pdf.add_stream(
        f"/FunctionType 0 /Domain [0 1] /Range [0 1 0 1 0 1] /Size [{len(colours)}] "
        "/BitsPerSample 8",
        colours.tobytes(),
    )
    return pdf.add(
        f"<< /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 1 0 0] /Function {function} 0 R >>"
    )


def _text_operators(part: Text) -> str:
    escaped = part.text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    place = f"{part.left} {_baseline(part):.2f}"
    return f"BT /F {part.size} Tf 1 0 0 -1 {place} Tm ({escaped}) Tj ET"


@cache
def _font_file() -> bytes:
    """Pillow's own font: Aileron, in the public domain."""
    font = ImageFont.load_default(10)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow comes with FreeType"
    return bytes(font.font_bytes)


def _add_font(pdf: _Pdf) -> int:
    """Embed the font, so that the page looks the same everywhere."""
    data = _font_file()
    file = pdf.add_stream(f"/Length1 {len(data)}", data)
    metrics = ImageFont.truetype(io.BytesIO(data), 1000)
    widths = " ".join(str(round(metrics.getlength(chr(code)))) for code in range(32, 127))
    ascent, descent = metrics.getmetrics()
    descriptor = pdf.add(
        f"<< /Type /FontDescriptor /FontName /Aileron-Regular /Flags 32 /ItalicAngle 0 /StemV 80 "
        f"/FontBBox [{_font_box(data)}] /Ascent {ascent} /Descent {-descent} /CapHeight 700 "
        f"/FontFile2 {file} 0 R >>"
    )
    return pdf.add(
        "<< /Type /Font /Subtype /TrueType /BaseFont /Aileron-Regular /FirstChar 32 /LastChar 126 "
        f"/Widths [{widths}] /Encoding /WinAnsiEncoding /FontDescriptor {descriptor} 0 R >>"
    )


def _font_box(data: bytes) -> str:
    """Smallest box around every letter, in thousandths: table `head` of a TrueType file."""
    (count,) = struct.unpack(">H", data[4:6])
    for start in range(12, 12 + 16 * count, 16):
        name, _, offset, _ = struct.unpack(">4sIII", data[start : start + 16])
        if name == b"head":
            (units,) = struct.unpack(">H", data[offset + 18 : offset + 20])
            corners = struct.unpack(">4h", data[offset + 36 : offset + 44])
            return " ".join(str(round(1000 * corner / units)) for corner in corners)
    raise AssertionError("every TrueType font has a table `head`")
