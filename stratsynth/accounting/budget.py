"""What a user is willing to spend, and what a fit is allotted out of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from stratsynth.accounting.zcdp import rho_of
from stratsynth.errors import UsageError

TRUNCATION_SHARE = 1e-9
"""The share of delta set aside for the samplers' cut-off tails. It changes epsilon in the tenth digit."""


class Neighbours(StrEnum):
    """Which two tables the guarantee compares: the privacy statement is about one such step."""

    ADD_REMOVE = "add-remove"
    """One record more or fewer."""
    REPLACE = "replace"
    """One record exchanged for any other, its stratum included."""


@dataclass(frozen=True)
class Budget:
    """The (epsilon, delta) that one fit may spend, for the declared neighbours. There is no default delta."""

    epsilon: float
    """The most that any event's log-probability may move, up to delta."""
    delta: float
    """The probability with which epsilon may fail; well below one over the number of people."""
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    """The pair of tables compared; the certificate prints the prices of the others too."""

    def __post_init__(self) -> None:
        """Refuse what is not a finite positive epsilon and a delta strictly between 0 and 1."""
        for key, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise UsageError(f"budget: {key} must be a finite number.")
        if self.epsilon <= 0:
            raise UsageError(f"budget: epsilon must be above 0, not {self.epsilon:g}.")
        if not 0 < self.delta < 1:
            raise UsageError(f"budget: delta must be above 0 and below 1, not {self.delta:g}; 1e-9 is usual.")
        try:
            object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        except ValueError:
            known = " or ".join(repr(str(n)) for n in Neighbours)
            raise UsageError(f"budget: neighbours must be {known}.") from None

    @property
    def truncation_delta(self) -> float:
        """The part of delta kept for the samplers' truncation."""
        return self.delta * TRUNCATION_SHARE

    def zcdp(self) -> Allotment:
        """The whole budget as rho, by the optimal conversion at what delta is left."""
        return Allotment(rho=rho_of(self.epsilon, self.delta - self.truncation_delta))


@dataclass(frozen=True)
class Allotment:
    """What a mechanism may spend, in the currency of the fit: the cap that the driver enforces."""

    rho: float
    """Zero-concentrated DP: what all questions along a path may cost together."""
    currency: str = "zcdp"
    """The one currency of the fit, fixed before its first question."""
