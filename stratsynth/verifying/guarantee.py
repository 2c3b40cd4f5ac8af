"""Recompute epsilon, delta and every price from the charges of a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import IN_RHO, Allotment, Currency, Neighbours
from stratsynth.accounting.charges import FIRST, Spending
from stratsynth.accounting.conversion import CONVERSIONS
from stratsynth.accounting.prices import Worst, prices
from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.checks import is_number
from stratsynth.release.consistency import TOLERANCE, Stated, contradictions
from stratsynth.release.page.measured import named_path
from stratsynth.strata import label
from stratsynth.verifying.verdict import Notes

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate

CLOSE = 1e-7
"""Relative tolerance between a stated price and the recomputed one."""


def check_guarantee(certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Recompute epsilon, delta and prices of a certificate from its charges, `stated`; add the outcome to `notes`.

    The outcome: a finding for each disagreement, or checks passed.
    """
    if not certificate.private:
        notes.findings.append(f"The release promises nothing: {certificate.warning or 'it is stamped NOT PRIVATE.'}")
    wrong = list(contradictions(stated, certificate.prices))
    notes.findings += [f"certificate.json contradicts itself: {why}." for why in wrong]
    _conversion(certificate, stated, notes)
    if not wrong:
        _epsilon(stated, notes)
        _prices(certificate.prices, stated, notes)
        _strata(certificate, stated, notes)
    if certificate.unverified:
        notes.unchecked.append(f"what rests on somebody's word: {', '.join(certificate.unverified)}")
    if certificate.prior is not None:
        notes.unchecked.append(
            "that the rows and tables of the prior were public, or are those of the release that it names"
        )


def _conversion(certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` if a certificate's formula is not that of the currency `stated`; if none, note that."""
    named = certificate.conversion
    if not named:
        notes.unchecked.append(
            "by which theorem epsilon was worked out: an older version wrote the certificate, which names none; the "
            "one of this version was used"
        )
    elif named != CONVERSIONS[stated.allot.currency]:
        notes.findings.append(
            f"certificate.json names another conversion than the one that {stated.allot.currency} is converted by."
        )


def _epsilon(stated: Stated, notes: Notes) -> None:
    """Add to `notes` a check passed, epsilon of the reserved amount `stated`, or a finding if it is above that stated.

    A finding too for wrong steps on samples or claims.
    """
    budget, allot, spent = stated.budget, stated.allot, float(stated.spending.spent())
    source = CONVERSIONS[allot.currency]["source"]
    wrong = _steps(stated) if allot.currency == Currency.SAMPLED else _claims(stated)
    if wrong:
        notes.findings.append(wrong)
        return
    found = _reserved(stated)
    if found > budget.epsilon * (1 + TOLERANCE):
        notes.findings.append(
            f"The reserved amount converts to epsilon {found:.6g}, above the stated {budget.epsilon:g}."
        )
        return
    number = sum(charge.times for charge in stated.spending.charges)
    # pure epsilon holds with delta 0
    guaranteed = 0.0 if allot.currency == Currency.PURE else budget.delta
    unit = "" if budget.rows == 1 else f" Charges are for all of the {budget.rows} rows that a {budget.unit} may have."
    notes.checked.append(
        f"{number:,} charges come to {allot.currency.unit} {spent:.9g} (sum along a path, "
        f"maximum over the strata of a split), of {allot.amount:.9g} reserved; that is epsilon {found:.9g} at delta "
        f"{guaranteed:g}, and {budget.epsilon:g} is stated. By: {source}.{unit}"
    )


def _reserved(stated: Stated) -> float:
    """Return the epsilon, a number, of the reserved amount in `stated`, at its delta without the samplers' share."""
    allot = stated.allot
    if allot.currency in IN_RHO:
        return IN_RHO[allot.currency](allot.amount, stated.slack)
    if allot.currency == Currency.SAMPLED:
        return epsilon_sampled(
            allot.noise or 0.0,
            allot.rate or 0.0,
            int(allot.amount),
            stated.slack,
            stated.budget.neighbours,
            allot.first,
        )
    return allot.amount


def _steps(stated: Stated) -> str:
    """Return a sentence on stated steps on samples (DP-SGD) that are not as reserved; "" if they are."""
    allot = stated.allot
    charges = stated.spending.charges
    kept = all(
        (c.details.get("noise"), c.details.get("rate")) == (allot.noise, allot.rate) for c in charges if c.kind != FIRST
    ) and math.isclose(math.fsum(c.details["rho"] for c in charges if c.kind == FIRST), allot.first, rel_tol=TOLERANCE)
    whole = float(allot.amount).is_integer() and allot.rate is not None and allot.rate <= 1
    return (
        "" if kept and whole else "A step on samples has another noise or rate than was reserved, or is no whole one."
    )


def _claims(stated: Stated) -> str:
    """Return a sentence on stated claims whose deltas are missing or add up to too much; "" if neither.

    They add up along paths as epsilons do.
    """
    if stated.allot.currency != Currency.CLAIMED:
        return ""
    deltas: list[Any] = [charge.details.get("delta") for charge in stated.spending.charges]
    if not all(is_number(delta) and delta >= 0 for delta in deltas):
        return "A claim of third-party code states no delta."
    claims = [replace(charge, amount=delta) for charge, delta in zip(stated.spending.charges, deltas, strict=True)]
    spent = float(Spending(stated.budget.neighbours, claims).spent())
    return (
        "The claims' deltas add up to more than the stated delta." if spent > stated.budget.delta * (1 + 1e-9) else ""
    )


def _prices(said: Mapping[str, Any], stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` if the prices `said`, {step: epsilon or None}, do not follow from the charges `stated`.

    Else a check passed. Of an older certificate, one of several readings has to fit.
    """
    factors = [c.factor(stated.budget.neighbours.priced, Neighbours.REPLACE) for c in stated.spending.charges]
    if stated.worst is not None and max(factors, default=Fraction(1)) > stated.worst.factor * (1 + Fraction(TOLERANCE)):
        notes.findings.append(
            "certificate.json states a worst case (`dearest`) that is cheaper than the questions that were asked."
        )
        return
    found = [prices(stated.spending, stated.budget, allot, worst) for allot, worst in _possible(stated)]
    if not any(_prices_agree(said, each) for each in found):
        step = next((s for s, price in found[0].items() if not _close(said.get(s), price)), "a step that is none")
        notes.findings.append(
            f"certificate.json states the price of {step} as {_figure(said.get(step))}; its charges give "
            f"{_figure(found[0].get(step))}."
        )
        return
    notes.checked.append(f"The prices of other notions of neighbour ({', '.join(said)}) follow from the charges.")
    if stated.adaptive and stated.worst is None:
        notes.unchecked.append(
            "the worst case of the fit, on which its prices for moves and exchanges rest: an older version did not "
            "write it down; the prices are right for one that is possible"
        )


def _possible(stated: Stated) -> list[tuple[Allotment, Worst | None]]:
    """Return a list of (Allotment, Worst or None): those `stated`, or all that an older certificate may mean."""
    allots, spent = [stated.allot], float(stated.spending.spent())
    if not stated.reserved and 0 < spent < stated.allot.amount:
        allots.append(replace(stated.allot, amount=spent))
    worsts: list[Worst | None] = [stated.worst]
    if stated.adaptive and stated.worst is None:
        # an older version stored no worst case: any of the possible ones may justify the stated prices
        worsts = [Worst(factor, only_strata) for factor in (4, 2, 1) for only_strata in (False, True)]
    return [(allot, worst) for allot in allots for worst in worsts]


def _prices_agree(said: Mapping[str, Any], found: Mapping[str, float | None]) -> bool:
    """True if each price in `said`, {step: epsilon or None}, is close to that in `found`, the prices computed again."""
    return set(said) <= set(found) and all(_close(price, found[step]) for step, price in said.items())


def _close(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else math.isclose(one, other, rel_tol=CLOSE)


def _figure(price: float | None) -> str:
    return "unknown" if price is None else f"epsilon {price:.6g}"


def _strata(certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` for each stratum charged above its own budget, if strata have one; else a check passed.

    Budgets are the certificate's, charges those `stated`.
    """
    own = certificate.strata.epsilon
    if not own:
        return
    before = len(notes.findings)
    for name, spent in _spent_in_strata(certificate, stated):
        if name not in own:
            notes.findings.append(f"Stratum {name} was charged, and has no budget among those stated.")
        elif spent > own[name] * (1 + TOLERANCE):
            notes.findings.append(
                f"Stratum {name} was charged epsilon {spent:.6g}, above its own budget of {own[name]:g}."
            )
    if len(notes.findings) == before:
        notes.checked.append(f"The charges in each of {len(own):,} strata are within that stratum's own budget.")


def _spent_in_strata(certificate: Certificate, stated: Stated) -> Iterator[tuple[str, float]]:
    """Yield (label, epsilon spent) of each stratum of a certificate with charges, `stated`, everybody's included."""
    charges = stated.spending.charges
    for stratum in dict.fromkeys(charge.path[0] for charge in charges if charge.path):
        way = [charge for charge in charges if not charge.path or charge.path[0] == stratum]
        spent = float(Spending(stated.budget.neighbours, way).spent())
        convert = IN_RHO.get(stated.allot.currency)
        epsilon = spent if convert is None else convert(spent, stated.slack)
        yield label(named_path((stratum,), certificate)), epsilon
