"""How much one row counts: the one place from which counts, sums and their sensitivities take it."""

from __future__ import annotations

from dataclasses import dataclass

from stratsynth.errors import SchemaError


@dataclass(frozen=True)
class RowWeight:
    """The weight of every row, in whole units: tables and sums add it up, and noise covers its largest value."""

    most: int = 1
    """The largest weight of a row, and today the weight of each: sensitivities are in proportion to it."""

    def __post_init__(self) -> None:
        """A whole number with which tables of 2^32 rows, and their distances in 1/65,536 of a record, fit 64 bits."""
        if type(self.most) is not int or not 1 <= self.most <= 2**10:
            raise SchemaError(f"the weight of a row must be a whole number from 1 to 1,024, not {self.most!r}")


ONE = RowWeight()
