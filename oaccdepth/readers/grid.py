"""ViewGrid: what a reader found at a path, before any view is loaded. No files are opened here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from oaccdepth.lightfield import Array, Camera, FloatArray
from oaccdepth.options import Range

Position = tuple[int, int]  # (u, v) in the order of the file
FEWEST_VIEWS = 3  # in all
LARGEST_GRID = 64  # per axis; nothing real is larger, and a header may claim anything


@dataclass(frozen=True)
class Arrangement:
    """What turns the camera axes of a file into ours: exchanged first, then reversed."""

    transpose: bool = False
    flip_u: bool = False
    flip_v: bool = False

    def __bool__(self) -> bool:
        return self.transpose or self.flip_u or self.flip_v


AS_STORED = Arrangement()


@dataclass(frozen=True)
class Piece:
    """Some pixels of some of the views that were asked for."""

    u: slice  # into the rows and columns asked for
    v: slice
    y: slice  # into the picture
    x: slice
    values: Array  # (u, v, h, w) or (u, v, h, w, c)


@dataclass(frozen=True, eq=False)
class ViewGrid:
    """Where the views of a light field are, and how to get at them one by one.

    `load(u, v)` gives one view, (h, w) or (h, w, c) of any number type with a fourth channel for
    alpha or weight, or None if the view is not there. Files in which one view is as expensive as
    all of them offer `pieces`, which goes through the file once, and `sample`, a few pixels of
    every view.
    """

    shape: tuple[int, int]  # rows and columns of the file
    load: Callable[[int, int], Array | None]
    reason: str  # by what the format was recognised
    pieces: Callable[[Sequence[int], Sequence[int]], Iterator[Piece]] | None = None
    sample: Callable[[], Array] | None = None  # (u, v, h', w') or (u, v, h', w', c)
    name_of: Callable[[int, int], str] = lambda u, v: f"view ({u}, {v})"
    absent: frozenset[Position] = frozenset()  # views that the names say are not there
    names_give_grid: bool = True  # then --views means the central views to use
    arrangement: Arrangement = AS_STORED  # what the format is known to need
    orientation: str = "presumed"  # certain: never checked; presumed: checked; unknown: sign too
    suspect: str = "u"  # the axis to reverse if one of the two must be
    order_is_known: bool = True  # False: every second row or column may run backwards
    vignetted: bool = False  # outer views may be black
    may_be_linear: bool = False  # a decode without display gamma
    has_validity: bool = False  # alpha is a stored mask: it is believed, also where it is 0
    places: FloatArray | None = None  # (u, v, 2) of the cameras, down and right, in any unit
    camera: Camera | None = None
    disparity_range: Range | None = None
    ground_truth: Callable[[], FloatArray] | None = None  # of the centre view [px], nearer larger
    notes: tuple[str, ...] = ()
