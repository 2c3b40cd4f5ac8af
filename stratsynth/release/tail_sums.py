"""Slopes of Pareto tails brought into line with clipped sums, where a column declares a `clip` above the tail's start.

With S the noisy sum of min(x, clip) - c over everybody, N the noisy number of records with a number by least squares, p
the part of the model's rows in each bin, and m the mean of the numbers that are drawn in each bin below the tail, rows
have the measured mean c + S / N if their numbers in the tail add up to

    c N + S - sum of m p N over the bins below.

Over the rows in the tail, that is a mean of min(x, clip). Its variance has the noise of S and of N, and the unknown
part of m: PRIOR half widths of each bin whose mean place was not measured, all to one side. Against it stands the mean
by the slope of the counts, from which true means are SPREAD of it apart. The slope is the one whose mean is the average
of both by their variances, cut to the slopes that the schema declares. All of it is post-processing. Columns that draw
numbers of a prior keep the slope of the counts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.answers.squares import Functions
from stratsynth.release.measured_bins import PRIOR
from stratsynth.schema.inside import middles, pareto

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.answers.clipped import ClippedSum
    from stratsynth.answers.squares import Squares
    from stratsynth.schema import Numeric
    from stratsynth.schema.inside import Inside, Tail

    Floats = NDArray[np.float64]

SPREAD = 0.15
"""Standard deviation of true means of tails around those by the slope of the counts, in parts of these."""
SHARES = (np.arange(4_096) + 0.5) / 4_096
"""Parts of a tail's law at which its mean is computed."""


def with_sum(
    name: str, column: Numeric, law: Inside, total: ClippedSum, squares: Squares, levels: Floats
) -> Inside | None:
    """Return a column's `Inside` with the slope that its clipped sum gives too; None if that says nothing of the tail.

    Args:
        name: The column's name.
        column: The numeric column.
        law: Its law, with a tail by noisy counts.
        total: The noisy sum of everybody's numbers up to the clip.
        squares: Least squares of the release.
        levels: Array of the probability of each of the column's levels among the model's rows.
    """
    tail, clip, bins = law.tail, column.clip, len(column.extents)
    if tail is None or clip is None or clip <= column.extents[int(tail.bins(column)[0])][0]:
        return None
    own = tail.bins(column)
    numbers = Functions(1, {name: (np.arange(column.size) < bins).astype(np.float64)[None]})
    (size,), (known,) = squares.estimate(numbers)
    if not known or not size > 0 or not levels[own].sum() > 0:
        return None
    rows = size * levels[:bins] / levels[:bins].sum()
    below, before = np.setdiff1d(np.arange(bins), own), clipped_mean(column, tail, tail.slope)
    found = total.value + total.centre * size - float(np.array(middles(column, law))[below] @ rows[below])
    unplaced = below if law.density is None else below[law.density[below].sum(axis=1) == 0]
    wide = np.array([top - low for low, top in column.extents])[unplaced] / 2
    counted = (total.value / size) ** 2 * float(squares.covariance(numbers, numbers)[0])
    noise = total.noise_sd**2 + counted + (PRIOR * float(wide @ rows[unplaced])) ** 2
    high = rows[own].sum()
    worth = 1 / (SPREAD * before) ** 2, high**2 / noise
    mean = float(np.average([before, found / high], weights=worth))
    return replace(law, tail=replace(tail, slope=_slope(column, tail, mean)))


def clipped_mean(column: Numeric, tail: Tail, slope: float) -> float:
    """Return the mean of min(x, clip) over numbers in the numeric column's `tail` if it falls off by `slope`."""
    bins, clip = tail.bins(column), math.inf if column.clip is None else column.clip
    low, end = column.extents[int(bins[0])][0], column.extents[int(bins[-1])][1] + column.integer
    drawn = pareto(np.full(len(SHARES), float(low)), np.full(len(SHARES), float(end)), SHARES, slope)
    return math.fsum(np.minimum(drawn, clip)) / len(SHARES)


def _slope(column: Numeric, tail: Tail, mean: float) -> float:
    """Return the declared slope of a numeric column at which its `tail`'s clipped mean is nearest to `mean`."""
    low, high = column.slopes
    for _ in range(60):
        slope = (low + high) / 2
        low, high = (slope, high) if clipped_mean(column, tail, slope) > mean else (low, slope)
    return (low + high) / 2
