"""From amounts to epsilon: what a fit guarantees, and what other notions of neighbour would cost.

    add-remove             one record (or unit) more or fewer
    move                   its stratum changes, and what follows from it in tables of everybody
    replace-within-group   its other values change, and its stratum does not
    replace                everything about it changes
    attribute              what is not public about it changes: priced as replace-within-group, as strata are of public
                           columns. All other steps are then not protected, and have no price (None).

What was charged is priced charge by charge. What was reserved and not spent could have gone to the dearest
kind of question, one whose sensitivity doubles when a record is exchanged: four times the rho, twice the epsilon.
Where answers decide what is asked, that is true of everything (`Mechanism.adaptive`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from stratsynth.accounting.budget import Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.errors import MechanismError

STEPS = ("add-remove", "move", "replace-within-group", "replace")
DEAREST = {Currency.ZCDP: 4, Currency.PURE: 2, Currency.SAMPLED: 1, Currency.CLAIMED: 1}
"""By currency, the largest price factor under replace-one of any kind of question: sensitivity doubles.

Steps on samples and claims are priced by formulas of their own.
"""


@dataclass(frozen=True)
class Worst:
    """The dearest course of a fit whose answers decide what is asked."""

    factor: int
    """The largest price factor under replace-one of the kinds of questions it can ask."""
    only_strata: bool
    """Whether everybody together is asked nothing, and strata are not divided again."""


def prices(spending: Spending, budget: Budget, allot: Allotment, worst: Worst | None = None) -> dict[str, float | None]:
    """Epsilon at the budget's delta for each step that one record, or unit, can take.

    Args:
        spending: What was charged.
        budget: What was promised.
        allot: What was reserved.
        worst: For an adaptive mechanism, its dearest course; without one, the charges are all there can be.
    """
    if allot.currency == Currency.CLAIMED:  # whoever claims an epsilon does not say what a move costs
        return {**dict.fromkeys(STEPS), str(budget.neighbours): budget.epsilon}
    if budget.neighbours == Neighbours.ATTRIBUTE:
        changed = _prices(spending, budget, allot, worst)["replace-within-group"]
        return {str(budget.neighbours): changed, **dict.fromkeys(STEPS)}
    return _prices(spending, budget, allot, worst)


def _prices(spending: Spending, budget: Budget, allot: Allotment, worst: Worst | None) -> dict[str, float | None]:
    """Of the four steps, as if nothing had been handed out."""
    if allot.currency == Currency.SAMPLED:
        from stratsynth.accounting.sampled import sampled_prices

        return sampled_prices(spending, budget, allot, only_strata=worst is None or worst.only_strata)
    if worst is not None:
        amounts = _at_most(spending, allot, worst)
    else:
        unspent = max(Fraction(0), Fraction(allot.amount) - spending.spent())
        dearest = 1 if spending.neighbours.priced == Neighbours.REPLACE else DEAREST[allot.currency]
        amounts = {step: spending.step(step) + (1 if step == "add-remove" else dearest) * unspent for step in STEPS}
    if allot.currency == Currency.PURE:
        return {step: float(amount) for step, amount in amounts.items()}
    delta = budget.delta - budget.truncation_delta
    return {step: epsilon_of(float(amount), delta) for step, amount in amounts.items()}


def check_allotment(allot: Allotment, budget: Budget) -> None:
    """Refuse an allotment that is not within the user's budget: a mechanism prices itself, and may be wrong."""
    delta = budget.delta - budget.truncation_delta
    within = allot.promise == budget and 0 < allot.amount < math.inf
    if allot.currency == Currency.ZCDP:
        within = within and allot.amount <= budget.zcdp().amount
    elif allot.currency == Currency.PURE:
        within = within and allot.amount <= budget.pure().amount
    elif allot.currency == Currency.SAMPLED:
        from stratsynth.accounting.sampled import epsilon_sampled

        noise, rate, steps = allot.noise or 0.0, allot.rate or 0.0, allot.amount
        within = within and noise > 0 and 0 < rate <= 1 and float(steps).is_integer() and budget.rows == 1
        within = within and epsilon_sampled(noise, rate, int(steps), delta, budget.neighbours) <= budget.epsilon
    else:
        within = within and allot.amount <= budget.epsilon and budget.rows == 1
    if not within:
        raise MechanismError("price: the mechanism's allotment is not within the budget.")


def _at_most(spending: Spending, allot: Allotment, worst: Worst) -> dict[str, Fraction]:
    """Whatever course the mechanism takes: the whole allotment, at the dearest kind of question it can ask.

    A record that moves between strata which alone are asked is removed from one and added to another, and neither
    may cost more than the allotment.
    """
    cap = Fraction(allot.amount)
    if spending.neighbours.priced == Neighbours.REPLACE:  # no step costs more than an exchange, and that is capped
        return dict.fromkeys(STEPS, cap)
    strata = worst.only_strata and all(len(charge.path) == 1 for charge in spending.charges)
    times = {"add-remove": 1, "move": 2 if strata else worst.factor}
    return {step: times.get(step, worst.factor) * cap for step in STEPS}
