"""Numbers at places within their bins, by the law that the column declares for those that are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.schema.bins import EVEN

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from stratsynth.schema import Numeric

    Floats = NDArray[np.float64]

POINTS = 64
"""Number of places of a bin at which moments of its numbers are computed."""


def ends(column: Numeric) -> Floats:
    """Return an array (2, bins): the smallest and the largest number of each bin."""
    return np.asarray(column.extents, dtype=np.float64).T


def numbers_at(column: Numeric, bins: ArrayLike, parts: ArrayLike) -> Floats:
    """Return the number below which the parts, 0 to 1, of the numbers drawn in these bins lie.

    Whole numbers are not rounded. Parts of numbers are even on the scale of the column's shape; a Pareto tail, whose
    slope is fitted to noisy counts, is taken for logarithmic.
    """
    low, top = ends(column)[:, np.asarray(bins)]
    part = np.asarray(parts, dtype=np.float64)
    if column.shape == EVEN:
        return np.asarray(low * (1 - part) + top * part)
    first, last = on_scale(column, low), on_scale(column, top)
    place = first * (1 - part) + last * part
    with np.errstate(over="ignore"):
        found = np.copysign(np.expm1(np.abs(place)) * column.transform_unit, place)
    return np.asarray(np.clip(found, low, top))


def on_scale(column: Numeric, numbers: Floats) -> Floats:
    """Return numbers on the scale on which the column's bins or shape are even."""
    if column.shape == column.spacing == EVEN:
        return numbers
    return np.asarray(np.copysign(np.log1p(np.abs(numbers) / column.transform_unit), numbers))


def drawn(column: Numeric) -> Floats:
    """Return an array (bins, POINTS): numbers at even places of each bin, as they are drawn."""
    parts = (np.arange(POINTS) + 0.5) / POINTS
    return numbers_at(column, np.arange(len(column.extents))[:, None], parts[None, :])
