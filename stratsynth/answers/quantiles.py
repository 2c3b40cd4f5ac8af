"""Quantiles of numbers that were counted in bins, and evenly spread within them.

A number x is tested by the rows below it: a(x), the count of all bins below plus the part of x's own bin below x. With
b rows in all, the quantile q of the binned counts is where a(x) - q b = 0, exactly; so the values of x for which the
estimate of that is within its noise form an interval of the same level, whatever the shape of the distribution. The
interval is for the quantile of the binned numbers: positions of numbers within a bin were not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.answers.intervals import SURE, Answer, quantile_of
from stratsynth.answers.squares import Functions, Squares
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.answers.query import Query
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

WITHIN = 8
"""Parts that a bin is divided into; between their ends, the test statistic is interpolated."""
TINY = 1e-300


def quantiles(squares: Squares, query: Query, schema: Schema, rows: Functions, effect: float) -> Answer:
    """Return the Answer with the query's quantile in each group and its intervals.

    Args:
        squares: Least squares of the release.
        query: One of the queries; all share `Query.kind`.
        schema: All columns.
        rows: Count of the rows with a number, one function per group.
        effect: Largest factor by which units of several rows, or weights, widen the sampling variance.
    """
    column = cast("Numeric", schema.column(query.columns[0]))
    points, below = grid(column)
    q, z = query.quantile, quantile_of(query.level)
    groups = {name: factor for name, factor in rows.factors.items() if name != query.columns[0]}
    repeated = {name: np.repeat(factor, len(points), axis=0) for name, factor in groups.items()}
    at = Functions(rows.number * len(points), repeated)
    there = np.zeros((1, column.size))
    there[0, : len(column.extents)] = 1.0
    # weights of a(x) - q b: each level's fraction below x, minus q for every numeric level
    above = at.times(query.columns[0], np.tile(below - q * there, (rows.number, 1)))
    test, known = squares.estimate(above)
    shape = (rows.number, len(points))
    noise = np.where(known, np.maximum(squares.covariance(above, above), 0.0), np.nan).reshape(shape)
    test, size = test.reshape(shape), squares.estimate(rows)[0]
    sampling = effect * q * (1 - q) * np.maximum(size, 0.0)[:, None]
    value = _crossing(points, test)
    ends = [_ends(points, test, spread, z) for spread in (noise, noise + sampling)]
    sound = np.isfinite(test).all(axis=1) & (size > 0)
    # if the group may be empty given its noise, every x passes the test
    least = np.minimum(size, squares.most(rows))
    sound &= least > SURE * np.sqrt(np.where(sound, squares.covariance(rows, rows), np.inf))
    # likewise the rows on either side of the quantile must exceed one standard deviation of the test's noise
    sound &= min(q, 1 - q) * least > np.sqrt(np.where(sound[:, None], noise, np.inf).max(axis=1))
    slope = np.maximum(ends[0][1] - ends[0][0], 0.0) / (2 * z)
    # an interval as wide as half the range says nothing, and would hold too often
    sound &= ends[0][1] - ends[0][0] < (points[-1] - points[0]) / 2
    sound &= np.isfinite(value) & np.isfinite(ends[0][0]) & np.isfinite(ends[1][0])
    given = [np.where(sound, part, np.nan) for part in (value, slope, *ends[0], *ends[1])]
    measured = np.asarray(np.isfinite(test).all(axis=1))
    return Answer(given[0], given[1], given[2], given[3], given[4], given[5], measured)


def grid(column: Numeric) -> tuple[Floats, Floats]:
    """Return the grid points of all bins, ascending, and an array (points, levels): part of each level below each."""
    lows = np.array([low for low, _ in column.extents], dtype=np.float64)
    highs = np.array([high for _, high in column.extents], dtype=np.float64)
    parts = np.arange(WITHIN + 1) / WITHIN
    points = lows[:, None] + (highs - lows)[:, None] * parts
    bins = len(lows)
    below = np.zeros((bins, WITHIN + 1, column.size))
    for i in range(bins):
        below[i, :, :i] = 1.0
        below[i, :, i] = parts
    return points.ravel(), below.reshape(-1, column.size)


def _crossing(points: Floats, test: Floats) -> Floats:
    """Return each row's first of `points` at which `test` reaches 0, interpolated; NaN if it never does."""
    found = np.full(len(test), np.nan)
    for row, line in enumerate(test):
        up = np.flatnonzero(line >= 0)
        if not len(up):
            continue
        i = int(up[0])
        if i == 0 or line[i] == line[i - 1]:
            found[row] = points[i]
        else:
            found[row] = points[i - 1] + (points[i] - points[i - 1]) * -line[i - 1] / (line[i] - line[i - 1])
    return found


def _ends(points: Floats, test: Floats, variance: Floats, z: float) -> tuple[Floats, Floats]:
    """Return each row's first and last point where |test| <= z sqrt(variance), interpolated; NaN if nowhere."""
    t = test / np.sqrt(np.maximum(variance, TINY))
    before, step = t[:, :-1], np.diff(t, axis=1)
    flat = step == 0
    slope = np.where(flat, 1.0, step)
    # between two grid points the statistic is linear: solve t = -z and t = z, and keep the part within [0, 1]
    one, other = (-z - before) / slope, (z - before) / slope
    first, last = np.maximum(np.minimum(one, other), 0.0), np.minimum(np.maximum(one, other), 1.0)
    first, last = np.where(flat, 0.0, first), np.where(flat, 1.0, last)
    passes = np.where(flat, np.abs(before) <= z, first <= last)
    wide = np.diff(points)
    low = np.where(passes, points[:-1] + first * wide, np.inf).min(axis=1)
    high = np.where(passes, points[:-1] + last * wide, -np.inf).max(axis=1)
    return np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)
