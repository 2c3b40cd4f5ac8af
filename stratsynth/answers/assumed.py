"""Counts, shares and rates where a few strata lack a table: the others answer, and these are assumed by declared sizes.

A stratum without a table of the question's columns is assumed to have at most TWICE its declared records. So a count
lies between that of the other strata and the same with all these records; a quotient a / b between a / (b + all) and
(a + all) / (b + all that raise a). The estimate takes the declared records for like those of the other strata in the
same declared groups. Intervals are those of the noise in the other strata, widened to these ends. Nothing is assumed of
a cell most of whose declared records would be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.answers.ask import answers
from stratsynth.answers.intervals import Answer
from stratsynth.answers.nearest import has_table
from stratsynth.answers.query import Query, codes
from stratsynth.answers.squares import Squares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stratsynth.answers.tables import Leaf, Tables

    Floats = NDArray[np.float64]

TWICE = 2.0
"""Largest number of records of a stratum without a table, in declared ones."""
NOTE = "assumed: these have at most twice as many, and are as the others of their declared group"


def assumed(tables: Tables, query: Query) -> Answer | None:
    """Return the Answer to a query for count, share or rate, strata that lack a table being assumed; else None.

    Nothing is assumed of means, quantiles and differences, of strata without a declared size, and where no stratum has
    a table of the question's columns.
    """
    if query.statistic not in {"count", "share", "rate"} or query.versus:
        return None
    names = tuple(dict.fromkeys((*query.cells, *query.where)))
    lacking = [leaf for leaf in tables.leaves if not has_table(leaf, names, tables.by)]
    kept = tuple(leaf for leaf in tables.leaves if has_table(leaf, names, tables.by))
    if not lacking or not kept or not all(math.isfinite(leaf.people) for leaf in lacking):
        return None
    part = _Part(Squares(replace(tables, leaves=kept, everybody=())), lacking, query)
    found = part.counts() if query.statistic == "count" else part.quotients()
    most = part.declared(query.cells, lacking) > part.declared(query.cells, kept)
    return replace(found, estimate=np.where(most, np.nan, found.estimate))


@dataclass(frozen=True, eq=False)
class _Part:
    """The strata that have tables, and those that are assumed."""

    squares: Squares
    lacking: Sequence[Leaf]
    query: Query

    def counts(self) -> Answer:
        """Return counts: of the strata with tables, and of the declared records of the others."""
        (found,) = answers(self.squares, [self.query])
        more = self.declared(self.query.cells, self.lacking)
        return replace(
            found,
            estimate=found.estimate + more * self._fraction(self.query.cells),
            noise_high=found.noise_high + TWICE * more,
            high=found.high + TWICE * more,
        )

    def quotients(self) -> Answer:
        """Return shares or rates: `a / b` of the strata with tables, and of the declared records of the others."""
        (found,) = answers(self.squares, [self.query])
        over = self.query.by if self.query.statistic == "rate" else ()
        a, b = self._count(self.query.cells), self._over(over, self._count(over))
        above, below = (
            self.declared(self.query.cells, self.lacking),
            self._over(over, self.declared(over, self.lacking)),
        )
        whole = b + below * self._over(over, self._fraction(over))

        def least(end: Floats) -> Floats:
            return end * b / (b + TWICE * below)

        def most(end: Floats) -> Floats:
            return np.minimum((end * b + TWICE * above) / (b + TWICE * above), 1.0)

        return replace(
            found,
            estimate=(a + above * self._fraction(self.query.cells)) / whole,
            noise_low=least(found.noise_low),
            noise_high=most(found.noise_high),
            low=least(found.low),
            high=most(found.high),
        )

    def _count(self, cells: Sequence[str], *, everything: bool = False) -> Floats:
        """Return noisy counts, by `cells`, of the strata with tables; `everything` drops conditions on own columns."""
        by = self.squares.tables.by
        where = {name: some for name, some in self.query.where.items() if name in by or not everything}
        (found,) = answers(self.squares, [Query((), where, tuple(cells))])
        return found.estimate

    def _fraction(self, cells: Sequence[str]) -> Floats:
        """Return the part of each cell among the records of its declared group, by the strata with tables."""
        by = self.squares.tables.by
        groups = [name for name in cells if name in by]
        whole = self._over(groups, self._count(groups, everything=True), cells)
        part = np.divide(self._count(cells), whole, out=np.ones_like(whole), where=whole > 0)
        return np.clip(part, 0.0, 1.0)

    def declared(self, cells: Sequence[str], leaves: Sequence[Leaf]) -> Floats:
        """Return the declared records of the strata `leaves` that may be in each cell.

        The number is infinite in a cell where a stratum's records are unknown.
        """
        schema, by = self.squares.tables.schema, self.squares.tables.by
        shape = schema.shape(tuple(cells))
        index = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.intp)
        found = np.zeros(index.shape[1])
        for leaf in leaves:
            out = any(
                not set(codes(schema, name, levels)) & set(leaf.codes[name])
                for name, levels in self.query.where.items()
                if name in by
            )
            inside = np.full(found.shape, not out)
            for name, code in zip(cells, index, strict=True):
                if name in by:
                    inside &= np.isin(code, leaf.codes[name])
            found[inside] += leaf.people
        return found

    def _over(self, names: Sequence[str], values: Floats, cells: Sequence[str] | None = None) -> Floats:
        """Return, for each of `cells` (the query's by default), the value of the cell of `names` that it lies in."""
        schema, whole = self.squares.tables.schema, tuple(self.query.cells if cells is None else cells)
        shaped = values.reshape(schema.shape(tuple(names)))
        order = [name for name in whole if name in names]
        shaped = shaped.transpose([list(names).index(name) for name in order])
        shaped = shaped.reshape([schema.size(name) if name in names else 1 for name in whole])
        return np.broadcast_to(shaped, schema.shape(whole)).ravel()
