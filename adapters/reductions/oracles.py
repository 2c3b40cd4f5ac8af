"""Private linear optimisation: a classifier whose confusion counts N make w . N small, for fixed weights w.

Definitions 7.1 to 7.3 of paper 002 require a bounded divergence between an oracle's laws on neighbouring tables, for
each fixed w; `Oracle.cost` states it. The weights from the loop come from noisy answers alone, which the paper's
Algorithm 2 gets wrong: it feeds weights of the exact losses into an oracle that is private for fixed ones only.

    exponential   draws one of a finite set of candidates with probability proportional to exp(-e w.N_i / 2D): pure e
                  (LOPT_{e,0}), and e^2 / 8 in rho. D is the largest change of a score by one record: weights are
                  centred for each group and label, which halves it and changes all candidates' scores equally.
    descent       noisy gradients of a weighted log loss. A record of group g and label y costs w[g, y, 1] - w[g, y, 0]
                  more if it is predicted as the second level: its label in the loss is the cheaper level, its weight
                  that difference. Of several levels a record keeps its label, and weighs as much as its wrong
                  predictions cost more than the right one in the mean; one whose label is to be missed is left out.
                  Log losses of the goal are descended on as they are, but for their clip; squared
                  losses by the log loss of equal weights (`Sizes.costs` says why). Approximate and Renyi: order x rho
                  at every order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.adapters.predictors.descent import GRID, Descent, Region
from stratsynth.questions import Choose, Composite, Program, Term, total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.reductions.amounts import Amount
    from stratsynth.adapters.reductions.rates import Sizes
    from stratsynth.adapters.reductions.task import ReductionsProblem

    Floats = NDArray[np.float64]

FLAT = 1e-9
"""Size of weights, in units of the error's, below which no candidate is preferred."""


@dataclass(frozen=True)
class OracleCost:
    """Bounds on the divergence between an oracle's laws on neighbouring tables."""

    rho: float
    epsilon: float = math.inf
    """Max-divergence; infinite if it has no bound (Definition 7.1)."""

    def approximate(self, delta: float) -> float:
        """Return an epsilon at this `delta` (Definition 7.2): the smaller of `epsilon` and that of rho."""
        return min(self.epsilon, epsilon_of(self.rho, delta))

    def renyi(self, order: float) -> float:
        """Return the Rényi divergence at this order (Definition 7.3): order x rho, at most `epsilon`."""
        return min(order * self.rho, self.epsilon)


class Oracle(ABC):
    """Private linear optimiser: for weights of counts, it finds a classifier of small weighted counts."""

    @abstractmethod
    def cost(self, rho: float) -> OracleCost:
        """Return an OracleCost, rho and epsilon, bounding what a neighbouring table changes in a problem for `rho`."""

    @abstractmethod
    def solve(
        self, task: ReductionsProblem, sizes: Sizes, weights: Floats, start: Floats, pay: Amount
    ) -> Program[Floats]:
        """Program that returns an array, coefficients of a classifier with a small product `weights` . counts.

        Args:
            task: The `ReductionsProblem`: the fit's public facts.
            sizes: The groups' sizes.
            weights: Weights of counts, by group, label and prediction.
            start: The classifier of the step before.
            pay: The budget of the problem.
        """


@dataclass(frozen=True, eq=False)
class ExponentialOracle(Oracle):
    """The exponential mechanism over candidates that are public, or paid for before."""

    candidates: Floats
    """Coefficients, one entry a candidate."""

    def cost(self, rho: float) -> OracleCost:
        """Return an OracleCost: `rho`, and as epsilon that of a pure choice, sqrt(8 rho)."""
        return OracleCost(rho, Choose((), rho).epsilon)

    def solve(
        self, task: ReductionsProblem, sizes: Sizes, weights: Floats, start: Floats, pay: Amount
    ) -> Program[Floats]:
        """Program of a `ReductionsProblem`: an array, the coefficients of the candidate drawn for `pay` by costs.

        `weights`, the costs, is an array, groups x labels x predictions; if tiny, errors count. `sizes` are the
        groups', `start` is not used.
        """
        # a constant over predictions shifts all scores equally; centring halves their sensitivity
        centred = weights - (weights.max(axis=2, keepdims=True) + weights.min(axis=2, keepdims=True)) / 2
        if (
            np.abs(centred).max() * sizes.total < FLAT
        ):  # nothing is to be preferred: then the error may as well be small
            centred = sizes.row("error")
        return (yield from self.chosen(task, (Term("largest", centred.reshape(1, -1), np.zeros(1)),), pay))

    def chosen(self, task: ReductionsProblem, terms: tuple[Term, ...], pay: Amount) -> Program[Floats]:
        """Program of a `ReductionsProblem`: an array, the coefficients of the candidate drawn for `pay` by a score.

        The score is a sum of `terms`.
        """
        query = task.confusions(self.candidates)
        number = yield from pay.choice([Composite(query, i, terms) for i in range(len(self.candidates))])
        return np.array(self.candidates[number])


@dataclass(frozen=True)
class DescentOracle(Oracle):
    """Projected descent on noisy gradients, from the classifier of the step before."""

    steps: int

    def cost(self, rho: float) -> OracleCost:
        """Return an OracleCost: `rho`, and an infinite epsilon, as Gaussian noise has no bounded max-divergence."""
        return OracleCost(rho)

    def solve(
        self, task: ReductionsProblem, sizes: Sizes, weights: Floats, start: Floats, pay: Amount
    ) -> Program[Floats]:
        """Program of a `ReductionsProblem` that returns coefficients, an array, after noisy gradients from `start`.

        `weights`, the costs, is an array, groups x labels x predictions; `sizes` are the groups'. All steps cost the
        rho `pay` together.
        """
        dearer, flips = _dearer(weights)
        # weights become parts from 0 to 1, so that no row's gradient grows beyond its clip
        most = max(float(dearer.max()), 1e-300)
        parts = np.floor(dearer / most * GRID) / GRID
        # expected total of the parts, by public or paid sizes: the realised one is private
        mass = max(float((np.maximum(sizes.numbers, 0) * parts).sum()), 1.0)
        s = task.settings
        tail = max(1, self.steps // 2)
        region = Region("box", s.radius)
        descent = Descent(region, task.rate, s.momentum, self.steps, tail, region.project(start))
        for _ in range(self.steps):
            (answer,) = yield from total(task.gradients(descent.theta, parts, flips), rho=pay.value / self.steps)
            descent.step(answer.values.reshape(start.shape) / mass)
        return descent.result


def _dearer(weights: Floats) -> tuple[Floats, NDArray[np.bool_] | None]:
    """Return (array, groups x labels: a wrong prediction's extra cost by `weights`; mask of its shape, flips, or None).

    `weights` are costs, groups x labels x predictions. A record that the mask names counts with the other label, since
    a wrong prediction of it is the cheaper one. Of more than two levels there is no mask: the cost is the mean over
    wrong predictions, and 0 where the right one is dearer.
    """
    levels = weights.shape[2]
    right = np.diagonal(weights, axis1=1, axis2=2)
    extra = np.where(np.eye(levels, dtype=bool), 0.0, weights).sum(axis=2) / (levels - 1) - right
    return (np.abs(extra), extra < 0) if levels == 2 else (np.maximum(extra, 0.0), None)


def net(shape: tuple[int, ...], number: int) -> Floats:
    """Return an array of `number` coefficient arrays of this shape, each of norm 1, drawn by a fixed public seed."""
    # directions of normal vectors are uniform on the sphere
    drawn = np.random.default_rng(2).normal(size=(number, *shape))
    found: Floats = drawn / np.linalg.norm(drawn.reshape(number, -1), axis=1).reshape(-1, *(1 for _ in shape))
    return found


def thresholds(number: int) -> Floats:
    """Return an array of `number` classifiers, a row (slope, intercept) each: x > t or x < t of one numeric feature.

    The t are evenly spaced from -1 to 1.
    """
    cuts = np.linspace(-1, 1, max(number // 2, 1))
    above = np.column_stack([-cuts, np.ones_like(cuts)])
    return np.vstack([above, -above])


def shifted(theta: Floats, movable: NDArray[np.bool_], number: int, width: float) -> Floats:
    """Return an array of `number` copies of the coefficients `theta`: the first unchanged, others moved.

    Moves are of features where the mask `movable` is true, normal with deviation `width`, by a fixed public seed.
    """
    mask = movable.reshape(-1, *(1 for _ in theta.shape[1:]))
    moves = np.random.default_rng(3).normal(scale=width, size=(number, *theta.shape)) * mask
    moves[0] = 0
    return theta + moves
