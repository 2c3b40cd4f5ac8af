"""Totals of an account: the epsilon of all fits on a data file together, and the check against the cap.

Fits priced in rho add up in rho and are converted once, by the conversion of the first of them: an account keeps to
one, as a choice between two that answers may guide would be covered by neither. Rho of `exact` is rho of zCDP too, so
under zCDP both add up; under `exact`, zCDP fits do not. All others add up as (epsilon, delta).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from stratsynth.accounting.budget import IN_RHO, MOST_EPSILON, OPENED_IN_RHO, Allotment, Currency
from stratsynth.errors import BudgetRefused, UsageError


def in_rho(reserved: Sequence[Allotment]) -> tuple[Currency, list[Allotment], list[Allotment]]:
    """Return (`Currency` of an account with `reserved`, each `Allotment` that it adds up in rho, all others)."""
    first = next((allot.currency for allot in reserved if allot.currency in OPENED_IN_RHO), Currency.ZCDP)
    currency = first if first in IN_RHO else Currency.ZCDP  # `sampled` is opened in zCDP
    kinds = set(IN_RHO) if currency == Currency.ZCDP else {currency}
    counted = [allot for allot in reserved if allot.currency in kinds]
    return currency, counted, [allot for allot in reserved if allot.currency not in kinds]


def total(reserved: Sequence[Allotment], delta: float) -> float:
    """Return the epsilon at `delta` of all allotments `reserved` together, a number; infinite if delta is too small."""
    currency, counted, others = in_rho(reserved)
    left = delta - math.fsum(allot.delta for allot in others)
    epsilon = math.fsum(  # a part of a pure fit is that part of its epsilon
        min(a.promise.epsilon, a.amount) if a.currency == Currency.PURE else a.promise.epsilon for a in others
    )
    if counted:
        left -= math.fsum(allot.promise.truncation_delta for allot in counted)
        rho = sum((Fraction(allot.amount) for allot in counted), Fraction(0))
        epsilon += IN_RHO[currency](float(rho), left) if left > 0 else math.inf
    # a lone fit may use the whole delta; the sum of floats may exceed it in its last bit
    return epsilon if left >= -1e-12 * delta else math.inf


def afford(
    cap: float | None, reserved: Sequence[Allotment], new: Allotment, delta: float, later: Sequence[Allotment] = ()
) -> float:
    """Return total epsilon at `delta` of `reserved`, `new` and, where it began, `later` ones; BudgetRefused: `cap`."""
    if new.promise.epsilon > MOST_EPSILON:
        raise UsageError(f"epsilon {new.promise.epsilon:g} is for data declared public alone: these are charged.")
    after = total([*reserved, new, *later], delta)
    if cap is not None and after > cap * (1 + 1e-9):  # conversions are rounded in the last digits
        from stratsynth.accounting.standing import refusal

        raise BudgetRefused(refusal(cap, reserved, new, delta, later))
    return after
