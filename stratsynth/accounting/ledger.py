"""The account of a data file: the sum of what all fits on it have reserved.

A fit reserves its whole allotment before its first question and nothing is given back, so the total never
depends on the rows through a mechanism's course. `ledger_file` keeps such an account on disk, `process` one that
lasts as long as the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.budget import Allotment, Budget
from stratsynth.strata import Stratum

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
