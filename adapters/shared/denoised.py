"""One-way tables where noise is large against the column: an empirical Bayes posterior mean of each count.

The noisy counts of one column's levels are taken for draws from an unknown distribution of true counts, plus normal
noise of known sigma. That distribution is estimated from the noisy counts themselves, as the one on a grid under which
they are likeliest, and each count is replaced by its posterior mean (Robbins 1956; Kiefer and Wolfowitz 1956):

    count_i = E[c | noisy_i],   c ~ G on the grid,   noisy_i ~ N(c, sigma^2),   G maximises sum_i log E_G N(noisy_i; c)

The counts are then moved to the nearest ones of at least 0 that add up to the number of records. All of it is
post-processing of paid answers, done where `is_noisy` says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine import MeasuredTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions import NoisyTable

    Floats = NDArray[np.float64]

MUCH = 0.1
"""Length of a one-way table's noise, sigma x sqrt(levels), as a fraction of all records, above which it is noisy.
`scripts/bench small` prints the errors with no column and with every column denoised."""
FINE = 3
"""Points of the grid in one sigma."""
MOST_POINTS = 4_000
"""Largest number of points of the grid; with noise that is small against the largest count, they are farther apart."""
STEPS = 80
"""Steps of expectation and maximisation, from a uniform prior."""


def is_noisy(table: NoisyTable | MeasuredTable, total: float) -> bool:
    """Return True if the noise of a one-way table is longer than `MUCH` of `total` records."""
    return table.sigma * math.sqrt(table.values.size) > MUCH * total


def posterior(noisy: NDArray[np.int64] | Floats, sigma: float) -> Floats:
    """Return the posterior means, at least 0, of the counts in a flat array `noisy`, noise of deviation `sigma`.

    With sigma 0 the counts themselves, negative ones as 0.
    """
    values = np.asarray(noisy, np.float64)
    if not sigma:
        return np.maximum(values, 0.0)
    values, level, times = np.unique(values, return_inverse=True, return_counts=True)
    highest = max(float(values.max(initial=0.0)), 0.0) + sigma
    points = min(MOST_POINTS, math.ceil(FINE * highest / sigma) + 1)
    grid = np.linspace(0.0, highest, points)
    logs = -0.5 * ((values[:, None] - grid) / sigma) ** 2
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    prior = np.full(points, 1 / points)
    for _ in range(STEPS):
        # expectation: each count's posterior on the grid; maximisation: their mean is the next prior
        shares = likely * prior
        prior = times / len(level) @ (shares / shares.sum(axis=1, keepdims=True))
    shares = likely * prior
    means: Floats = shares @ grid / shares.sum(axis=1)
    return means[level]


def projected(values: NDArray[np.int64] | Floats, total: float) -> Floats:
    """Return a flat array of numbers of at least 0 with the sum `total`, above 0, the nearest to the array `values`.

    Nearest is by the sum of squared differences: the same number is taken off all that stay above 0.
    """
    falling = np.sort(np.asarray(values, np.float64))[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    nearest: Floats = np.maximum(values - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
    return nearest


def denoised(table: NoisyTable | MeasuredTable, total: float) -> Floats:
    """Return an array, the counts of a one-way table with the sum `total`: posterior means if it is noisy.

    Else they are the noisy counts. Either are projected to numbers of at least 0.
    """
    noisy = is_noisy(table, total)
    return projected(posterior(table.values, table.sigma) if noisy else table.values, total)


def denoised_columns(tables: Sequence[MeasuredTable], total: float) -> list[MeasuredTable]:
    """Return a list of `MeasuredTable`s, `tables` for the last fit: noisy one-way ones get denoised counts.

    Others are as they are; `total` is the number of records.
    """
    return [
        replace(table, values=denoised(table, total)) if len(table.clique) == 1 and is_noisy(table, total) else table
        for table in tables
    ]
