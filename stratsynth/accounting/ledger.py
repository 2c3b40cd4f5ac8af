"""The account of a data file: what all fits on it have reserved together.

A fit reserves its whole allotment before its first question and nothing is given back, so the total never
depends on what the rows made a mechanism do. This module holds the interface and the account that lasts as
long as the process; `ledger_file` keeps one on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from stratsynth.accounting.account import Account, FitAccount
from stratsynth.accounting.budget import Allotment, Budget
from stratsynth.accounting.standing import Standing, afford, readable, total
from stratsynth.checks import number
from stratsynth.errors import UsageError


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
    ready: Callable[[], object] = lambda: None
    """Called before a new reservation is made, under the lock; raises when it would be for nothing."""


class Ledger(Protocol):
    """Where reservations are kept."""

    def open(self, request: Request) -> Account:
        """Reserve a whole allotment and open the fit's account, or raise and leave everything as it was."""


@dataclass
class ProcessLedger:
    """An account in memory: it ends with the process, so it cannot see what was spent before."""

    cap_epsilon: float | None = None
    note: str = "no ledger file: this account lasted for one process"
    _made: list[Allotment] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """A cap is a positive number."""
        number("ledger_epsilon", self.cap_epsilon, above=0, optional=True)

    def open(self, request: Request) -> FitAccount:
        """Add the fit's reservation; the total is read at the fit's delta."""
        if any(allot.promise.neighbours != request.budget.neighbours for allot in self._made):
            raise UsageError("guarantees for different neighbours cannot be added up on the same data.")
        if any(allot.promise.unit != request.budget.unit for allot in self._made):
            raise UsageError("guarantees for different units cannot be added up on the same data.")
        request.ready()
        afford(self.cap_epsilon, self._made, request.allot, request.budget.delta)
        self._made.append(request.allot)
        delta = readable(self._made, request.budget.delta)
        spent = total(self._made, delta)
        standing = Standing(None, self.cap_epsilon, spent, len(self._made), self.note, delta)
        return FitAccount(request.budget, request.allot, standing, fresh_seed(request))


class UnchargedLedger:
    """For data declared public: fits keep to their allotment, and nothing is added up."""

    def open(self, request: Request) -> FitAccount:
        """Reserve nothing."""
        standing = Standing(None, None, 0.0, 0, "data declared public: nothing is charged")
        return FitAccount(request.budget, request.allot, standing, fresh_seed(request))


def fresh_seed(request: Request) -> int:
    """The user's seed, or one that nobody knows beforehand."""
    from stratsynth.noise import SystemEntropy

    return request.seed if request.seed is not None else SystemEntropy().bits(63)
