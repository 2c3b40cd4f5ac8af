"""Private-PGM (`mbi`) as the reference: equal tables, its estimation, our junction tree.

Imported on request only: JAX compiles a program for each structure, which takes most of its time. mbi has no prior, no
masked cells and no structural zeros, so problems with these are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stratsynth.adapters.engine.forest import Floats
from stratsynth.adapters.engine.solve import Problem, Solution, total
from stratsynth.errors import Unsupported

LEAST = 1e-300
"""Replacement of probability 0, whose logarithm is not finite."""


def solve_mbi(problems: Sequence[Problem]) -> list[Solution]:
    """Return each problem's solution by mbi's mirror descent and defaults, with the problem's number of steps."""
    return [_solve(problem) for problem in problems]


def _solve(problem: Problem) -> Solution:
    import jax

    jax.config.update("jax_enable_x64", val=True)  # type: ignore[no-untyped-call]  # before mbi is imported, or it computes in single precision
    jax.config.update("jax_enable_compilation_cache", val=False)  # type: ignore[no-untyped-call]  # mbi's many small programs only slow it down
    from mbi import Domain, LinearMeasurement, estimation

    masked = any(t.counted is not None and not t.counted.all() for t in problem.tables)
    if problem.forbidden or problem.prior or masked:
        raise Unsupported('engine "mbi" fits every cell, without prior or structural zeros: use engine "numpy".')
    domain = Domain([name for name, _ in problem.sizes], [size for _, size in problem.sizes])
    measured = [
        LinearMeasurement(t.values.ravel().astype(np.float64), t.clique, stddev=t.sigma) for t in problem.tables
    ]
    number = total(problem)
    fitted = estimation.MirrorDescent().estimate(domain, measured, known_total=number, iters=problem.iterations)
    tree = problem.tree()
    potentials = tuple(
        _conditional(fitted, number, clique, separator)
        for clique, separator in zip(tree.cliques, tree.separators, strict=True)
    )
    objective = sum(float((((_table(fitted, t.clique) - t.values) / t.sigma) ** 2).sum()) / 2 for t in problem.tables)
    return Solution(tree, potentials, number, objective, problem.iterations)


def _table(fitted: Any, clique: tuple[str, ...]) -> Floats:
    factor = fitted.project(clique)
    values = np.asarray(factor.datavector(flatten=False), dtype=np.float64)
    names = tuple(factor.domain.attributes)
    return np.transpose(values, [names.index(column) for column in clique])


def _conditional(fitted: Any, number: float, clique: tuple[str, ...], separator: tuple[str, ...]) -> Floats:
    """Return an array shaped as `clique`: log P(clique | separator) under mbi's `fitted` model of total `number`."""
    joint = np.maximum(_table(fitted, clique) / number, LEAST)
    axes = tuple(i for i, column in enumerate(clique) if column not in separator)
    logs: Floats = np.log(joint) - np.log(joint.sum(axis=axes, keepdims=True))
    return logs if separator else np.log(joint)
