"""The certificate: what was guaranteed, and everything needed to recompute it."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth import __version__
from stratsynth.accounting.prices import prices
from stratsynth.errors import ReleaseError
from stratsynth.files.whole import read_json
from stratsynth.mechanisms import Mechanism, Public, adaptive, describe
from stratsynth.stratified import Groupwise, Stratified
from stratsynth.stratified.layout import Layout

if TYPE_CHECKING:
    from stratsynth.accounting.account import Account
    from stratsynth.data.table import Table

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
    mechanism: Mechanism[Any], table: Table, account: Account, *, private: bool, unverified: Sequence[str] = ()
) -> dict[str, Any]:
    """Every key of the published format. `charges` is complete: the guarantee can be recomputed from it.

    In the paths of charges the levels of a merge are joined by `|`; `strata.merged` gives its name in other files.

    `private` says whether the noise was unpredictable.
    """
    budget, allot = account.budget, account.allot
    public = Public(table.schema, table.declared_size, budget.neighbours)
    layout = mechanism.layout(public, budget) if isinstance(mechanism, Groupwise) else None
    warnings = [PUBLIC] * table.public + [SEEDED] * (not private)
    return {
        "format": FORMAT,
        "created": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "software": {"stratsynth": __version__, "python": platform.python_version()},
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
        "prices": prices(account.spending, budget, allot, mechanism),
        "ledger": account.standing.to_dict(),
        "strata": _strata(mechanism, table, layout),
        "weights": _weights(mechanism, layout),
        "unprotected": _unprotected(mechanism, table),
        "schema": {
            "sha256": table.schema.sha256,
            "origin": table.schema.origin,
            "reviewed_by": table.schema.reviewed_by,
        },
        "mechanism": _inner(mechanism),
        "composition": COMPOSITION,
        "charges": [charge.to_dict() for charge in account.spending.charges],
    }


def _unit(table: Table) -> Any:
    unit = table.schema.unit
    return unit if isinstance(unit, str) else {"column": unit.column, "max_rows": unit.max_rows}


def _strata(mechanism: Mechanism[Any], table: Table, layout: Layout | None) -> dict[str, Any]:
    """Plain strata have three keys; merges, small groups and budgets of their own add theirs."""
    if layout is None or not isinstance(mechanism, Groupwise):
        return {"by": [], "cells": 1, "merged": []}
    record = {"by": list(mechanism.by), "cells": table.schema.cells(mechanism.by), "merged": layout.merged()}
    groups = mechanism.groups
    if groups:
        record["groups"] = len(layout.strata)
        record["small"] = {
            "policy": groups.small,
            "threshold": groups.threshold,
            "below": {stratum.label: why for stratum, why in layout.small.items()},
        }
    if mechanism.budgets is not None:
        record["epsilon"] = {stratum.label: epsilon for stratum, epsilon in layout.epsilons.items()}
    return record


def _weights(mechanism: Mechanism[Any], layout: Layout | None) -> dict[str, Any]:
    if layout is None or not isinstance(mechanism, Groupwise):
        return {"source": "none", "citation": None}
    total = layout.resolved.total
    return {**mechanism.weights.describe(), **({} if total == 1 else {"renormalised_from": total})}


def _unprotected(mechanism: Mechanism[Any], table: Table) -> list[str]:
    """What was disclosed without noise."""
    own = mechanism.unprotected if isinstance(mechanism, Groupwise) else ()
    return [*(["declared_size"] if table.declared_size is not None else []), *own]


def _inner(mechanism: Mechanism[Any]) -> dict[str, Any]:
    """The mechanism that was fitted: strata and weights have their own keys."""
    inner = describe(mechanism.mechanism if isinstance(mechanism, Stratified) else mechanism)
    return {**inner, "adaptive": True} if adaptive(mechanism) else inner


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
