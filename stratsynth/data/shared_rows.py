"""INTERNAL. Rows that a private table and a public one have in common: a sign that the public one is not.

A fit refuses a public table that is the private one, and decides nothing by rows that both have: their number would be
a statement about private rows that nobody paid for. Here it is counted, for the eyes of whoever holds the private rows,
before anything is fitted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.data.same_rows import row_digests
from stratsynth.data.sources import open_source
from stratsynth.errors import SchemaError

if TYPE_CHECKING:
    from stratsynth.data.sources import Data
    from stratsynth.schema import Schema

TELLING = 0.5
"""Share of the rare rows of a public table, above which their being in the private one is no coincidence."""


@dataclass(frozen=True)
class SharedRows:
    """INTERNAL. Numbers of rows as a fit reads them: level numbers in the columns that both tables have."""

    columns: tuple[str, ...]
    """Columns of the schema that both tables have, by which rows are compared."""
    private: int
    """Rows of the private table that the schema lets in."""
    public: int
    """Rows of the public table that the schema lets in."""
    shared: int
    """Rows of the public table that can be paired with an equal row of the private table, each used once."""
    rare: int
    """Rows of the public table of which it has no other like them."""
    rare_shared: int
    """Number of the rare ones of which the private table has exactly one too."""

    @property
    def suspicious(self) -> bool:
        """True if the public table has 10 or more rare rows, and most of these are rare rows of the private one too."""
        return self.rare >= 10 and self.rare_shared > TELLING * self.rare

    def __str__(self) -> str:
        """Return the numbers in words; INTERNAL."""
        asked = ": are these the same people? Their rows are not public then." if self.suspicious else "."
        return (
            f"INTERNAL: of {self.public:,} rows of the public table, {self.shared:,} are also among the "
            f"{self.private:,} private ones, by {', '.join(self.columns)}; of its {self.rare:,} rows that occur once, "
            f"{self.rare_shared:,} occur once among the private ones too{asked}"
        )


def overlap(private: Data, public: Data, schema: Schema) -> SharedRows:
    """INTERNAL. Return `SharedRows`, counts of rows that a private and a public table share; charges nothing.

    Args:
        private: The private table: a path, a frame, an Arrow table or a source.
        public: The table that is handed in as public: a prior, a holdout, or shares.
        schema: The schema by which rows are read.

    Raises:
        SchemaError: The tables have no column of the schema in common.
    """
    sources = open_source(private), open_source(public)
    names = [source.columns() for source in sources]
    common = [name for name in schema.names if all(each.count(name) == 1 for each in names)]
    if not common:
        raise SchemaError("the two tables have no column of the schema in common, so no rows can be compared")
    part = schema.restrict(common)
    mine, theirs = (
        Counter(row for batch in source.batches(part.names) for row in row_digests(part, batch)) for source in sources
    )
    rare = [row for row, times in theirs.items() if times == 1]
    return SharedRows(
        part.names,
        mine.total(),
        theirs.total(),
        (mine & theirs).total(),
        len(rare),
        sum(mine[row] == 1 for row in rare),
    )
