"""The state of an account in words, for certificates, plans and refusals.

The totals and the check against the cap are in `stratsynth.accounting.totals`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from stratsynth.accounting.budget import IN_RHO, MOST_EPSILON, Allotment, Budget, Currency
from stratsynth.accounting.totals import in_rho, total
from stratsynth.accounting.units import per_unit
from stratsynth.accounting.zcdp import rho_of
from stratsynth.errors import BudgetRefused


@dataclass(frozen=True)
class Standing:
    """The state of an account after a reservation, as the certificate shows it."""

    name: str | None
    """File name of the ledger; None for an account that lasts as long as the process."""
    cap_epsilon: float | None
    """Largest total epsilon; None if nobody set a cap."""
    spent_epsilon: float
    """Total epsilon of all fits so far, this one included, at `spent_delta`."""
    releases: int
    """Number of fits that have reserved, this one included."""
    note: str = ""
    spent_delta: float | None = None
    """Delta at which the total is stated; None where nothing is added up."""
    account: str | None = None
    """Account name under which several versions of the data share it; None without a name."""
    versions: int = 1
    """Number of versions of the data that the account covers."""
    accounts: tuple[str, ...] = ()
    """Names of all accounts known for the data file, this one included."""
    new_account: str | None = None
    """Stated reason why this account was begun beside another; None for the first."""
    corrections: tuple[str, ...] = ()
    """Stated reasons of corrections of the data, oldest first."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain values, as the certificate states it; fields without content are left out."""
        return {
            "name": self.name,
            **({"note": self.note} if self.note else {}),
            "cap_epsilon": self.cap_epsilon,
            "spent_epsilon": self.spent_epsilon,
            **({"spent_delta": self.spent_delta} if self.spent_delta is not None else {}),
            "releases": self.releases,
            **({"account": self.account, "versions": self.versions} if self.account is not None else {}),
            **({"accounts": list(self.accounts)} if self.accounts else {}),
            **({"new_account": self.new_account} if self.new_account is not None else {}),
            **({"corrections": list(self.corrections)} if self.corrections else {}),
        }


def judged_at(reserved: Sequence[Allotment], delta: float) -> float:
    """Return `delta`, or if 0, as in pure epsilon, the largest that an `Allotment` of `reserved` promises; a number."""
    return delta or max((allot.promise.delta for allot in reserved), default=0.0)


def readable(reserved: Sequence[Allotment], delta: float) -> float:
    """Return the delta of the total of reserved allotments: `delta`, or if too small the sum their fits use.

    A fit priced in rho uses the part of its delta that is kept for cut-off tails, every other fit all of its own.
    """
    delta = judged_at(reserved, delta)
    if total(reserved, delta) < math.inf:
        return delta
    _, counted, others = in_rho(reserved)
    used = math.fsum([*(a.promise.truncation_delta for a in counted), *(a.delta for a in others)])
    # rho needs some delta left: as much again, for a sum of `used` and a far smaller delta may round to `used`
    return used + max(delta, used) if counted else used


MOST_TOTAL = 1e4
"""Upper end of the search for an epsilon: no sum of fits comes near it."""
LEAST_SHOWN = 1e-6
"""Epsilon below which nothing more is said to fit."""


def largest(cap: float, reserved: Sequence[Allotment], like: Allotment, delta: float) -> float:
    """Return the largest epsilon that one more fit like `like` would be granted, to four digits, rounded down.

    Args:
        cap: The account's largest total epsilon.
        reserved: The allotments so far.
        like: A fit's allotment, whose currency, delta, neighbours and unit are kept.
        delta: The delta at which the account's total is stated.
    """

    def granted(allot: Allotment) -> bool:
        return total([*reserved, allot], delta) <= cap

    def asked(epsilon: float) -> Allotment:
        promise = replace(like.promise, epsilon=epsilon)
        return per_unit(promise.zcdp()) if like.currency in IN_RHO else replace(like, promise=promise)

    currency, counted, others = in_rho([*reserved, like])
    if like in counted:
        left = delta - math.fsum([a.delta for a in others] + [a.promise.truncation_delta for a in counted])
        epsilon = min(cap - math.fsum(allot.promise.epsilon for allot in others), MOST_TOTAL)
        rho = rho_of(epsilon, left, IN_RHO[currency]) if 0 < left < 1 and epsilon > 0 else 0.0
        free = float(Fraction(rho) - sum(Fraction(allot.amount) for allot in counted[:-1]))
        most = IN_RHO[like.currency](free, like.promise.delta - like.promise.truncation_delta) if free > 0 else 0.0
    else:
        most = cap - total(reserved, delta)
    most = min(most, MOST_EPSILON)
    for _ in range(3):  # the exact bound, less rounding
        if not most > LEAST_SHOWN:
            break
        digit = 10.0 ** (math.floor(math.log10(most)) - 3)
        found = float(f"{math.floor(most / digit * (1 + 1e-12)) * digit:.4g}")
        if granted(asked(found)):
            return found
        most = found - digit / 2
    return 0.0


def fitting(epsilon: float, like: Allotment) -> str:
    """Return a sentence that ends a refusal: `epsilon`, the largest that fits (0: none), at an allotment's delta."""
    if not epsilon:
        return "Nothing more fits."
    return f"The largest epsilon that fits now is {epsilon:g}, at delta {like.promise.delta:g}."


def rule(delta: float, currency: Currency = Currency.ZCDP) -> str:
    """Return a sentence on how epsilons add up at `delta` on an account of `currency`, for who would add them plainly.

    The currency is `zcdp` or `exact`, that of the account's first fit in rho.
    """
    if not delta:
        return "Epsilons add up plainly here: at delta 0, as this account is stated, only fits in pure epsilon count."
    one = Budget(1.0, delta, accounting=currency).zcdp()
    exact = currency == Currency.EXACT
    how = 'Gaussian DP, as in its first fit with accounting = "exact"' if exact else "zCDP"
    return (
        f"Epsilon 1 and epsilon 1 make epsilon {total([one, one], delta):.3g} here, because noise adds up in rho "
        f"({how}), and rho is turned into epsilon once, at delta {delta:g}; fits in other currencies"
        f"{', zCDP among them,' if exact else ''} add up as epsilon itself."
    )


def refusal(
    cap: float, reserved: Sequence[Allotment], new: Allotment, delta: float, later: Sequence[Allotment] = ()
) -> str:
    """Return the message for a reservation `new` beyond `cap`: asked, left, remedy, at `delta`.

    `later` ones were reserved after the first part of `new`, the others, `reserved`, before it.
    """
    after = total([*reserved, new, *later], delta)
    asked, left = new.promise.epsilon, max(0.0, cap - total([*reserved, *later], delta))
    why = f"it would make {after:.6g}, {after - cap:.6g} too much" if after < math.inf else "its delta is used up"
    return (
        f"ledger: refused before reading: asked epsilon {asked:.6g}, remaining {left:.6g} of {cap:g}; {why}. "
        f"{fitting(largest(cap, [*reserved, *later], new, delta), new)} {rule(delta, in_rho([*reserved, new])[0])}"
    )


@dataclass(frozen=True)
class Outlook:
    """Cost of several fits on one account, before the first of them is made."""

    fits: int
    """Number of new fits; a fit that resumes an interrupted one costs nothing more."""
    asked_epsilon: float
    """Total epsilon of the new fits alone."""
    spent_epsilon: float
    """Total epsilon of the account before them."""
    after_epsilon: float
    """Total epsilon of the account after them; less than the sum of the two where rho adds up."""
    cap_epsilon: float | None
    largest_epsilon: float | None = None
    """Largest epsilon that one fit like the first would be granted before them; None without a cap."""
    granted: bool = True
    """True if all of them together keep to the cap."""
    currency: Currency = Currency.ZCDP
    """Currency, `zcdp` or `exact`, in which the account adds up fits in rho."""

    @property
    def left_epsilon(self) -> float | None:
        """Epsilon left before these fits: cap minus spent, at least 0; None without a cap."""
        return None if self.cap_epsilon is None else max(0.0, self.cap_epsilon - self.spent_epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of all figures by name; None for an infinite epsilon, for which delta does not suffice."""
        figures = ("asked_epsilon", "spent_epsilon", "after_epsilon", "cap_epsilon", "left_epsilon", "largest_epsilon")
        found = {name: getattr(self, name) for name in figures}
        return {"fits": self.fits} | {n: None if v is None or math.isinf(v) else v for n, v in found.items()}


def afford_all(
    cap: float | None,
    reserved: Sequence[Allotment],
    new: Sequence[Allotment],
    delta: float,
    like: Allotment | None = None,
    *,
    refuse: bool = True,
) -> Outlook:
    """Return the total cost of several new reservations as an `Outlook`; BudgetRefused if they pass the cap.

    Args:
        cap: The account's largest total epsilon; None if nobody set one.
        reserved: The allotments so far.
        new: The allotments to be added.
        delta: The delta at which totals are stated.
        like: The allotment whose largest affordable epsilon is wanted; None for no such figure.
        refuse: False returns the cost without refusing, as a plan does.
    """
    asked, spent = (total(some, readable(some, delta)) if some else 0.0 for some in (new, reserved))
    after = total([*reserved, *new], delta)
    beyond = bool(new) and cap is not None and after > cap * (1 + 1e-9)
    if refuse and beyond and cap is not None:
        left = max(0.0, cap - total(reserved, delta)) if reserved else cap
        why = f"they would make {after:.6g}, {after - cap:.6g} too much" if after < math.inf else "delta is used up"
        raise BudgetRefused(
            f"ledger: refused before reading: {len(new)} fits ask epsilon {asked:.6g} together, remaining {left:.6g} "
            f"of {cap:g}; {why}. {fitting(largest(cap, reserved, new[0], delta), new[0])} "
            f"{rule(delta, in_rho([*reserved, *new])[0])}"
        )
    after = after if after < math.inf else total([*reserved, *new], readable([*reserved, *new], delta))
    most = None if cap is None or like is None else largest(cap, reserved, like, delta)
    return Outlook(len(new), asked, spent, after, cap, most, not beyond, in_rho([*reserved, *new])[0])
