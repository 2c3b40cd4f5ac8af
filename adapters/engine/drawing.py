"""Drawing the columns of rows one after another, so that the rows' tables are near the model's.

Randomised rounding: among the rows of a line of odds, levels are taken in equal steps, from one random offset, so that
each level's count stays within about a record of its expectation. The steps go to the rows in the order of their
earlier columns, latest first, by a lattice: row i of m gets step i a mod m, where a / m is next to the golden ratio.
Neighbours in this order thus get steps far from each other, which brings tables nearer to the model that no line of
odds holds. Each row alone follows the odds exactly, as the offset is uniform.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.integer[Any]]

GOLDEN = (math.sqrt(5) - 1) / 2
"""The golden ratio: its multiples mod 1 are far from each other."""


class Draws:
    """Columns of the same `n` rows, drawn one after another by `rng`."""

    def __init__(self, n: int, rng: Generator) -> None:
        """Start with rows in random order."""
        self._rng = rng
        self._order: NDArray[np.intp] = rng.permutation(n)
        """Row numbers, sorted by the columns drawn so far, latest first."""

    def draw(self, weights: Floats, given: Integers | None = None) -> NDArray[np.intp]:
        """Return an int array: for each row a column number of `weights`, drawn by the odds in its line of them.

        `weights` is an array (lines, columns); `given` an array, each row's line. None stands for line 0.
        """
        order, (lines, width) = self._order, weights.shape
        if given is None:
            line: Integers = np.zeros(len(order), dtype=np.intp)
            size = np.array([len(order)])
        else:
            # few lines sort by counting digits: a small type is several times faster
            order = order[np.argsort(_small(given, lines)[order], kind="stable")]
            line = given[order]
            size = np.bincount(line, minlength=lines)
        stride = _strides(size)
        # row i of a line, counted from the line's start, is at (i stride + offset) mod 1
        offset = self._rng.random(len(size)) - (np.cumsum(size) - size) * stride
        position = np.arange(len(order)) * stride[line] + offset[line]
        position -= np.floor(position)
        totals = weights.sum(axis=1, keepdims=True)
        bounds = np.cumsum(np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0), axis=1)
        bounds += np.arange(lines)[:, None]  # line i takes up [i, i + 1): one search serves all lines
        picked = np.searchsorted(bounds.ravel(), position + line, side="right") - line * width
        np.clip(picked, 0, width - 1, out=picked)
        # rounding at a line's end may pick a cell of weight 0: the line's heaviest takes its place
        never = weights[line, picked] <= 0
        picked[never] = weights[line[never]].argmax(axis=1)
        drawn = np.empty(len(order), dtype=np.intp)
        drawn[order] = picked
        self._order = order[np.argsort(_small(picked, width), kind="stable")]
        return drawn


def _small(codes: Integers, size: int) -> Integers:
    """Return the array `codes`, whole numbers below `size`, in the smallest type that holds them."""
    return codes.astype(np.min_scalar_type(max(size - 1, 0)), copy=False)


def _strides(sizes: Integers) -> Floats:
    """Return a / m for each m of `sizes`, an array of floats: a is prime to m, a / m next to the golden ratio."""
    m = np.maximum(sizes, 1)
    a = np.maximum(np.rint(m * GOLDEN).astype(np.intp), 1)
    shared = np.gcd(a, m) > 1
    while shared.any():
        a[shared] += 1
        shared = np.gcd(a, m) > 1
    return a / m
