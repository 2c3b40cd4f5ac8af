"""Choice of the wide tables that are counted of many rows, by the schema alone.

A poor choice costs time. One that lacks a clique, or one of its columns, stops `counting.tables`, which sums a clique's
counts from a table that has all of its columns.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from stratsynth.questions.reading import Clique

Cover = tuple[Clique, tuple[int, ...]]
"""Columns that are counted together, and the indices of the cliques that are summed from their table."""


@lru_cache(maxsize=256)
def covers(cliques: tuple[Clique, ...], sizes: tuple[tuple[str, int], ...], most: int) -> tuple[Cover, ...]:
    """Return a tuple of pairs: columns of at most `most` cells in all, indices of the cliques that these contain.

    Greedy: a set begins with the largest clique that none contains; then the column joins that has the largest sum over
    its cliques of 10^(1 - k), k being the columns that a clique lacks, per log(1 + its size). A clique too large for
    any set is counted by itself. `sizes` are pairs: a column, and its number of levels.
    """
    names, size = [name for name, _ in sizes], np.array([n for _, n in sizes], np.float64)
    alone = [i for i, clique in enumerate(cliques) if _cells(clique, sizes) > most]
    small = [i for i in range(len(cliques)) if i not in set(alone)]
    within = np.array([[name in cliques[i] for name in names] for i in small], bool).reshape(len(small), len(names))
    cells = np.array([_cells(cliques[i], sizes) for i in small], np.float64)
    waiting = np.ones(len(small), bool)
    found: list[Cover] = [(cliques[i], (i,)) for i in alone]
    while waiting.any():
        first = int(np.argmax(np.where(waiting, cells, -1)))
        cover, width = within[first].copy(), float(cells[first])
        while True:
            # A clique that lacks k columns is worth 10^(1 - k).
            lacking = (within & ~cover).sum(axis=1)
            worth = np.where(waiting & (lacking > 0), 10.0 ** (1 - np.minimum(lacking, 9)), 0.0)
            gain = np.where(cover | (width * size > most), 0.0, worth @ within) / np.log(size + 1)
            best = int(np.argmax(gain))
            if gain[best] <= 0:
                break
            cover[best], width = True, width * size[best]
        held = waiting & ~(within & ~cover).any(axis=1)
        here = [small[i] for i in np.flatnonzero(held)]
        whole = cliques[here[0]] if len(here) == 1 else tuple(n for n, taken in zip(names, cover, strict=True) if taken)
        found.append((whole, tuple(here)))
        waiting &= ~held
    return tuple(found)


def _cells(clique: Clique, sizes: tuple[tuple[str, int], ...]) -> int:
    return math.prod(size for name, size in sizes if name in clique)
