"""From amounts to epsilon: what a fit guarantees, and what other notions of neighbour would cost.

What was charged is priced charge by charge. What was reserved and not spent could have gone to the dearest
kind of question, one whose sensitivity doubles when a record is exchanged: four times the rho, twice the epsilon.
"""

from __future__ import annotations

import math
from fractions import Fraction

from stratsynth.accounting.budget import Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.errors import MechanismError

STEPS = ("add-remove", "move", "replace")


def prices(spending: Spending, budget: Budget, allot: Allotment) -> dict[str, float | None]:
    """Epsilon at the budget's delta if one record is added or removed, moves between strata, or is exchanged."""
    if allot.currency == Currency.CLAIMED:  # whoever claims an epsilon does not say what a move costs
        return {**dict.fromkeys(STEPS), str(budget.neighbours): budget.epsilon}
    if allot.currency == Currency.SAMPLED:
        from stratsynth.accounting.sampled import sampled_prices

        return sampled_prices(spending, budget, allot)
    amounts = _amounts(spending, allot)
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
    elif allot.currency == Currency.SAMPLED:
        from stratsynth.accounting.sampled import epsilon_sampled

        noise, rate, steps = allot.noise or 0.0, allot.rate or 0.0, allot.amount
        within = within and noise > 0 and 0 < rate <= 1 and float(steps).is_integer()
        within = within and epsilon_sampled(noise, rate, int(steps), delta, budget.neighbours) <= budget.epsilon
    else:
        within = within and allot.amount <= budget.epsilon
    if not within:
        raise MechanismError("price: the mechanism's allotment is not within the budget.")


def _amounts(spending: Spending, allot: Allotment) -> dict[str, Fraction]:
    unspent = max(Fraction(0), Fraction(allot.amount) - spending.spent())
    dearest = 1 if spending.neighbours == Neighbours.REPLACE else {Currency.ZCDP: 4, Currency.PURE: 2}[allot.currency]
    return {step: spending.step(step) + (1 if step == "add-remove" else dearest) * unspent for step in STEPS}
