"""Sums of numeric columns: clipped ones, and by bin the numbers' places within it, or multiples of round numbers.

In `WithinBins` a row has one bin, or none (spikes, special codes, missing values), and adds to its coordinates alone:

- its place u, from -1 at the bin's lower end to 1 at its upper, on the scale on which the column's shape is even; or
- with `multiples`, exactly 1 in the class of the first multiple that divides the number, the last class being of none.

A record more or fewer moves the vector by at most 1. Exchanged, two records of one bin move its place by at most 2, and
of two bins by sqrt(2); a class by sqrt(2) in the L2 norm, by 2 in the L1 norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_positive, is_plain_tuple
from stratsynth.questions.sums.base import GRID, Block, Floats, Ints, Norm, Sum, check_clip, check_norm, clipped
from stratsynth.schema import Column, Numeric
from stratsynth.schema.bins import LINEAR
from stratsynth.schema.transforms import bounds, exact_log, forward

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which


@known
@dataclass(frozen=True)
class Columns(Sum):
    """The vector of some numeric columns, (x - centre) / scale, clipped to a ball around zero.

    With one column, `norm` l1 and l2 are the same clipped sum, and COINPRESS needs its mean. A column
    that declares a transform is summed on that scale, unless `raw`: centre and scale are then in its unit.
    """

    columns: tuple[str, ...]
    centre: tuple[float, ...]
    """Public guess of the middle of each column, in the column's unit."""
    scale: tuple[float, ...]
    """Public unit of each column."""
    clip: float
    """Radius of the ball, in units of `scale`."""
    norm: Norm = "l2"
    """Norm of the clip: `l2` for Gaussian noise, `l1` for Laplace noise."""
    square: bool = False
    """True to square each coordinate before the vector is clipped, as for a variance."""
    raw: bool = field(default=False, metadata={"digest": False})
    """True to sum the numbers themselves where a column declares a transform; earlier versions had no such sums."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: columns not numeric in `schema`, unfit centres, scales, clip, norm, lengths."""
        check_clip("columns", self.clip)
        check_norm("columns", self.norm)
        if not self.columns or not len(self.columns) == len(self.centre) == len(self.scale):
            raise MechanismError("columns: give a centre and a scale for each column.")
        for name, centre, scale in zip(self.columns, self.centre, self.scale, strict=True):
            if not isinstance(schema.columns.get(name), Numeric):
                raise MechanismError(f"columns: {name!r} is not a numeric column here.")
            if not math.isfinite(centre):
                raise MechanismError(f"columns: the centre of {name} must be finite.")
            check_positive(f"columns: the scale of {name}", scale)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return (`Block`,), for any `schema`: one coordinate per column of the query, clipped together."""
        return (Block(len(self.columns), self.clip),)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return [int array] over coded rows `which`: clipped sums of (number - centre) / scale, or of its square."""
        # One element at a time; NaN marks a missing value, whose row adds zero.
        vectors = np.array(
            [
                (self._on_scale(rows.schema.column(name), rows.numbers[name][which]) - float(centre)) / float(scale)
                for name, centre, scale in zip(self.columns, self.centre, self.scale, strict=True)
            ]
        )
        if self.square:
            vectors *= vectors
        return clipped(vectors, self.clip, self.norm)

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but centres and scales, which earlier answers may give."""
        return "columns", self.columns, f"{self.clip:.9g}", self.norm, self.square, *(("raw",) if self.raw else ())

    def each_row_adds_clip(self, schema: Schema) -> bool:
        """True if (lower bound - centre) / scale of the first column in `schema` is >= `clip`; False with `square`."""
        column = cast("Numeric", schema.column(self.columns[0]))
        low = column.lower if self.raw else bounds(column)[0]
        return not self.square and (low - self.centre[0]) / self.scale[0] >= self.clip

    def counts_records(self, schema: Schema) -> bool:
        """True for the sum of one column that in `schema` is beyond the clip in every row and never missing."""
        column = cast("Numeric", schema.column(self.columns[0]))
        every = not column.missing and column.not_applicable is None
        return len(self.columns) == 1 and every and self.each_row_adds_clip(schema)

    def _on_scale(self, column: Column, numbers: Floats) -> Floats:
        """Return an array of the column's numbers mapped to the scale of its declared transform, unless `raw`."""
        assert isinstance(column, Numeric)  # noqa: S101 - the query's check
        return numbers if self.raw else forward(column, numbers)


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
