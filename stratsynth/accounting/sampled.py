"""Gaussian steps on Poisson samples: one noise multiplier, one rate, a number of steps, all reserved in full.

The privacy loss distribution is dp-accounting's (Google), connect-the-dots, an upper bound for the continuous
Gaussian. Our noise is the discrete one on a grid, which is as private as a continuous one that is a hair
narrower: let Y be continuous Gaussian of variance s^2 - r^2 around an integer point, and draw from the
discrete Gaussian of variance r^2 around Y. The result is the discrete Gaussian of variance s^2 up to a factor
1 +- 4 exp(-2 pi^2 r^2 (1 - r^2 / s^2)) in every probability (Peikert 2010, Theorem 3.1), and it was made from Y
without looking at the data again, whatever the sampling. With r = 5 units of the grid the factor is within
1e-200 of 1 for any number of draws; a clip is 2^30 units, so s is millions of units and the loss of r^2 in s^2
is below 1e-10. Multipliers are therefore computed for s (1 - 1e-9).

A first question of `first` rho is a Gaussian of sensitivity sqrt(2 first) sigmas beside the steps, for every notion of
neighbour. Its noise, in records, is so wide that r^2 = 25 is taken off for it: `questions.usable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache

from stratsynth.accounting.budget import Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.charges import FIRST, Spending
from stratsynth.checks import check_integer, number
from stratsynth.errors import UsageError
from stratsynth.strata import StratumPath, disjoint

_NARROWER = 1 - 1e-9
_MOST = 1e6
"""Largest noise multiplier that is searched; steps with more noise would be of no use."""


def epsilon_sampled(
    noise: float,
    rate: float,
    steps: int,
    delta: float,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    first: float = 0.0,
) -> float:
    """Return epsilon at `delta`, `neighbours`, of `steps` Gaussian steps: multiplier `noise`, samples of `rate`.

    `first` is the rho of a Gaussian question to everybody beside them.
    """
    if steps == 0 and not first:
        return 0.0
    return _epsilon(noise * _NARROWER, rate, steps, delta, neighbours.priced, first)


@lru_cache(maxsize=256, typed=True)
def _epsilon(noise: float, rate: float, steps: int, delta: float, neighbours: Neighbours, first: float) -> float:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    # The dominating pair of laws: one record more or fewer, or one exchanged.
    relation = {
        Neighbours.ADD_REMOVE: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        Neighbours.REPLACE: dp_accounting.NeighboringRelation.REPLACE_ONE,
    }[neighbours]
    accountant = PLDAccountant(relation)
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    if steps:
        accountant.compose(step, steps)
    if first:  # this accountant takes every exchange for twice the sensitivity, and the first question's is not
        far = 2 if neighbours == Neighbours.REPLACE else 1
        accountant.compose(dp_accounting.GaussianDpEvent(far / math.sqrt(2 * first) * _NARROWER))
    return float(accountant.get_epsilon(delta))


def least_noise(budget: Budget, *, rate: float, steps: int) -> float:
    """Return the least noise multiplier at which `steps` of `rate` keep to a budget, to 1e-4 of it; or UsageError."""
    number("sampled: the rate", rate, above=0, most=1)
    check_integer("sampled: steps", steps, 1)
    delta, first = budget.delta - budget.truncation_delta, budget.opening(Currency.SAMPLED)

    def excess(noise: float) -> float:
        """Return log(epsilon / budget.epsilon) at this multiplier; at most 0 if the noise is enough."""
        epsilon = epsilon_sampled(noise, rate, steps, delta, budget.neighbours, first)
        return math.log(epsilon / budget.epsilon) if epsilon > 0 else -math.inf

    # about right for many steps at low rates; far too little noise takes the accountant ten times as long to price
    low = high = max(1.0, rate * math.sqrt(2 * steps * math.log(1 / delta)) / budget.epsilon)
    above, stride = excess(min(high, _MOST)), 1.25
    below = above
    # Bracket the zero: raise the multiplier until the budget is kept, then lower it until it is not.
    while below > 0 and high <= _MOST:
        low, above, high = high, below, stride * high
        below, stride = excess(high), min(2.0, stride**2)
    if high > _MOST:
        raise UsageError("sampled: no reasonable noise keeps to this budget; take fewer steps or a lower rate.")
    while above <= 0:
        if low < 0.05:
            return low
        low, high, below = low / stride, low, above
        above, stride = excess(low), min(2.0, stride**2)
    return math.ceil(_root(excess, low, high, above, below) * 1e6) / 1e6


def _root(excess: Callable[[float], float], low: float, high: float, above: float, below: float) -> float:
    """Return the upper end of a bracket of relative width 1e-4: `excess` is > 0 at its low end, <= 0 at its high end.

    `excess` is nearly linear in the logarithm of the noise: try the zero of the line through both ends,
    first a little above and then a little below. If that does not halve the bracket, try the middle too.
    """
    beyond = 4e-5
    while high - low > 1e-4 * high:
        wide, zero = high - low, low * (high / low) ** (above / (above - max(below, -1.0)))
        noise = zero * (1 + beyond)
        for middle in (False, True):
            if middle or not low < noise < high:
                noise = (low + high) / 2
            found = excess(noise)
            if not middle:
                beyond = -4e-5 if found <= 0 else 4e-5
            if found <= 0:
                high, below = noise, found
            else:
                low, above = noise, found
            if high - low <= max(wide / 2, 1e-4 * high):
                break
    return high


def sampled_prices(
    spending: Spending, budget: Budget, allot: Allotment, *, only_strata: bool = True
) -> dict[str, float | None]:
    """Return {step of one record: epsilon at the budget's delta}; a move takes part in two strata's steps.

    A record that moves is removed from the steps of one stratum and added to those of another. That is all if strata of
    one split alone are asked; if everybody is asked too, if strata are divided again, or if there is another split,
    some steps may see an exchange, and the steps of both strata are priced as exchanges.

    Args:
        spending: The charged steps.
        budget: The promised (epsilon, delta).
        allot: The allotment: reserved steps, with noise and rate.
        only_strata: True if no other course of the fit would have asked anything but the strata of one split.
    """
    if allot.noise is None or allot.rate is None:
        raise UsageError("sampled: the allotment lacks its noise or rate.")
    delta, steps = budget.delta - budget.truncation_delta, round(allot.amount)
    paths = {charge.path for charge in spending.charges if charge.kind != FIRST}
    strata = any(paths)

    def price(steps: int, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> float:
        return epsilon_sampled(allot.noise or 0.0, allot.rate or 0.0, steps, delta, neighbours, allot.first)

    one, exchanged = price(steps), price(steps, Neighbours.REPLACE)
    # A move is a removal in one stratum's steps and an addition in another's: 2 * steps of one record.
    moved = price(2 * steps) if strata else exchanged
    if strata and not (only_strata and _one_split(paths)):
        moved = price(2 * steps, Neighbours.REPLACE)
    return {"add-remove": one, "move": moved, "replace-within-group": exchanged, "replace": max(moved, exchanged)}


def _one_split(paths: Collection[StratumPath]) -> bool:
    """True if all paths are single, disjoint strata of the same columns: a record is in one stratum and no other."""
    columns = {frozenset(stratum.columns) for path in paths for stratum in path}
    return all(len(path) == 1 for path in paths) and len(columns) == 1 and disjoint(path[0] for path in paths)
