"""Clipped sums of numeric columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_positive
from stratsynth.questions.sums.base import Block, Norm, Sum, check_clip, check_norm
from stratsynth.questions.sums.clipping import Floats, Ints, clipped
from stratsynth.schema import Column, Numeric
from stratsynth.schema.transforms import bounds, forward

if TYPE_CHECKING:
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
