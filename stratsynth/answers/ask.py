"""Answers to queries: the linear functions that each statistic is made of, their least squares, and intervals.

Queries that differ only in the levels of their conditions are answered together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.answers import intervals
from stratsynth.answers.intervals import Answer, RatioOfSums
from stratsynth.answers.quantiles import quantiles
from stratsynth.answers.query import Query, codes
from stratsynth.answers.squares import Functions, Squares
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

TOGETHER = 2**20
"""Approximate number of weights in the functions that are evaluated at once; bounds memory."""


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Linear functions of queries of one kind: one row per query and cell, all cells of the first query first."""

    numerator: Functions
    """Count of the rows in a cell; for a mean, sum of the middles of their bins."""
    denominator: Functions
    """Count of the rows that a share, rate or mean is taken over; for a count, of all rows."""
    squares: Functions
    """Numerator with each row's number squared."""


def answers(squares: Squares, queries: Sequence[Query]) -> list[Answer]:
    """Answer each query by the least squares: an Answer, of arrays with one entry per cell, in the queries' order.

    Raises:
        UsageError: A column or level that the schema does not know, or a query that makes no sense.
    """
    schema, found = squares.tables.schema, dict[int, Answer]()
    for query in {id(query): query for query in queries}.values():
        query.check(schema)
    kinds: dict[tuple[object, ...], list[int]] = {}
    for i, query in enumerate(queries):
        kinds.setdefault(query.kind, []).append(i)
    for places in kinds.values():
        cells = schema.cells(queries[places[0]].cells)
        width = schema.cells(dict.fromkeys((*queries[places[0]].cells, *queries[places[0]].columns)))
        size = max(1, TOGETHER // (cells * (width + 16)))
        for start in range(0, len(places), size):
            some = places[start : start + size]
            answer = _together(squares, [queries[i] for i in some])
            for number, i in enumerate(some):
                part = slice(number * cells, (number + 1) * cells)
                found[i] = Answer(*(array[part] for array in vars(answer).values()))
    return [found[i] for i in range(len(queries))]


def tabulated(squares: Squares, columns: Sequence[str], by: Sequence[str], level: float) -> tuple[Answer, Answer]:
    """Return two Answers of the least squares, intervals at `level`: counts of all cells, rates of `columns` in `by`.

    Both are row-major, and the same as the answers to two queries of these columns, for a schema's own columns.
    """
    schema, cells = squares.tables.schema, (*by, *columns)
    shape = schema.shape(cells)
    index = np.unravel_index(np.arange(int(np.prod(shape, dtype=int))), shape)
    above = below = Functions(len(index[0]), {})
    for name, code in zip(cells, index, strict=True):
        ones = np.eye(schema.size(name))[code]
        above = above.times(name, ones)
        below = below.times(name, ones) if name in by else below
    asked, effect = QueryBatch(above, below, above), float(schema.most_rows * schema.row_weight.most)
    rates = _quotient(squares, asked, share=True)
    return _counts(squares, asked, level, effect, None), rates.answer(level, effect)


def _together(squares: Squares, queries: Sequence[Query]) -> Answer:
    schema, first = squares.tables.schema, queries[0]
    # a unit adds up to most_rows rows of weight most, so sampling variances grow by at most their product
    effect = float(schema.most_rows * schema.row_weight.most)
    asked = functions(schema, queries)
    if first.statistic == "quantile":
        return quantiles(squares, first, schema, asked.denominator, effect)
    reference = _reference(schema, first, len(queries)) if first.versus else None
    if first.statistic == "count":
        return _counts(squares, asked, first.level, effect, reference)
    return _quotients(squares, asked, first, effect, reference)


def functions(schema: Schema, queries: Sequence[Query]) -> QueryBatch:
    """Return numerators, denominators, sums of squares of queries of one kind in a schema, as functions of counts."""
    first, number = queries[0], len(queries)
    shape = schema.shape(first.cells)
    cells = int(np.prod(shape, dtype=int))
    index = np.unravel_index(np.arange(cells), shape) if shape else ()
    below = Functions(number * cells, {})
    for name in first.where:
        allowed = np.zeros((number, schema.size(name)))
        for row, query in enumerate(queries):
            allowed[row, codes(schema, name, query.where[name])] = 1.0
        below = below.times(name, np.repeat(allowed, cells, axis=0))
    above = below
    for name, code in zip(first.cells, index, strict=True):
        ones = np.tile(np.eye(schema.size(name))[code], (number, 1))
        above = above.times(name, ones)
        # a rate or mean is taken within its group, a share over all rows of the condition
        if name in first.by and first.statistic in {"rate", "mean", "quantile"}:
            below = below.times(name, ones)
    if not first.numeric:
        return QueryBatch(above, below, above)
    # mean = sum of middles / rows with a number; the squares give its sampling variance
    middles, there = _numbers(schema, first.columns[0])
    return QueryBatch(
        below.times(first.columns[0], middles),
        below.times(first.columns[0], there),
        below.times(first.columns[0], middles**2),
    )


def _numbers(schema: Schema, name: str) -> tuple[Floats, Floats]:
    """Return arrays (1, levels) of column `name`: middle of each bin, 0 for other levels.

    The second array has 1 for bins and 0 for other levels.
    """
    column = cast("Numeric", schema.column(name))
    middles, there = np.zeros((1, column.size)), np.zeros((1, column.size))
    middles[0, : len(column.middles)], there[0, : len(column.middles)] = column.middles, 1.0
    return middles, there


def _reference(schema: Schema, query: Query, number: int) -> NDArray[np.intp]:
    """Return, for each of `number` queries like `query` and each cell, the index of the cell with `versus`'s levels."""
    shape = schema.shape(query.cells)
    cells = int(np.prod(shape, dtype=int))
    index = list(np.unravel_index(np.arange(cells), shape))
    for name, level in query.versus.items():
        (code,) = codes(schema, name, level)
        index[query.cells.index(name)] = np.full(cells, code)
    inside = np.ravel_multi_index(tuple(index), shape)
    found: NDArray[np.intp] = (np.arange(number)[:, None] * cells + inside[None, :]).ravel()
    return found


def _counts(
    squares: Squares, asked: QueryBatch, level: float, effect: float, reference: NDArray[np.intp] | None
) -> Answer:
    value, known = squares.estimate(asked.numerator)
    variance = _variance(squares, asked.numerator, known)
    (rows,), (sized,) = squares.estimate(Functions(1, {}))
    rows = max(float(rows), 1.0) if sized else np.inf
    answer = intervals.counts(value, variance, rows, level, effect)
    if reference is None:
        return answer
    between = squares.covariance(asked.numerator, asked.numerator.take(reference))
    there = np.maximum(value, 0.0)
    # a row is in one cell only, so sampling errors of two cells are negatively correlated (multinomial)
    own, together = effect * there * (1 - np.minimum(there / rows, 1)), -effect * there * there[reference] / rows
    return intervals.difference(answer, reference, _errors(variance, between, own, together, reference))


def _variance(squares: Squares, functions: Functions, known: NDArray[np.bool_]) -> Floats:
    return np.where(known, np.maximum(squares.covariance(functions, functions), 0.0), np.nan)


def _quotient(squares: Squares, asked: QueryBatch, *, share: bool) -> RatioOfSums:
    """Return quotients of `asked`, one a cell, by least squares, with the noise of both parts; `share`: parts of 1."""
    (a, one), (b, two) = squares.estimate(asked.numerator), squares.estimate(asked.denominator)
    second = a if share else squares.estimate(asked.squares)[0]
    return RatioOfSums(
        a,
        b,
        _variance(squares, asked.numerator, one),
        squares.covariance(asked.numerator, asked.denominator),
        _variance(squares, asked.denominator, two),
        second,
        share=share,
        most=squares.most(asked.denominator),
    )


def _quotients(
    squares: Squares, asked: QueryBatch, query: Query, effect: float, reference: NDArray[np.intp] | None
) -> Answer:
    quotient = _quotient(squares, asked, share=not query.numeric)
    if reference is None:
        return quotient.answer(query.level, effect)
    b, r, to = quotient.b, quotient.value, reference
    # the noise in a / b is that of (a - r b) / b, to first order
    above, below = asked.numerator.take(to), asked.denominator.take(to)
    between = (
        squares.covariance(asked.numerator, above)
        - r[to] * squares.covariance(asked.numerator, below)
        - r * squares.covariance(asked.denominator, above)
        + r * r[to] * squares.covariance(asked.denominator, below)
    ) / (b * b[to])
    own, together = effect * quotient.sampling, np.zeros_like(r)
    if query.statistic == "share" or not set(query.versus) & set(query.by):  # shares of one total
        together = -effect * np.maximum(r * r[to], 0.0) / b
    errors = _errors(quotient.variance, between, own, together, to)
    return intervals.difference(quotient.answer(query.level, effect), to, errors)


def _errors(
    variance: Floats, between: Floats, sampling: Floats, together: Floats, reference: NDArray[np.intp]
) -> intervals.ErrorCorrelations:
    """Return correlations of each estimate's error with that of its `reference` cell, of noise and of both errors.

    Given are variances of the noise, its covariances with the reference's, and the same of sampling error.
    """

    def correlation(covariance: Floats, spread: Floats) -> Floats:
        scale = np.sqrt(spread * spread[reference])
        return np.clip(np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0), -1.0, 1.0)

    return intervals.ErrorCorrelations(
        correlation(between, variance), correlation(between + together, variance + np.maximum(sampling, 0.0))
    )
