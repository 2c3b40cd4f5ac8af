"""The weights of prior rows that explain noisy tables, and differ no more from the prior's than that takes.

    minimise  sum over tables m of  |N q_m(w) - y_m|^2 / (2 sigma_m^2 trust_m)  +  KL(w || prior)

over distributions w on the prior's rows, where q_m(w) is the table of w in probabilities, N the number of records, and
y_m the noisy answer. `trust_m` says for how many people's word the prior counts in a table. It is the maximum-entropy
tilt of PMW-Pub (Liu and others 2021) and GEM-Pub, found through its dual, whose unknowns are one number for each cell:

    w  is in proportion to  prior x exp(-N x sum of the cells' numbers)

The dual is smooth and strongly concave, so that L-BFGS finds it; a step goes through rows x joint tables once and back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.adapters.tilted.blocks import cells, cells_within, packed, places

from stratsynth.questions import Clique, Solver

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats = "NDArray[np.float64]"
CORRECTIONS = 20
"""The steps whose curvature L-BFGS keeps in mind."""
TOLERANCE = 1e-7
"""A step that brings less than this part of what is minimised is the last: noise hides what more would bring."""
ROWS_A_CELL = 8
"""How many rows there are for each cell of tables that are taken together."""


@dataclass(frozen=True, eq=False)
class Aim:
    """One noisy table as the fit sees it."""

    clique: Clique
    """Its columns."""
    values: NDArray[np.float64]
    """The noisy counts, flat."""
    spread: float
    """Sigma times the root of the trust."""
    counted: NDArray[np.bool_] | None = None
    """The cells that are fitted; all of them when not given."""


@dataclass(frozen=True, eq=False)
class Tilt:
    """A problem: which rows there are, and what their weights are to explain."""

    codes: Mapping[str, NDArray[np.integer[Any]]]
    """The rows as level numbers, by column."""
    sizes: Mapping[str, int]
    """The number of levels of each column."""
    base: NDArray[np.float64]
    """The prior's weights, adding up to one."""
    aims: tuple[Aim, ...]
    total: float
    """The number of records that the tables speak of."""
    start: NDArray[np.float64]
    """The cells' numbers of an earlier fit to the first of these tables; those of later tables begin with 0."""
    iterations: int


@dataclass(frozen=True, eq=False)
class Tilted:
    """A solution."""

    weights: NDArray[np.float64]
    """One for each row, adding up to one."""
    numbers: NDArray[np.float64]
    """The cells' numbers: where a later fit begins."""


def tilt(problems: Sequence[Tilt]) -> list[Tilted]:
    """The weights of each problem."""
    return [_tilt(problem) for problem in problems]


def _tilt(problem: Tilt) -> Tilted:
    from scipy.optimize import minimize

    sizes = [aim.values.size for aim in problem.aims]
    numbers = np.zeros(sum(sizes))
    numbers[: problem.start.size] = problem.start
    if not problem.aims or not problem.base.size:
        return Tilted(problem.base, numbers)
    joint_of, cells_of = _tables(problem)
    values = np.concatenate([aim.values for aim in problem.aims])
    variance = np.repeat([aim.spread**2 for aim in problem.aims], sizes)
    # the number of a cell that is not fitted, or of one that nothing is known about, stays 0
    fitted = np.concatenate([_counted(aim) for aim in problem.aims]) & np.isfinite(variance)
    variance[~fitted] = 0.0
    logs = np.log(problem.base, out=np.full(problem.base.size, -np.inf), where=problem.base > 0)

    def weigh(numbers: Any) -> tuple[Any, float]:
        height = logs - joint_of @ (cells_of @ (problem.total * numbers))
        top = float(height.max())
        weights = np.exp(height - top)
        mass = float(weights.sum())
        weights /= mass
        return weights, top + math.log(mass)

    def counts(weights: Any) -> Any:
        return problem.total * (cells_of.T @ (joint_of.T @ weights))

    def dual(scaled: Any) -> tuple[float, Any]:
        numbers = scaled * unit
        weights, mass = weigh(numbers)
        pull = numbers * variance
        value = mass + 0.5 * float(numbers @ pull) + float(values @ numbers)
        return value, (values - counts(weights) + pull) * unit

    # by the curvature, each number is about as easily moved as any other: where the fit begins, or where it will end
    near = np.maximum(counts(weigh(numbers)[0]), np.minimum(values, problem.total))
    curvature = np.where(fitted, variance + near * np.maximum(0.0, problem.total - near), 0.0)
    unit = np.divide(1.0, np.sqrt(curvature), out=np.zeros_like(curvature), where=curvature > 0)
    scaled = np.divide(numbers, unit, out=np.zeros_like(numbers), where=unit > 0)
    options = {"maxiter": problem.iterations, "maxcor": CORRECTIONS, "ftol": TOLERANCE}
    numbers = minimize(dual, scaled, jac=True, method="L-BFGS-B", options=options).x * unit
    return Tilted(weigh(numbers)[0], numbers)


def _tables(problem: Tilt) -> tuple[Any, Any]:
    """Which cells of joint tables each row is in, and which cells of the aims each cell of a joint table is in."""
    from scipy.sparse import csr_matrix

    rows, first = problem.base.size, np.cumsum([0, *(aim.values.size for aim in problem.aims)])
    cliques = [aim.clique for aim in problem.aims]
    blocks = packed(cliques, problem.sizes, rows // ROWS_A_CELL)
    sizes = [cells(problem.sizes, columns) for columns, _ in blocks]
    starts = np.cumsum([0, *sizes])
    at = np.empty((rows, len(blocks)), dtype=np.int32)
    for i, (columns, _) in enumerate(blocks):
        at[:, i] = places(problem.codes, problem.sizes, columns)
        at[:, i] += starts[i]
    ends = np.arange(0, at.size + 1, len(blocks), dtype=np.int32)
    joint_of = csr_matrix((np.ones(at.size), at.ravel(), ends), shape=(rows, int(starts[-1])))
    inside = [
        np.stack([first[k] + cells_within(problem.sizes, columns, cliques[k]) for k in held], axis=1)
        for columns, held in blocks
    ]
    held = np.concatenate([[0], *(np.full(len(each), each.shape[1]) for each in inside)])
    parts = np.concatenate([each.ravel() for each in inside])
    return joint_of, csr_matrix((np.ones(parts.size), parts, np.cumsum(held)), shape=(int(starts[-1]), int(first[-1])))


def _counted(aim: Aim) -> NDArray[np.bool_]:
    return np.ones(aim.values.size, dtype=bool) if aim.counted is None else aim.counted.ravel()


def _numbers(problem: Tilt) -> float:
    """About how much work a step is."""
    return float(problem.base.size * len(problem.aims))


def _hasty(problem: Tilt) -> Tilt:
    """The rows as they are."""
    return replace(problem, aims=(), start=np.zeros(0))


TILTER = Solver(tilt, apart=True, size=_numbers, hasty=_hasty)
"""The tilts of several strata are found side by side."""
