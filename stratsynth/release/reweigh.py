"""Overall results of a release as functions of the groups' shares, exactly, for errors in the weights.

An overall mean is a quotient of two sums over the groups, each linear in the shares:

    M(w) = sum over g of w_g a_g / sum over g of w_g b_g

where b_g is the part of group g that has a number (1, unless it can be missing or not applicable) and a_g that
part times its mean. A level's overall share is the same with b_g = 1. So the share at which a result has moved
by a given amount is the root of a linear equation, and the extremes over intervals are found by moving weight to
the groups that pull hardest, a few times over (Dinkelbach 1967). Nothing is sampled, and no private row is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROUNDS = 100
"""Largest number of rounds of Dinkelbach's iteration, which converges superlinearly; a handful is usual."""
HALVINGS = 60


@dataclass(frozen=True, eq=False)
class RatioOfShares:
    """A result that depends on the shares alone, for fixed groups: M(w) of the head, by its a and b."""

    a: Floats
    b: Floats

    def at(self, shares: Floats) -> float:
        """Return this overall result, (shares @ a) / (shares @ b), a number, for an array of groups' `shares`.

        NaN if it divides by 0.
        """
        below = float(shares @ self.b)
        return float(shares @ self.a) / below if below > 0 else math.nan

    def pull(self, value: float) -> Floats:
        """Return the array a - `value` b, an entry a group, for the number `value`.

        Shares whose product with it is 0 give the result `value`.
        """
        return self.a - value * self.b


def root(quotient: RatioOfShares, shares: Floats, group: int, value: float) -> float | None:
    """Return the share, 0 to 1, of group number `group` at which a result, a `RatioOfShares`, is the number `value`.

    `shares` is an array of all groups' shares; the other groups keep their proportions. None if there is no such share.
    """
    rest = 1 - shares[group]
    if rest <= 0:
        return None  # the others have no proportions
    pull, others = quotient.pull(value), np.delete(shares, group) / rest
    mine, theirs = float(pull[group]), float(np.delete(pull, group) @ others)
    if mine == theirs:
        return None
    found = theirs / (theirs - mine)
    numbers = (1 - found) * float(np.delete(quotient.b, group) @ others) + found * float(quotient.b[group])
    return found if 0 <= found <= 1 and numbers > 0 else None


def heaviest(pull: Floats, low: Floats, high: Floats) -> Floats:
    """Return the array of groups' shares, sum 1, whose product with the array `pull` is largest.

    Each is between its entries of the arrays `low` and `high`.
    """
    order = np.argsort(-pull, kind="stable")
    room = (high - low)[order]
    before = np.cumsum(room) - room
    shares = low.copy()
    # The lower ends first; the rest goes to the groups of largest pull.
    shares[order] += np.clip(1 - low.sum() - before, 0, room)
    return shares


def extreme(quotient: RatioOfShares, shares: Floats, low: Floats, high: Floats, sign: int) -> float:
    """Return the largest (sign 1) or smallest (-1) value of `quotient`, a `RatioOfShares`, over shares of sum 1.

    All three are arrays by group: each share is between its entries of `low` and `high`; the search starts at `shares`.
    """
    value = quotient.at(heaviest(np.zeros(len(shares)), low, high))
    value = quotient.at(shares) if math.isnan(value) else value
    # Dinkelbach (1967): maximise a - value b, linear in the shares, then take the result there as the next value.
    for _ in range(ROUNDS):
        new = quotient.at(heaviest(sign * quotient.pull(value), low, high))
        if math.isnan(new) or sign * (new - value) <= 1e-15 * abs(value):
            return value
        value = new
    return value


def spread(shares: Floats, off: float) -> tuple[Floats, Floats]:
    """Return two arrays, lower and upper ends in 0 to 1, of the array `shares`, each wrong by up to `off` x itself."""
    return shares * max(0.0, 1 - off), np.minimum(1.0, shares * (1 + off))


def together(quotient: RatioOfShares, shares: Floats, moved: float) -> float | None:
    """Return the least relative error of all groups' shares at once that moves a `RatioOfShares` by `moved`.

    `shares` is their array. None if 1 does not. Bisection: the wider the intervals, the further the result can move.
    """
    value, found = quotient.at(shares), math.inf
    for sign in (1, -1):
        pull = sign * quotient.pull(value + sign * moved)
        low, high = 0.0, 1.0
        if heaviest(pull, *spread(shares, high)) @ pull < 0:
            continue
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            reached = heaviest(pull, *spread(shares, middle)) @ pull >= 0
            low, high = (low, middle) if reached else (middle, high)
        found = min(found, high)
    return found if found < math.inf else None
