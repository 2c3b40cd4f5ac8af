"""Programs: Frank-Wolfe with private linear optimisation (Algorithm 2, corrected), and exponential sampling.

One step, with the running mean L of noisy counts (and sums of losses) and the weights a of the classifiers so far:

    w = gradient of h at L                              post-processing
    c = LOPT(w)                                         the oracle's question
    N = the counts of c, with noise                     one table: a record enters one of its cells; and one more for
                                                        each kind of loss of probabilities in the goal
    a <- ((1 - g) a, g), with g = 2 / (t + 2) for t = 0, 1, ..., or the best weights of all so far;  L <- sum_t a_t N_t

The paper's Algorithm 4 takes the gradient at the last classifier's losses and mixes all of them equally; that need not
converge (`scripts/reproduce_reductions` shows a goal where it does not). Its Algorithm 2 asks the oracle with weights
made of exact losses; here losses are noisy first, and paid for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.reductions.mixing import mixed
from stratsynth.adapters.reductions.oracles import DescentOracle, ExponentialOracle, Oracle, net, shifted, thresholds
from stratsynth.questions import Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.reductions.amounts import Amount
    from stratsynth.adapters.reductions.goals import Goal
    from stratsynth.adapters.reductions.rates import Sizes
    from stratsynth.adapters.reductions.task import ReductionsProblem

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LoopResult:
    """Classifiers that a program fitted, with their weights in the mixture and their noisy counts."""

    thetas: Floats
    """Coefficients, one entry a classifier."""
    weights: Floats
    """Probability of each classifier in the mixture."""
    counts: Floats
    """Noisy counts, and noisy sums of losses in units of their clips: one row a classifier."""
    sigma: float
    """Noise scale of each of these numbers."""

    @property
    def mean(self) -> Floats:
        """Noisy counts and sums of the mixture: the vector of means over its classifiers by weight."""
        found: Floats = self.weights @ self.counts
        return found

    @property
    def noise(self) -> float:
        """Noise scale of each of the mixture's counts and sums, a float."""
        return self.sigma * float(np.linalg.norm(self.weights))


def counted(task: ReductionsProblem, thetas: Floats, pay: Amount) -> Program[tuple[Floats, float]]:
    """Program for the amount `pay`: asks a `ReductionsProblem`'s counts and losses of classifiers, rows of `thetas`.

    It returns (array, a row a classifier, of counts and sums; their noise). Sums of losses are in units of their clips;
    one noise scale holds for all numbers.
    """
    measures = task.settings.measures
    # one question for counts and one for each measure of losses, at equal prices and so of one noise
    each = pay.over(1 + len(measures))
    answer = yield from each.sums(task.confusions(thetas, pure=pay.pure))
    found = [np.array([part.values for part in answer])]
    for measure in measures:
        query = task.losses(thetas, measure)
        sums = yield from each.sums(query)
        found.append(np.array([part.values for part in sums]) / query.clip)
    return np.hstack(found), answer[0].sigma


def frank_wolfe(task: ReductionsProblem, sizes: Sizes, goal: Goal, pay: Amount) -> Program[LoopResult]:
    """Program of a `ReductionsProblem`'s Algorithm 2 for the amount `pay` on a goal, by `sizes`.

    Returns a LoopResult: classifiers, weights, counts.
    """
    s = task.settings
    oracle, start, left = yield from _oracle(task, sizes, goal, pay)
    each = left.over(s.iterations).times(1 - 1e-12)
    thetas, tables, sigma = list[Any](), list[Any](), 0.0
    # the first gradient is taken at the counts of a classifier that is always right
    mean, theta, weights = sizes.right, start, np.zeros(0)
    for _ in range(s.iterations):
        # Algorithm 2, line 10, but with G and at the noisy mixture's counts
        w = sizes.costs(goal.gradient(mean))
        # line 11: the private linear optimiser
        theta = yield from oracle.solve(task, sizes, w, theta, each.times(1 - s.loss_share))
        (table,), sigma = yield from counted(task, theta[None], each.times(s.loss_share))
        thetas.append(theta)
        tables.append(table)
        # line 13 returns the uniform mixture instead
        weights = mixed(s.mixing, goal, np.array(tables), weights)
        mean = weights @ np.array(tables)
    return LoopResult(np.array(thetas), weights / weights.sum(), np.array(tables), sigma)


def sampling(task: ReductionsProblem, sizes: Sizes, goal: Goal, pay: Amount) -> Program[LoopResult]:
    """Program of a `ReductionsProblem`'s Algorithm 1 for a goal, by `sizes`, for `pay`: LoopResult of one candidate."""
    s = task.settings
    candidates, left = yield from _candidates(task, sizes, goal, pay)
    left = left.times(1 - 1e-12)
    # Algorithm 1: the exponential mechanism with the penalised objective as its score
    theta = yield from ExponentialOracle(candidates).chosen(task, goal.terms(), left.times(1 - s.loss_share))
    tables, sigma = yield from counted(task, theta[None], left.times(s.loss_share))
    return LoopResult(theta[None], np.ones(1), tables, sigma)


def _oracle(task: ReductionsProblem, sizes: Sizes, goal: Goal, pay: Amount) -> Program[tuple[Oracle, Floats, Amount]]:
    """Program that returns (a `ReductionsProblem`'s `Oracle` for a goal, array of first coefficients, `Amount` left).

    The oracle is by the groups' `sizes`; the last is what is left of `pay`.
    """
    s = task.settings
    if s.oracle == "gradient":
        start, left = yield from _start(task, sizes, goal, pay)
        return DescentOracle(s.inner_steps), start, left
    candidates, left = yield from _candidates(task, sizes, goal, pay)
    return ExponentialOracle(candidates), candidates[0], left


def _start(task: ReductionsProblem, sizes: Sizes, goal: Goal, pay: Amount) -> Program[tuple[Floats, Amount]]:
    """Program that fits a classifier to the goal's objective; returns (array of coefficients, `Amount` left of `pay`).

    The classifier is the `ReductionsProblem`'s; `sizes` are the groups' numbers of records.
    """
    s, zero = task.settings, np.zeros(task.coefficients)
    # without constraints the costs are those of the objective alone
    w = sizes.costs(goal.objective.gradient(sizes.right, goal.smoothing))
    paid = pay.times(s.start_share)
    theta = yield from DescentOracle(s.start_steps).solve(task, sizes, w, zero, paid.times(1 - 1e-12))
    return theta, pay.less(paid)


def _candidates(task: ReductionsProblem, sizes: Sizes, goal: Goal, pay: Amount) -> Program[tuple[Floats, Amount]]:
    """Program of a `ReductionsProblem` that returns (array of candidates' coefficients, an entry each; `Amount` left).

    The amount is left of `pay`. Candidates are public, or around a paid classifier, fitted to the goal by the groups'
    `sizes`.
    """
    s = task.settings
    if s.candidates == "net":
        return net(task.coefficients, s.number), pay
    if s.candidates == "thresholds":
        return thresholds(s.number), pay
    theta, left = yield from _start(task, sizes, goal, pay)
    return shifted(theta, task.movable, s.number, s.spread), left
