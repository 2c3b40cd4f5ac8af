"""A fit relative to a base, without the columns that no table contains.

The fitted distribution is p = base x exp(terms of the tables). Given the tables' columns U, all others are distributed
as in the base, so the divergence of p from the base is that of their marginals on U, and the tables' marginals follow
from p's on U alone. The fit therefore needs only U and the base's marginal there, with equal terms: strata that measure
two columns of twenty skip the other eighteen at every step.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.dense import laid_out
from stratsynth.adapters.engine.forest import NEVER
from stratsynth.adapters.engine.marginals import Marginals
from stratsynth.adapters.engine.structure import junction_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stratsynth.adapters.engine.forest import Floats
    from stratsynth.adapters.engine.solve import Problem, Solution
    from stratsynth.adapters.engine.structure import Clique

MOST = 2**12
"""Largest number of cells of all measured columns' joint table."""
LESS = 4
"""Least ratio of the base's cells to that table's for the reduction to pay."""
STEPS = 4
"""Largest number of steps for which the reduction does not pay."""


def reduced(problem: Problem) -> Problem | None:
    """Return the problem on the columns of its tables alone; None without a base, or where that does not pay."""
    base, columns = problem.base, {column for table in problem.tables for column in table.clique}
    if base is None or problem.forbidden or problem.iterations <= STEPS or base.tree.sizes != problem.sizes:
        return None
    sizes = tuple((column, size) for column, size in problem.sizes if column in columns)
    cells = math.prod(size for _, size in sizes)
    if not sizes or cells > MOST or LESS * cells > base.tree.cells:
        return None
    names = tuple(column for column, _ in sizes)
    table, tree = marginals_of(base).table(names), junction_tree(sizes, (names,))
    # the base's marginal as a single potential; impossible cells stay impossible
    logs = np.log(table, out=np.full(table.shape, NEVER), where=table > 0)
    return replace(problem, sizes=sizes, base=replace(base, tree=tree, potentials=(logs,), terms=()))


def extended(problem: Problem, solved: Solution) -> Solution:
    """Return the whole problem's `Solution` from `solved`, that of its reduction: the base plus these terms.

    Potentials that no term is added to are the base's own arrays, not copies: thousands of strata share them.
    """
    base, tree = problem.base, problem.tree()
    assert base is not None  # noqa: S101 - or it would not have been reduced
    held: list[list[tuple[Clique, Floats]]] = [[] for _ in tree.cliques]
    terms = [(clique, term.reshape(tree.shape(clique))) for clique, term in solved.terms]
    for clique, table in (*zip(base.tree.cliques, base.potentials, strict=True), *terms):
        held[tree.home(clique)].append((clique, table))
    potentials = tuple(
        # no term was added here: the base's own array is shared
        tables[0][1] if [names for names, _ in tables] == [clique] else _summed(clique, tree.shape(clique), tables)
        for clique, tables in zip(tree.cliques, held, strict=True)
    )
    return replace(solved, tree=tree, potentials=potentials)


def _summed(clique: Clique, shape: tuple[int, ...], tables: Sequence[tuple[Clique, Floats]]) -> Floats:
    """Return an array of `shape`, axes `clique`: the sum of `tables`, pairs (some of its columns, array).

    NEVER where one is NEVER.
    """
    summed = np.zeros(shape)
    for names, table in tables:
        axes = [names.index(column) for column in clique if column in names]
        view = [size if column in names else 1 for column, size in zip(clique, shape, strict=True)]
        summed += np.transpose(table, axes).reshape(view)
    return np.where(summed < NEVER / 2, NEVER, summed)


@lru_cache(maxsize=2)
def marginals_of(base: Solution) -> Marginals:
    """Return the `Marginals` of a base model, a `Solution`, cached by its identity: strata must share it."""
    forest = laid_out([base.tree])
    cells, _ = forest.calibrated(np.concatenate([table.ravel() for table in base.potentials]))
    return Marginals(base.tree, forest.views(cells))
