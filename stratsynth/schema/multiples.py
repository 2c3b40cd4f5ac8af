"""Rounding of drawn numbers to the multiples that a column declares, without leaving a bin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stratsynth.schema.columns import Numeric

    Floats = NDArray[np.float64]

LONGEST = 100_000
"""Most multiples of a heap after which the larger heaps come again."""
LEAST = 1e-300
"""Smallest width by which a place in a bin is divided."""


def multiples(column: Numeric, drawn: Floats, low: Floats, top: Floats) -> Floats:
    """Return the array `drawn`, each as a multiple of the unit that `round` declares for its size, within its bin.

    The part of a bin that has one unit is mapped onto its multiples, so that an even law stays even: cutting or
    rounding would favour one end. A part without a multiple stays.

    Args:
        column: The numeric column.
        drawn: Array of numbers.
        low: Array, the smallest number of each one's bin.
        top: Array, the largest number of each one's bin.
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
    """Return the array `x`, `first` to `first` + `wide`, mapped in equal parts onto multiples of `unit` up to `last`.

    `first`, `last`, `wide` are arrays by number. Rounded to `decimals`; a number without such a multiple stays.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large to have a unit stay as they are
        least, most = np.ceil(first / unit), np.floor(last / unit)
        least += np.round(least * unit, decimals) < first
        most -= np.round(most * unit, decimals) > last
        part = np.clip(np.divide(x - first, wide, out=np.zeros_like(x), where=wide > 0), 0.0, 1.0)
        step = np.minimum(least + np.floor(part * (most - least + 1)), most)
        rounded = np.round(step * unit, decimals)
        return np.where((least <= most) & (first <= rounded) & (rounded <= last), rounded, x)


def heaped(column: Numeric, drawn: Floats, low: Floats, top: Floats, classes: NDArray[np.intp]) -> Floats:
    """Return the array `drawn`, each as a multiple of its class's heap in a numeric column, and of no larger heap.

    Each stays from `low` to `top`. These and `classes` are arrays with an entry a number. A class is an index of
    `column.heaps`; one more is no multiple.

    A bin is cut into as many equal parts as it has such multiples, one for each in their order, so that an even law
    stays even: the nearest multiple would favour those at the lower end of a bin and those beside a larger one. A bin
    without such a multiple leaves a number as it is, and so does the class behind the last heap, of no multiples.
    """
    found = drawn.copy()
    for number, unit in enumerate(column.heaps):
        here = classes == number
        x, first, last = drawn[here], low[here], top[here]
        own = _Own.of(int(unit), [int(heap) for heap in column.heaps[:number]])
        before = own.below(first, "left")
        number_of = own.below(last, "right") - before
        part = np.clip((x - first) / np.maximum(last - first + column.integer, LEAST), 0.0, 1.0)
        multiple = own.at(before + np.clip(np.floor(part * number_of), 0, np.maximum(number_of - 1, 0)))
        found[here] = np.where((number_of > 0) & (first <= multiple) & (multiple <= last), multiple, x)
    return found + 0.0


@dataclass(frozen=True, eq=False)
class _Own:
    """Multiples of a heap that are multiples of no larger one: those of one period, again and again."""

    period: float
    numbers: Floats
    """Ascending, from 0 to below the period."""

    @classmethod
    def of(cls, unit: int, larger: Sequence[int]) -> _Own:
        """Return an `_Own` of the multiples of `unit` that are multiples of no heap in the list `larger`.

        A larger heap that would make the period longer than LONGEST units is ignored.
        """
        period, kept = unit, list[int]()
        for heap in larger:
            if math.lcm(period, heap) <= LONGEST * unit:
                period, kept = math.lcm(period, heap), [*kept, heap]
        numbers = np.arange(0, period, unit, dtype=np.float64)
        for heap in kept:
            numbers = numbers[numbers % heap != 0]
        return cls(float(period), numbers)

    def below(self, x: Floats, side: Literal["left", "right"]) -> Floats:
        """Return an array: how many of these lie from 0 to below each of the array `x`; `side` "right": or at it."""
        periods = np.floor(x / self.period)
        found: Floats = periods * len(self.numbers) + np.searchsorted(self.numbers, x - periods * self.period, side)
        return found

    def at(self, place: Floats) -> Floats:
        """Return an array: the multiple of each index in the array `place`, 0 the first from 0 on; NaN without any."""
        if not len(self.numbers):
            return np.full(len(place), np.nan)
        periods = np.floor(place / len(self.numbers))
        found: Floats = periods * self.period + self.numbers[(place - periods * len(self.numbers)).astype(np.intp)]
        return found
