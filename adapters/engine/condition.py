"""A graphical model conditioned on levels of some columns, as for one group of a model of everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stratsynth.adapters.engine.forest import NEVER, Floats
from stratsynth.adapters.engine.solve import Solution
from stratsynth.adapters.engine.structure import Clique, junction_tree


def condition(solution: Solution, levels: Mapping[str, Sequence[int]]) -> Solution:
    """Return the `Solution` restricted to `levels`, {column: list of level numbers}; columns left with one are gone.

    A column of several allowed levels stays, with these levels only. If the condition has probability 0, the other
    columns' distribution is whatever the potentials imply. The result has the total of `solution`, objective 0 and 0
    steps.
    """
    sizes = tuple(
        (column, len(levels.get(column, range(size))))
        for column, size in solution.tree.sizes
        if len(levels.get(column, range(size))) > 1 or column not in levels
    )
    left = {column for column, _ in sizes}
    tables: dict[Clique, Floats] = {}
    for clique, table in zip(solution.tree.cliques, solution.potentials, strict=True):
        kept = [levels.get(column, range(size)) for column, size in zip(clique, table.shape, strict=True)]
        # conditioning slices log potentials; the changed constant cancels in calibration
        part = table[np.ix_(*kept)] if clique else table
        names = tuple(column for column in clique if column in left)
        part = part.reshape([dict(sizes)[column] for column in names])
        # cliques that became equal are one factor
        tables[names] = tables[names] + part if names in tables else part
    tree = junction_tree(sizes, tuple(sorted(tables)))
    found = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for names, part in tables.items():
        home = next(i for i, clique in enumerate(tree.cliques) if set(names) <= set(clique))
        whole = tree.cliques[home]
        view = [size if column in names else 1 for column, size in zip(whole, found[home].shape, strict=True)]
        axes = [names.index(column) for column in whole if column in names]
        found[home] += np.transpose(part, axes).reshape(view)
    # sums of several NEVER are set back to one
    return Solution(tree, tuple(np.where(table < NEVER / 2, NEVER, table) for table in found), solution.total, 0.0, 0)
