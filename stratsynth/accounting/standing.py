"""How an account stands: what all fits on a data file have reserved together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stratsynth.accounting.budget import Allotment, Budget
from stratsynth.accounting.zcdp import epsilon_of
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
    """How many fits have reserved."""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The certificate's form."""
        return {
            "name": self.name,
            **({"note": self.note} if self.note else {}),
            "cap_epsilon": self.cap_epsilon,
            "spent_epsilon": self.spent_epsilon,
            "releases": self.releases,
        }


@dataclass(frozen=True)
class Reservation:
    """What one fit has set aside for good: its whole allotment."""

    budget: Budget
    allot: Allotment


def total(reservations: Iterable[Reservation], delta: float) -> float:
    """The epsilon at `delta` of everything reserved: zCDP fits add in rho first and are converted once."""
    made = list(reservations)
    rho = sum((Fraction(r.allot.rho) for r in made), Fraction(0))
    return epsilon_of(float(rho), delta - sum(r.budget.truncation_delta for r in made))


def afford(cap: float | None, made: list[Reservation], new: Reservation, delta: float) -> float:
    """What would be spent with a new reservation; refuses what passes the cap."""
    after = total([*made, new], delta)
    if cap is not None and after > cap * (1 + 1e-9):  # conversions are rounded in the last digits
        before = total(made, delta)
        raise BudgetRefused(
            f"ledger: refused before reading: asked epsilon {new.budget.epsilon:.6g}, remaining "
            f"{max(0.0, cap - before):.6g} of {cap:g}; it would make {after:.6g}, {after - cap:.6g} too much."
        )
    return after
