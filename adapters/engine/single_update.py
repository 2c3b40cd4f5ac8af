"""Marginals of a base multiplied by one table's term, without a pass over the whole model.

The model is p = base x exp(term) / Z with a term of the table's columns U alone. So p(c) for any columns c is the
base's table of U and c, weighted by exp(term) / Z and summed over the columns of U that are not in c. The base's tables
are common to all strata that measured the same columns; left for each stratum are sums of a few dozen cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.restricted_fit import marginals_of

if TYPE_CHECKING:
    from stratsynth.adapters.engine.forest import Floats
    from stratsynth.adapters.engine.solve import Solution
    from stratsynth.adapters.engine.structure import Clique

MOST = 2**11
"""Largest number of cells of a base table over U and c."""
CLIQUES = 2**8
"""Largest number of column sets; above it, calibrating the whole model is cheaper."""


def updated(base: Solution, solution: Solution, cliques: Sequence[Clique]) -> list[Floats] | None:
    """Return a list of each of `cliques`' array of probabilities under `solution`, a `base` with one term more.

    None for other solutions, or if it is too costly.
    """
    if len(solution.terms) != 1 or len(cliques) > CLIQUES or base.tree.sizes != solution.tree.sizes:
        return None
    ((own, term),) = solution.terms
    levels = dict(base.tree.sizes)
    place = {column: i for i, column in enumerate(levels)}
    # columns in the model's order, so that equal requests share one cached table
    wide = [tuple(sorted({*own, *clique}, key=place.__getitem__)) for clique in cliques]
    if any(math.prod([levels[column] for column in names]) > MOST for names in wide):
        return None
    there, *tables = marginals_of(base).kept([own, *wide])
    possible = np.where(there > 0, term.reshape(there.shape), -np.inf)  # an impossible cell must not set the maximum
    weight = np.exp(possible - possible.max())
    weight /= (there * weight).sum()
    weight = np.transpose(weight, sorted(range(len(own)), key=lambda axis: place[own[axis]]))
    found = []
    for clique, names, table in zip(cliques, wide, tables, strict=True):
        weighted = table * weight.reshape([levels[column] if column in own else 1 for column in names])
        summed = weighted.sum(axis=tuple(i for i, column in enumerate(names) if column not in clique))
        left = [column for column in names if column in clique]
        found.append(np.transpose(summed, [left.index(column) for column in clique]))
    return found
