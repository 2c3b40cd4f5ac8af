"""What a user is willing to spend, and what a fit is allotted out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stratsynth.accounting.zcdp import rho_of
from stratsynth.checks import is_texts, number
from stratsynth.errors import Unsupported, UsageError

TRUNCATION_SHARE = 1e-6
"""The share of delta set aside for the samplers' cut-off tails. It changes epsilon in the eighth digit."""
MOST_EPSILON = 25.0
"""Above it a guarantee means nothing, and cut-off tails would no longer fit into their share of delta."""
LEAST_DELTA = 1e-100
UNIT_SLACK = 1e-12
"""The relative part by which a row's amount stays below 1/k^2 of rho, or 1/k of epsilon: more than rounding takes."""


class Neighbours(StrEnum):
    """Which two tables the guarantee compares: the privacy statement is about one such step."""

    ADD_REMOVE = "add-remove"
    """One record more or fewer."""
    REPLACE = "replace"
    """One record exchanged for any other, its stratum included."""
    ATTRIBUTE = "attribute"
    """The columns of one record change that the schema does not name public; records and public columns stay."""

    @property
    def priced(self) -> Neighbours:
        """The notion whose sensitivities and prices hold: an attribute that changes is a record exchanged.

        Never that of a record more or fewer, which costs less on a Poisson sample: tests/unit/test_attribute_change.py.
        """
        return Neighbours.REPLACE if self is Neighbours.ATTRIBUTE else self


PRICED = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
"""The notions that questions have sensitivities for."""


class Currency(StrEnum):
    """What a fit counts its spending in. A fit has one, fixed before its first question."""

    ZCDP = "zcdp"
    """rho of zero-concentrated DP; adaptive, and converted to epsilon once, optimally."""
    PURE = "pure"
    """epsilon with delta 0; adds up as such."""
    SAMPLED = "sampled"
    """Steps on Poisson samples, all of one noise multiplier and rate, reserved in full."""
    CLAIMED = "claimed"
    """What third-party code says of itself; nothing is checked."""

    @property
    def unit(self) -> str:
        """What an amount of it is called in certificates and ledgers."""
        return {"zcdp": "rho", "sampled": "steps"}.get(self.value, "epsilon")


@dataclass(frozen=True)
class Budget:
    """The (epsilon, delta) that one fit may spend, for the declared neighbours. There is no default delta."""

    epsilon: float
    """The most by which the log-probability of any event may change between neighbouring tables, up to delta."""
    delta: float
    """The probability with which epsilon may fail; well below one over the number of people."""
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    """The pair of tables compared; the certificate prints the prices of the others too."""
    unit: str = "record"
    """What one step adds or removes: a record, or all rows with one value of this column. Fits set it by the schema."""
    rows: int = 1
    """The most rows that a unit has. Fits set it by the schema."""
    public: tuple[str, ...] = field(default=(), metadata={"digest": False})
    """For `attribute`: the columns that are not protected, in alphabetical order. Fits set it by the schema, whose hash
    stands beside a budget wherever one is digested."""

    def __post_init__(self) -> None:
        """Refuse what is not a finite positive epsilon and a delta strictly between 0 and 1."""
        number("budget: epsilon", self.epsilon, above=0, most=MOST_EPSILON)
        number("budget: delta", self.delta, least=LEAST_DELTA, below=1, hint="; 1e-9 is usual")
        if not isinstance(self.unit, str) or type(self.rows) is not int or self.rows < 1:
            raise UsageError("budget: what is protected is said by the schema, as its `unit`.")
        try:
            object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        except ValueError:
            known = " or ".join(repr(str(n)) for n in Neighbours)
            raise UsageError(f"budget: neighbours must be {known}.") from None
        if not is_texts(self.public) or (self.public and self.neighbours != Neighbours.ATTRIBUTE):
            raise UsageError("budget: which columns are public is said by the schema, as public = true.")
        object.__setattr__(self, "public", tuple(sorted(self.public)))
        if self.neighbours == Neighbours.ATTRIBUTE and (self.unit != "record" or self.rows != 1):
            raise Unsupported(
                f'budget: neighbours = "attribute" protects attributes of single records, not of a {self.unit} of '
                f'several rows; take unit = "record", or neighbours = "add-remove".'
            )

    @property
    def truncation_delta(self) -> float:
        """The part of delta kept for the samplers' truncation."""
        return self.delta * TRUNCATION_SHARE

    def zcdp(self) -> Allotment:
        """The whole budget as rho for one row, by the optimal conversion at what delta is left."""
        rho = rho_of(self.epsilon, self.delta - self.truncation_delta)
        return Allotment(Currency.ZCDP, self._row(rho, 2), self)

    def pure(self) -> Allotment:
        """The whole epsilon for one row, with delta 0: for noise whose tail is exact."""
        return Allotment(Currency.PURE, self._row(self.epsilon, 1), self)

    def sampled(self, *, rate: float, steps: int) -> Allotment:
        """A number of steps on Poisson samples, with the least noise multiplier that keeps to the budget."""
        from stratsynth.accounting.sampled import least_noise

        self._single("steps on samples are")
        noise = least_noise(self, rate=rate, steps=steps)
        return Allotment(Currency.SAMPLED, float(steps), self, noise=noise, rate=rate)

    def claimed(self) -> Allotment:
        """Whatever third-party code makes of this budget."""
        self._single("claims of third-party code are")
        return Allotment(Currency.CLAIMED, self.epsilon, self)

    def _row(self, amount: float, power: int) -> float:
        """The part of an amount that each row of a unit may cost; `stratsynth.accounting.units` says why."""
        return amount if self.rows == 1 else amount / self.rows**power * (1 - UNIT_SLACK)

    def _single(self, what: str) -> None:
        if self.rows > 1:
            raise Unsupported(
                f"budget: {what} priced for single rows only, not for a {self.unit} of up to {self.rows} rows. "
                "Use a mechanism that spends rho, or max_rows = 1."
            )


@dataclass(frozen=True)
class Allotment:
    """What a mechanism may spend, in the currency of the fit: the cap that the driver enforces."""

    currency: Currency
    amount: float
    """rho, epsilon, or a number of steps: what all questions along a path may cost together."""
    promise: Budget
    """The (epsilon, delta) that the amount keeps to; what a ledger adds up where it cannot add amounts."""
    noise: float | None = None
    """For `sampled`: the noise multiplier of every step."""
    rate: float | None = None
    """For `sampled`: the probability with which a row takes part in a step."""

    @property
    def rho(self) -> float:
        """The amount of a zCDP allotment."""
        if self.currency != Currency.ZCDP:
            raise UsageError(f"a fit that spends in {self.currency} has no rho.")
        return self.amount

    @property
    def delta(self) -> float:
        """What of delta the promise uses: pure epsilon uses none."""
        return 0.0 if self.currency == Currency.PURE else self.promise.delta

    def to_dict(self) -> dict[str, Any]:
        """For the ledger and the certificate."""
        extra = {"noise": self.noise, "rate": self.rate} if self.currency == Currency.SAMPLED else {}
        return {"currency": str(self.currency), self.currency.unit: self.amount, **extra}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], promise: Budget) -> Allotment:
        """The allotment that `to_dict` wrote."""
        currency = Currency(record["currency"])
        return cls(currency, record[currency.unit], promise, record.get("noise"), record.get("rate"))
