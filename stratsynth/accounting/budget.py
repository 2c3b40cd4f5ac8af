"""Budgets, (epsilon, delta) that a user is willing to spend on a fit, and allotments, amounts in a fit's currency."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

from stratsynth.accounting.exact import EXACT, epsilon_exact
from stratsynth.accounting.zcdp import epsilon_of, rho_of
from stratsynth.checks import is_texts, number, one_of
from stratsynth.errors import Unsupported, UsageError

TRUNCATION_SHARE = 1e-6
"""Share of delta set aside for the samplers' total-variation error. It changes epsilon in the eighth digit."""
MOST_EPSILON = 25.0
"""Largest epsilon of a budget: above it a guarantee is vacuous, and the samplers' error would exceed its share of
delta; `PublicBudget` goes further."""
LEAST_DELTA = 1e-100
MOST_FIRST = 0.5
"""Largest share of a fit's amount that its first question may cost."""
UNIT_SLACK = 1e-12
"""Relative margin by which the amount of one row stays below rho / k^2, or epsilon / k; larger than rounding errors."""


class Neighbours(StrEnum):
    """Notion of neighbouring tables: the pairs whose distinguishability the guarantee bounds."""

    ADD_REMOVE = "add-remove"
    """Tables that differ by one record more or fewer."""
    REPLACE = "replace"
    """Tables that differ by one record exchanged for any other, in any stratum."""
    ATTRIBUTE = "attribute"
    """Tables that differ in one record's values in columns that the schema does not name public; the records and all
    public columns are the same."""

    @property
    def priced(self) -> Neighbours:
        """The notion by whose sensitivities and prices this one is priced: `attribute` costs as much as `replace`.

        `add-remove` would be too cheap for `attribute` on Poisson samples: tests/unit/test_attribute_change.py.
        """
        return Neighbours.REPLACE if self is Neighbours.ATTRIBUTE else self


PRICED = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
"""Notions for which every question states a sensitivity."""


class Currency(StrEnum):
    """Unit of account of a fit's spending: one for the whole fit, fixed before its first question."""

    ZCDP = "zcdp"
    """rho of zero-concentrated DP; adds up adaptively and is converted to epsilon once."""
    EXACT = EXACT
    """rho = mu^2 / 2 of Gaussian DP, of Gaussian tables and sums alone; as `zcdp`, but converted by its exact curve."""
    PURE = "pure"
    """epsilon of pure DP, delta being 0; adds up adaptively."""
    SAMPLED = "sampled"
    """Gaussian steps on Poisson samples, all of one noise multiplier and sampling rate, reserved in full."""
    CLAIMED = "claimed"
    """epsilon and delta that third-party code claims for itself; nothing is checked."""

    @property
    def unit(self) -> str:
        """Word for an amount of the currency in certificates and ledgers: `rho`, `steps` or `epsilon`."""
        return {"zcdp": "rho", "exact": "rho", "sampled": "steps"}.get(self.value, "epsilon")


IN_RHO: Mapping[Currency, Callable[[float, float], float]] = {Currency.ZCDP: epsilon_of, Currency.EXACT: epsilon_exact}
"""Conversion of rho, at a delta, to epsilon, by currency."""
OPENED_IN_RHO = (*IN_RHO, Currency.SAMPLED)
"""Currencies of fits whose first question costs rho; that of others costs pure epsilon."""


@dataclass(frozen=True)
class Budget:
    """The (epsilon, delta) that one fit may spend under the declared neighbours. There is no default delta."""

    most: ClassVar[float] = MOST_EPSILON
    beyond: ClassVar[str] = "; on data declared public PublicBudget takes more"
    epsilon: float
    """Largest change of the log-probability of any event between neighbouring tables, but for delta."""
    delta: float
    """Additive slack of the guarantee in probability, far below one over the number of people; 0 is pure epsilon."""
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    """Notion of neighbour that the guarantee is stated for; the certificate prints the prices of others too."""
    unit: str = "record"
    """Privacy unit: `record`, or the column whose equal values make one unit. Fits set it by the schema."""
    rows: int = 1
    """Largest number of rows of one unit (k). Fits set it by the schema."""
    public: tuple[str, ...] = field(default=(), metadata={"digest": False})
    """Unprotected columns under `attribute`, in alphabetical order; else none. Fits set it by the schema, whose hash
    stands beside a budget wherever one is digested."""
    first: float | None = field(default=None, metadata={"digest": False})
    """Share of the amount that a fit's first question costs; 0 for no such question, None for the default of fits."""
    accounting: str = field(default="zcdp", metadata={"digest": False})
    """Currency of fits that spend rho, `zcdp` or `exact`. Allotments, which are digested beside budgets, name it."""
    least: float | None = field(default=None, metadata={"digest": False})
    """Smallest epsilon of a stratum, where strata have budgets of their own: `first` is a share of its amount."""

    def __post_init__(self) -> None:
        """Raise UsageError: epsilon not in (0, most], delta not 0 nor in [LEAST_DELTA, 1), unfit units."""
        number("budget: epsilon", self.epsilon, above=0, most=self.most, hint=self.beyond)
        least = 0 if type(self.delta) in (int, float) and self.delta == 0 else LEAST_DELTA
        number("budget: delta", self.delta, least=least, below=1, hint="; 1e-9 is usual, and 0 is pure epsilon")
        number("budget: first", self.first, least=0, most=MOST_FIRST, optional=True)
        for key in ("epsilon", "delta"):
            if type(getattr(self, key)) not in (int, float):  # a number of numpy
                object.__setattr__(self, key, float(getattr(self, key)))
        if not isinstance(self.unit, str) or type(self.rows) is not int or self.rows < 1:
            raise UsageError("budget: what is protected is said by the schema, as its `unit`.")
        one_of("budget: neighbours", self.neighbours, [n.value for n in Neighbours])
        one_of("budget: accounting", self.accounting, list(IN_RHO))
        object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
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
        """Part of delta kept for the samplers' total-variation error: delta x TRUNCATION_SHARE."""
        return self.delta * TRUNCATION_SHARE

    @property
    def plain(self) -> Budget:
        """`Budget` without a first question: all of its amount is the mechanism's."""
        return replace(self, first=None, least=None) if self.first is not None else self

    def opening(self, currency: Currency) -> float:
        """Return the part of one row's amount, a float, that the first question costs; rho or epsilon by currency."""
        if not self.first:
            return 0.0
        whose = replace(self.plain, epsilon=self.least or self.epsilon)
        return self.first * (whose.zcdp() if currency in OPENED_IN_RHO else whose.pure()).amount

    def zcdp(self) -> Allotment:
        """Return an Allotment of rho per row, by the conversion of its accounting; 1/k^2 of rho for units of k rows."""
        currency = Currency(self.accounting)
        if currency == Currency.EXACT:
            self._single('accounting = "exact" is')
        self._slack("rho")
        rho = self._row(rho_of(self.epsilon, self.delta - self.truncation_delta, IN_RHO[currency]), 2)
        return Allotment(currency, less(rho, self.opening(currency)), self)

    def pure(self) -> Allotment:
        """Return an Allotment of pure epsilon per row, with delta 0: epsilon / k for units of k rows."""
        return Allotment(Currency.PURE, less(self._row(self.epsilon, 1), self.opening(Currency.PURE)), self)

    def sampled(self, *, rate: float, steps: int) -> Allotment:
        """Return an `Allotment` of `steps` steps on Poisson samples of `rate`, with the least noise in the budget."""
        from stratsynth.accounting.sampled import least_noise

        self._slack("steps on samples")
        self._single("steps on samples are")
        noise = least_noise(self, rate=rate, steps=steps)
        first = self.opening(Currency.SAMPLED)
        return Allotment(Currency.SAMPLED, float(steps), self, noise=noise, rate=rate, first=first)

    def claimed(self) -> Allotment:
        """Return an `Allotment` of all epsilon for unchecked third-party claims; Unsupported for units of rows."""
        self._single("claims of third-party code are")
        return Allotment(Currency.CLAIMED, less(self.epsilon, self.opening(Currency.CLAIMED)), self)

    def _row(self, amount: float, power: int) -> float:
        """Return the part of a unit's `amount` that each of its k rows may cost: amount / k^power, rounded down."""
        return amount if self.rows == 1 else amount / self.rows**power * (1 - UNIT_SLACK)

    def _slack(self, what: str) -> None:
        if not self.delta:
            raise Unsupported(
                f"budget: delta = 0 is for fits that spend pure epsilon, and this one spends {what}. Take a delta "
                "such as 1e-9, or a mechanism that does: clipped_mean, or choices of reductions by public candidates."
            )

    def _single(self, what: str) -> None:
        if self.rows > 1:
            raise Unsupported(
                f"budget: {what} priced for single rows only, not for a {self.unit} of up to {self.rows} rows. "
                "Use a mechanism that spends rho in zcdp, or max_rows = 1."
            )


@dataclass(frozen=True)
class Allotment:
    """Amount that a mechanism may spend, in the currency of the fit: the cap that the driver enforces."""

    currency: Currency
    amount: float
    """rho, epsilon, or a number of steps: most that all questions which count for one record may cost together."""
    promise: Budget
    """(epsilon, delta) that the amount keeps to; ledgers add these up where amounts are of different currencies."""
    noise: float | None = None
    """Noise multiplier (noise scale over clip) of every step, in `sampled`; else None."""
    rate: float | None = None
    """Probability with which a row takes part in a step, in `sampled`; else None."""
    first: float = field(default=0.0, metadata={"digest": False})
    """rho of the first question beside the steps, in `sampled`; else 0."""

    @property
    def reserved(self) -> Allotment:
        """Allotment of the fit in all, per row: the mechanism's amount and the first question's, rounded up."""
        spent = 0.0 if self.currency == Currency.SAMPLED else self.promise.opening(self.currency)
        amount = self.amount + spent
        if Fraction(amount) < Fraction(self.amount) + Fraction(spent):
            amount = math.nextafter(amount, math.inf)
        return replace(self, amount=amount, promise=self.promise.plain)

    @property
    def opening(self) -> Allotment | None:
        """Allotment of the first question, per row, which is reserved before the rest; None without such a question."""
        amount = self.promise.opening(self.currency)
        currency = Currency(self.promise.accounting) if self.currency in OPENED_IN_RHO else Currency.PURE
        return Allotment(currency, amount, self.promise.plain) if amount else None

    @property
    def rho(self) -> float:
        """Amount of rho per row, of an allotment in rho; a UsageError for other currencies."""
        if self.currency not in IN_RHO:
            raise UsageError(f"a fit that spends in {self.currency} has no rho.")
        return self.amount

    @property
    def delta(self) -> float:
        """Part of the promised delta that is used: 0 for pure epsilon, all of it otherwise."""
        return 0.0 if self.currency == Currency.PURE else self.promise.delta

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of currency, amount (under its unit's name), and of steps their noise and rate."""
        extra = {"noise": self.noise, "rate": self.rate} if self.currency == Currency.SAMPLED else {}
        extra |= {"first": self.first} if self.first else {}
        return {"currency": str(self.currency), self.currency.unit: self.amount, **extra}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], promise: Budget) -> Allotment:
        """Return the `Allotment` of a dict `record` that `to_dict` wrote; `promise` is the budget of its fit."""
        currency = Currency(record["currency"])
        return cls(
            currency, record[currency.unit], promise, record.get("noise"), record.get("rate"), record.get("first", 0.0)
        )


def less(amount: float, spent: float) -> float:
    """Return a float, amount - spent, rounded down so that it and `spent` together never exceed the amount."""
    left = amount - spent
    return math.nextafter(left, 0.0) if Fraction(left) + Fraction(spent) > Fraction(amount) else left
