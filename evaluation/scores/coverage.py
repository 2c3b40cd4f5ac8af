"""Coverage of a release's intervals: the share of them that contain the value computed from the real rows.

Real counts, shares and rates are computed from exact counts of the same cells. Real means and quantiles are those of
the numbers themselves: a quantile is the smallest number that at least this part of the rows does not exceed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.answers import Query
from stratsynth.answers.ask import answers
from stratsynth.answers.query import codes as level_codes
from stratsynth.answers.squares import Squares
from stratsynth.answers.tables import Leaf, Noisy, Tables
from stratsynth.evaluation.scores.marginals import coded
from stratsynth.models.intervals import wilson

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.evaluation.tables import Codes
    from stratsynth.release import Release
    from stratsynth.schema import Schema

EXACT = 1e-12
"""Tiny noise variance given to exact counts, so that the code for noisy counts applies."""


def real_values(
    codes: Codes, schema: Schema, queries: Sequence[Query], numbers: Mapping[str, NDArray[np.float64]] | None = None
) -> list[NDArray[np.float64]]:
    """INTERNAL. Exact answers from the rows: a list of arrays, one a query, with an entry for each of its cells.

    Args:
        codes: Mapping from column to the array of level numbers, one a row.
        schema: Schema of all columns.
        queries: Queries to answer.
        numbers: Mapping from column to the array of numbers, one a row, NaN for none; needed for means and quantiles.
    """
    return [
        _of_numbers(codes, schema, query, (numbers or {})[query.columns[0]])
        if query.numeric
        else _of_counts(codes, schema, query)
        for query in queries
    ]


def _of_counts(codes: Codes, schema: Schema, query: Query) -> NDArray[np.float64]:
    """Return the exact answer to a query for counts, shares or rates, a flat array over its cells.

    `codes` maps columns of the schema to arrays of the rows' level numbers.
    """
    columns = tuple(dict.fromkeys((*query.by, *query.columns, *query.where)))
    shape = schema.shape(columns)
    rows = len(next(iter(codes.values())))
    cells = np.ravel_multi_index([codes[c].astype(np.int64) for c in columns], shape) if columns else None
    counts = np.array([rows]) if cells is None else np.bincount(cells, minlength=int(np.prod(shape)))
    table = Noisy(columns, counts.reshape(shape).astype(np.float64), EXACT)
    squares = Squares(Tables(schema, frozenset(), (Leaf("", {}, [table]),), ()))
    return answers(squares, [query])[0].estimate


def _of_numbers(codes: Codes, schema: Schema, query: Query, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the query's mean or quantile of the rows' `numbers` that meet its `where`, by cell of its `by`.

    The array is flat and row-major, NaN in a cell of no number. `numbers` is an array of one a row; `codes` maps
    columns of the schema to arrays of the rows' level numbers.
    """
    there = np.isfinite(numbers)
    for name, condition in query.where.items():
        there &= np.isin(codes[name], level_codes(schema, name, condition))
    shape = schema.shape(query.by)
    index = [codes[name][there].astype(np.int64) for name in query.by]
    cells = np.ravel_multi_index(index, shape) if query.by else np.zeros(int(there.sum()), dtype=np.int64)
    order, own = np.argsort(cells, kind="stable"), numbers[there]
    ends = np.searchsorted(cells[order], np.arange(1, int(np.prod(shape, dtype=int))))
    found = [_of_group(query, part) for part in np.split(own[order], ends)]
    return np.array(found)


def _of_group(query: Query, numbers: NDArray[np.float64]) -> float:
    """Return a query's mean or quantile of one group's `numbers`, an array; NaN without any."""
    if not len(numbers):
        return float("nan")
    mean = query.statistic == "mean"
    return float(numbers.mean() if mean else np.quantile(numbers, query.order, method="inverted_cdf"))


def interval_coverage(
    real: Any, release: Release, *, by: Sequence[str], columns: Sequence[str] | None = None, level: float = 0.95
) -> pd.DataFrame:
    """INTERNAL. Coverage of the noise intervals of each group's counts: the share of them that contain the real count.

    One release has one draw of the noise, so that a group's intervals are no independent trials: columns of one table
    share its noise. Judge many groups together, or many fits by `scripts/bench answers`.

    Args:
        real: The private rows: a frame, an Arrow table or a path.
        release: The Release made from them, as `Release.load` reads it.
        by: The columns of the groups.
        columns: Columns whose levels are counted in each group; None for all others.
        level: Nominal probability of each interval.

    Returns:
        A frame with a row for each group: its columns, `n` (number of intervals), `value` (share of them that contain
        the real count), `low` and `high` (Wilson's 95 % interval of the share), `not_estimable` (number of counts
        without an interval), `status` (`ok`, or `not_estimable` if no count had one).
    """
    import pandas as pd

    schema = release.model.schema
    wanted = [name for name in schema.names if name not in by] if columns is None else columns
    queries = [Query([name], by=by, level=level) for name in wanted]
    true = real_values(coded(real, schema), schema, queries)
    groups = schema.shape(by)
    held, asked, lost = (np.zeros(int(np.prod(groups, dtype=int)), dtype=int) for _ in range(3))
    for query, values, answer in zip(queries, true, answers(release.answers.squares, queries), strict=True):
        known = np.isfinite(answer.estimate)
        inside = known & (answer.noise_low <= values) & (values <= answer.noise_high)
        shape = (len(held), schema.size(query.columns[0]))
        held += inside.reshape(shape).sum(axis=1)
        asked += known.reshape(shape).sum(axis=1)
        lost += (~known).reshape(shape).sum(axis=1)
    low, high = wilson(held, asked)
    with np.errstate(invalid="ignore"):
        value = np.where(asked > 0, held / np.maximum(asked, 1), np.nan)
    index = np.unravel_index(np.arange(len(held)), groups) if by else ()
    named = {name: np.array(schema.levels(name))[code] for name, code in zip(by, index, strict=True)}
    status = np.where(asked > 0, "ok", "not_estimable")
    figures = {"n": asked, "value": value, "low": low, "high": high, "not_estimable": lost, "status": status}
    return pd.DataFrame({**named, **figures})
