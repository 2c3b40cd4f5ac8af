"""Totals of an account: the epsilon of all fits on a data file together, and the check against the cap.

Fits priced in rho add up in rho and are converted once; all others add up as (epsilon, delta).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from stratsynth.accounting.budget import MOST_EPSILON, Allotment, Currency
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.errors import BudgetRefused, UsageError


def total(reserved: Sequence[Allotment], delta: float) -> float:
    """Return the epsilon at `delta` of all allotments `reserved` together, a number; infinite if delta is too small."""
    counted = [allot for allot in reserved if allot.currency == Currency.ZCDP]
    others = [allot for allot in reserved if allot.currency != Currency.ZCDP]
    left = delta - math.fsum(allot.delta for allot in others)
    epsilon = math.fsum(  # a part of a pure fit is that part of its epsilon
        min(a.promise.epsilon, a.amount) if a.currency == Currency.PURE else a.promise.epsilon for a in others
    )
    if counted:
        left -= math.fsum(allot.promise.truncation_delta for allot in counted)
        rho = sum((Fraction(allot.amount) for allot in counted), Fraction(0))
        epsilon += epsilon_of(float(rho), left) if left > 0 else math.inf
    # a lone fit may use the whole delta; the sum of floats may exceed it in its last bit
    return epsilon if left >= -1e-12 * delta else math.inf


def afford(cap: float | None, reserved: Sequence[Allotment], new: Allotment, delta: float) -> float:
    """Return total epsilon of allotments, `reserved` and `new`, at `delta`, or infinity; BudgetRefused beyond `cap`."""
    if new.promise.epsilon > MOST_EPSILON:
        raise UsageError(f"epsilon {new.promise.epsilon:g} is for data declared public alone: these are charged.")
    after = total([*reserved, new], delta)
    if cap is not None and after > cap * (1 + 1e-9):  # conversions are rounded in the last digits
        from stratsynth.accounting.standing import refusal

        raise BudgetRefused(refusal(cap, reserved, new, delta))
    return after
