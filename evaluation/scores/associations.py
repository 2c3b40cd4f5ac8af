"""INTERNAL. Correlations of pairs of columns in the real rows and in a release, in every group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import is_texts
from stratsynth.errors import UsageError
from stratsynth.evaluation.scores.intervals import absolute
from stratsynth.evaluation.tables import FEW, Array, By, Pair, joined, level_values
from stratsynth.schema import Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd

MOST_LEVELS = 256
"""Largest number of levels of columns paired by default: a pair of larger ones has too many cells."""


def correlations(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    by: By = None,
    *,
    columns: Sequence[str] | None = None,
    measures: Sequence[str] = ("pearson", "kendall", "cramer"),
    few: int = FEW,
) -> pd.DataFrame:
    """Absolute difference between release and real rows of each pair of columns' correlation, largest first; a frame.

    - "pearson": of the numbers (`EncodedRows.values`), over the rows where both apply.
    - "kendall": tau-b of the levels in the order of their numbers, bins for numeric columns, where both apply.
    - "cramer": Cramer's V of all levels, "not applicable" among them; for columns without an order.

    A correlation with a column that is constant in a group is undefined. Intervals are by the delta method.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups; None for everybody alone.
        columns: The columns to pair; by default all but those of `by` and those of more than 256 levels.
        measures: Some of the three.
        few: Groups with fewer rows in either table are `small`.

    Returns:
        For each measure and pair (`one`, `two`) a row for each declared group and one for everybody; `real` and
        `synthetic` are the correlations.

    Raises:
        UsageError: There is no such measure or column, or there are fewer than two columns.
    """
    pair = Pair.of(real, synthetic, schema, by, few)
    return correlation_frame(pair, measures, columns)


def correlation_frame(pair: Pair, measures: Sequence[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Frame of `correlations`, for a pair of tables, by these measures, of all pairs of `columns`.

    None: all columns but the groups' and those of many levels. UsageError for an unknown measure or fewer than two
    columns.
    """
    if not is_texts(measures) or not measures:
        raise UsageError(f"evaluation: correlations are a list of names, such as {list(_MEASURES)[:2]}.")
    if unknown := set(measures) - _MEASURES.keys():
        raise UsageError(f"evaluation: there is no correlation {min(unknown)!r}; there are {', '.join(_MEASURES)}.")
    names = pair.variables(columns)
    if columns is None:
        names = tuple(name for name in names if pair.schema.size(name) <= MOST_LEVELS)
    pairs = list(combinations(names, 2))
    if not pairs:
        raise UsageError("evaluation: a correlation needs two columns; name them with `columns`.")
    parts = []
    for measure in measures:
        found = np.array([[_MEASURES[measure](pair, side, one, two) for side in (0, 1)] for one, two in pairs])
        value, error, rows = found[:, :, 0], found[:, :, 1], found[:, :, 2].astype(int)
        difference = value[:, 1] - value[:, 0]
        low, high = absolute(difference, np.sqrt((error**2).sum(axis=1)))
        items = {"measure": [measure] * len(pairs), "one": [a for a, _ in pairs], "two": [b for _, b in pairs]}
        more = {"real": value[:, 0], "synthetic": value[:, 1]}
        counts = rows.transpose(1, 0, 2)
        frame = pair.frame(np.abs(difference), low, high, items=items, more=more, n=counts)
        parts.append(frame.sort_values("value", ascending=False, kind="stable", na_position="last"))
    return joined(parts)


Found = tuple[Array, Array, Array]
"""(correlation, its standard error, number of rows) by scope."""


def _pearson(pair: Pair, side: int, one: str, two: str) -> Found:
    """Found, three arrays by a pair's group, then everybody: Pearson correlation, standard error, number of rows.

    The correlation is that of columns `one` and `two` in table number `side`.
    """
    x, y = (pair.tables[side].values(name) for name in (one, two))
    here = ~np.isnan(x + y)
    x, y, group, count = x[here], y[here], pair.members[side][here], len(pair.groups)
    weights = pair.tables[side].weights
    each = np.ones(len(x)) if weights is None else weights[here]
    groups = _moments(x, y, each, group, count)
    whole = _moments(x, y, each, np.zeros_like(group), 1)
    return tuple(pair.spread(g, w[..., 0]) for g, w in zip(groups, whole, strict=True))  # type: ignore[return-value]


def _moments(x: Array, y: Array, each: Array, group: Array, count: int) -> Found:
    """Three arrays, one entry a group: Pearson correlation of x and y, its standard error, number of rows.

    x, y, a row's weight `each` and its group's number, below `count`, are arrays over rows; NaN with a constant.
    """

    def mean(values: Array) -> Array:
        found: Array = np.bincount(group, each * values, count) / mass
        return found

    rows, mass, given = np.bincount(group, minlength=count), np.bincount(group, each, count), (x, y)
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = (v - mean(v)[group] for v in (x, y))
        spreads = [np.sqrt(mean(v**2)) for v in (x, y)]
        # the spread of equal numbers is rounding error
        least = [1e-10 * (np.abs(v).max(initial=0) or 1) for v in given]
        spreads = [np.where(s > tiny, s, np.nan) for s, tiny in zip(spreads, least, strict=True)]
        x, y = (v / s[group] for v, s in zip((x, y), spreads, strict=True))
        r = mean(x * y)
        # influence of a row on r: x y - r (x^2 + y^2) / 2 for standardised x and y
        pull = x * y - r[group] * (x**2 + y**2) / 2
        error = np.sqrt(mean(pull**2) / np.where(mass > 1, mass - 1, np.nan))
    return r, error, rows


def _kendall(pair: Pair, side: int, one: str, two: str) -> Found:
    """Found, three arrays by a pair's group, then everybody: Kendall's tau-b, standard error, number of rows.

    The correlation is that of columns `one` and `two` in table number `side`.
    """
    table, rows = (pair.tabulated(side, one, two, weigh=weigh).astype(float) for weigh in (True, False))
    orders = [_order(pair.schema, name) for name in (one, two)]
    tau, error, _ = tau_b(table[:, orders[0]][:, :, orders[1]])
    return tau, error, rows[:, orders[0]][:, :, orders[1]].sum(axis=(-2, -1))


def _cramer(pair: Pair, side: int, one: str, two: str) -> Found:
    """Found, three arrays by a pair's group, then everybody: Cramer's V, standard error, number of rows.

    The columns are `one` and `two`, in table number `side`.
    """
    v, error, _ = cramers_v(pair.tabulated(side, one, two).astype(float))
    return v, error, pair.tabulated(side, one, two, weigh=False).sum(axis=(-2, -1))


_MEASURES: Mapping[str, Callable[[Pair, int, str, str], Found]] = {
    "pearson": _pearson,
    "kendall": _kendall,
    "cramer": _cramer,
}


def _order(schema: Schema, name: str) -> Array:
    """Array of the codes of those levels of column `name` of a schema that stand for numbers, sorted by these.

    Of a numeric column, all bins.
    """
    column = schema.column(name)
    if isinstance(column, Numeric):
        return np.arange(len(column.extents))
    numbers = level_values(column)
    order: Array = np.argsort(numbers, kind="stable")[: int((~np.isnan(numbers)).sum())]
    return order


def tau_b(table: Array) -> Found:
    """Three arrays: Kendall's tau-b, its standard error, sum of counts, by `table`, an array of counts.

    Its last two axes are levels. Tau is NaN if one of the two variables is constant, the error also if the sum is at
    most 1.
    """
    n = table.sum(axis=(-2, -1))
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    # concordant minus discordant rows for each cell, by cumulated counts in its four quadrants
    before = np.zeros((*table.shape[:-2], table.shape[-2] + 1, table.shape[-1] + 1))
    before[..., 1:, 1:] = table.cumsum(axis=-2).cumsum(axis=-1)
    last = before[..., -1:, :], before[..., :, -1:], before[..., -1:, -1:]
    low_low = before[..., :-1, :-1]
    high_high = last[2] - last[0][..., 1:] - last[1][..., 1:, :] + before[..., 1:, 1:]
    low_high = last[1][..., :-1, :] - before[..., :-1, 1:]
    high_low = last[0][..., :-1] - before[..., 1:, :-1]
    agree = low_low + high_high - low_high - high_low
    apart = [n**2 - (margin**2).sum(axis=-1) for margin in (rows, columns)]
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt(apart[0] * apart[1])
        tau = np.where(scale > 0, (table * agree).sum(axis=(-2, -1)) / scale, np.nan)
        # delta method: `pull` is the gradient of tau by a cell's count, up to scale
        weight = rows[..., None] * apart[1][..., None, None] + columns[..., None, :] * apart[0][..., None, None]
        pull = 2 * scale[..., None, None] * agree + tau[..., None, None] * weight
        squares = (table * pull**2).sum(axis=(-2, -1)) - n**3 * tau**2 * (apart[0] + apart[1]) ** 2
        error = np.where(n > 1, np.sqrt(np.maximum(squares, 0)) / scale**2, np.nan)
    return tau, error, n


def cramers_v(table: Array) -> Found:
    """Three arrays: Cramer's V, its standard error, sum of counts, by `table`, an array of counts.

    Its last two axes are levels. Only levels that occur count; V is NaN if fewer than two of a variable do.
    """
    n = table.sum(axis=(-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = table / n[..., None, None]
        rows, columns = shares.sum(axis=-1), shares.sum(axis=-2)
        expected = rows[..., None] * columns[..., None, :]
        lift = np.where(expected > 0, shares / expected, 0.0)
        # phi^2 = chi^2 / n = sum p_ij^2 / (p_i. p_.j) - 1
        phi = (shares * lift).sum(axis=(-2, -1)) - 1
        fewest = np.minimum((rows > 0).sum(axis=-1), (columns > 0).sum(axis=-1)) - 1
        v = np.where(fewest > 0, np.sqrt(np.maximum(phi, 0) / fewest), np.nan)
        of_row = (lift**2 * columns[..., None, :]).sum(axis=-1)
        of_column = (lift**2 * rows[..., None]).sum(axis=-2)
        # gradient of phi^2 by a cell's share
        pull = 2 * lift - of_row[..., None] - of_column[..., None, :]
        mean = (shares * pull).sum(axis=(-2, -1))
        variance = (shares * pull**2).sum(axis=(-2, -1)) - mean**2
        slope = 1 / (2 * v * fewest)
        error = np.where((v > 0) & (n > 1), slope * np.sqrt(np.maximum(variance, 0) / n), np.nan)
    return v, error, n
