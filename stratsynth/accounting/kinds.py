"""Numbers and price factors of charges by kind of question, for plans and pages."""

from __future__ import annotations

from collections.abc import Iterable

from stratsynth.accounting.budget import IN_RHO, Currency, Neighbours
from stratsynth.accounting.charges import Charge


def by_kind(charges: Iterable[Charge]) -> dict[str, dict[str, float]]:
    """Return, by kind of question, a dict of `charges`, their number, and `replace`, their largest price factor."""
    found: dict[str, dict[str, float]] = {}
    for charge in charges:
        if charge.currency in (*IN_RHO, Currency.PURE):
            kind = found.setdefault(charge.kind, {"charges": 0, "replace": 0.0})
            times = float(charge.factor(Neighbours.ADD_REMOVE, Neighbours.REPLACE))
            kind["charges"], kind["replace"] = kind["charges"] + charge.times, max(kind["replace"], round(times, 9))
    return found
