"""Whole numbers of weighted rows.

Systematic rounding along an order in which alike rows are neighbours: each row is taken the floor or the ceiling of
what is due to it, with the right expectation. Of several such draws, that one is given out whose tables of all pairs of
columns are nearest to the weights'. In a group of a dozen people this takes off half of what chance adds; the rows'
chances change by as little as the draws differ.
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
"""The number of draws among which one is chosen."""
FEWEST, MOST = 10, 2_000
"""From how many rows to how many there is a choice: one of a few rows would be the commonest each time, and many rows
are near the weights by themselves."""


def rounded(
    codes: Mapping[str, NDArray[np.integer[Any]]], weights: NDArray[np.float64], n: int, rng: Generator
) -> NDArray[np.intp]:
    """The numbers of n rows, with repetitions, in order.

    Args:
        codes: The rows as level numbers.
        weights: What each row weighs; not all 0.
        n: How many rows.
        rng: The source of the draws.
    """
    if not n:
        return np.zeros(0, dtype=np.intp)
    possible = np.flatnonzero(weights)
    order = possible[_neighbours(codes, possible)]
    if not FEWEST <= n <= MOST:
        return _drawn(weights, order, n, rng)
    near = _Pairs(codes, weights, n)
    return min((_drawn(weights, order, n, rng) for _ in range(DRAWS)), key=near.distance)


def _drawn(weights: NDArray[np.float64], order: NDArray[np.intp], n: int, rng: Generator) -> NDArray[np.intp]:
    due = np.cumsum(weights[order])
    marks = np.floor(due / due[-1] * n + rng.random())
    marks = np.minimum(marks, n)
    marks[-1] = n  # the last bit of the sum must not cost or add a row
    return np.repeat(order, np.diff(marks, prepend=0).astype(np.intp))


def _neighbours(codes: Mapping[str, NDArray[np.integer[Any]]], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Sorted by all columns, the first one first."""
    return np.lexsort([code[rows] for code in reversed(list(codes.values()))]) if codes else np.arange(rows.size)


class _Pairs:
    """The counts of all pairs of columns' cells that the weights ask for."""

    def __init__(
        self, codes: Mapping[str, NDArray[np.integer[Any]]], weights: NDArray[np.float64], n: int
    ) -> None:  # fmt: skip
        wide = [code.astype(np.intp) for code in codes.values()]
        sizes = [int(code.max(initial=0)) + 1 for code in wide]
        places, start = [], 0
        for (a, first), (b, second) in combinations(zip(wide, sizes, strict=True), 2):
            places.append(a * second + b + start)
            start += first * second
        self._cells = np.stack(places, axis=1) if places else np.zeros((weights.size, 0), dtype=np.intp)
        self._size = start
        each = np.repeat(weights / weights.sum() * n, self._cells.shape[1])
        self._wanted = np.bincount(self._cells.ravel(), weights=each, minlength=start)

    def distance(self, rows: NDArray[np.intp]) -> float:
        """The sum of squared differences of all counts."""
        off = np.bincount(self._cells[rows].ravel(), minlength=self._size) - self._wanted
        return float(off @ off)
