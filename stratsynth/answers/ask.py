"""Answers to queries: the linear functions that each statistic is made of, their least squares, and intervals.

Queries that differ only in the levels of their conditions are answered together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.answers import intervals
from stratsynth.answers.intervals import Answer
from stratsynth.answers.means import means
from stratsynth.answers.quantiles import quantiles
from stratsynth.answers.query import Query, codes
from stratsynth.answers.quotients import QueryBatch, correlations, quotients, variance
from stratsynth.answers.squares import Functions, Squares
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

TOGETHER = 2**20
"""Approximate number of weights in the functions that are evaluated at once; bounds memory."""


def answers(squares: Squares, queries: Sequence[Query]) -> list[Answer]:
    """Return a list of `Answer`, one for each of `queries`, in order, by least squares: arrays with one entry a cell.

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
                found[i] = answer.take(slice(number * cells, (number + 1) * cells))
    return [found[i] for i in range(len(queries))]


def tabulated(squares: Squares, columns: Sequence[str], by: Sequence[str], level: float) -> tuple[Answer, Answer]:
    """Return a pair of Answers, by least squares: counts of cells of `by` x `columns`; rates within cells of `by`.

    Intervals are at `level`. Both are row-major, and the same as the answers to two queries of these columns, for a
    schema's own columns.
    """
    schema, cells = squares.tables.schema, (*by, *columns)
    shape = schema.shape(cells)
    index = np.unravel_index(np.arange(int(np.prod(shape, dtype=int))), shape)
    above = below = Functions(len(index[0]), {})
    for name, code in zip(cells, index, strict=True):
        ones = np.eye(schema.size(name))[code]
        above = above.times(name, ones)
        below = below.times(name, ones) if name in by else below
    asked, effect = QueryBatch(above, below), float(schema.most_rows * schema.row_weight.most)
    return _counts(squares, asked, level, effect, None), quotients(squares, asked, level, effect)


def _together(squares: Squares, queries: Sequence[Query]) -> Answer:
    """Return one Answer by least squares to `queries` of one kind: their cells, one query after the other."""
    schema, first = squares.tables.schema, queries[0]
    # a unit adds up to most_rows rows of weight most, so sampling variances grow by at most their product
    effect = float(schema.most_rows * schema.row_weight.most)
    asked = functions(schema, queries)
    if first.statistic == "quantile":
        return quantiles(squares, first, schema, asked.denominator, effect)
    reference = _reference(schema, first, len(queries)) if first.versus else None
    if first.statistic == "count":
        return _counts(squares, asked, first.level, effect, reference)
    if first.statistic == "mean":
        return means(squares, first.columns[0], asked.denominator, first.level, effect, reference)
    one_total = first.statistic == "share" or not set(first.versus) & set(first.by)
    return quotients(squares, asked, first.level, effect, reference, one_total=one_total)


def functions(schema: Schema, queries: Sequence[Query]) -> QueryBatch:
    """Return the `QueryBatch` of queries that differ in levels of conditions alone: a function for each cell.

    For a mean or quantile, numerators too count rows with a number. Cells of the schema's levels are those of the first
    query, then of the next.
    """
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
    if first.numeric:  # of the rows with a number
        column = cast("Numeric", schema.column(first.columns[0]))
        there = np.zeros((1, column.size))
        there[0, : len(column.extents)] = 1.0
        above = below = below.times(first.columns[0], there)
    return QueryBatch(above, below)


def _reference(schema: Schema, query: Query, number: int) -> NDArray[np.intp]:
    """Return an integer array: for each cell of `number` queries like `query`, the index of the cell it is compared to.

    That is the cell with the levels of `versus`, in the schema; queries come one after the other.
    """
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
    """Return the Answer by `squares` on a `QueryBatch` of counts; with `reference`, cells' indices, on differences.

    Intervals are at `level`; `effect` is a factor on the sampling variance.
    """
    value, known = squares.estimate(asked.numerator)
    noise = variance(squares, asked.numerator, known)
    (rows,), (sized,) = squares.estimate(Functions(1, {}))
    rows = max(float(rows), 1.0) if sized else np.inf
    answer = intervals.counts(value, noise, rows, level, effect)
    if reference is None:
        return answer
    between = squares.covariance(asked.numerator, asked.numerator.take(reference))
    there = np.maximum(value, 0.0)
    # a row is in one cell only, so sampling errors of two cells are negatively correlated (multinomial)
    own, together = effect * there * (1 - np.minimum(there / rows, 1)), -effect * there * there[reference] / rows
    correlated = correlations(between, together, (noise, noise[reference]), (own, own[reference]))
    return intervals.difference(answer, answer.take(reference), np.arange(len(value)) == reference, correlated)
