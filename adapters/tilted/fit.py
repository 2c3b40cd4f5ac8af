"""The weights of prior rows that explain noisy tables, and differ no more from the prior's than that takes.

    minimise  sum over tables m of  |N q_m(w) - y_m|^2 / (2 sigma_m^2 trust_m)  +  KL(w || prior)

over distributions w on the prior's rows, where q_m(w) is the table of w in probabilities, N the number of records, and
y_m the noisy answer. `trust_m` says for how many people's word the prior counts in a table. It is the maximum-entropy
tilt of PMW-Pub (Liu and others 2021) and GEM-Pub, found through its dual, whose unknowns are one number for each cell:

    w  is in proportion to  prior x exp(-N x sum of the cells' numbers)

The dual is smooth and strongly concave, so that L-BFGS finds it; a step goes through rows x tables once and back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.questions import Solver

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats = "NDArray[np.float64]"
CORRECTIONS = 20
"""The steps whose curvature L-BFGS keeps in mind."""


@dataclass(frozen=True, eq=False)
class Aim:
    """One noisy table as the fit sees it."""

    cells: NDArray[np.intp]
    """The row-major cell of each prior row."""
    values: NDArray[np.float64]
    """The noisy counts, flat."""
    spread: float
    """Sigma times the root of the trust."""
    counted: NDArray[np.bool_] | None = None
    """The cells that are fitted; all of them when not given."""


@dataclass(frozen=True, eq=False)
class Tilt:
    """A problem: which rows there are, and what their weights are to explain."""

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
    rows, tables = problem.base.size, len(problem.aims)
    places = np.stack([aim.cells for aim in problem.aims], axis=1) + np.cumsum([0, *sizes[:-1]])
    ends = np.arange(0, rows * tables + 1, tables)
    cells_of = csr_matrix((np.ones(rows * tables), places.ravel(), ends), shape=(rows, numbers.size))
    rows_of = cells_of.T.tocsr()
    values = np.concatenate([aim.values for aim in problem.aims])
    # in units of its spread, each number is about as easily moved as any other
    unit = 1 / np.concatenate([np.full(aim.values.size, aim.spread) for aim in problem.aims])
    unit[~np.concatenate([_counted(aim) for aim in problem.aims])] = 0.0  # a cell that is not fitted has the number 0
    logs = np.log(problem.base, out=np.full(rows, -np.inf), where=problem.base > 0)

    def weigh(numbers: Any) -> tuple[Any, float]:
        height = logs - problem.total * (cells_of @ numbers)
        top = float(height.max())
        weights = np.exp(height - top)
        mass = float(weights.sum())
        weights /= mass
        return weights, top + math.log(mass)

    def dual(scaled: Any) -> tuple[float, Any]:
        numbers = scaled * unit
        weights, mass = weigh(numbers)
        slope = (values - problem.total * (rows_of @ weights)) * unit + scaled
        return mass + 0.5 * float(scaled @ scaled) + float(values @ numbers), slope

    scaled = np.divide(numbers, unit, out=np.zeros_like(numbers), where=unit > 0)
    options = {"maxiter": problem.iterations, "maxcor": CORRECTIONS}
    numbers = minimize(dual, scaled, jac=True, method="L-BFGS-B", options=options).x * unit
    return Tilted(weigh(numbers)[0], numbers)


def _counted(aim: Aim) -> NDArray[np.bool_]:
    return np.ones(aim.values.size, dtype=bool) if aim.counted is None else aim.counted.ravel()


def _numbers(problem: Tilt) -> float:
    """About how much work a step is."""
    return float(problem.base.size * len(problem.aims))


def _hasty(problem: Tilt) -> Tilt:
    """One step."""
    return replace(problem, iterations=1)


TILTER = Solver(tilt, apart=True, size=_numbers, hasty=_hasty)
"""The tilts of several strata are found side by side."""
