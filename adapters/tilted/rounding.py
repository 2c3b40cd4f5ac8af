"""Integer numbers of weighted rows.

Systematic rounding along an order in which similar rows are neighbours: each row is taken the floor or the ceiling of
its expected number of times, with that expectation. Of several such draws the one is taken whose tables of pairs of
columns are nearest to the weights', and then rows are exchanged, one for another, as long as that brings the tables
nearer. The price is that the choice biases a row's probability away from its weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

DRAWS = 10
"""Number of draws among which the nearest is chosen."""
SWAPS, LOOKS = 400, 600_000_000
"""Largest number of exchanges, and largest number of cells read for them: each exchange reads all rows' pairs."""
FEWEST, MOST = 10, 2_000
"""Sample sizes for which rounding is optimised; below 10 it would always give the mode, above 2,000 plain sampling
suffices."""
LEAST_GAIN = 1e-6
"""Smallest decrease of the distance for which rows are exchanged."""
MOST_PAIRS = 300
"""Largest number of pairs of columns in the distance, evenly spaced among all."""


def rounded(
    codes: Mapping[str, NDArray[np.integer[Any]]], weights: NDArray[np.float64], n: int, rng: Generator
) -> NDArray[np.intp]:
    """Return an array of `n` row numbers, places in `codes`, with repetitions, equal ones side by side: the rows drawn.

    Args:
        codes: Level numbers of the rows, by column.
        weights: Weight of each row; not all 0.
        n: Number of rows to draw.
        rng: Source of the draws.
    """
    if not n:
        return np.zeros(0, dtype=np.intp)
    possible = np.flatnonzero(weights)
    order = possible[_neighbours(codes, possible)]
    if not FEWEST <= n <= MOST:
        return _drawn(weights, order, n, rng)
    near = _Pairs(codes, weights, possible, n)
    return near.exchanged(min((_drawn(weights, order, n, rng) for _ in range(DRAWS)), key=near.distance))


def _drawn(weights: NDArray[np.float64], order: NDArray[np.intp], n: int, rng: Generator) -> NDArray[np.intp]:
    """Return an array of `n` row numbers, each by its weight, by systematic rounding with one offset by `rng`.

    Rows are taken in the `order`, an array of row numbers.
    """
    due = np.cumsum(weights[order])
    marks = np.floor(due / due[-1] * n + rng.random())
    marks = np.minimum(marks, n)
    marks[-1] = n  # the last bit of the sum must not cost or add a row
    return np.repeat(order, np.diff(marks, prepend=0).astype(np.intp))


def _neighbours(codes: Mapping[str, NDArray[np.integer[Any]]], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return an array of places in `rows`, row numbers, that sorts them by the columns of `codes`, the first first."""
    return np.lexsort([code[rows] for code in reversed(list(codes.values()))]) if codes else np.arange(rows.size)


class _Pairs:
    """Expected counts of the cells of pairs of columns in `n` rows, and distances of drawn rows from them."""

    def __init__(
        self,
        codes: Mapping[str, NDArray[np.integer[Any]]],
        weights: NDArray[np.float64],
        rows: NDArray[np.intp],
        n: int,
    ) -> None:
        wide = [code[rows].astype(np.int32) for code in codes.values()]
        sizes = [int(code.max(initial=0)) + 1 for code in wide]
        pairs = list(combinations(range(len(wide)), 2))
        pairs = [pairs[i] for i in np.unique(np.linspace(0, len(pairs) - 1, min(MOST_PAIRS, len(pairs))).astype(int))]
        starts = np.cumsum([0, *(sizes[a] * sizes[b] for a, b in pairs)])
        self._rows = rows
        self._cells = np.empty((rows.size, len(pairs)), dtype=np.int32)
        for i, (a, b) in enumerate(pairs):
            self._cells[:, i] = wide[a] * sizes[b] + wide[b] + starts[i]
        # expected counts if each row could be taken a fraction of a time
        due, self._wanted = weights[rows] * (n / weights[rows].sum()), np.zeros(starts[-1])
        for column in self._cells.T:
            self._wanted += np.bincount(column, weights=due, minlength=self._wanted.size)

    def _off(self, number: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return an array: each cell's count less its expected one, if possible row i is taken `number[i]` times."""
        taken = np.repeat(self._cells, number, axis=0).ravel()
        return np.bincount(taken, minlength=self._wanted.size).astype(np.float64) - self._wanted

    def _number(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return an array: for each possible row the number of times that it occurs in `rows`, row numbers."""
        return np.bincount(np.searchsorted(self._rows, rows), minlength=self._rows.size)

    def distance(self, rows: NDArray[np.intp]) -> float:
        """Return the L1 distance of the counts of `rows`, row numbers, in all pairs of columns, from the expected."""
        return float(np.abs(self._off(self._number(rows))).sum())

    def exchanged(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return an array of row numbers: `rows` after greedy exchanges, which replace one row by another each.

        A new one replaces that whose removal gains most; a number may occur several times.
        """
        cells, number = self._cells, self._number(rows)
        off = self._off(number)
        for _ in range(min(SWAPS, LOOKS // max(1, cells.size))):
            # change of the distance by one more, or one fewer, in a cell
            more, fewer = np.clip(1 + 2 * off, -1, 1), np.clip(1 - 2 * off, -1, 1)
            taken = np.flatnonzero(number)
            leaving = fewer[cells[taken]].sum(axis=1)
            place = int(np.argmin(leaving))
            out = taken[place]
            both = (cells == cells[out]) * (more + fewer)[cells[out]]  # cells common to both rows
            gain = more[cells].sum(axis=1) + leaving[place] - both.sum(axis=1)
            into = int(np.argmin(gain))
            if gain[into] > -LEAST_GAIN:
                break
            off[cells[out]] -= 1
            off[cells[into]] += 1
            number[out] -= 1
            number[into] += 1
        return np.repeat(self._rows, number)
