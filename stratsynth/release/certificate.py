"""The certificate: the guarantee, and everything needed to recompute it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Currency
from stratsynth.accounting.charges import FIRST
from stratsynth.accounting.conversion import CONVERSIONS
from stratsynth.accounting.joined import listed
from stratsynth.accounting.prices import prices
from stratsynth.certificate import FORMAT, Certificate
from stratsynth.digest import digest
from stratsynth.errors import ReleaseError
from stratsynth.files.atomic import read_json
from stratsynth.layout.layout import Layout
from stratsynth.mechanisms import Prepared, describe
from stratsynth.mechanisms.registry import KEY as MECHANISM_WORDS
from stratsynth.mechanisms.registry import stated
from stratsynth.models.mixture import Mixture
from stratsynth.release import limits
from stratsynth.release.consistency import ROW_WEIGHT, contradictions, gaussian_entries, read_stated
from stratsynth.release.coverage import Coverage, Table, covered
from stratsynth.release.declared import (
    Comparison,
    DeclaredFigures,
    agreement,
    comparable,
    is_laplace,
    sizes_of,
    too_close,
)
from stratsynth.release.equivalence import MARGIN
from stratsynth.release.few import small_groups
from stratsynth.release.first import FirstAnswer
from stratsynth.release.hashes import CERTIFICATE
from stratsynth.release.notices import gap_notices, notices
from stratsynth.release.shown import CertificateRecord
from stratsynth.strata import impossible
from stratsynth.version import VERSION

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.accounting.account import FitAccount
    from stratsynth.data.table import PrivateTable
    from stratsynth.driver.private import Counted
    from stratsynth.models import Model
    from stratsynth.questions import NoisyTable

ADDED = 10_000
"""Largest number of charges that are added up whenever a certificate is read; more take seconds, and `verify` adds them
up."""
PUBLIC = "NOT A PRIVATE RELEASE: the data were declared public, and nothing was charged."
SEEDED = "NOT PRIVATE: the noise was seeded, for testing."
FIXED = (
    "unit",
    "record",
    ROW_WEIGHT,
    "neighbours",
    "public_columns",
    "dearest",
    "strata",
    "weights",
    "unprotected",
    "schema",
    "mechanism",
    MECHANISM_WORDS,
    "composition",
    "code_lists",
    "bands",
    "sums",
    "bin_sums",
    "by_tables",
)
"""Keys of the entries that are fixed before the first answer: a ledger's reservation holds their digest, and one of the
prior's."""
COMPOSITION = "sum along a path, maximum over the strata of a split"


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
    """Model, tables and counts of a fit, which its measured numbers of records are computed from."""

    model: Model
    tables: pa.Table
    """Every noisy table and sum."""
    counted: Sequence[Counted]
    """Noisy numbers of records in paid answers."""
    margin: float = MARGIN
    """Relative difference from a declared number that counts as none."""


def certificate(
    prepared: Prepared,
    table: PrivateTable,
    account: FitAccount,
    *,
    private: bool,
    unverified: Sequence[str] = (),
    measured: Measured | None = None,
    tables: Iterable[Table] = (),
    usable: NoisyTable | None = None,
    exact: bool = False,
) -> CertificateRecord:
    """Return the `CertificateRecord` of a fit, a mapping of JSON values; its `charges` are all that were made.

    In the paths of charges the levels of a merge are joined by `|`; `strata.merged` has its name in other files.

    Args:
        prepared: The mechanism, with the strata it declares.
        table: The private table's public facts.
        account: The `FitAccount`, with the charges and the reservation.
        private: True if the noise was unpredictable.
        unverified: Sentences about claims that nobody has proven.
        measured: Measured numbers of records, to be compared with the declared ones; None if nothing is compared.
        tables: The noisy tables: (path of its stratum, columns) of each.
        usable: The answer to the first question; None without one.
        exact: True if rows are raked to exact totals of the private rows.

    Raises:
        MechanismError: Charges in strata that the mechanism does not declare.
    """
    budget, allot, fixed = account.budget, account.allot, fixed_sections(prepared, table, exact)
    first = None if usable is None else FirstAnswer.of(prepared, usable)
    for path in dict.fromkeys(charge.path for charge in account.spending.charges if charge.kind != FIRST):
        prepared.admit(path, frozenset())
    warnings = [PUBLIC] * table.public + [SEEDED] * (not private)
    record = {
        "format": FORMAT,
        "created": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "software": {"stratsynth": VERSION, "python": platform.python_version()},
        "private": not warnings,
        **({"warning": " ".join(warnings)} if warnings else {}),
        "unverified": list(unverified),
        **fixed,
        "guarantee": {
            **({"reserved": allot.amount} if allot.currency.unit == "epsilon" else {}),
            **allot.to_dict(),
            **gaussian_entries(allot),
            "epsilon": budget.epsilon,
            "delta": allot.delta,
            "truncation_delta": budget.truncation_delta,
        },
        "conversion": dict(CONVERSIONS[Currency(allot.currency)]),
        "prices": prices(account.spending, budget, allot, prepared.worst),
        "ledger": account.standing.to_dict(),
        "charges": [charge.to_dict() for charge in listed(account.spending.charges)],
        "first_question": prepared.first.to_dict() if first is None else first.to_dict(),
    }
    record |= _meaning(prepared, Certificate.from_dict(record), measured, covered(prepared, tables), first)
    return CertificateRecord({**record, limits.KEY: limits.sentences(Certificate.from_dict(record))})


def fixed_sections(prepared: Prepared, table: PrivateTable, exact: bool = False) -> dict[str, Any]:
    """Return a dict, a prepared fit's certificate entries that are fixed before the first answer; no empty ones.

    `table` has the private table's public facts; `exact` is True if rows are raked to exact totals of the private rows.
    """
    unit, schema, public = table.schema.unit, table.schema, prepared.budget.public
    return {
        "unit": unit if isinstance(unit, str) else dict(vars(unit)),
        **({"record": table.record} if table.record is not None else {}),
        **_row_weight(table),
        "neighbours": str(prepared.budget.neighbours),
        **({"public_columns": list(public)} if public else {}),
        **({"dearest": dataclasses.asdict(prepared.worst)} if prepared.worst else {}),
        "strata": _strata(table, prepared.strata),
        "weights": _weights(table, prepared),
        "unprotected": [*(["exact_totals"] if exact else []), *prepared.unprotected],
        "schema": {"sha256": schema.sha256, "origin": schema.origin, "reviewed_by": schema.reviewed_by},
        "mechanism": {**describe(prepared.mechanism.fitted), **({"adaptive": True} if prepared.worst else {})},
        **stated(prepared.mechanism.fitted),
        "composition": COMPOSITION,
        **({} if prepared.prior_stated is None else {"prior": prepared.prior_stated}),
        **({"code_lists": [each.to_dict() for each in prepared.code_lists]} if prepared.code_lists else {}),
        **({"bands": [each.to_dict() for each in prepared.bands]} if prepared.bands else {}),
        **({} if prepared.beside.sums is None else {"sums": prepared.beside.sums.to_dict()}),
        **({} if prepared.beside.bin_sums is None else {"bin_sums": prepared.beside.bin_sums.to_dict()}),
        **({} if prepared.beside.by_tables is None else {"by_tables": prepared.beside.by_tables.to_dict()}),
    }


def sections_digest(record: Mapping[str, Any]) -> str:
    """Return the digest, a text, of the entries `FIXED` of `record`, a mapping: a certificate's, or a part of it.

    Of `weights`, `groups` is left out: the sizes that groups of rows follow are decided later, as post-processing.
    """
    fixed = {key: record[key] for key in FIXED if key in record}
    if isinstance(fixed.get("weights"), Mapping):
        fixed["weights"] = {key: value for key, value in fixed["weights"].items() if key != "groups"}
    return digest(json.dumps(fixed, sort_keys=True))


def _meaning(
    prepared: Prepared,
    certificate: Certificate,
    measured: Measured | None,
    known: Coverage | None,
    first: FirstAnswer | None,
) -> dict[str, Any]:
    """Return a dict of entries on a prepared fit's declared and `measured` numbers, coverage, notices, small groups.

    Empty ones are left out. `certificate` has the other sections; `known` is the coverage of the noisy tables, `first`
    the first answer; each may be None.
    """
    margin = MARGIN if measured is None else measured.margin
    declared, found = DeclaredFigures.of(prepared, margin, laplace=is_laplace(certificate)), list[Comparison]()
    how: dict[str, Any] = {}
    if measured is not None and comparable(prepared.public.schema):
        labels = [] if prepared.strata is None else [stratum.label for stratum in prepared.strata.strata]
        sizes = sizes_of(certificate, measured.tables, lambda: measured.model, labels, measured.counted)
        if sizes is not None:
            mixed = isinstance(measured.model, Mixture)
            found = [dataclasses.replace(c, rows=c.share if mixed else None) for c in declared.compared(sizes)]
            how = agreement(declared.test(sizes))
    said = notices(prepared, found, margin, known, close=too_close(prepared, found), first=first)
    gaps = [] if measured is None else [dict(gap) for gap in measured.model.gaps()]
    record = {
        "declared_and_measured": [one.to_dict() for one in found],
        "agreement": how,
        "measured": None if known is None else known.stated().to_dict(),
        "gaps": gaps,
        "notices": [*said, *gap_notices(gaps)],
        "small_groups": small_groups(prepared, found),
    }
    return {key: value for key, value in record.items() if value}


def _row_weight(table: PrivateTable) -> dict[str, Any]:
    """Return the certificate's dict on the row weights of a private table's schema: column, maximum, value if missing.

    Or {}.
    """
    weight = table.schema.row_weight
    if weight.column is None:
        return {}
    return {ROW_WEIGHT: {"column": weight.column, "max": weight.most, "missing": weight.missing}}


def _strata(table: PrivateTable, layout: Layout | None) -> dict[str, Any]:
    """Return the certificate's `strata`, a dict, of the groups in `layout`: `by`, `cells`, `merged`, and more.

    `layout` None is no groups: `by` is empty. The private table has the schema. More are small groups, families,
    budgets of strata.
    """
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


def _weights(table: PrivateTable, prepared: Prepared) -> dict[str, Any]:
    """Return a dict, a prepared fit's certificate entry `weights`: source, citation, share that rules removed.

    The private table has the schema with these rules. If the groups are no strata, `by` has their columns.
    """
    layout = prepared.drawn
    if layout is None:
        return {"source": "none", "citation": None}
    total, record = layout.resolved.total, layout.weights.describe()
    if prepared.strata is None:
        record["by"] = list(layout.by)
    if total != 1:
        record["renormalised_from"] = total
    if forbidden := impossible(table.schema, layout.strata):
        labels = [stratum.label for stratum in layout.strata if stratum in forbidden]
        record["impossible"] = {"strata": labels, "share_removed": layout.resolved.removed}
    return record


def read_certificate(folder: Path) -> CertificateRecord:
    """Return the `CertificateRecord` of a release folder's certificate.json, after a check that its numbers agree.

    Raises:
        ReleaseError: No certificate, a damaged one, or one that was edited: its numbers contradict each other.
    """
    record = read_record(folder)
    certificate, charges = record.statement, record["charges"]
    try:
        stated = read_stated(certificate, charges if len(charges) <= ADDED else [])
        wrong = next(contradictions(stated, certificate.prices), None)
    except (ValueError, OverflowError) as error:  # a charge may be as large as a float can be
        raise ReleaseError(f"{folder}: {CERTIFICATE} is damaged: {error}.") from None
    if wrong is not None:
        raise ReleaseError(
            f"{folder}: {CERTIFICATE} contradicts itself: {wrong}. It was edited; get the release again from whoever "
            "made it, and see `stratsynth verify`."
        )
    return record


def read_record(folder: Path) -> CertificateRecord:
    """Return the `CertificateRecord` of a release folder's certificate.json; its form is checked, its numbers not.

    Raises:
        ReleaseError: No certificate, or one without the form of `stratsynth.certificate`.
    """
    try:
        found = read_json(folder / CERTIFICATE, error=ReleaseError)
    except FileNotFoundError:
        raise ReleaseError(f"{folder} is no release: it has no certificate.json.") from None
    except NotADirectoryError:
        raise ReleaseError(f"{folder} is a file; a release is the folder that holds certificate.json.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ReleaseError(f"{folder}: certificate.json is damaged ({why}).") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ReleaseError(f"{folder}: certificate.json is not a certificate of format {FORMAT}{_written_by(found)}.")
    record = CertificateRecord(found)
    try:
        record.statement  # noqa: B018 - read, so that whoever has the record may rely on its form
    except ValueError as error:
        raise ReleaseError(f"{folder}: certificate.json is damaged: {error}{_written_by(found)}.") from None
    return record


def _written_by(record: object) -> str:
    """Return the end of a refusal, "; it was written by stratsynth VERSION", by a certificate's record.

    "" if unknown.
    """
    software = record.get("software") if isinstance(record, dict) else None
    version = software.get("stratsynth") if isinstance(software, dict) else None
    return f"; it was written by stratsynth {version}" if isinstance(version, str) else ""
