"""Counts, shares and rates where a few strata lack a table: the others answer, and these are bounded by their sizes.

A stratum without a table of the question's columns has from none to all of its records in a cell. If other tables
measured its size, all is that noisy number; if not, it is assumed to be at most TWICE the declared one. So a count lies
between that of the other strata and the same with all these records; a quotient a / b between a / (b + all) and
(a + all) / (b + all). The interval goes from the lower end of the one to the upper end of the other, each with the
noise of all its parts, and so holds at least as often as its level says. The estimate takes the records for like those
of the other strata in the same declared groups. There is none of a cell most of whose records would be such.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.answers import intervals
from stratsynth.answers.ask import answers, functions
from stratsynth.answers.intervals import Answer, RatioOfSums
from stratsynth.answers.nearest import has_table
from stratsynth.answers.query import Query, codes
from stratsynth.answers.quotients import variance
from stratsynth.answers.squares import Squares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stratsynth.answers.tables import Leaf, Tables

    Floats = NDArray[np.float64]

TWICE = 2.0
"""Largest number of records of a stratum whose size was not measured, in declared ones."""
BOUNDED = "bounds: from none to all of their measured records may be in the cell"
ASSUMED = "assumed: these have at most twice as many, and are as the others of their declared group"


def assumed(tables: Tables, query: Query) -> Answer | None:
    """Return the Answer to a count, share or rate with bounds for strata that lack a table; None where there are none.

    In it `bounded` masks the cells for which no declared size was needed. Nothing is known of means, quantiles and
    differences, of strata whose size is neither measured nor declared, and where no stratum has a table of the
    question's columns.
    """
    if query.statistic not in {"count", "share", "rate"} or query.versus:
        return None
    names = tuple(dict.fromkeys((*query.cells, *query.where)))
    lacking = tuple(leaf for leaf in tables.leaves if not has_table(leaf, names, tables.by))
    kept = tuple(leaf for leaf in tables.leaves if has_table(leaf, names, tables.by))
    if not lacking or not kept:
        return None
    part = _Part(Squares(replace(tables, leaves=kept, everybody=())), lacking, query)
    return part.answer() if np.isfinite(part.people).all() else None


@dataclass(frozen=True, eq=False)
class _Part:
    """The strata that have tables, and those that lack them."""

    squares: Squares
    lacking: Sequence[Leaf]
    query: Query

    @cached_property
    def _totals(self) -> tuple[Floats, Floats]:
        """Measured size of each stratum that lacks a table, and its variance; infinite if it was not measured."""
        values, variances, _ = Squares(replace(self.squares.tables, leaves=tuple(self.lacking), everybody=())).totals()
        return values, variances

    @cached_property
    def measured(self) -> NDArray[np.bool_]:
        """Mask of these strata whose size was measured."""
        return np.isfinite(self._totals[1])

    @cached_property
    def people(self) -> Floats:
        """Expected records of each of these strata: as measured, not below 0, or else as declared."""
        declared = np.array([leaf.people for leaf in self.lacking])
        return np.where(self.measured, np.maximum(self._totals[0], 0.0), declared)

    def answer(self) -> Answer:
        """Return the Answer, without an estimate in cells most of whose records are in strata that lack a table."""
        query, inside = self.query, self._within(self.query.cells)
        over = query.cells if query.statistic == "count" else query.by if query.statistic == "rate" else ()
        found = self._counts() if query.statistic == "count" else self._quotients(over)
        groups = [name for name in query.cells if name in self.squares.tables.by]
        most = inside @ self.people > self._over(groups, self._count(groups, everything=True))
        declared = ~np.isfinite(found.estimate) | (self._within(over) @ ~self.measured > 0)
        return replace(found, bounded=~declared).without(most)

    def _counts(self) -> Answer:
        """Return counts: from that of the strata with tables to the same with all records of the others."""
        query, squares, inside = self.query, self.squares, self._within(self.query.cells)
        schema = squares.tables.schema
        asked = functions(schema, [query]).numerator
        value, known = squares.estimate(asked)
        noise, (more, blur) = variance(squares, asked, known), self._all(inside)
        rows = float(self._count(()).sum() + self.people.sum())
        effect = float(schema.most_rows * schema.row_weight.most)
        least, most = (
            intervals.counts(value + one, noise + other, rows, query.level, effect)
            for one, other in ((0.0, 0.0), (more, blur))
        )
        estimate = value + inside @ self.people * self._fraction(query.cells)
        return _between(estimate, least.noise_sd, least, most)

    def _quotients(self, over: Sequence[str]) -> Answer:
        """Return shares or rates `a / b`: from a / (b + all records of the others) to (a + all) / (b + all)."""
        query, squares = self.query, self.squares
        schema, inside, outside = squares.tables.schema, self._within(query.cells), self._within(over)
        asked = functions(schema, [query])
        (a, one), (b, two) = squares.estimate(asked.numerator), squares.estimate(asked.denominator)
        own, whole = variance(squares, asked.numerator, one), variance(squares, asked.denominator, two)
        both = squares.covariance(asked.numerator, asked.denominator)
        declared = np.array([leaf.people for leaf in self.lacking])
        effect = float(schema.most_rows * schema.row_weight.most)
        (below, blur_below), (more, blur) = self._all(outside), self._all(inside)
        most = squares.most(asked.denominator) + np.where(outside > 0, declared, 0.0).sum(axis=1)

        def answer(a: Floats, b: Floats, noise: tuple[Floats, Floats, Floats]) -> Answer:
            found = RatioOfSums(a, b, *noise, scatter=np.zeros_like(a), share=True, most=most)
            return found.answer(query.level, effect)

        plain = answer(a, b, (own, both, whole))
        least = answer(a, b + below, (own, both, whole + blur_below))
        top = answer(a + more, b + more, (own + blur, both + blur, whole + blur))
        there = b + outside @ self.people * self._over(over, self._fraction(over))
        estimate = (a + inside @ self.people * self._fraction(query.cells)) / there
        found = _between(estimate, plain.noise_sd, least, top)
        return replace(found, noise_high=np.minimum(found.noise_high, 1.0), high=np.minimum(found.high, 1.0))

    def _all(self, inside: Floats) -> tuple[Floats, Floats]:
        """Return the largest number of records that lacking strata may have in each cell, and its noise variance."""
        values, variances = self._totals
        most = np.where(self.measured, values, TWICE * self.people)
        return inside @ most, inside @ np.where(self.measured, variances, 0.0)

    def _within(self, names: Sequence[str]) -> Floats:
        """Return an array (cells, lacking strata): 1 where these columns allow a stratum records in a cell."""
        schema, by = self.squares.tables.schema, self.squares.tables.by
        shape = schema.shape(self.query.cells)
        index = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.intp)
        found = np.zeros((index.shape[1], len(self.lacking)))
        for number, leaf in enumerate(self.lacking):
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

    def _over(self, names: Sequence[str], values: Floats, cells: Sequence[str] | None = None) -> Floats:
        """Return, for each of `cells` (the query's by default), the value of the cell of `names` that it lies in."""
        schema, whole = self.squares.tables.schema, tuple(self.query.cells if cells is None else cells)
        shaped = values.reshape(schema.shape(tuple(names)))
        order = [name for name in whole if name in names]
        shaped = shaped.transpose([list(names).index(name) for name in order])
        shaped = shaped.reshape([schema.size(name) if name in names else 1 for name in whole])
        return np.broadcast_to(shaped, schema.shape(whole)).ravel()


def _between(estimate: Floats, noise_sd: Floats, least: Answer, most: Answer) -> Answer:
    """Return the Answer that reaches from the lower ends of one to the upper ends of another, the estimate included."""
    return replace(
        least,
        estimate=estimate,
        noise_sd=noise_sd,
        noise_low=np.minimum(least.noise_low, estimate),
        noise_high=np.maximum(most.noise_high, estimate),
        low=np.minimum(least.low, estimate),
        high=np.maximum(most.high, estimate),
    )
