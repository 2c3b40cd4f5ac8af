"""The state of an account in words: for certificates, plans and refusals.

The totals that these words are of, and the cap on them, are in `stratsynth.accounting.totals`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from stratsynth.accounting.budget import MOST_EPSILON, Allotment, Budget, Currency
from stratsynth.accounting.totals import readable, total
from stratsynth.accounting.units import whole
from stratsynth.accounting.zcdp import epsilon_of, rho_of
from stratsynth.errors import BudgetRefused


@dataclass(frozen=True)
class Standing:
    """The state of an account after a reservation, as the certificate shows it."""

    name: str | None
    """The ledger file; None for an account that lasts as long as the process."""
    cap_epsilon: float | None
    """The most that may ever be spent; None when nobody set it."""
    spent_epsilon: float
    """What all releases so far cost together, this one included."""
    releases: int
    """The number of fits that have reserved."""
    note: str = ""
    spent_delta: float | None = None
    """The delta at which that is read."""
    account: str | None = None
    """The account's own name, under which several versions of the data share it; None where it has none."""
    versions: int = 1
    """The number of versions of the data that it has seen."""
    accounts: tuple[str, ...] = ()
    """The names of all accounts that are known for the data file, this one among them."""
    new_account: str | None = None
    """Why this account was begun beside another; None where it is the first."""

    def to_dict(self) -> dict[str, Any]:
        """The certificate's form."""
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
        }


MOST_TOTAL = 1e4
"""A cap above it is as good as none: no sum of fits comes near."""
LEAST_SHOWN = 1e-6
"""What is less than this is as good as nothing."""


def largest(cap: float, reserved: Sequence[Allotment], like: Allotment, delta: float) -> float:
    """The largest epsilon that one more fit like this one would be granted, to four digits, rounded down.

    Args:
        cap: The account's.
        reserved: What was reserved before.
        like: A fit's allotment: its currency, delta, neighbours and unit are kept.
        delta: The delta that the account's total is read at.
    """

    def granted(allot: Allotment) -> bool:
        return total([*reserved, allot], delta) <= cap

    def asked(epsilon: float) -> Allotment:
        promise = replace(like.promise, epsilon=epsilon)
        return whole(promise.zcdp()) if like.currency == Currency.ZCDP else replace(like, promise=promise)

    if like.currency == Currency.ZCDP:
        others = [allot for allot in reserved if allot.currency != Currency.ZCDP]
        counted = [allot for allot in (*reserved, like) if allot.currency == Currency.ZCDP]
        left = delta - math.fsum([a.delta for a in others] + [a.promise.truncation_delta for a in counted])
        epsilon = min(cap - math.fsum(allot.promise.epsilon for allot in others), MOST_TOTAL)
        rho = rho_of(epsilon, left) if 0 < left < 1 and epsilon > 0 else 0.0
        free = float(Fraction(rho) - sum(Fraction(allot.amount) for allot in counted[:-1]))
        most = epsilon_of(free, like.promise.delta - like.promise.truncation_delta) if free > 0 else 0.0
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
    """The largest epsilon that fits, as a refusal ends with it."""
    if not epsilon:
        return "Nothing more fits."
    return f"The largest epsilon that fits now is {epsilon:g}, at delta {like.promise.delta:g}."


def rule(delta: float) -> str:
    """How epsilons add up on an account, for a reader who adds them up otherwise."""
    one = Budget(1.0, delta).zcdp()
    return (
        f"Epsilon 1 and epsilon 1 make epsilon {total([one, one], delta):.3g} here, because noise adds up in rho "
        f"(zCDP), and rho is turned into epsilon once, at delta {delta:g}; fits in other currencies add up as epsilon "
        "itself."
    )


def refusal(cap: float, reserved: Sequence[Allotment], new: Allotment, delta: float) -> str:
    """The refusal of a reservation that would pass the cap: asked, remaining, difference, and the remedy."""
    after = total([*reserved, new], delta)
    asked, left = new.promise.epsilon, max(0.0, cap - total(reserved, delta))
    why = f"it would make {after:.6g}, {after - cap:.6g} too much" if after < math.inf else "its delta is used up"
    return (
        f"ledger: refused before reading: asked epsilon {asked:.6g}, remaining {left:.6g} of {cap:g}; {why}. "
        f"{fitting(largest(cap, reserved, new, delta), new)} {rule(delta)}"
    )


@dataclass(frozen=True)
class Outlook:
    """What several fits would cost before the first of them is made."""

    fits: int
    """The number of new fits: those that resume an interrupted one cost nothing more."""
    asked_epsilon: float
    """What the new ones cost together, by themselves."""
    spent_epsilon: float
    """What was spent before."""
    after_epsilon: float
    """What will have been spent; less than the sum of the two, where rho is added."""
    cap_epsilon: float | None
    largest_epsilon: float | None = None
    """The largest epsilon that one fit like the first of these would be granted now; None without a cap."""
    granted: bool = True
    """Whether all of them fit under the cap."""

    @property
    def left_epsilon(self) -> float | None:
        """What is left now; None without a cap."""
        return None if self.cap_epsilon is None else max(0.0, self.cap_epsilon - self.spent_epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what delta does not suffice for is null."""
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
    """What several new reservations would cost together; refuses all of them where they pass the cap.

    Args:
        cap: The account's; None where nobody set one.
        reserved: What was reserved before.
        new: What would be.
        delta: The delta that totals are read at.
        like: The fit whose largest affordable epsilon is wanted, if any.
        refuse: False only tells, as a plan does.
    """
    asked, spent = (total(some, readable(some, delta)) if some else 0.0 for some in (new, reserved))
    after = total([*reserved, *new], delta)
    beyond = bool(new) and cap is not None and after > cap * (1 + 1e-9)
    if refuse and beyond and cap is not None:
        left = max(0.0, cap - total(reserved, delta)) if reserved else cap
        why = f"they would make {after:.6g}, {after - cap:.6g} too much" if after < math.inf else "delta is used up"
        raise BudgetRefused(
            f"ledger: refused before reading: {len(new)} fits ask epsilon {asked:.6g} together, remaining {left:.6g} "
            f"of {cap:g}; {why}. {fitting(largest(cap, reserved, new[0], delta), new[0])} {rule(delta)}"
        )
    after = after if after < math.inf else total([*reserved, *new], readable([*reserved, *new], delta))
    most = None if cap is None or like is None else largest(cap, reserved, like, delta)
    return Outlook(len(new), asked, spent, after, cap, most, granted=not beyond)
