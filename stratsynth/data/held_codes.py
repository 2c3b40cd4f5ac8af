"""INTERNAL. Codes of a given list that no record has; none at all is a sign that it was read off the records.

A list of codes holds no rows that could be compared with the private ones. But of codes counted independently of each
other, with whatever probabilities, the expected numbers f0, f1, f2 of codes with no record, one and two satisfy
f0 >= f1^2 / (2 f2) (Cauchy and Schwarz; Chao 1984). A list that was published before the records were counted has about
as many codes without a record, or more; one that was read off the records has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.data.sources import open_source
from stratsynth.schema.encoding import encode
from stratsynth.schema.nested import Nested
from stratsynth.schema.schema import Schema

if TYPE_CHECKING:
    from stratsynth.data.sources import Data

TELLING = 5.0
"""Expected number of codes without a record from which on there being none is no chance: below e^-5."""


@dataclass(frozen=True)
class HeldCodes:
    """INTERNAL. Numbers of the codes of one given list by their numbers of records."""

    column: str
    """Name of the column."""
    listed: str
    """Origin of the list, as the schema states it: its file and citation."""
    codes: int
    """Number of codes, without not applicable."""
    never: int
    """Number of codes that no record has."""
    once: int
    """Number of codes that one record has."""
    twice: int
    """Number of codes that two records have."""

    @property
    def expected(self) -> float:
        """Least number of codes without a record to expect of a list made independently of the records (Chao)."""
        return self.once * (self.once - 1) / (2 * (self.twice + 1))

    @property
    def suspicious(self) -> bool:
        """True if every code has a record, though of a list made independently of the records some would have none."""
        return self.never == 0 and self.expected >= TELLING

    def __str__(self) -> str:
        """Return the numbers in words; INTERNAL."""
        if not self.suspicious:
            return f"{self.column}: {self.never:,} of {self.codes:,} listed codes have no record"
        return (
            f"{self.column}: every one of its {self.codes:,} codes has a record, and {self.once:,} have one alone; of "
            f"a list made without these records about {self.expected:,.0f} codes would have none. It is {self.listed}: "
            "were the codes read off these records? They are not public then."
        )


def held_codes(data: Data, schema: Schema) -> list[HeldCodes]:
    """INTERNAL. Return a list of `HeldCodes`, one a column whose list was given: its codes by records; charges nothing.

    Args:
        data: The private table: a path, a frame, an Arrow table or a source.
        schema: The schema, with the columns that the table has.
    """
    lists = {name: each for name, each in schema.columns.items() if isinstance(each, Nested) and each.listed}
    single = {name: Schema({name: each.single}) for name, each in lists.items()}
    counts = {name: np.zeros(each.size(name), np.int64) for name, each in single.items()}
    for batch in open_source(data).batches(tuple(lists)) if lists else ():
        for name, part in single.items():
            codes = encode(part, batch.select([name])).codes[name].astype(np.intp)
            counts[name] += np.bincount(codes, minlength=counts[name].size)
    found = []
    for name, column in lists.items():
        listed = [i for i, code in enumerate(column.single.levels) if code != column.not_applicable]
        own = counts[name][listed]
        numbers = (int((own == times).sum()) for times in range(3))
        found.append(HeldCodes(name, column.listed or "", len(listed), *numbers))
    return found
