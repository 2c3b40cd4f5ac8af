"""The weight of a row: the one source of it for counts, sums and their sensitivities."""

from __future__ import annotations

from dataclasses import dataclass

from stratsynth.checks import check_integer, number
from stratsynth.errors import SchemaError
from stratsynth.schema.text import check_text

MOST = 2**10
"""Largest weight that a schema may declare."""


@dataclass(frozen=True)
class RowWeight:
    """The weight of a row, in whole units: tables and sums add it up, and noise covers its largest value.

    With a `column`, every row counts as its own weight there, such as the people whom a respondent of a survey stands
    for: rounded to a whole number and clipped to [0, `most`]; a value that is no finite number
    counts as `missing`. A row's weight depends on that row alone.
    """

    most: int = 1
    """Largest weight of a row; without a column, the weight of each. Sensitivities are proportional to it."""

    column: str | None = None
    """Column with the rows' weights; not among the columns of the schema, as it is never released."""

    missing: int = 0
    """Weight of a row whose own is missing or no number; 0 leaves the row out of every count and sum."""

    mean: float | None = None
    """Publicly known approximate mean weight, such as population over sample; None if unknown. For plans, and for the
    number of rows that a step samples."""

    def __post_init__(self) -> None:
        """Raise SchemaError for a largest weight not in 1 to MOST, `missing` or `mean` above it, or with no column."""
        if type(self.most) is not int or not 1 <= self.most <= MOST:
            raise SchemaError(
                f"the weight of a row must be a whole number from 1 to {MOST:,}, not {self.most!r}: larger weights are "
                "cut to the largest, or the column is divided first, so that one unit is ten people, say"
            )
        if self.column is None:
            if self.missing != 0 or self.mean is not None:
                raise SchemaError("the weight of a row: `missing` and `mean` need a column")
            return
        check_text("weight: column", self.column)
        check_integer("weight: missing", self.missing, 0, self.most, error=SchemaError)
        number("weight: mean", self.mean, above=0, most=self.most, optional=True, error=SchemaError)

    @property
    def each(self) -> int:
        """Factor of a count of rows: `most` without a column; 1 with one, as weights are then in the counts."""
        return self.most if self.column is None else 1


ONE = RowWeight()
