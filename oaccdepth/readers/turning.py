"""Views, masks and camera positions -> the same with their camera axes turned."""

from __future__ import annotations

import numpy as np

from oaccdepth.lightfield import Array, FloatArray
from oaccdepth.readers.grid import Arrangement


def rearrange(array: Array, arrangement: Arrangement) -> Array:
    """Transpose and flip the first two axes, in place if the grid is square."""
    if arrangement.transpose:
        array = _transpose(array)
    if arrangement.flip_u:
        _reverse(array)
    if arrangement.flip_v:
        _reverse(array.swapaxes(0, 1))
    return array


def rearrange_places(places: FloatArray, arrangement: Arrangement) -> FloatArray:
    """Rearrange camera positions (u, v, 2), relative to the centre, like the views.

    The axes change direction together with the views, so the coordinates change, too.
    """
    places = np.asarray(rearrange(places.copy(), arrangement), dtype=np.float32)
    if arrangement.transpose:
        places = places[..., ::-1]
    signs = [-1 if flip else 1 for flip in (arrangement.flip_u, arrangement.flip_v)]
    places = places * np.array(signs, dtype=np.float32)
    return np.ascontiguousarray(places - places[len(places) // 2, places.shape[1] // 2])


def _transpose(array: Array) -> Array:
    rows, columns = array.shape[:2]
    if rows != columns:
        return np.ascontiguousarray(array.swapaxes(0, 1))
    for u in range(rows):
        for v in range(u):
            kept = array[u, v].copy()
            array[u, v] = array[v, u]
            array[v, u] = kept
    return array


def _reverse(array: Array) -> None:
    last = len(array) - 1
    for u in range(len(array) // 2):
        kept = array[u].copy()
        array[u] = array[last - u]
        array[last - u] = kept
