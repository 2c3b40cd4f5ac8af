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

from stratsynth.adapters.tilted.blocks import Layout, laid_out, places
from stratsynth.questions import Clique, Solver

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats = "NDArray[np.float64]"
CORRECTIONS = 20
"""The steps whose curvature L-BFGS keeps in mind."""
TOLERANCE = 1e-6
"""A step that brings less than this part of what is minimised is the last: noise hides what more would bring."""


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
    from scipy.sparse import csr_matrix

    sizes = [aim.values.size for aim in problem.aims]
    numbers = np.zeros(sum(sizes))
    numbers[: problem.start.size] = problem.start
    if not problem.aims or not problem.base.size:
        return Tilted(problem.base, numbers)
    layout = laid_out([aim.clique for aim in problem.aims], problem.sizes, problem.base.size)
    rows_in = _rows_in(problem, layout)
    cells_of, rows_of, total = layout.cells_of, rows_in.T, problem.total
    values = np.concatenate([aim.values for aim in problem.aims])
    variance = np.repeat([aim.spread**2 for aim in problem.aims], sizes)
    # the number of a cell that is not fitted, or of one that nothing is known about, stays 0
    fitted = np.concatenate([_counted(aim) for aim in problem.aims]) & np.isfinite(variance)
    variance[~fitted] = 0.0
    logs = np.log(problem.base, out=np.full(problem.base.size, -np.inf), where=problem.base > 0)

    def weigh(height: Any) -> tuple[Any, float]:
        top = float(height.max())
        height -= top
        weights = np.exp(height, out=height)
        mass = float(weights.sum())
        weights /= mass
        return weights, top + math.log(mass)

    # by the curvature, each number is about as easily moved as any other: where the fit begins, or where it will end
    first, _ = weigh(logs - rows_in @ (cells_of @ (total * numbers)) if numbers.any() else logs.copy())
    near = np.maximum(total * (cells_of.T @ (rows_of @ first)), np.minimum(values, total))
    curvature = np.where(fitted, variance + near * np.maximum(0.0, total - near), 0.0)
    unit = np.divide(1.0, np.sqrt(curvature), out=np.zeros_like(curvature), where=curvature > 0)
    scaled = np.divide(numbers, unit, out=np.zeros_like(numbers), where=unit > 0)
    # everything in these units, once and not at every step
    shape = cells_of.shape
    into = csr_matrix((total * unit[cells_of.indices], cells_of.indices, cells_of.indptr), shape=shape)
    back, wanted, firm = into.T, values * unit, variance * unit**2

    def dual(scaled: Any) -> tuple[float, Any]:
        weights, mass = weigh(logs - rows_in @ (into @ scaled))
        pull = firm * scaled
        value = mass + 0.5 * float(scaled @ pull) + float(wanted @ scaled)
        pull += wanted
        pull -= back @ (rows_of @ weights)
        return value, pull

    options = {"maxiter": problem.iterations, "maxcor": CORRECTIONS, "ftol": TOLERANCE}
    scaled = minimize(dual, scaled, jac=True, method="L-BFGS-B", options=options).x
    return Tilted(weigh(logs - rows_in @ (into @ scaled))[0], scaled * unit)


def _rows_in(problem: Tilt, layout: Layout) -> Any:
    """Which cells of joint tables each row is in."""
    from scipy.sparse import csr_matrix

    rows, blocks = problem.base.size, layout.blocks
    at = np.empty((rows, len(blocks)), dtype=np.int32)
    for i, columns in enumerate(blocks):
        at[:, i] = places(problem.codes, problem.sizes, columns)
        at[:, i] += layout.starts[i]
    ends = np.arange(0, at.size + 1, len(blocks), dtype=np.int32)
    return csr_matrix((np.ones(at.size), at.ravel(), ends), shape=(rows, layout.starts[-1]))


def _counted(aim: Aim) -> NDArray[np.bool_]:
    return np.ones(aim.values.size, dtype=bool) if aim.counted is None else aim.counted.ravel()


def _numbers(problem: Tilt) -> float:
    """About how much work a step is."""
    return float(problem.base.size * len(problem.aims))


def _hasty(problem: Tilt) -> Tilt:
    """The rows as they are."""
    return replace(problem, aims=(), start=np.zeros(0))


TILTER = Solver(tilt, size=_numbers, hasty=_hasty)
"""Finds one tilt after the other: threads would only wait for each other, as most of a step is not out of Python."""
