"""Rounding of drawn numbers to the multiples that a column declares, without leaving a bin."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema.columns import Numeric

    Floats = NDArray[np.float64]


def multiples(column: Numeric, drawn: Floats, low: Floats, top: Floats) -> Floats:
    """Return drawn numbers as multiples of the units that `round` declares for their size, each within its bin.

    The part of a bin that has one unit is mapped onto its multiples, so that an even law stays even: cutting or
    rounding would favour one end. A part without a multiple stays.

    Args:
        column: The column.
        drawn: The numbers.
        low: Smallest number of each one's bin.
        top: Largest number of each one's bin.
    """
    found = drawn.copy()
    sizes = [size for size, _ in column.round] + [np.inf]
    for (size, unit), above in zip(column.round, sizes[1:], strict=True):
        decimals = max(0, -int(Decimal(repr(unit)).as_tuple().exponent))
        for sign in (1.0, -1.0):
            x = sign * drawn
            here = (x >= size) & (x < above) & ((x > 0) | (sign > 0))
            ends = np.sort([sign * low[here], sign * top[here]], axis=0)
            first = np.maximum(ends[0], size)
            last = np.minimum(ends[1], above)  # itself a multiple, if the next unit is one of this
            wide = np.where(ends[1] >= above, above, np.floor(last) + 1 if column.integer else last) - first
            found[here] = sign * _spread(x[here], first, last, wide, float(unit), decimals)
    return found + 0.0


def _spread(x: Floats, first: Floats, last: Floats, wide: Floats, unit: float, decimals: int) -> Floats:
    """Return numbers from `first` on, over a width, as multiples of `unit` up to `last` in equal parts; or as it is."""
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large to have a unit stay as they are
        least, most = np.ceil(first / unit), np.floor(last / unit)
        least += np.round(least * unit, decimals) < first
        most -= np.round(most * unit, decimals) > last
        part = np.clip(np.divide(x - first, wide, out=np.zeros_like(x), where=wide > 0), 0.0, 1.0)
        step = np.minimum(least + np.floor(part * (most - least + 1)), most)
        rounded = np.round(step * unit, decimals)
        return np.where((least <= most) & (first <= rounded) & (rounded <= last), rounded, x)


def heaped(column: Numeric, drawn: Floats, low: Floats, top: Floats, classes: NDArray[np.intp]) -> Floats:
    """Return drawn numbers as multiples of the column's heap of their class, and of no larger one, within their bins.

    A bin without such a multiple leaves a number as it is, and so does the class behind the last heap, of no multiples.
    """
    found = drawn.copy()
    for number, unit in enumerate(column.heaps):
        here = classes == number
        x, first, last = drawn[here], np.ceil(low[here] / unit) * unit, np.floor(top[here] / unit) * unit
        near = np.clip(np.round(x / unit) * unit, first, last)
        for step in (unit, -2 * unit):  # the one above, then the one below
            larger = np.any([near % heap == 0 for heap in column.heaps[:number]] or [np.zeros(len(near), bool)], axis=0)
            moved = near + step * larger
            near = np.where((first <= moved) & (moved <= last), moved, near)
        found[here] = np.where(first <= last, near, x)
    return found + 0.0
