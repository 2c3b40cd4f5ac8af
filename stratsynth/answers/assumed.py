"""Counts, shares and rates where a few strata lack a table: the others answer, and these are bounded by their sizes.

A stratum without a table of the question's columns has from none to all of its records in a cell. Its size is a noisy
number if other tables count its records, or if everybody was counted and all strata but such ones; if not, it is
assumed to be at most TWICE the declared one. So a count lies between that of the other strata and the same with all
these records; a quotient a / b between a / (b + all) and (a + all) / (b + all). The interval goes from the lower end of
the one to the upper end of the other, each with the noise of all its parts, and so holds at least as often as its level
says. The estimate takes the records for like those of the other strata in the same declared groups. There is none of a
cell most of whose records would be such.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.answers import intervals
from stratsynth.answers.ask import functions
from stratsynth.answers.intervals import Answer
from stratsynth.answers.nearest import has_table
from stratsynth.answers.query import Query, codes
from stratsynth.answers.quotients import QueryBatch, quotient, variance
from stratsynth.answers.squares import Functions, Squares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

TWICE = 2.0
"""Largest number of records of a stratum whose size was not measured, in declared ones."""
BOUNDED = "bounds: from none to all of their measured records may be in the cell"
ASSUMED = "assumed: these have at most twice as many, and are as the others of their declared group"


def assumed(squares: Squares, query: Query) -> Answer | None:
    """Return the Answer to a query for a count, share or rate, with bounds for strata that lack a table; or None.

    By the least squares. None without such strata, and where nothing bounds them. In it `bounded` masks the cells for
    which no declared size was needed. Nothing is known of means, quantiles and differences, of strata whose size is
    neither measured nor declared, and where no stratum has a table of the question's columns.
    """
    if query.statistic not in {"count", "share", "rate"} or query.versus:
        return None
    names = tuple(dict.fromkeys((*query.cells, *query.where)))
    lacking = np.array([not has_table(leaf, names, squares.tables.by) for leaf in squares.tables.leaves])
    if lacking.all() or not lacking.any():
        return None
    part = _Part(squares, lacking, query)
    return part.answer() if np.isfinite(part.people).all() else None


@dataclass(frozen=True, eq=False)
class _Part:
    """The strata that have tables, and those that lack them."""

    squares: Squares
    lacking: Bools
    """Mask of the strata without a table."""
    query: Query

    @cached_property
    def unsized(self) -> Bools:
        """Mask of the strata that lack a table, and whose records no table of their own counts."""
        return self.lacking & np.isinf(self.squares.totals[1])

    @cached_property
    def rest(self) -> float:
        """Measured records of the unsized strata together: everybody's less the others'; NaN if unknown."""
        (found,), _ = self.squares.estimate(Functions(1, {}, self.unsized[None, :].astype(np.float64)))
        return float(found)

    @cached_property
    def people(self) -> Floats:
        """Array: expected records of each stratum that lacks a table, 0 of others; infinite if unknown."""
        declared = np.array([leaf.people for leaf in self.squares.tables.leaves])
        if self.unsized.any() and np.isfinite(self.rest):
            even = max(self.rest, 0.0) / self.unsized.sum()
            declared = np.where(np.isfinite(declared), declared, even)
        values = np.maximum(self.squares.totals[0], 0.0)
        return np.where(self.lacking, np.where(self.unsized, declared, values), 0.0)

    def answer(self) -> Answer:
        """Return the Answer to this query, NaN in cells most of whose records are in strata that lack a table."""
        query, inside = self.query, self._within(self.query.cells)
        over = query.cells if query.statistic == "count" else query.by if query.statistic == "rate" else ()
        found = self._counts(inside) if query.statistic == "count" else self._quotients(inside, over)
        groups = [name for name in query.cells if name in self.squares.tables.by]
        most = inside @ self.people > self._over(groups, self._count(groups, everything=True))
        declared = (self._within(over)[:, self.unsized] > 0).any(axis=1) & ~np.isfinite(self.rest)
        return replace(found, bounded=~declared).without(most)

    def _counts(self, inside: Floats) -> Answer:
        """Return an Answer on counts: from that of the strata with tables to the same with all records of the others.

        `inside` (cells, strata) is 1 where a stratum without a table may have records.
        """
        query, squares = self.query, self.squares
        effect = float(squares.tables.schema.most_rows * squares.tables.schema.row_weight.most)
        rows, (more, constant) = float(self._count(()).sum() + self.people.sum()), self._all(inside)

        def answer(counted: Functions, constant: Floats | float = 0.0) -> Answer:
            value, known = squares.estimate(counted)
            noise = variance(squares, counted, known)
            return intervals.counts(value + constant, noise, rows, query.level, effect)

        least, most = answer(self._own.numerator), answer(replace(self._own.numerator, more=more), constant)
        estimate = least.estimate + inside @ self.people * self._fraction(query.cells)
        return _between(estimate, least, most)

    def _quotients(self, inside: Floats, over: Sequence[str]) -> Answer:
        """Return an Answer on shares or rates a / b: from a / (b + all of the others) to (a + all) / (b + all).

        `inside` (cells, strata) is 1 where a stratum without a table may have records; `over` are the columns of
        groups.
        """
        query, outside = self.query, self._within(over)
        effect = float(self.squares.tables.schema.most_rows * self.squares.tables.schema.row_weight.most)
        own, (below, under), (more, upper) = self._own, self._all(outside), self._all(inside)
        plain = quotient(self.squares, own)
        least = quotient(self.squares, QueryBatch(own.numerator, replace(own.denominator, more=below)))
        most = quotient(
            self.squares, QueryBatch(replace(own.numerator, more=more), replace(own.denominator, more=more))
        )
        there = plain.b + outside @ self.people * self._over(over, self._fraction(over))
        records = plain.a + inside @ self.people * self._fraction(query.cells)
        estimate = np.divide(records, there, out=np.full_like(there, np.nan), where=there > 0)
        found = _between(
            estimate,
            replace(least, b=least.b + under).answer(query.level, effect),
            replace(most, a=most.a + upper, b=most.b + upper).answer(query.level, effect),
        )
        return replace(found, noise_high=np.minimum(found.noise_high, 1.0), high=np.minimum(found.high, 1.0))

    @cached_property
    def _own(self) -> QueryBatch:
        """`QueryBatch` of numerators and denominators in the strata that have tables."""
        asked = functions(self.squares.tables.schema, [self.query])
        return QueryBatch(self._of_kept(asked.numerator), self._of_kept(asked.denominator))

    def _of_kept(self, asked: Functions) -> Functions:
        return replace(asked, kept=np.tile(~self.lacking * 1.0, (asked.number, 1)))

    def _all(self, inside: Floats) -> tuple[Functions, Floats]:
        """Return (`Functions`, array): the most records of lacking strata in each cell, as measured, and as declared.

        `inside` (cells, strata) is 1 where such a stratum may have records.
        """
        unsized = inside * self.unsized
        if np.isfinite(self.rest):  # known together only
            weights = np.where(self.unsized, unsized.any(axis=1, keepdims=True), inside)
            return Functions(len(inside), {}, weights * 1.0), np.zeros(len(inside))
        return Functions(len(inside), {}, inside - unsized), unsized @ (TWICE * self.people)

    def _within(self, names: Sequence[str]) -> Floats:
        """Return an array (cells, strata): 1 where a stratum without a table may have records of the query's cell.

        By the query's condition, and by the cell's levels of the columns `names`.
        """
        schema, by = self.squares.tables.schema, self.squares.tables.by
        shape = schema.shape(self.query.cells)
        index = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.intp)
        found = np.zeros((index.shape[1], len(self.lacking)))
        for number in np.flatnonzero(self.lacking):
            leaf = self.squares.tables.leaves[number]
            out = any(
                not set(codes(schema, name, levels)) & set(leaf.codes[name])
                for name, levels in self.query.where.items()
                if name in by
            )
            inside = np.full(index.shape[1], not out)
            for name, code in zip(self.query.cells, index, strict=True):
                if name in by and name in names:
                    inside &= np.isin(code, leaf.codes[name])
            found[:, number] = inside
        return found

    def _count(self, cells: Sequence[str], *, everything: bool = False) -> Floats:
        """Return a flat array: noisy counts by cell of the columns `cells` in strata with tables; NaN if unknown.

        Under the query's condition, of which `everything=True` drops what is on columns that define no strata.
        """
        by = self.squares.tables.by
        where = {name: some for name, some in self.query.where.items() if name in by or not everything}
        asked = functions(self.squares.tables.schema, [Query((), where, tuple(cells))]).numerator
        return self.squares.estimate(self._of_kept(asked))[0]

    def _fraction(self, cells: Sequence[str]) -> Floats:
        """Return a flat array by cell of the columns `cells`: its part of its declared group's records, where measured.

        The strata are those with tables. From 0 to 1; 1 in a group without records.
        """
        by = self.squares.tables.by
        groups = [name for name in cells if name in by]
        whole = self._over(groups, self._count(groups, everything=True), cells)
        part = np.divide(self._count(cells), whole, out=np.ones_like(whole), where=whole > 0)
        return np.clip(part, 0.0, 1.0)

    def _over(self, names: Sequence[str], values: Floats, cells: Sequence[str] | None = None) -> Floats:
        """Return a flat array: `values` by cell of `names`, over the cells of columns `cells`, by default the query's.

        `names` are some of these columns.
        """
        schema, whole = self.squares.tables.schema, tuple(self.query.cells if cells is None else cells)
        shaped = values.reshape(schema.shape(tuple(names)))
        order = [name for name in whole if name in names]
        shaped = shaped.transpose([list(names).index(name) for name in order])
        shaped = shaped.reshape([schema.size(name) if name in names else 1 for name in whole])
        return np.broadcast_to(shaped, schema.shape(whole)).ravel()


def _between(estimate: Floats, least: Answer, most: Answer) -> Answer:
    """Return an Answer with the array `estimate`, and intervals from lower ends of `least` to upper ends of `most`."""
    return replace(
        least,
        estimate=np.where(np.isfinite(least.estimate + most.estimate), estimate, np.nan),
        noise_low=np.minimum(least.noise_low, estimate),
        noise_high=np.maximum(most.noise_high, estimate),
        low=np.minimum(least.low, estimate),
        high=np.maximum(most.high, estimate),
    )
