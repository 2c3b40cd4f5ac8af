"""The account of one fit: a filter that refuses a question before anything is read for it."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Protocol

from stratsynth.accounting.budget import TRUNCATION_SHARE, Allotment, Budget, Currency
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.accounting.standing import Standing
from stratsynth.errors import BudgetRefused, Unsupported
from stratsynth.strata import Stratum


class Account(Protocol):
    """The account that the driver charges, and in which it keeps answers so that none is drawn twice."""

    @property
    def budget(self) -> Budget:
        """The budget that the user is willing to spend."""

    @property
    def allot(self) -> Allotment:
        """The part of the budget that the mechanism may spend: the cap."""

    @property
    def spending(self) -> Spending:
        """Everything charged so far."""

    @property
    def standing(self) -> Standing:
        """The account of the data after this fit's reservation."""

    @property
    def seed(self) -> int:
        """The seed of post-processing: a resumed fit must ask what the interrupted one asked."""

    @property
    def by_shape(self) -> bool:
        """True if questions are known by their public shape; by every number, in fits that 0.1.0 or 0.2.0 began."""

    def charge(self, moment: int, asked: str, charges: Sequence[Charge], distance: float) -> None:
        """Record, for good, what is about to be answered; or refuse all of it."""

    def recall(self, moment: int, asked: str) -> Any | None:
        """The answers already given at this moment to the questions with this digest."""

    def store(self, moment: int, asked: str, answers: Any) -> None:
        """Keep answers, for good, before anybody sees them."""

    def finish(self) -> None:
        """The release is where its owner wants it: the same request is a new fit from now on."""

    def close(self) -> None:
        """Let go of locks; what was charged stays charged."""


class FitAccount:
    """An account in memory, capped by the fit's allotment. It forgets answers: there is nothing to resume."""

    def __init__(
        self,
        budget: Budget,
        allot: Allotment,
        standing: Standing,
        seed: int,
        caps: Mapping[Stratum, float] = MappingProxyType({}),
    ) -> None:
        """Open it for the budget's neighbours; nothing is spent yet."""
        self.budget = budget
        self.allot = replace(allot)  # the program holds the other one
        self.caps = caps
        """The most that a record of some strata may cost, asked of everybody and there, in the allotment's currency."""
        self.spending = Spending(budget.neighbours)
        self.standing = standing
        self.seed = seed
        self.by_shape = True
        self.lock = threading.RLock()
        """Held from looking whether charges fit until they are recorded."""
        self._most = [Fraction(allot.amount), *map(Fraction, caps.values())]
        self._distance = 0.0
        self._tails = budget.truncation_delta
        """The part of delta that cut-off tails of noise may take."""

    def charge(self, moment: int, asked: str, charges: Sequence[Charge], distance: float) -> None:
        """Refuse charges that would pass the allotment; otherwise count them. What is refused or fails counts nothing.

        Args:
            moment: The number of the moment; an account in memory needs none.
            asked: The journal key; an account in memory needs none.
            charges: Of everything that is asked at the moment.
            distance: Total variation between the noise as sampled, tails cut off, and as priced. A mechanism within
                distance t of an (epsilon, d)-DP one is (epsilon, d + (1 + exp(epsilon)) t)-DP; that much of delta was
                set aside.
        """
        with self.lock:
            self._check(charges, distance)
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
        """Write charges down that are known to fit; in memory they are counted, and that is all."""

    def _check(self, charges: Sequence[Charge], distance: float) -> None:
        """Refuse noise that delta does not cover, charges of another currency, and claims of more delta."""
        tails = (1 + math.exp(self.budget.epsilon)) * (self._distance + distance)
        if not tails <= self._tails:
            least = tails / TRUNCATION_SHARE
            raise Unsupported(
                "this asks for more noise than the part of delta set aside for cut-off tails covers: at epsilon "
                f"{self.budget.epsilon:g}, delta has to be well above {least:.1g}. 1e-9 is usual."
            )
        wrong = [c for c in charges if c.currency != self.allot.currency]
        if wrong:
            raise Unsupported(
                f"this fit spends in {self.allot.currency}; a {wrong[0].kind} asked in {wrong[0].currency}."
            )
        for c in charges if self.allot.currency == Currency.SAMPLED else ():
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

    def _refusal(self, would: Sequence[Fraction]) -> BudgetRefused:
        """The refusal of charges after which records would have cost this much, in words."""
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
        """The spending on the dearest record, and on those of each stratum with a cap."""
        return [self.spending.spent(), *map(self.spending.spent_on, self.caps)]

    def resume(self, charges: Sequence[Charge], distance: float) -> None:
        """Count charges that were found to fit before an interruption."""
        self.spending.add(charges)
        self._distance += distance

    def recall(self, moment: int, asked: str) -> Any | None:
        """Nothing is remembered."""
        return None

    def store(self, moment: int, asked: str, answers: Any) -> None:
        """Nothing is kept."""

    def finish(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is locked."""
