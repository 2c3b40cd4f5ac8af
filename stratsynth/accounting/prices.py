"""Prices of a fit: epsilon of its guarantee, and epsilon under other notions of neighbour.

Steps are `add-remove`, `move`, `replace-within-group`, `replace` and `attribute`: docs/privacy.md, section 9. Charges
are priced one by one; what was reserved and not spent as the dearest kind of question could cost; and if answers decide
which questions are asked (`Mechanism.adaptive`), the whole allotment so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from stratsynth.accounting.budget import IN_RHO, Allotment, Budget, Currency, Neighbours, less
from stratsynth.accounting.charges import FIRST, Spending
from stratsynth.errors import MechanismError

STEPS = ("add-remove", "move", "replace-within-group", "replace")
DEAREST = {Currency.ZCDP: 4, Currency.EXACT: 4, Currency.PURE: 2, Currency.SAMPLED: 1, Currency.CLAIMED: 1}
"""Largest price factor of any kind of question under replace-one, by currency: its sensitivity doubles.

Steps on samples and claims are priced by formulas of their own."""


@dataclass(frozen=True)
class Worst:
    """The worst-case course of a fit whose answers decide which questions are asked."""

    factor: int
    """Largest price factor under replace-one over the kinds of questions that the mechanism declares."""
    only_strata: bool
    """True if no question is asked of all records together, and no stratum is divided again."""


def prices(spending: Spending, budget: Budget, allot: Allotment, worst: Worst | None = None) -> dict[str, float | None]:
    """Return {step of one record or unit: epsilon at the budget's delta}; None for a step without a price.

    Args:
        spending: Charges so far.
        budget: The promised (epsilon, delta), with neighbours and unit.
        allot: The allotment, with the reserved amount.
        worst: For an adaptive mechanism, its worst-case course; None if the charges bound every course.
    """
    if allot.currency == Currency.CLAIMED:  # whoever claims an epsilon does not say what a move costs
        return {**dict.fromkeys(STEPS), str(budget.neighbours): budget.epsilon}
    if budget.neighbours == Neighbours.ATTRIBUTE:
        changed = _prices(spending, budget, allot, worst)["replace-within-group"]
        return {str(budget.neighbours): changed, **dict.fromkeys(STEPS)}
    return _prices(spending, budget, allot, worst)


def _prices(spending: Spending, budget: Budget, allot: Allotment, worst: Worst | None) -> dict[str, float | None]:
    """Return {step: epsilon} of STEPS at a budget's delta, of `spending` of the allotment, or its `worst` if any."""
    if allot.currency == Currency.SAMPLED:
        from stratsynth.accounting.sampled import sampled_prices

        return sampled_prices(spending, budget, allot, only_strata=worst is None or worst.only_strata)
    if worst is not None:
        amounts = _at_most(spending, allot, worst)
    else:
        # The part that was reserved and not spent could have gone to the dearest kind of question.
        unspent = max(Fraction(0), Fraction(allot.amount) - spending.spent())
        dearest = 1 if spending.neighbours.priced == Neighbours.REPLACE else DEAREST[allot.currency]
        amounts = {step: spending.step(step) + (1 if step == "add-remove" else dearest) * unspent for step in STEPS}
    if allot.currency == Currency.PURE:
        return {step: float(amount) for step, amount in amounts.items()}
    delta = budget.delta - budget.truncation_delta
    return {step: IN_RHO[allot.currency](float(amount), delta) for step, amount in amounts.items()}


def check_allotment(allot: Allotment, budget: Budget) -> None:
    """Raise MechanismError for an allotment `allot` of another budget, not positive, infinite or beyond the budget."""
    delta = budget.delta - budget.truncation_delta
    within = allot.promise == budget and 0 < allot.amount < math.inf
    if allot.currency in IN_RHO:
        # rho and epsilon are bounded by the budget's own conversion, steps by their privacy loss distribution.
        within = within and allot.currency == budget.accounting and allot.amount <= budget.zcdp().amount
    elif allot.currency == Currency.PURE:
        within = within and allot.amount <= budget.pure().amount
    elif allot.currency == Currency.SAMPLED:
        from stratsynth.accounting.sampled import epsilon_sampled

        noise, rate, steps = allot.noise or 0.0, allot.rate or 0.0, allot.amount
        within = within and noise > 0 and 0 < rate <= 1 and float(steps).is_integer() and budget.rows == 1
        found = epsilon_sampled(noise, rate, int(steps), delta, budget.neighbours, allot.first) if within else 0.0
        within = within and found <= budget.epsilon and allot.first == budget.opening(allot.currency)
    else:
        within = within and allot.amount <= less(budget.epsilon, budget.opening(allot.currency)) and budget.rows == 1
    if not within:
        raise MechanismError("price: the mechanism's allotment is not within the budget.")


def _at_most(spending: Spending, allot: Allotment, worst: Worst) -> dict[str, Fraction]:
    """Return {step: cost} on any course of a spending: all of `allot`, at the largest factor `worst` declares.

    If strata of one split alone are asked, a record that moves is removed from one and added to another; each costs
    at most the allotment.
    """
    cap = Fraction(allot.amount)
    if spending.neighbours.priced == Neighbours.REPLACE:  # no step costs more than an exchange, and that is capped
        return dict.fromkeys(STEPS, cap)
    first = sum((Fraction(charge.amount) for charge in spending.charges if charge.kind == FIRST), Fraction(0))
    strata = worst.only_strata and all(len(charge.path) == 1 or charge.kind == FIRST for charge in spending.charges)
    times = {"add-remove": 1, "move": 2 if strata else worst.factor}
    return {step: first + times.get(step, worst.factor) * (cap - first) for step in STEPS}  # which all steps cost alike
