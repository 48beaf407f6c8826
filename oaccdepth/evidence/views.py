"""A set of views around a reference view: where each camera stood, and in which sector that is.

No grid: cameras may be missing, irregular or fractional steps apart. What is asked of a view is
only in which direction from the reference it lies, and how far.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

ABSENT = 1e6  # stands where there is no picture; pictures are in [0, 1]
SECTORS = 16  # of 22.5 degrees, the first around the camera row to the left
# sectors in a row that an occluding edge leaves open (16, 8), and opposite ones, which a gap does
HALF_PLANES = (torch.arange(SECTORS)[:, None] + torch.arange(SECTORS // 2)) % SECTORS
AXES = torch.arange(SECTORS // 2)[:, None] + torch.tensor([0, SECTORS // 2])
MANY = 60  # views beside the reference: of a larger grid, about every other one votes
LEAST_BASELINE = 0.1  # steps: of views that all stand where the reference does
LEAST_SHARE = 0.1  # of all views, which a half-plane or an axis must have to be heard


@dataclass(frozen=True, eq=False)
class Views:
    """Pictures beside the reference, with a margin around what is asked about.

    A point of the reference at (y, x) with disparity d is at (y, x) + margin + d * step of a view.
    """

    pictures: Tensor  # (k, c, h + 2*margin, w + 2*margin) in [0, 1], or ABSENT
    reference: Tensor  # (c, h, w) in [0, 1], or ABSENT
    steps: Tensor  # (k, 2): rows and columns that a disparity of 1 px moves the sample by
    margin: int = 0
    noise: Tensor | None = None  # (h, w): its deviation, if it was measured
    kept: dict[str, Any] = field(default_factory=dict, init=False)  # see `packing`

    @property
    def sectors(self) -> Tensor:
        """Number of each view's sector (k)."""
        return sectors_of(self.steps)

    @property
    def baseline(self) -> Tensor:
        """Mean distance of the views from the reference [steps]."""
        mean: Tensor = self.steps.norm(dim=1).mean()
        return mean.clamp(min=LEAST_BASELINE)

    @property
    def least_views(self) -> float:
        """How many views a half-plane or an axis needs to be heard."""
        return max(1.0, LEAST_SHARE * len(self.pictures))

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the reference [px]."""
        return self.reference.shape[-2], self.reference.shape[-1]

    @property
    def compared(self) -> Tensor:
        """The reference, for comparisons: where it is absent nothing matches, not even ABSENT."""
        return torch.where(self.reference > 1, 2 * ABSENT, self.reference).contiguous()

    def to(self, device: torch.device) -> Views:
        """The same on a device."""
        noise = None if self.noise is None else self.noise.to(device)
        pictures, reference = self.pictures.to(device), self.reference.to(device)
        return Views(pictures, reference, self.steps.to(device), self.margin, noise)

    def only(self, chosen: Tensor) -> Views:
        """Some of the views."""
        return replace(self, pictures=self.pictures[chosen], steps=self.steps[chosen])


def thinned(views: Views, most: int) -> Views:
    """At most this many views, spread over the aperture: the same ones in memory if they are first.

    Views that were thinned out before lie in the order in which they were chosen, so fewer of them
    are the first, which need not be copied.
    """
    chosen = thin_out(views.steps, most)
    count = len(chosen)
    if not torch.equal(chosen, torch.arange(count)):
        return views.only(chosen)
    if count == len(views.steps):
        return views
    first = replace(views, pictures=views.pictures[:count], steps=views.steps[:count])
    first.kept["whole"] = views
    return first


def present(picture: Tensor) -> Tensor:
    """A picture in [0, 1], 0 where it is absent."""
    return torch.where(picture > 1, 0.0, picture)


def sectors_of(steps: Tensor) -> Tensor:
    """Sector of each direction (k, 2) to (k); views on an axis lie in the middle of theirs."""
    angle = torch.atan2(-steps[:, 0], -steps[:, 1])
    turn = (angle + torch.pi) / (2 * torch.pi) * SECTORS
    return torch.floor(turn + 0.5 + 1e-4).long() % SECTORS


def voters(steps: Tensor) -> Tensor:
    """Numbers of the views that vote: all, but of a large grid only about every other one.

    As on a chessboard, and all in the reference's own row and column, because narrow gaps mostly
    run along these. On 9x9 views the votes of 48 were no worse than those of all 80.
    """
    places = steps.round()
    if len(steps) <= MANY or not torch.equal(places, steps):
        return torch.arange(len(steps))
    is_black = places.sum(1) % 2 == 0
    return torch.nonzero(is_black | (places == 0).any(1))[:, 0]


def thin_out(steps: Tensor, most: int) -> Tensor:
    """Numbers of at most this many views, spread over the aperture: the farthest from each other.

    Starting with the outermost; each next one is the farthest from all that are chosen.
    """
    if not len(steps):
        return torch.arange(0)
    chosen = [int(steps.norm(dim=1).argmax())]
    distance = torch.full((len(steps),), torch.inf)
    while len(chosen) < min(most, len(steps)):
        distance = distance.minimum((steps - steps[chosen[-1]]).norm(dim=1))
        distance[chosen] = -1.0  # even if cameras stand where another one does
        chosen.append(int(distance.argmax()))
    return torch.tensor(chosen)
