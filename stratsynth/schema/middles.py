"""Means of the numbers drawn in each bin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stratsynth.schema.bins import LOG, scale, unscale

if TYPE_CHECKING:
    from stratsynth.schema.columns import Numeric

POINTS = 256
"""Number of points in a bin at which its mean is computed."""


def middles(column: Numeric) -> tuple[float, ...]:
    """Return, for each bin of the column, the mean of the numbers that are drawn in it."""
    return tuple(_middle(column, low, top) for low, top in column.extents)


def _middle(column: Numeric, low: float, top: float) -> float:
    if column.shape != LOG or low == top:
        return low / 2 + top / 2
    unit = column.transform_unit
    first, last = scale(low, unit), scale(top + 1 if column.integer else top, unit)
    drawn = (unscale(first + (last - first) * (i + 0.5) / POINTS, unit) for i in range(POINTS))
    return math.fsum(min(math.floor(x), top) if column.integer else x for x in drawn) / POINTS
