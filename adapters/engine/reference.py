"""Private-PGM (`mbi`) as the engine: our problems, its mirror descent.

A problem's parts are those that mbi has names for: tables are `LinearMeasurement`s, cells that do not count are left
out by their `query`, impossible cells are `Constraint`s, and the last fit is the `warm_start`. The pull to the base,
prior x KL(model, base), is a function of the marginals of a junction tree's cliques and separators, and as such a part
of the `MarginalLossFn`. Both engines thus minimise one function over one set of models, each by its own steps.

Imported on request only: JAX compiles a program for each structure, which takes most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine.dense import laid_out
from stratsynth.adapters.engine.forest import NEVER, Floats, Forest
from stratsynth.adapters.engine.goal import fixed_part
from stratsynth.adapters.engine.marginals import Marginals
from stratsynth.adapters.engine.solve import MOST_CELLS, MeasuredTable, Problem, Solution, solve, total
from stratsynth.adapters.engine.structure import Clique, JunctionTree, check_size

LEAST = 1e-300
"""Replacement of probability 0 in a start, whose logarithm is not finite."""


def solve_mbi(problems: Sequence[Problem]) -> list[Solution]:
    """Return a list of the problems' `Solution`s, of this engine's class, by mbi's mirror descent, one after another.

    The number of steps is rounded up to mbi's blocks of 50. A problem of a single step is solved by our own engine, and
    nothing is compiled for it. Unsupported for a model that has over `MOST_CELLS` cells in all.
    """
    return [_solve(problem) if problem.iterations > 1 else solve([problem])[0] for problem in problems]


def _solve(problem: Problem) -> Solution:
    """Return the solution of one problem by mbi's mirror descent; Unsupported above `MOST_CELLS` cells."""
    tree, number = problem.tree(), total(problem)
    check_size(tree, MOST_CELLS)
    forest = laid_out([tree])
    potentials, out = fixed_part(forest, [problem])
    # a cell may be impossible because no possible one of other columns goes with it
    out |= forest.calibrated(potentials)[0] <= 0
    base, steps, objective = np.where(out, 0.0, potentials), 0, 0.0
    if problem.tables:  # without tables, the base fits best
        potentials, steps, objective = _descended(problem, forest, number, base, out)
    tables = forest.views(np.where(out, NEVER, potentials))
    return Solution(tree, tuple(table.copy() for table in tables), number, objective, steps)


def _descended(
    problem: Problem, forest: Forest, number: float, base: Floats, out: NDArray[np.bool_]
) -> tuple[Floats, int, float]:
    """Return (log potentials of the tree's cells, steps taken, misfit) of a problem's fit by mbi.

    Args:
        problem: The problem, with one table or more.
        forest: The layout of its tree.
        number: The number of records.
        base: The base's log potentials, a flat array over cells, 0 in impossible ones.
        out: The mask of impossible cells.
    """
    import jax

    jax.config.update("jax_enable_x64", val=True)  # type: ignore[no-untyped-call]  # before mbi is imported, or it computes in single precision
    jax.config.update("jax_enable_compilation_cache", val=False)  # type: ignore[no-untyped-call]  # mbi's many small programs only slow it down
    from mbi import CliqueVector, Constraint, Domain, Factor, MarginalLossFn, estimation, marginal_loss

    (tree,) = forest.trees
    domain = Domain([name for name, _ in tree.sizes], [size for _, size in tree.sizes])
    misfit = marginal_loss.from_linear_measurements([_measurement(table, tree) for table in problem.tables], domain)
    facts = {
        "misfit": misfit,
        "base": tuple(table.copy() for table in forest.views(base)),
        "constant": float(forest.calibrated(np.where(out, NEVER, base))[1][0]),
        "prior": float(problem.prior),
        "total": number,
    }
    # smoothness relative to the entropy, which sets the first step
    smooth = max(table.sigma**-2 for table in problem.tables) + problem.prior / number**2
    loss = MarginalLossFn(tree.cliques, _Objective(tree.cliques, tree.separators), facts, smooth)
    constraints = [
        Constraint(domain.project(clique), invalid=np.argwhere(cells))
        for clique, cells in zip(tree.cliques, forest.views(out.astype(np.float64)), strict=True)
        if cells.any()
    ]
    first = forest.views(base) if problem.start is None else _started(problem.start, tree)
    factors = {c: Factor(domain.project(c), table) for c, table in zip(tree.cliques, first, strict=True)}
    blocks: list[int] = []
    fitted = estimation.MirrorDescent().estimate(
        domain,
        loss,
        number,
        constraints=constraints,
        iters=problem.iterations,
        callback_fn=lambda _: blocks.append(estimation.CALLBACK_EVERY),
        warm_start=CliqueVector(domain, tree.cliques, factors),
        tol=problem.tolerance,
    )
    terms, marginals = (
        np.concatenate([np.asarray(factors[clique].values, np.float64).ravel() for clique in tree.cliques])
        for factors in (fitted.potentials, fitted.marginals)
    )
    return terms, sum(blocks), _misfit(problem, forest, marginals)


def _misfit(problem: Problem, forest: Forest, cells: Floats) -> float:
    """Return half the sum of squares of (count in `cells` - the problem's noisy count) / sigma, over its tables' cells.

    `cells` is a flat array of the expected counts in all cells of the forest.
    """
    fitted = forest.maps([(0, table.clique) for table in problem.tables]).gather(cells)
    ends = np.cumsum([table.values.size for table in problem.tables])
    return sum(
        float((((part - table.values.ravel()) / table.sigma) ** 2 * _counted(table)).sum()) / 2
        for table, part in zip(problem.tables, np.split(fitted, ends[:-1]), strict=True)
    )


def _counted(table: MeasuredTable) -> Floats:
    """Return a flat array: 1 for each cell of a `MeasuredTable` that counts, else 0."""
    return np.ones(table.values.size) if table.counted is None else table.counted.ravel().astype(np.float64)


@dataclass(frozen=True)
class _Objective:
    """Misfit of all tables, plus the prior times the divergence from the base, as mbi calls it.

    The divergence is the sum over cliques, less the sum over separators, of p log p, less p's mean of the base's log
    potentials, plus the base's log partition sum.
    """

    cliques: tuple[Clique, ...]
    separators: tuple[Clique, ...]

    def __call__(self, marginals: Any, facts: Mapping[str, Any]) -> Any:
        return _compiled()(self, marginals, facts)


@cache
def _compiled() -> Callable[[_Objective, Any, Mapping[str, Any]], Any]:
    """Return a function of (objective, marginals, facts) that mbi calls, `_value` compiled as one program a tree.

    The first call of mbi's own would compile hundreds of small ones.
    """
    import jax

    return jax.jit(_value, static_argnums=0)


def _value(at: _Objective, marginals: Any, facts: Mapping[str, Any]) -> Any:
    """Return the objective `at` a tree, of mbi's `marginals`.

    `facts` is a mapping of the problem's numbers and arrays by name.
    """
    import jax.numpy as jnp

    def negentropy(counts: Any) -> Any:
        shares = counts.values / facts["total"]
        return (shares * jnp.log(jnp.where(shares > 0, shares, 1.0))).sum()

    apart = facts["constant"]
    for clique, separator, base in zip(at.cliques, at.separators, facts["base"], strict=True):
        joint = marginals[clique]
        apart += negentropy(joint) - (joint.values * base).sum() / facts["total"]
        if separator:
            apart -= negentropy(joint.project(separator))
    return facts["misfit"](marginals) + facts["prior"] * apart


def _measurement(table: MeasuredTable, tree: JunctionTree) -> Any:
    """Return a `MeasuredTable` as mbi's `LinearMeasurement`, flat, axes in the order of the junction tree's columns."""
    from mbi import LinearMeasurement, WeightedQuery

    order = [table.clique.index(name) for name, _ in tree.sizes if name in table.clique]
    clique, values = tuple(table.clique[i] for i in order), np.transpose(table.values, order).ravel().astype(np.float64)
    counted = np.transpose(_counted(table).reshape(table.values.shape), order).ravel()
    if counted.all():
        return LinearMeasurement(values, clique, stddev=table.sigma)
    return LinearMeasurement(values * counted, clique, stddev=table.sigma, query=WeightedQuery(counted))


def _started(start: Solution, tree: JunctionTree) -> list[Floats]:
    """Return a list, each clique's array of log potentials in a junction tree, from `start`, another's `Solution`."""
    forest = laid_out([start.tree])
    cells, _ = forest.calibrated(np.concatenate([table.ravel() for table in start.potentials]))
    joints = Marginals(start.tree, forest.views(cells)).tables(tree.cliques)
    found = []
    for joint, clique, separator in zip(joints, tree.cliques, tree.separators, strict=True):
        axes = tuple(i for i, column in enumerate(clique) if column not in separator)
        logs = np.log(np.maximum(joint, LEAST))
        found.append(logs - np.log(np.maximum(joint.sum(axis=axes, keepdims=True), LEAST)))
    return found
