"""The account of a data file, and that of a fit: a privacy filter, which refuses a batch before rows are read for it.

A file's account is the sum of what all fits on it have reserved. A fit reserves its whole allotment before its first
question and nothing is given back, so the total never depends on the rows through a mechanism's course. `ledger_file`
keeps such an account on disk, `process` one that lasts as long as the process.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Protocol

from stratsynth.accounting.budget import MOST_EPSILON, TRUNCATION_SHARE, Allotment, Budget, Currency
from stratsynth.accounting.charges import FIRST, Charge, Spending
from stratsynth.accounting.standing import Standing
from stratsynth.errors import BudgetRefused, Unsupported
from stratsynth.strata import Stratum


class FitAccount:
    """An account in memory, capped by the fit's allotment. It keeps no answers, so nothing can be resumed."""

    def __init__(
        self,
        budget: Budget,
        allot: Allotment,
        standing: Standing,
        seed: int,
        caps: Mapping[Stratum, float] = MappingProxyType({}),
        opening: Allotment | None = None,
        rest: Callable[[], Standing] | None = None,
    ) -> None:
        """Open the account: `caps` maps strata to amounts, function `rest` reserves what `opening` leaves."""
        self.budget = budget
        self.allot = replace(allot)  # a copy: the program holds the original
        self.caps = caps
        """Per stratum with a budget of its own: largest amount, in the allotment's currency, that one record of it may
        cost by questions to everybody and to the stratum."""
        self.spending = Spending(budget.neighbours)
        self.standing = standing
        """State of the data's whole account after this fit's reservation, as the certificate shows it."""
        self.opening = opening
        """Part that is reserved for the first question alone; None once the rest is reserved, or without one."""
        self._rest = rest
        self.seed = seed
        """Seed of post-processing; a resumed fit has that of the interrupted one, so that it asks the same."""
        self.by_shape = True
        """True if journal keys digest questions' public shapes; in fits of 0.1.0 and 0.2.0 they digest all numbers."""
        self.lock = threading.RLock()
        """Held from the check of charges against the caps until they are recorded."""
        self._most = [Fraction(allot.amount), *map(Fraction, caps.values())]
        self._distance = 0.0
        self._tails = budget.truncation_delta
        """Part of delta for the samplers' total-variation error t: (1 + exp(epsilon)) t stays within it."""

    def reserve_rest(self) -> None:
        """Reserve the rest of the allotment, once, after the first question; BudgetRefused beyond the cap."""
        with self.lock:
            if self.opening is not None:
                self.standing = self._rest() if self._rest is not None else self.standing
                self.opening = None

    def charge(self, moment: int, asked: str, charges: Sequence[Charge], distance: float) -> None:
        """Count the charges of a batch; BudgetRefused, counting nothing, if they would pass a cap.

        The batch has number `moment`, from 0, and journal key `asked`; `distance` is the total variation between its
        noise as sampled, tails cut off, and as priced, for which a part of delta was set aside.
        """
        with self.lock:
            self._check(charges, distance)
            # Count first, then compare the exact sums with the caps; a refusal or failure withdraws the batch.
            held = len(self.spending.charges)
            try:
                self.spending.add(charges)
                would = self._spent()
                if all(spent <= cap for spent, cap in zip(would, self._most, strict=True)):
                    self._record(moment, asked, charges, distance)
                    self._distance += distance
                    return
            except BaseException:
                self.spending.withdraw(held)
                raise
            self.spending.withdraw(held)
            raise self._refusal(would)

    def _record(self, moment: int, asked: str, charges: Sequence[Charge], distance: float) -> None:
        """Write down a batch's charges (`moment`, key `asked`, total variation `distance`); in memory do nothing."""

    def _check(self, charges: Sequence[Charge], distance: float) -> None:
        """Raise Unsupported: `charges` of another currency or noise, `distance` beyond delta; BudgetRefused: claims."""
        tails = (1 + math.exp(min(self.budget.epsilon, MOST_EPSILON))) * (self._distance + distance)
        if not tails <= self._tails:
            least = tails / TRUNCATION_SHARE
            raise Unsupported(
                "this asks for more noise than the part of delta set aside for cut-off tails covers: at epsilon "
                f"{self.budget.epsilon:g}, delta has to be well above {least:.1g}. 1e-9 is usual."
            )
        if self.opening is not None or any(c.kind == FIRST for c in charges):
            self._check_first(charges)
        wrong = [c for c in charges if c.currency != self.allot.currency]
        if wrong:
            raise Unsupported(
                f"this fit spends in {self.allot.currency}; a {wrong[0].kind} asked in {wrong[0].currency}."
            )
        for c in charges if self.allot.currency == Currency.SAMPLED and self.opening is None else ():
            if c.details["noise"] != self.allot.noise or c.details["rate"] != self.allot.rate:
                raise Unsupported("a sampled fit keeps to the noise and the rate it has reserved, at every step.")
        if self.allot.currency == Currency.CLAIMED:
            claims = [replace(c, amount=c.details["delta"]) for c in (*self.spending.charges, *charges)]
            delta = float(Spending(self.budget.neighbours, claims).spent())  # adds up along paths, as epsilon does
            if delta > self.allot.promise.delta * (1 + 1e-12):
                raise BudgetRefused(
                    f"budget refused before reading: claims of delta {delta:g} in all, "
                    f"{self.allot.promise.delta:g} reserved."
                )

    def _check_first(self, charges: Sequence[Charge]) -> None:
        """Raise BudgetRefused on `charges` but one first question, within its part, before the rest is reserved."""
        costs = [Fraction(c.details.get("rho", c.amount)) for c in charges if c.kind == FIRST]
        most = Fraction(0 if self.opening is None else self.opening.amount)
        if len(charges) != 1 or not costs or costs[0] > most or self.spending.charges:
            raise BudgetRefused("budget refused before reading: a fit has one first question, at the price reserved.")

    def _refusal(self, would: Sequence[Fraction]) -> BudgetRefused:
        """Return, unraised, the BudgetRefused for the first cap that `would` passes: asked, remaining, and short of."""
        for where, spent, after, cap in zip((None, *self.caps), self._spent(), would, self._most, strict=True):
            if after > cap:
                asked, left = float(after - spent), float(cap - spent)
                own = "" if where is None else f"stratum {where.label} has a budget of its own: "
                return BudgetRefused(
                    f"budget refused before reading: {own}asked {self.allot.currency.unit} {asked:.6g}, "
                    f"remaining {left:.6g}, short of {asked - left:.6g}."
                )
        raise AssertionError("nothing passes its cap")

    def _spent(self) -> list[Fraction]:
        """Return a list of spent amounts: on the worst-case record, then on the worst in each stratum with a cap."""
        return [self.spending.spent(), *map(self.spending.spent_on, self.caps)]

    def resume(self, charges: Sequence[Charge], distance: float) -> None:
        """Add `charges` and total variation `distance` that a ledger recorded before a stop; check no cap again."""
        self.spending.add(charges)
        self._distance += distance

    def recall(self, moment: int, asked: str) -> Any | None:
        """Return None for every batch (`moment`, key `asked`): an account in memory keeps no answers."""
        return None

    def store(self, moment: int, asked: str, answers: Any) -> None:
        """Do nothing with the `answers` of a batch (`moment`, key `asked`): an account in memory keeps none."""

    def finish(self) -> None:
        """Do nothing: there is no reservation to mark."""

    def close(self) -> None:
        """Do nothing: there is no lock to release."""


APART = (
    " Keep to the neighbours, the unit and the public columns that these data were first fitted with; what is released "
    "under others needs an account of its own, whose guarantees do not cover this one's."
)
"""Remedy where guarantees do not add up: one that takes a column for public does not bound what others protect in
it."""


@dataclass(frozen=True)
class Request:
    """The request of a fit for a reservation: identity, allotment and caps."""

    identity: str
    """Digest of everything that decides which questions are asked: an equal request resumes an interrupted fit."""
    mechanism: str
    """Name of the mechanism, for readers of the ledger."""
    budget: Budget
    allot: Allotment
    seed: int | None
    """The user's seed for post-processing; None if the ledger is to draw one."""
    before_reserving: Callable[[], object] = lambda: None
    """Called before a new reservation is made, under the lock; raises if the fit could not be finished."""
    caps: Mapping[Stratum, float] = field(default_factory=dict)
    """Largest amount, in the allotment's currency, that a record of a stratum with a budget of its own may cost."""
    prior: str | None = None
    """Hash of the certificate's section about the prior; None without a prior."""
    sections: str | None = None
    """Hash of the certificate's sections that are fixed before the first answer; None where nobody states them."""
    opening: Allotment | None = None
    """Part of the allotment that is reserved first, for the first question; None for all of it at once."""


class Ledger(Protocol):
    """A store of reservations on one set of data."""

    def open(self, request: Request) -> FitAccount:
        """Reserve the request's whole allotment, return a `FitAccount`; else raise (BudgetRefused), unchanged."""


def fresh_seed(request: Request) -> int:
    """Return the seed, an int, that the request names; without one, 63 random bits of the system's entropy."""
    from stratsynth.noise import SystemEntropy

    return request.seed if request.seed is not None else SystemEntropy().bits(63)
