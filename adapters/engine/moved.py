"""Marginals of a base that one table has moved, without going through the whole model.

The model is p = base x exp(term) / Z with a term of the table's columns U alone. So p(c) for any columns c is the
base's table of U and c, weighted by exp(term) / Z and summed over the columns of U that are not in c. What is asked of
the base is the same for all strata that measured the same columns; what is left for each are sums of a few dozen cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.reduced import marginals_of

if TYPE_CHECKING:
    from stratsynth.adapters.engine.forest import Floats
    from stratsynth.adapters.engine.solve import Solution
    from stratsynth.adapters.engine.structure import Clique

MOST = 2**11
"""The most cells of a table of the base over U and c."""
CLIQUES = 2**8
"""With more sets of columns than this, a model is cheaper gone through as a whole."""


def moved(base: Solution, solution: Solution, cliques: Sequence[Clique]) -> list[Floats] | None:
    """The probabilities of some columns' cells in a solution that moves a base; None where this would not pay."""
    if len(solution.terms) != 1 or len(cliques) > CLIQUES or base.tree.sizes != solution.tree.sizes:
        return None
    ((own, term),) = solution.terms
    levels = dict(base.tree.sizes)
    place = {column: i for i, column in enumerate(levels)}
    # in the order of the model's columns, so that what several ask for is one table
    wide = [tuple(sorted({*own, *clique}, key=place.__getitem__)) for clique in cliques]
    if any(math.prod([levels[column] for column in names]) > MOST for names in wide):
        return None
    there, *tables = marginals_of(base).kept([own, *wide])
    possible = np.where(there > 0, term.reshape(there.shape), -np.inf)  # what cannot occur is not the largest
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
