"""The account of a data file: the sum of what all fits on it have reserved.

A fit reserves its whole allotment before its first question and nothing is given back, so the total never
depends on the rows through a mechanism's course. This module has the interface and the account that lasts as
long as the process; `ledger_file` keeps one on disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stratsynth.accounting.account import Account, FitAccount
from stratsynth.accounting.budget import Allotment, Budget
from stratsynth.accounting.standing import Standing
from stratsynth.accounting.totals import afford, readable, total
from stratsynth.checks import number
from stratsynth.errors import UsageError
from stratsynth.strata import Stratum

APART = (
    " Keep to the neighbours, and to the public columns, that these data were first fitted with; what is released "
    "under others needs an account of its own, whose guarantees do not cover this one's."
)
"""Remedy where guarantees do not add up: one that takes a column for public does not bound what others protect in
it."""
_LOCK = threading.RLock()
"""Held from the check whether a reservation fits until it is made."""


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

    def account(self, standing: Standing, seed: int) -> FitAccount:
        """Return a new account in memory for this fit, after its reservation, with `seed` for post-processing."""
        return FitAccount(self.budget, self.allot, standing, seed, self.caps)


class Ledger(Protocol):
    """A store of reservations on one set of data."""

    def open(self, request: Request) -> Account:
        """Reserve the request's whole allotment and return the fit's account; or raise, and leave all as it was."""


@dataclass
class ProcessLedger:
    """A ledger in memory: it ends with the process, so it cannot count what was spent before."""

    cap_epsilon: float | None = None
    note: str = "no ledger file: this account lasted for one process, and knew these data by path, object and content"
    _made: list[Allotment] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Refuse a cap that is not a positive number."""
        number("ledger_epsilon", self.cap_epsilon, above=0, optional=True)

    @property
    def reserved(self) -> tuple[Allotment, ...]:
        """Tuple of the allotments reserved so far, oldest first."""
        return tuple(self._made)

    def open(self, request: Request) -> FitAccount:
        """Reserve the request's allotment, or refuse it, and return the fit's account; one thread at a time."""
        with _LOCK:
            return self._reserve(request)

    def absorb(self, other: ProcessLedger) -> None:
        """Add the reservations of another ledger of the same data to this one; the lower cap becomes its own."""
        with _LOCK:
            self._made.extend(other._made)
            caps = [cap for cap in (self.cap_epsilon, other.cap_epsilon) if cap is not None]
            self.cap_epsilon = min(caps, default=None)

    def _reserve(self, request: Request) -> FitAccount:
        if any(allot.promise.neighbours != request.budget.neighbours for allot in self._made):
            raise UsageError(f"guarantees for different neighbours cannot be added up on the same data.{APART}")
        if any(allot.promise.public != request.budget.public for allot in self._made):
            raise UsageError(
                f"guarantees that leave different columns unprotected cannot be added up on the same data.{APART}"
            )
        if any(allot.promise.unit != request.budget.unit for allot in self._made):
            raise UsageError("guarantees for different units cannot be added up on the same data.")
        request.before_reserving()
        afford(self.cap_epsilon, self._made, request.allot, request.budget.delta)
        self._made.append(request.allot)
        delta = readable(self._made, request.budget.delta)
        spent = total(self._made, delta)
        standing = Standing(None, self.cap_epsilon, spent, len(self._made), self.note, delta)
        return request.account(standing, fresh_seed(request))


def fresh_seed(request: Request) -> int:
    """Return the seed that the request names; without one, 63 random bits of the system's entropy."""
    from stratsynth.noise import SystemEntropy

    return request.seed if request.seed is not None else SystemEntropy().bits(63)
