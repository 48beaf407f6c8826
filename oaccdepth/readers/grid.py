"""ViewGrid: what a reader found at a path, before any view is loaded. No files are opened here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from oaccdepth.lightfield import Array, Camera, FloatArray
from oaccdepth.options import Range

Position = tuple[int, int]  # (u, v) in the order of the file
FEWEST_VIEWS = 3  # in total
LARGEST_GRID = 64  # per axis; a header may claim anything, but no real grid is larger


@dataclass(frozen=True)
class Arrangement:
    """How to turn the camera axes of a file into ours: first transpose, then flip."""

    transpose: bool = False
    flip_u: bool = False
    flip_v: bool = False

    def __bool__(self) -> bool:
        return self.transpose or self.flip_u or self.flip_v


AS_STORED = Arrangement()


@dataclass(frozen=True)
class Piece:
    """Some pixels of some of the requested views."""

    u: slice  # into the requested rows and columns
    v: slice
    y: slice  # into the picture
    x: slice
    values: Array  # (u, v, h, w) or (u, v, h, w, c)


@dataclass(frozen=True, eq=False)
class ViewGrid:
    """Where the views of a light field are, and how to load them one by one.

    `load(u, v)` returns one view, (h, w) or (h, w, c), of any number type; the second or fourth
    channel is alpha or weight. It returns None if the view is missing. If reading one view of a
    file takes as long as reading all, there are also `pieces`, which reads the whole file once,
    and `sample`, which reads a few pixels of every view.
    """

    shape: tuple[int, int]  # rows and columns of the file
    load: Callable[[int, int], Array | None]
    reason: str  # how the format was recognised
    pieces: Callable[[Sequence[int], Sequence[int]], Iterator[Piece]] | None = None
    sample: Callable[[], Array] | None = None  # (u, v, h', w') or (u, v, h', w', c)
    name_of: Callable[[int, int], str] = lambda u, v: f"view ({u}, {v})"
    absent: frozenset[Position] = frozenset()  # views that are missing according to the names
    names_give_grid: bool = True  # then --views means: use only the central views
    arrangement: Arrangement = AS_STORED  # known for this format
    orientation: str = "presumed"  # certain: never checked; presumed: checked; unknown: sign too
    suspect: str = "u"  # the axis to reverse if one of the two must be
    order_is_known: bool = True  # False: every second row or column may run backwards
    vignetted: bool = False  # outer views may be black
    may_be_linear: bool = False  # a decode without display gamma
    has_validity: bool = False  # alpha is a stored mask: trust it even if it is all 0
    places: FloatArray | None = None  # (u, v, 2) of the cameras, down and right, in any unit
    camera: Camera | None = None
    disparity_range: Range | None = None
    ground_truth: Callable[[], FloatArray] | None = None  # of the centre view [px], nearer larger
    notes: tuple[str, ...] = ()
