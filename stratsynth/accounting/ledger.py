"""The account of a data file: what all fits on it have reserved together.

A fit reserves its whole allotment before its first question and nothing is given back, so the total never
depends on what the rows made a mechanism do. This module holds the interface and the account that lasts as
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
"""The remedy where guarantees do not add up: one that takes a column for public says nothing of what it holds."""
_LOCK = threading.RLock()
"""Whoever looks whether a reservation fits must be the next to make one."""


@dataclass(frozen=True)
class Request:
    """What a fit wants of a ledger."""

    identity: str
    """The digest of everything that decides what is asked: the same request again resumes an interrupted fit."""
    mechanism: str
    """Its name, for the ledger's reader."""
    budget: Budget
    allot: Allotment
    seed: int | None
    """The user's seed for post-processing, if any."""
    before_reserving: Callable[[], object] = lambda: None
    """Called before a new reservation is made, under the lock; raises when it would be for nothing."""
    caps: Mapping[Stratum, float] = field(default_factory=dict)
    """What a record of a stratum with a budget of its own may cost, in the allotment's currency."""
    prior: str | None = None
    """The hash of what the certificate will say of the prior, if there is one."""

    def account(self, standing: Standing, seed: int) -> FitAccount:
        """The fit's account in memory, once it has reserved."""
        return FitAccount(self.budget, self.allot, standing, seed, self.caps)


class Ledger(Protocol):
    """Where reservations are kept."""

    def open(self, request: Request) -> Account:
        """Reserve a whole allotment and open the fit's account, or raise and leave everything as it was."""


@dataclass
class ProcessLedger:
    """An account in memory: it ends with the process, so it cannot see what was spent before."""

    cap_epsilon: float | None = None
    note: str = "no ledger file: this account lasted for one process, and knew these data by path, object and content"
    _made: list[Allotment] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """A cap is a positive number."""
        number("ledger_epsilon", self.cap_epsilon, above=0, optional=True)

    @property
    def reserved(self) -> tuple[Allotment, ...]:
        """What was reserved so far, oldest first."""
        return tuple(self._made)

    def open(self, request: Request) -> FitAccount:
        """Add the fit's reservation; the total is read at the fit's delta. One thread at a time."""
        with _LOCK:
            return self._reserve(request)

    def absorb(self, other: ProcessLedger) -> None:
        """Take over what was reserved on another account of the same data; the lower cap holds."""
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
    """The user's seed, or one that nobody knows beforehand."""
    from stratsynth.noise import SystemEntropy

    return request.seed if request.seed is not None else SystemEntropy().bits(63)
