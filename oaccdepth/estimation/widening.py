"""A range and the map found in it -> a wider range, if the map reaches the end of the search.

The range is found by windows in reduced pictures, and the search leaves some room beyond it. So a
map that is sure of disparities at the very end of that room shows something that the windows have
missed, such as a wall behind a fence. How far away it is, nobody knows: every further step is
twice as long.
"""

from __future__ import annotations

from torch import Tensor

from oaccdepth.estimation.disparity_range import Coverage
from oaccdepth.options import Range

STEP = 1.0  # px by which an end is moved at first
MOST_TIMES = 3
SURE = 0.2  # confidence of an answer that counts
NEAR = 0.25  # px from the end of the search: a level
ENOUGH = 0.01  # share of the picture that must be there


def can_be_widened(coverage: Coverage) -> bool:
    """Whether the range was found in the pictures; one that was given is not to be changed."""
    return coverage.source == "estimated"


def widen(
    coverage: Coverage, levels: Tensor, disparity: Tensor, confidence: Tensor, attempt: int = 0
) -> Coverage | None:
    """The range to search instead; None if the map (h, w) [px] is far from the ends of its levels.

    And if the range was given. `attempt` counts from 0.
    """
    if not can_be_widened(coverage):
        return None
    low, high = coverage.disparity_range
    sure = confidence > SURE
    below, above = (
        float((sure & beyond).float().mean()) >= ENOUGH
        for beyond in (disparity < levels[0] + NEAR, disparity > levels[-1] - NEAR)
    )
    if not below and not above:
        return None
    step = STEP * 2**attempt
    return Coverage((low - step * below, high + step * above), coverage.source)


def say_widened(first: Range, last: Range, is_enough: bool) -> str:
    """What happened, for the user."""
    found, searched = (f"{low:.1f} to {high:.1f} px" for low, high in (first, last))
    start = f"The map reaches beyond the disparities that were found first ({found})"
    if is_enough:
        return f"{start}: {searched} were searched."
    return (
        f"{start}, and beyond {searched}, which were searched then. "
        "Give --disparity-range if you know it."
    )
