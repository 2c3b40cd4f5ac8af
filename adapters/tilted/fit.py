"""The weights of prior rows that explain noisy tables with the least divergence from the prior's weights.

    minimise  sum over tables m of  |N q_m(w) - y_m|^2 / (2 sigma_m^2 trust_m)  +  KL(w || prior)

over distributions w on the prior's rows, where q_m(w) is the table of w in probabilities, N the number of records, and
y_m the noisy answer. `trust_m` is the number of people that the prior counts for in a table. This is the
maximum-entropy tilt of PMW-Pub (Liu and others 2021) and GEM-Pub, found through its dual, which has one unknown for
each cell:

    w  is in proportion to  prior x exp(-N x sum of the row's cells' unknowns)

The dual is smooth and strongly concave, so that L-BFGS finds it; a step goes through rows x joint tables once and back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.tilted.blocks import TableBlocks, laid_out, places
from stratsynth.questions import Clique, Solver

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats = "NDArray[np.float64]"
CORRECTIONS = 20
"""Number of past steps from which L-BFGS estimates the curvature."""
TOLERANCE = 1e-6
"""Relative decrease of the objective below which the fit stops: further gains are hidden by noise."""


@dataclass(frozen=True, eq=False)
class Aim:
    """One noisy table that the rows' weights are fitted to."""

    clique: Clique
    """Columns of the table."""
    values: NDArray[np.float64]
    """Noisy counts, row-major."""
    spread: float
    """Sigma, in records, times the root of the trust."""
    counted: NDArray[np.bool_] | None = None
    """Mask of the cells that are fitted; None for all."""


@dataclass(frozen=True, eq=False)
class Tilt:
    """One problem: prior rows, their weights, and noisy tables to be explained."""

    codes: Mapping[str, NDArray[np.integer[Any]]]
    """Level number of each row, by column."""
    sizes: Mapping[str, int]
    """Number of levels of each column."""
    base: NDArray[np.float64]
    """Prior weight of each row; they add up to 1."""
    aims: tuple[Aim, ...]
    total: float
    """Number of records in the tables."""
    start: NDArray[np.float64]
    """Dual unknowns of an earlier fit to the first of these tables; those of later tables start at 0."""
    iterations: int


@dataclass(frozen=True, eq=False)
class Tilted:
    """Solution of one `Tilt`: the rows' new weights, and the dual unknowns that give them."""

    weights: NDArray[np.float64]
    """Weight of each row; they add up to 1."""
    numbers: NDArray[np.float64]
    """Dual unknowns, one a cell: the start of a later fit."""


def tilt(problems: Sequence[Tilt]) -> list[Tilted]:
    """Return a list of the solutions of problems, each a `Tilt`, as `Tilted`: new weights of rows, dual unknowns."""
    return [_tilt(problem) for problem in problems]


def _tilt(problem: Tilt) -> Tilted:
    """Return the `Tilted` of a problem, a `Tilt`: its rows' new weights, and the dual unknowns."""
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
    # the unknown of a cell that is not fitted, or has infinite variance, stays 0
    fitted = np.concatenate([_counted(aim) for aim in problem.aims]) & np.isfinite(variance)
    variance[~fitted] = 0.0
    logs = np.log(problem.base, out=np.full(problem.base.size, -np.inf), where=problem.base > 0)

    def weigh(height: Any) -> tuple[Any, float]:
        # softmax with its log partition sum; the largest height is taken out against overflow
        top = float(height.max())
        height -= top
        weights = np.exp(height, out=height)
        mass = float(weights.sum())
        weights /= mass
        return weights, top + math.log(mass)

    # scaling by the curvature, at the start or where the fit will end, makes all unknowns about equally easy to move
    first, _ = weigh(logs - rows_in @ (cells_of @ (total * numbers)) if numbers.any() else logs.copy())
    near = np.maximum(total * (cells_of.T @ (rows_of @ first)), np.minimum(values, total))
    curvature = np.where(fitted, variance + near * np.maximum(0.0, total - near), 0.0)
    unit = np.divide(1.0, np.sqrt(curvature), out=np.zeros_like(curvature), where=curvature > 0)
    scaled = np.divide(numbers, unit, out=np.zeros_like(numbers), where=unit > 0)
    # the matrices are scaled once and not at every step
    shape = cells_of.shape
    into = csr_matrix((total * unit[cells_of.indices], cells_of.indices, cells_of.indptr), shape=shape)
    back, wanted, firm = into.T, values * unit, variance * unit**2

    # negative dual, to be minimised: log partition sum + half the penalty + linear term, and its gradient
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


def _rows_in(problem: Tilt, layout: TableBlocks) -> Any:
    """Return a sparse 0/1 matrix, a `Tilt` problem's rows x cells of the `TableBlocks`: 1 where a row is in a cell."""
    from scipy.sparse import csr_matrix

    rows, blocks = problem.base.size, layout.blocks
    at = np.empty((rows, len(blocks)), dtype=np.int32)
    for i, columns in enumerate(blocks):
        at[:, i] = places(problem.codes, problem.sizes, columns)
        at[:, i] += layout.starts[i]
    ends = np.arange(0, at.size + 1, len(blocks), dtype=np.int32)
    return csr_matrix((np.ones(at.size), at.ravel(), ends), shape=(rows, layout.starts[-1]))


def _counted(aim: Aim) -> NDArray[np.bool_]:
    """Return a flat mask of the cells of a table, `aim`, that count: all without a mask of its own."""
    return np.ones(aim.values.size, dtype=bool) if aim.counted is None else aim.counted.ravel()


def _numbers(problem: Tilt) -> float:
    """Return the work of one step of a `Tilt` problem, a float, for sharing it out: its rows x tables."""
    return float(problem.base.size * len(problem.aims))


def _hasty(problem: Tilt) -> Tilt:
    """Return a copy of the `Tilt` without tables, which the prior's weights solve: enough for rehearsals."""
    return replace(problem, aims=(), start=np.zeros(0))


TILTER = Solver(tilt, size=_numbers, hasty=_hasty)
"""Solver of tilts, one after the other: threads would only wait for Python's lock, which most of a step holds."""
