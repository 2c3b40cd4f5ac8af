"""The numbers that a certificate states, as objects of the accounting, and contradictions among them.

All of it follows from the certificate alone and takes little time, so it is checked whenever one is read.
`stratsynth.verifying` checks the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import (
    IN_RHO,
    MOST_EPSILON,
    PRICED,
    TRUNCATION_SHARE,
    Allotment,
    Budget,
    Currency,
    Neighbours,
)
from stratsynth.accounting.charges import FIRST, Charge, Spending
from stratsynth.accounting.exact import SLACK
from stratsynth.accounting.prices import Worst
from stratsynth.accounting.public_budget import MOST_PUBLIC_EPSILON, PublicBudget
from stratsynth.checks import is_number
from stratsynth.errors import UsageError
from stratsynth.schema.weight import MOST

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate

ROW_WEIGHT = "row_weight"
"""Key of a certificate with the column of row weights and the largest; absent if every row counts 1."""
ALPHAS = (0.001, 0.01, 0.05, 0.1)
"""Rates of false alarms for which a certificate in `exact` states the rate of misses."""
LAST_DIGIT = 1e-6
TOLERANCE = 1e-9
"""Relative difference between a stated and a recomputed figure that rounding may make."""


@dataclass(frozen=True)
class Stated:
    """Guarantee of a certificate and the charges that it rests on."""

    budget: Budget
    """Promised epsilon, delta, neighbours and unit."""
    allot: Allotment
    """Reserved amount, in the currency of the fit."""
    reserved: bool
    """True if the reserved amount is stated; in pure epsilon, version 0.1.0 states the promise alone."""
    spending: Spending
    """Charges, with their total."""
    worst: Worst | None
    """Worst-case course of an adaptive mechanism; None also if the certificate does not state it."""
    adaptive: bool
    """True if answers decide which questions are asked."""
    weight: int = 1
    """Largest weight of a row."""
    gaussian: tuple[float, ...] = ()
    """Stated mu, and alpha and beta of each test, in `exact`; () in other currencies."""

    @property
    def slack(self) -> float:
        """Delta at which amounts are converted to epsilon: the promised one without the samplers' share."""
        return self.budget.delta - self.budget.truncation_delta


def read_stated(certificate: Certificate, charges: Sequence[Mapping[str, Any]]) -> Stated:
    """Return `Stated`: a certificate's budget, allotment, charges and worst case as objects of the accounting.

    Args:
        certificate: The sections.
        charges: A list of mappings, the charges as JSON has them, or (): a kind of question may state more than the
            sections do.

    Raises:
        ValueError: Impossible numbers, in words.
    """
    try:
        return _read(certificate, charges)
    except UsageError as error:
        raise ValueError(str(error)) from None
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"its guarantee, unit or charges are not a certificate's ({type(error).__name__})") from None


def _read(certificate: Certificate, charges: Sequence[Mapping[str, Any]]) -> Stated:
    """Return `Stated` of a certificate, with `charges` as JSON has them, a list of mappings.

    ValueError in words for impossible numbers.
    """
    guarantee, unit = certificate.guarantee, certificate.unit
    most = MOST_EPSILON if certificate.private else MOST_PUBLIC_EPSILON
    if not guarantee.epsilon <= most:
        raise ValueError(f"its epsilon is not above 0 and at most {most:g}")
    currency = Currency(guarantee.currency)
    delta, cut = guarantee.delta, guarantee.truncation_delta
    if currency == Currency.PURE:  # pure epsilon uses nothing of the delta that was offered
        if delta != 0:
            raise ValueError("its currency is pure epsilon, and its delta is not 0")
        delta = cut / TRUNCATION_SHARE
    elif not math.isclose(cut, delta * TRUNCATION_SHARE, rel_tol=1e-6):
        raise ValueError(f"its truncation_delta is not {TRUNCATION_SHARE:g} of its delta")
    unit, rows = (unit, 1) if isinstance(unit, str) else (unit.column, unit.max_rows)
    public = certificate.public_columns
    if (certificate.neighbours == Neighbours.ATTRIBUTE) != bool(public):
        raise ValueError("its public columns do not go with its neighbours")
    kind = Budget if guarantee.epsilon <= MOST_EPSILON else PublicBudget
    budget = kind(guarantee.epsilon, delta, Neighbours(certificate.neighbours), unit, rows, public)
    if currency == Currency.EXACT:
        budget = replace(budget, accounting=str(currency))
    amount = guarantee.reserved if guarantee.reserved is not None else getattr(guarantee, currency.unit)
    if amount is None or not 0 < amount < math.inf:
        raise ValueError(f"its {currency.unit} is no positive number")
    if currency == Currency.SAMPLED and not (guarantee.noise and guarantee.rate):
        raise ValueError("its noise or rate is no positive number")
    allot = Allotment(currency, amount, budget, guarantee.noise, guarantee.rate, guarantee.first or 0.0)
    if certificate.row_weight is not None and certificate.row_weight.max > MOST:
        raise ValueError(f"its row_weight is above {MOST:,}")
    worst = certificate.dearest
    return Stated(
        budget,
        allot,
        currency in (*IN_RHO, Currency.SAMPLED) or guarantee.reserved is not None,
        Spending(budget.neighbours, [_charge(charge, currency) for charge in charges]),
        None if worst is None else Worst(worst.factor, worst.only_strata),
        certificate.mechanism.adaptive,
        1 if certificate.row_weight is None else certificate.row_weight.max,
        _numbers(guarantee.to_dict()),
    )


def gaussian_entries(allot: Allotment) -> dict[str, Any]:
    """Return a dict of `mu` and `tradeoff`, JSON values, for the guarantee of an `Allotment` in the currency `exact`.

    {} in other currencies. `tradeoff` is a list of dicts {"alpha", "beta"}.
    """
    if allot.currency != Currency.EXACT:
        return {}
    least = {alpha: tradeoff(alpha, allot.amount, allot.promise.truncation_delta) for alpha in ALPHAS}
    errors = [{"alpha": a, "beta": math.floor(b / LAST_DIGIT) / round(1 / LAST_DIGIT)} for a, b in least.items()]
    return {"mu": math.sqrt(2 * allot.amount), "tradeoff": errors}


def tradeoff(alpha: float, rho: float, cut: float) -> float:
    """Return a lower bound on a test's probability to miss a record, if it takes one for another with `alpha` at most.

    `rho` is the fit's, `cut` the part of delta for the samplers' error; tests are of one neighbour against the other.
    """
    from scipy.special import ndtr, ndtri

    most, factor = min(1.0, alpha + cut), math.exp(SLACK * rho)
    return max(0.0, float(ndtr(ndtri(max(0.0, 1 - most * factor)) - math.sqrt(2 * rho))) / factor - cut)


def _numbers(guarantee: Mapping[str, Any]) -> tuple[float, ...]:
    """Return a tuple of numbers of `guarantee`, a mapping: `mu`, then alpha and beta of each entry of `tradeoff`.

    Or ().
    """
    errors = [number for each in guarantee.get("tradeoff", ()) for number in (each["alpha"], each["beta"])]
    return tuple([guarantee["mu"], *errors] if "mu" in guarantee else errors)


def _charge(record: Mapping[str, Any], currency: Currency) -> Charge:
    """Return the `Charge` of `record`, a mapping of JSON, in a currency.

    ValueError for an amount or sensitivity not above 0.
    """
    charge = Charge.from_dict(record, currency)
    beside = charge.kind == FIRST and currency == Currency.SAMPLED  # whose rho is among the details
    figures = [
        charge.details.get("rho") if beside else charge.amount,
        *(charge.sensitivity[notion] for notion in PRICED),
    ]
    if not all(is_number(figure) and figure > 0 for figure in figures) or not isinstance(charge.kind, str):
        raise ValueError("a charge's amount or sensitivity is no positive number")
    return charge


def contradictions(stated: Stated, prices: Mapping[str, float | None]) -> Iterator[str]:
    """Yield a sentence for each disagreement between a certificate's numbers; nothing if they agree.

    Args:
        stated: The guarantee and charges.
        prices: The certificate's entry `prices`, {step: epsilon, or None for unknown}.
    """
    budget, allot = stated.budget, stated.allot
    most = budget.epsilon * (1 + TOLERANCE)
    if allot.currency in IN_RHO:
        found = IN_RHO[allot.currency](allot.amount, stated.slack)
        if found > most:
            yield (
                f"rho {allot.amount:.9g} at delta {budget.delta:g} is epsilon {found:.6g}, above the stated "
                f"{budget.epsilon:g}"
            )
    elif allot.currency != Currency.SAMPLED and allot.amount > most:
        yield f"epsilon {allot.amount:.9g} was reserved, above the stated {budget.epsilon:g}"
    wanted = _numbers(gaussian_entries(allot))
    rounded = np.array([LAST_DIGIT * (i > 0 and i % 2 == 0) for i in range(len(wanted))])  # each beta, rounded down
    if len(stated.gaussian) != len(wanted) or not np.allclose(stated.gaussian, wanted, rtol=TOLERANCE, atol=rounded):
        yield f"its mu or its errors of tests do not follow from rho {allot.amount:.9g}"
    spent, unit = stated.spending.spent(), allot.currency.unit
    if spent > Fraction(allot.amount) * (1 + Fraction(TOLERANCE)):
        yield f"its charges come to {unit} {float(spent):.9g}, above the {allot.amount:.9g} that it says was reserved"
    price = prices.get(str(budget.neighbours))
    if price is None:
        yield f"it states no price for {budget.neighbours}, which its guarantee is about"
    elif price > most:
        yield f"its price for {budget.neighbours} is epsilon {price:.6g}, above the guaranteed {budget.epsilon:g}"
