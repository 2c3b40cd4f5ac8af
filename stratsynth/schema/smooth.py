"""Numbers of `shape = "smooth"`: drawn within their bins along a curve through the counts of all bins.

The number of records below the end of each bin is known, noise aside, and a monotone cubic through these points says
how many lie below any number between them (Fritsch and Carlson 1980): each bin keeps its records, and they lie denser
where the next bin is fuller. Counts are those of the rows that are being drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.schema.columns import Numeric

POINTS = 32
"""Number of points in a bin at which the curve is computed; it is straight between them."""
LEAST = 1e-9
"""Smallest width of a bin on the curve, as a fraction of the widest one's: its ends must not be equal numbers."""
FEW = 100.0
"""Number of records, spread evenly, that are added to the drawn ones: few rows say nothing about the curve."""


def places(column: Numeric, codes: NDArray[np.int64], rng: Generator) -> NDArray[np.float64]:
    """Return an array, by row: a place, 0 start to 1 end, in the bin of each of a numeric column's `codes`, by `rng`.

    Places follow a smooth curve through the counts of the bins; for codes of no bin they are even.

    A spike is a single number: the curve goes on behind it as if it were not there. An empty bin ends the curve, which
    begins anew behind it, as rows of some bins alone may be wanted.
    """
    low, top = np.asarray(column.extents, np.float64).T
    half = top / 2 - low / 2 + column.integer / 2  # half a bin's width, which cannot overflow
    counts = np.bincount(codes, minlength=column.size).astype(np.float64)
    bins = np.flatnonzero(~(np.isin(low, column.spikes) & (top - low <= 0)))
    found = _spread(codes, counts, rng)
    filled = counts[bins] > 0
    for run in np.split(bins, np.flatnonzero(np.diff(filled)) + 1):
        if len(run) < 2 or not counts[run[0]]:
            continue
        width = np.maximum(half[run] / max(half[run].max(), 1e-300), LEAST)
        curve = _curve(width, counts[run] + FEW * width / width.sum())
        number = np.full(column.size, -1)
        number[run] = np.arange(len(run))
        rows = np.flatnonzero(number[codes] >= 0)
        mine = number[codes[rows]]
        below = curve[::POINTS]
        level = below[mine] + found[rows] * (below[mine + 1] - below[mine])
        found[rows] = np.clip(np.interp(level, curve, np.arange(len(curve)) / POINTS) - mine, 0.0, 1.0)
    return found


def _spread(codes: NDArray[np.int64], counts: NDArray[np.float64], rng: Generator) -> NDArray[np.float64]:
    """Return an array, by row: random numbers, 0 to 1, even among rows of one of `codes`; `counts` are rows by code."""
    rank, before = np.empty(len(codes)), np.cumsum(counts) - counts
    rank[np.argsort(codes + rng.random(len(codes)))] = np.arange(len(codes)) - np.repeat(before, counts.astype(np.intp))
    return (rank + rng.random(len(codes))) / np.maximum(counts, 1.0)[codes]


def _curve(width: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a rising array: records below each of `POINTS` places a bin, from arrays `width` and `counts` by bin."""
    from scipy.interpolate import PchipInterpolator

    ends, below = (np.concatenate([[0.0], np.cumsum(each)]) for each in (width, counts))
    points = np.interp(np.arange(len(width) * POINTS + 1) / POINTS, np.arange(len(ends)), ends)
    curve: NDArray[np.float64] = np.maximum.accumulate(PchipInterpolator(ends, below)(points))
    return curve
