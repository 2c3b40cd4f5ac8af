"""Private linear optimisation: a classifier whose confusion counts N make w . N small, for fixed weights w.

Definitions 7.1 to 7.3 of paper 002 ask that an oracle's law on neighbouring tables has a bounded divergence, for each
fixed w; `Oracle.cost` states it. The weights that the loop hands over come from noisy answers alone, which the paper's
Algorithm 2 gets wrong: it feeds weights of the exact losses into an oracle that is private for fixed ones only.

    exponential   draws one of a finite set of candidates with probability proportional to exp(-e w.N_i / 2D): pure e,
                  and e^2 / 8 in rho. D is the most that one record moves a score: weights are centred for each group
                  and label, which halves it and changes all candidates' scores alike.
    descent       noisy gradients of a weighted log loss. A record of group g and label y costs w[g, y, 1] - w[g, y, 0]
                  more if it is predicted as the second level: it is asked to count as of the cheaper level, its label
                  flipped if need be, by that difference. Log losses of the goal are descended on as they are, but for
                  their cut; squared losses by the log loss of the same weights (`Sizes.costs` says why). Approximate
                  and Renyi: order x rho at every order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.adapters.predictors.descent import GRID, Descent, Region
from stratsynth.questions import Choose, Composite, Program, Term, choose, total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.reductions.rates import Sizes
    from stratsynth.adapters.reductions.task import Task

    Floats = NDArray[np.float64]

FLAT = 1e-9
"""Weights below this, in units of those of the error, say nothing."""


@dataclass(frozen=True)
class Cost:
    """How far an oracle's law may be from that on a neighbouring table."""

    rho: float
    epsilon: float = math.inf
    """The max-divergence; infinite where there is no bound (Definition 7.1)."""

    def approximate(self, delta: float) -> float:
        """The epsilon of Definition 7.2 at this delta."""
        return min(self.epsilon, epsilon_of(self.rho, delta))

    def renyi(self, order: float) -> float:
        """The Rényi divergence of Definition 7.3 at this order."""
        return min(order * self.rho, self.epsilon)


class Oracle(ABC):
    """A private linear optimiser."""

    @abstractmethod
    def cost(self, rho: float) -> Cost:
        """What solving one problem for this rho costs."""

    @abstractmethod
    def solve(self, task: Task, sizes: Sizes, weights: Floats, start: Floats, rho: float) -> Program[Floats]:
        """The coefficients of a classifier.

        Args:
            task: The problem.
            sizes: The groups.
            weights: By group, label and prediction.
            start: The classifier of the step before.
            rho: What it may spend.
        """


@dataclass(frozen=True, eq=False)
class ExponentialOracle(Oracle):
    """The exponential mechanism over candidates that are public, or paid for before."""

    candidates: Floats
    """Coefficients, one row a candidate."""

    def cost(self, rho: float) -> Cost:
        """Pure: e = sqrt(8 rho)."""
        return Cost(rho, Choose((), rho).epsilon)

    def solve(self, task: Task, sizes: Sizes, weights: Floats, start: Floats, rho: float) -> Program[Floats]:
        """One choice."""
        centred = weights - weights.mean(axis=2, keepdims=True)
        if (
            np.abs(centred).max() * sizes.total < FLAT
        ):  # nothing is to be preferred: then the error may as well be small
            centred = sizes.row("error")
        return (yield from self.chosen(task, (Term("largest", centred.reshape(1, -1), np.zeros(1)),), rho))

    def chosen(self, task: Task, terms: tuple[Term, ...], rho: float) -> Program[Floats]:
        """The candidate drawn by a score of any terms: Algorithm 1, if they are the whole goal."""
        query = task.confusions(self.candidates)
        number = yield from choose([Composite(query, i, terms) for i in range(len(self.candidates))], rho=rho)
        return np.array(self.candidates[number])


@dataclass(frozen=True)
class DescentOracle(Oracle):
    """Projected descent on noisy gradients, from the classifier of the step before."""

    steps: int

    def cost(self, rho: float) -> Cost:
        """Gaussian noise: no bound on the max-divergence."""
        return Cost(rho)

    def solve(self, task: Task, sizes: Sizes, weights: Floats, start: Floats, rho: float) -> Program[Floats]:
        """Steps of equal price."""
        dearer = weights[:, :, 1] - weights[:, :, 0]  # of predicting the second level
        most = max(float(np.abs(dearer).max()), 1e-300)
        parts = np.floor(np.abs(dearer) / most * GRID) / GRID
        flips = (dearer < 0) != (np.arange(2) == 1)
        mass = max(float((np.maximum(sizes.numbers, 0) * parts).sum()), 1.0)
        s = task.settings
        tail = max(1, self.steps // 2)
        region = Region("box", s.radius)
        descent = Descent(region, task.rate, s.momentum, self.steps, tail, region.project(start))
        for _ in range(self.steps):
            (answer,) = yield from total(task.gradients(descent.theta, parts, flips), rho=rho / self.steps)
            descent.step(answer.values / mass)
        return descent.result


def net(features: int, number: int) -> Floats:
    """Directions evenly spread by a public seed: the same for everybody, whatever the data."""
    drawn = np.random.default_rng(2).normal(size=(number, features))
    found: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return found


def thresholds(number: int) -> Floats:
    """Classifiers of one numeric feature: x > t and x < t, at thresholds evenly spread within its bounds."""
    cuts = np.linspace(-1, 1, max(number // 2, 1))
    above = np.column_stack([-cuts, np.ones_like(cuts)])
    return np.vstack([above, -above])


def shifted(theta: Floats, movable: NDArray[np.bool_], number: int, width: float) -> Floats:
    """A trained classifier, and copies of it whose intercept and group coefficients are moved by a public draw."""
    moves = np.random.default_rng(3).normal(scale=width, size=(number, len(theta))) * movable
    moves[0] = 0
    return theta + moves
