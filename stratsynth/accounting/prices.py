"""From amounts to epsilon: what a fit guarantees, and what other notions of neighbour would cost.

    add-remove             one record (or unit) more or fewer
    move                   its stratum changes, and what follows from it in tables of everybody
    replace-within-group   its other values change, and its stratum does not
    replace                everything about it changes

What was charged is priced charge by charge. What was reserved and not spent could have gone to the dearest
kind of question, one whose sensitivity doubles when a record is exchanged: four times the rho, twice the epsilon.
Where answers decide what is asked, that is true of everything (`stratsynth.mechanisms.adaptive`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.errors import MechanismError

if TYPE_CHECKING:
    from stratsynth.mechanisms import Mechanism

STEPS = ("add-remove", "move", "replace-within-group", "replace")


def prices(
    spending: Spending, budget: Budget, allot: Allotment, mechanism: Mechanism[Any] | None = None
) -> dict[str, float | None]:
    """Epsilon at the budget's delta for each step that one record, or unit, can take.

    Without a mechanism, the charges are taken for all there can be.
    """
    if allot.currency == Currency.CLAIMED:  # whoever claims an epsilon does not say what a move costs
        return {**dict.fromkeys(STEPS), str(budget.neighbours): budget.epsilon}
    if allot.currency == Currency.SAMPLED:
        from stratsynth.accounting.sampled import sampled_prices

        return sampled_prices(spending, budget, allot)
    amounts = _amounts(spending, allot, mechanism)
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


def by_kind(charges: Iterable[Charge]) -> dict[str, dict[str, float]]:
    """For each kind of question: how many were charged, and how many times its price it costs at most if exchanged."""
    found: dict[str, dict[str, float]] = {}
    for charge in charges:
        if charge.currency in (Currency.ZCDP, Currency.PURE):
            kind = found.setdefault(charge.kind, {"charges": 0, "replace": 0.0})
            times = float(charge.factor(Neighbours.ADD_REMOVE, Neighbours.REPLACE))
            kind["charges"], kind["replace"] = kind["charges"] + 1, max(kind["replace"], round(times, 9))
    return found


def _amounts(spending: Spending, allot: Allotment, mechanism: Mechanism[Any] | None) -> dict[str, Fraction]:
    from stratsynth.mechanisms import adaptive

    if mechanism is not None and adaptive(mechanism):
        return _at_most(spending, allot, mechanism)
    unspent = max(Fraction(0), Fraction(allot.amount) - spending.spent())
    dearest = 1 if spending.neighbours == Neighbours.REPLACE else {Currency.ZCDP: 4, Currency.PURE: 2}[allot.currency]
    return {step: spending.step(step) + (1 if step == "add-remove" else dearest) * unspent for step in STEPS}


def _at_most(spending: Spending, allot: Allotment, mechanism: Mechanism[Any]) -> dict[str, Fraction]:
    """Whatever course the mechanism takes: the whole allotment, at the dearest kind of question it can ask.

    A record that moves between strata which alone are asked is removed from one and added to another, and neither
    may cost more than the allotment.
    """
    from stratsynth.questions import Counts, Split, Work

    cap = Fraction(allot.amount)
    if spending.neighbours == Neighbours.REPLACE:  # no step costs more than an exchange, and that is capped
        return dict.fromkeys(STEPS, cap)
    tables = mechanism.needs <= {Counts, Split, Work}
    dearest = 2 if tables or allot.currency == Currency.PURE else 4
    strata = Split not in mechanism.needs and all(len(charge.path) == 1 for charge in spending.charges)
    times = {"add-remove": 1, "move": 2 if strata else dearest}
    return {step: times.get(step, dearest) * cap for step in STEPS}
