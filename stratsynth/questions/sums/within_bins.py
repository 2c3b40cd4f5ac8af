"""Places of numbers within their bins, on the drawn scale, and multiples of round numbers, by bin.

A row has one bin, or none (spikes, special codes, missing values), and adds to that bin's coordinates alone:

- its place u, from -1 at the bin's lower end to 1 at its upper, on the scale on which the column's shape is even; or
- with `multiples`, exactly 1 in the class of the first multiple that divides the number, the last class being of none.

A record more or fewer moves the vector by at most 1. Exchanged, two records of one bin move its place by at most 2, and
of two bins by sqrt(2); a class by sqrt(2) in the L2 norm, by 2 in the L1 norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import is_plain_tuple
from stratsynth.questions.sums.base import Block, Norm, Sum, check_norm
from stratsynth.questions.sums.clipping import GRID, Floats, Ints
from stratsynth.schema import Numeric
from stratsynth.schema.bins import LINEAR
from stratsynth.schema.transforms import exact_log

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

MOST_MULTIPLES = 100
"""Largest number of multiples."""


@known
@dataclass(frozen=True)
class WithinBins(Sum):
    """Sum, by bin of a numeric column, of places in it; or numbers of records by bin and largest multiple."""

    target: str
    """Column of the numbers."""
    multiples: tuple[int, ...] = ()
    """Whole numbers of which a number may be a multiple, the first that divides it counting; none for places."""
    norm: Norm = "l2"
    """Norm of the sensitivity: `l2` for Gaussian noise, `l1` for Laplace noise."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: target not numeric in `schema`, multiples no positive ints or too many, norm."""
        if not isinstance(schema.columns.get(self.target), Numeric):
            raise MechanismError(f"within bins: {self.target!r} is not a numeric column here.")
        whole = is_plain_tuple(self.multiples, int) and all(0 < multiple < 2**53 for multiple in self.multiples)
        if not whole or len(self.multiples) > MOST_MULTIPLES:
            raise MechanismError("within bins: multiples are whole numbers above 0, not too many.")
        check_norm("within bins", self.norm)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return (`Block`,): a coordinate per bin in `schema`, or bin and class; exchange factor sqrt(2) or 2."""
        column = cast("Numeric", schema.column(self.target))
        exchange = math.sqrt(2) if self.multiples and self.norm == "l2" else 2.0
        return (Block(len(column.extents) * self._classes, 1.0, exchange),)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return [array], by bin, over coded rows `which`: sums of places in 1 / GRID, or GRID a record and class."""
        column = cast("Numeric", rows.schema.column(self.target))
        numbers, bins = rows.numbers[self.target][which], rows.codes[self.target][which].astype(np.int64)
        wide = np.array([low < top for low, top in column.extents])
        there = (bins < len(wide)) & np.isfinite(numbers)
        there[there] = wide[bins[there]]
        numbers, bins = numbers[there], bins[there]
        if self.multiples:
            cells, adds = bins * self._classes + self._class_of(numbers), np.full(len(bins), GRID)
        else:
            cells, adds = bins, place_units(column, numbers, bins)
        found = np.zeros(len(wide) * self._classes, np.int64)
        np.add.at(found, cells, adds)  # integers, one after another
        return [found]

    @property
    def _classes(self) -> int:
        """Number of coordinates of a bin."""
        return len(self.multiples) + 1 if self.multiples else 1

    def _class_of(self, numbers: Floats) -> Ints:
        """Return the index of the first multiple that divides each number; the number of multiples if none does."""
        found = np.full(len(numbers), len(self.multiples))
        for place in reversed(range(len(self.multiples))):
            found[np.fmod(numbers, float(self.multiples[place])) == 0] = place  # exact, as IEEE 754 has it
        return found


@np.errstate(all="ignore")
def place_units(column: Numeric, numbers: Floats, bins: NDArray[np.int64]) -> Ints:
    """Return places of `numbers` in their `bins`, by number, of a numeric column: ints -GRID to GRID, cut towards 0.

    One element at a time, by correctly rounded operations. A whole number stands for [x, x + 1).
    """
    low, top = np.array(column.extents, np.float64)[bins].T
    first, last, at = (_drawn(column, x) for x in (low, top + column.integer, numbers + 0.5 * column.integer))
    place = np.clip(((at - first) / (last - first) * 2.0 - 1.0) * GRID, -GRID, GRID)
    return np.trunc(np.where(np.isnan(place), 0.0, place)).astype(np.int64)


def _drawn(column: Numeric, x: Floats) -> Floats:
    """Return numbers `x` on the scale of a numeric column's shape: themselves, or sign(x) log(1 + |x| / unit)."""
    if column.shape in LINEAR:
        return x
    return np.copysign(exact_log(np.abs(x) / float(column.transform_unit) + 1.0), x)
