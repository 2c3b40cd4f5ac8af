"""Quantiles of numbers that were counted in bins.

The quantile q of a group is the smallest number that at least this part of its rows does not exceed. It lies in a bin
if a - q b is not above 0 at the bin's lower end and not below 0 at its upper end, where a counts the rows below an end
and b all rows. The ends are bins', so the estimate of a - q b has no error but its noise. A bin for which neither is
contradicted by the noise at the level asked is possible, and the interval reaches from the smallest number of the first
possible bin to the largest number of the last: it holds at least as often as its level says, whatever the numbers are.
Only the estimate takes numbers within a bin for drawn by the law that synthetic ones have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.answers.intervals import FIGURES, SURE, Answer, quantile_of, unknown
from stratsynth.answers.quotients import variance
from stratsynth.answers.squares import Functions, Squares
from stratsynth.schema import Numeric, inside
from stratsynth.schema.bins import EVEN, LINEAR

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from stratsynth.answers.query import Query
    from stratsynth.schema import Schema
    from stratsynth.schema.inside import Inside

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]


POINTS = 64
"""Number of places of a bin at which moments of its numbers are computed."""


def ends(column: Numeric) -> Floats:
    """Return an array (2, bins): smallest and largest number of each bin of a numeric column.

    Of reals, the ends between bins.
    """
    low, top = np.array(column.extents, dtype=np.float64).T
    single = low == top
    if not column.integer:
        top[:-1] = np.where(single[:-1], top[:-1], np.asarray(column.breaks[1:-1], dtype=np.float64))
        low[1:] = np.where(single[:-1], top[:-1], low[1:])  # right after a spike
    return np.stack([low, top])


def numbers_at(column: Numeric, law: Inside, bins: ArrayLike, parts: ArrayLike) -> Floats:
    """Return an array: the number below which the part `parts`, 0 to 1, of each of a numeric column's `bins` lies.

    `bins` are codes; the law within them is an `Inside`, `law`; both arrays are broadcast.
    """
    codes, shares = np.broadcast_arrays(np.asarray(bins, dtype=np.int64), np.asarray(parts, dtype=np.float64))
    return inside.numbers(column, codes.ravel(), shares.ravel(), law).reshape(codes.shape)


def drawn(column: Numeric, law: Inside) -> Floats:
    """Return an array (bins, POINTS): numbers at even places of each bin of a numeric column, as its `Inside` draws."""
    parts = (np.arange(POINTS) + 0.5) / POINTS
    return numbers_at(column, law, np.arange(len(column.extents))[:, None], parts[None, :])


NARROW = 2
"""Number of possible bins that are an answer, however wide they are."""


def quantiles(squares: Squares, query: Query, schema: Schema, rows: Functions, effect: float) -> Answer:
    """Return the Answer with the query's quantile in each group and its intervals.

    Args:
        squares: Least squares of the release.
        query: One of the queries; all share `Query.kind`.
        schema: All columns.
        rows: `Functions`, one a group: count of the rows with a number.
        effect: Largest factor by which units of several rows, or weights, widen the sampling variance.
    """
    column, law = cast("Numeric", schema.column(query.columns[0])), squares.tables.law(query.columns[0])
    bins, q, z = len(column.extents), query.order, quantile_of(query.level)
    # weights of a - q b at the end before each bin and after the last: 1 below the end, less q for every number
    below = np.zeros((bins + 1, column.size))
    below[:, :bins] = (np.arange(bins) < np.arange(bins + 1)[:, None]) - q
    at = rows.take(np.repeat(np.arange(rows.number), bins + 1))
    above = at.times(query.columns[0], np.tile(below, (rows.number, 1)))
    shape = (rows.number, bins + 1)
    value, known = squares.estimate(above)
    test, noise = value.reshape(shape), variance(squares, above, known).reshape(shape)
    size, measured = squares.estimate(rows)[0], np.asarray(known.reshape(shape).all(axis=1))
    sampling = effect * q * (1 - q) * np.maximum(size, 0.0)[:, None]
    sound = measured & (size > 0)
    # if the group may be empty given its noise, every bin is possible
    least = np.minimum(size, squares.most(rows))
    sound &= least > SURE * np.sqrt(np.where(sound, squares.covariance(rows, rows), np.inf))
    # likewise the rows on either side of the quantile must exceed one standard deviation of the test's noise
    sound &= min(q, 1 - q) * least > np.sqrt(np.where(sound[:, None], noise, np.inf).max(axis=1))
    test, noise = np.where(sound[:, None], test, 0.0), np.where(sound[:, None], noise, 0.0)
    value, sd = _crossing(column, law, test), np.sqrt(noise)
    spread = np.maximum(_crossing(column, law, test - sd) - _crossing(column, law, test + sd), 0.0) / 2
    first, last = _possible(test, z * sd)
    wider = _possible(test, z * np.sqrt(noise + sampling))
    low, top = scaled = ends(column)
    # intervals that say enough leave some bin out, and are of few bins or below half of the range, on the scale on
    # which bins or shape are even, perhaps logarithmic
    if not (column.shape in LINEAR and column.spacing == EVEN):
        scaled = np.copysign(np.log1p(np.abs(scaled) / column.transform_unit), scaled)
    start, end = scaled / 2  # halves, as distances may overflow
    short = end[last] - start[first] < (end[-1] - start[0]) / 2
    sound &= (short | (last - first < NARROW)) & (last - first + 1 < bins)
    parts = (value, spread, low[first], top[last], low[wider[0]], top[wider[1]])
    given = dict(zip(FIGURES, (np.where(sound, part, np.nan) for part in parts), strict=True))
    bounded = (low[first] < top[first]) | (low[last] < top[last])
    return replace(unknown(rows.number), **given, measured=measured, bounded=bounded)


def _possible(test: Floats, margin: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return two arrays, one entry a row: first and last bin that a test does not rule out at either of its ends.

    `test` is the array (rows, ends of bins) of the test's value, `margin` such an array of its largest value by chance.
    """
    possible = (test[:, :-1] <= margin[:, :-1]) & (test[:, 1:] >= -margin[:, 1:])
    return possible.argmax(axis=1), possible.shape[1] - 1 - possible[:, ::-1].argmax(axis=1)


def _crossing(column: Numeric, law: Inside, test: Floats) -> Floats:
    """Return an array, one entry a row of `test`: the numeric column's number at which that row first reaches 0.

    Values of `test` are at the ends of bins; numbers lie between these by the `Inside` law.
    """
    after = np.where((up := test[:, 1:] >= 0).any(axis=1), up.argmax(axis=1), up.shape[1] - 1)
    every = np.arange(len(test))
    start, end = test[every, after], test[every, after + 1]
    part = np.divide(-start, end - start, out=np.zeros_like(start), where=end > start)
    return numbers_at(column, law, after, np.clip(part, 0.0, 1.0))
