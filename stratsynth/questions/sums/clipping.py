"""Clipping of vectors to a ball, in integers: the basis of every exact sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stratsynth.questions.sums.base import Norm

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRID = 2**30
"""Number of grid units in a block's clip: sums are integers in units of clip / GRID.

A row moves a sum by at most 2^30 units, so 2^32 rows stay within 64 bits; and noise worth adding is at least
millions of units wide, far above the width from which the discrete law is as good as the continuous one.
"""
ROWS = 1 << 13
"""Largest number of rows that are summed at a time."""
HUGE = 2.0**300
"""Bound of coordinates before clipping: its square does not overflow, and larger coordinates are clipped alike."""


@np.errstate(all="ignore")
def into_ball(vectors: Floats, radius: int | Ints, norm: Norm = "l2") -> Ints:
    """Return each column of `vectors`, scaled into a ball of an integer `radius` of at most GRID, in integers.

    `radius` is one for all or one a column, `norm` "l1" or "l2". Each column's norm is checked against its radius
    in integers; a column that fails the check twice, or has a NaN, is zero.
    """
    vectors = np.clip(vectors, -HUGE, HUGE)
    length = np.zeros(vectors.shape[1])
    for coordinate in vectors:
        length += np.abs(coordinate) if norm == "l1" else coordinate * coordinate
    if norm == "l2":
        length = np.sqrt(length)
    # divided first: with one coordinate, vectors / length is exactly 1, and the result exactly the radius
    vectors = np.where(length > radius, vectors / length * radius, vectors)
    # whatever happened above: no NaN, and nothing that would overflow below
    units = np.clip(np.trunc(np.where(np.isnan(length), 0.0, vectors)), -GRID - 1, GRID + 1).astype(np.int64)
    fits = _within(units, radius, norm)
    if not fits.all():
        # A large coordinate was rounded up: (GRID, 5) has the length GRID in floats. One unit less is enough.
        units -= np.where(fits, 0, np.sign(units))
        units[:, ~_within(units, radius, norm)] = 0
    return units


def _within(units: Ints, radius: int | Ints, norm: Norm) -> NDArray[np.bool_]:
    """Return a boolean a column of `units`: is its `norm` at most its radius; |units| <= GRID + 1, radius <= GRID."""
    spent = np.zeros(units.shape[1], np.int64)
    for coordinate in units:
        spent += np.abs(coordinate) if norm == "l1" else coordinate * coordinate
        np.minimum(spent, 2**61, out=spent)  # more than any radius^2, and far from overflow
    return spent <= (radius if norm == "l1" else radius * radius)


def clipped(vectors: Floats, clip: float, norm: Norm) -> list[Ints]:
    """Return a list of one int array in clip / GRID: sum of the columns of `vectors`, each cut to `clip` in `norm`."""
    return [into_ball(vectors / float(clip) * GRID, GRID, norm).sum(axis=1)]
