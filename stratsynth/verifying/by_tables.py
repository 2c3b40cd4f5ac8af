"""Check that tables of everybody by the strata's columns were asked at the stated price and noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Currency
from stratsynth.accounting.charges import POWER
from stratsynth.release.consistency import TOLERANCE, Stated

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate
    from stratsynth.verifying.verdict import Notes


def check_by_tables(certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Add to `notes` a finding if no charge `stated` pays for the certificate's tables by strata, else a check passed.

    A finding too if they cost more than their part of the amount; nothing if it lists none.
    """
    listed, rows = certificate.by_tables, stated.budget.rows ** POWER[Currency.ZCDP]
    if listed is None:
        return
    wanted: dict[str, Any] = {"cliques": listed.tables, "sigma": listed.noise_sd}
    paid = any(
        charge.kind == "counts"
        and not charge.path
        and all(math.isclose(float(charge.details.get(key, 0)), wanted[key], rel_tol=TOLERANCE) for key in wanted)
        and math.isclose(charge.amount, listed.rho * rows, rel_tol=TOLERANCE)
        for charge in stated.spending.charges
    )
    if not paid:
        notes.findings.append("No charge pays for the tables by the strata's columns that certificate.json lists.")
    elif not listed.rho * rows <= stated.allot.amount * listed.share * (1 + TOLERANCE):
        notes.findings.append(
            "The tables by the strata's columns cost more than the part that certificate.json states."
        )
    else:
        notes.checked.append("Tables of everybody by the strata's columns were charged as stated, within their part.")
