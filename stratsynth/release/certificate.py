"""The certificate: what was guaranteed, and everything needed to recompute it."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.prices import prices
from stratsynth.errors import ReleaseError
from stratsynth.files.whole import read_json
from stratsynth.layout.layout import Layout
from stratsynth.mechanisms import Prepared, describe
from stratsynth.version import VERSION

if TYPE_CHECKING:
    from stratsynth.accounting.account import Account
    from stratsynth.data.table import PrivateTable

FORMAT = "stratsynth-certificate/1"
KEYS = (
    "created", "software", "private", "unverified", "unit", "neighbours", "guarantee", "prices", "ledger", "strata",
    "weights", "unprotected", "schema", "mechanism", "composition", "charges",
)  # fmt: skip
"""Every certificate has these."""
PUBLIC = "NOT A PRIVATE RELEASE: the data were declared public, and nothing was charged."
SEEDED = "NOT PRIVATE: the noise was seeded, for testing."
COMPOSITION = "sum along a path, maximum over the strata of a split"


def certificate(
    prepared: Prepared, table: PrivateTable, account: Account, *, private: bool, unverified: Sequence[str] = ()
) -> dict[str, Any]:
    """Every key of the published format. `charges` is complete: the guarantee can be recomputed from it.

    In the paths of charges the levels of a merge are joined by `|`; `strata.merged` gives its name in other files.

    Args:
        prepared: The mechanism, with the strata it declares.
        table: What is publicly known of the table.
        account: What was charged and reserved.
        private: Whether the noise was unpredictable.
        unverified: What nobody has checked, in words.

    Raises:
        MechanismError: Charges in strata that the mechanism does not declare.
    """
    budget, allot, layout = account.budget, account.allot, prepared.strata
    prepared.admit((charge.path, frozenset()) for charge in account.spending.charges)
    warnings = [PUBLIC] * table.public + [SEEDED] * (not private)
    return {
        "format": FORMAT,
        "created": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "software": {"stratsynth": VERSION, "python": platform.python_version()},
        "private": not warnings,
        **({"warning": " ".join(warnings)} if warnings else {}),
        "unverified": list(unverified),
        "unit": _unit(table),
        "neighbours": str(budget.neighbours),
        "guarantee": {
            **allot.to_dict(),
            "epsilon": budget.epsilon,
            "delta": allot.delta,
            "truncation_delta": budget.truncation_delta,
        },
        "prices": prices(account.spending, budget, allot, prepared.worst),
        "ledger": account.standing.to_dict(),
        "strata": _strata(table, layout),
        "weights": _weights(layout),
        "unprotected": [*(["declared_size"] * (table.declared_size is not None)), *prepared.mechanism.unprotected],
        "schema": {
            "sha256": table.schema.sha256,
            "origin": table.schema.origin,
            "reviewed_by": table.schema.reviewed_by,
        },
        "mechanism": {**describe(prepared.mechanism.fitted), **({"adaptive": True} if prepared.worst else {})},
        "composition": COMPOSITION,
        "charges": [charge.to_dict() for charge in account.spending.charges],
    }


def _unit(table: PrivateTable) -> Any:
    unit = table.schema.unit
    return unit if isinstance(unit, str) else {"column": unit.column, "max_rows": unit.max_rows}


def _strata(table: PrivateTable, layout: Layout | None) -> dict[str, Any]:
    """Plain strata have three keys; merges, small groups and budgets of their own add theirs."""
    if layout is None:
        return {"by": [], "cells": 1, "merged": []}
    record = {"by": list(layout.by), "cells": table.schema.cells(layout.by), "merged": layout.merged()}
    if layout.declared:
        record["groups"] = len(layout.strata)
        record["small"] = {
            "policy": layout.declared.small,
            "threshold": layout.declared.threshold,
            "below": {stratum.label: why for stratum, why in layout.small.items()},
        }
    if layout.families:
        record["groups"] = len(layout.strata)
        record["families"] = [list(family) for family in layout.families]
    if layout.own_budgets:
        record["epsilon"] = {stratum.label: epsilon for stratum, epsilon in layout.epsilons.items()}
    return record


def _weights(layout: Layout | None) -> dict[str, Any]:
    if layout is None:
        return {"source": "none", "citation": None}
    total = layout.resolved.total
    return {**layout.weights.describe(), **({} if total == 1 else {"renormalised_from": total})}


def read_certificate(folder: Path) -> dict[str, Any]:
    """The certificate of a release folder."""
    try:
        record = read_json(folder / "certificate.json")
    except FileNotFoundError:
        raise ReleaseError(f"{folder} is no release: it has no certificate.json.") from None
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{folder}: certificate.json is damaged ({type(error).__name__}).") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ReleaseError(f"{folder}: certificate.json is not a certificate of format {FORMAT}{written_by(record)}.")
    lacking = [key for key in KEYS if key not in record]
    if lacking:
        raise ReleaseError(f"{folder}: certificate.json lacks {lacking[0]}.")
    return record


def written_by(record: Any) -> str:
    """Which version wrote a release, to be added to a refusal, where its certificate says so."""
    software = record.get("software") if isinstance(record, dict) else None
    version = software.get("stratsynth") if isinstance(software, dict) else None
    return f"; it was written by stratsynth {version}" if isinstance(version, str) else ""
