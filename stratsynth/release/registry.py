"""A release's record for the OpenDP deployments registry: from its certificate, and from facts a person gives.

Missing facts are asked for by name.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from stratsynth.accounting.budget import IN_RHO, Currency
from stratsynth.accounting.conversion import CONVERSIONS
from stratsynth.certificate import Certificate, SchemaStated
from stratsynth.errors import UsageError
from stratsynth.files.outside import sha256
from stratsynth.models import Returns
from stratsynth.release.hashes import CERTIFICATE
from stratsynth.release.limits import disclosed
from stratsynth.release.page import words
from stratsynth.release.release import Release
from stratsynth.report.numbers import listed
from stratsynth.schema import Numeric, Schema, Temporal
from stratsynth.schema.counted_tables import CountedTables

SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
PRODUCTS = {
    Returns.ROWS: "Synthetic data",
    Returns.ESTIMATES: "Summary statistics",
    Returns.PREDICTIONS: "Machine learning model",
    Returns.TABLES: "Synthetic data",
}
VARIANTS = {
    Currency.ZCDP: "Zero-concentrated DP",
    Currency.EXACT: "Gaussian DP",
    Currency.PURE: "Pure DP",
    Currency.SAMPLED: "Approximate DP",
    Currency.CLAIMED: "Approximate DP",
}


@dataclass(frozen=True)
class Person:
    """Facts that only a person knows. Every field but the last is required."""

    name: str | None = None
    """Name of the data product."""
    slug: str | None = None
    """End of the record's address."""
    curator: tuple[str, ...] = ()
    """Publishers of the data product."""
    use: str | None = None
    """Intended use."""
    region: str | None = None
    """Region that the data describe, or whose laws apply."""
    published: str | None = None
    """Day of publication, as YYYY-MM-DD."""
    author: tuple[str, ...] = ()
    """Authors of the record."""
    sector: str | None = None
    """Sector, one of the registry's words; None for no entry."""

    def check(self) -> None:
        """Raise UsageError for missing facts, all by name, and a slug, day or sector unknown to the registry."""
        missing = [f"--{f.name}" for f in fields(self) if f.name != "sector" and not getattr(self, f.name)]
        if missing:
            raise UsageError(
                f"the registry wants what no certificate knows; give {', '.join(missing)}. See certificate --help."
            )
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(self.slug)):
            raise UsageError("--slug is the end of an address: small letters, digits and hyphens.")
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(self.published), re.ASCII) or not _is_date(str(self.published)):
            raise UsageError("--published is a day, as YYYY-MM-DD; day and month may be 01 where they are unknown.")
        if self.sector is not None and self.sector not in SECTORS:
            raise UsageError(f"--sector must be one of: {', '.join(SECTORS)}.")

    def refuse_any(self) -> None:
        """Refuse every fact that is set, with a UsageError that names the first: no registry record is wanted."""
        given = [f"--{f.name}" for f in fields(self) if getattr(self, f.name)]
        if given:
            raise UsageError(f"{given[0]} goes with --registry.")


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def registry_record(folder: Path, person: Person) -> str:
    """Return a draft record of tier 3 of the registry of deployments, as YAML text.

    Args:
        folder: A release.
        person: The facts that no certificate has, a `Person`.

    Raises:
        UsageError: Missing facts, by name; or a release that is not private.
        ReleaseError: A folder that is no release, or a damaged one.
    """
    person.check()
    release = Release.load(folder)
    certificate = release.statement
    if not certificate.private:
        raise UsageError(
            f"{folder} promises nothing ({certificate.warning or 'NOT PRIVATE'}): there is no record of it."
        )
    return "\n".join(_yaml(_document(folder, release, person))) + "\n"


def _document(folder: Path, release: Release, person: Person) -> dict[str, Any]:
    """Return the registry's record, a dict of JSON values: facts of `person`, and of the release saved in `folder`."""
    certificate = release.statement
    return {
        "url_slug": person.slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": person.name,
                "data_curators": list(person.curator),
                "description": _description(release),
                "intended_use": person.use,
                "data_product_type": PRODUCTS[release.model.returns],
                "data_product_region": person.region,
                "publication_date": person.published,
                **({} if person.sector is None else {"data_product_sector": person.sector}),
            },
            **_protection(release),
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "One machine, run by whoever holds the rows, adds the noise. This machine, its "
                "randomness and whoever runs it are trusted.",
                "release_type": "One release",
                "release_type_details": words.account(certificate),
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": _composition(certificate),
                "post_processing": "Models are fitted to the answers, and rows, estimates or predictions come from the "
                f"models. Shares that combine groups: {words.weights(certificate)}",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _preparation(certificate.schema),
                "mechanisms": _mechanisms(certificate),
            },
            "administrative": {
                "notes": f"Made from certificate.json, sha256 {sha256(folder / CERTIFICATE)}; `stratsynth verify` "
                "recomputes it.",
                "registry_authors": list(person.author),
            },
        },
    }


def _description(release: Release) -> str:
    """Return a sentence on a release: its kind, columns, mechanism and groups."""
    certificate, schema = release.statement, release.model.schema
    by = certificate.strata.by
    of = f"of {len(schema.names)} columns ({', '.join(schema.names)})"
    if isinstance(schema, CountedTables):
        own = [", ".join(table.names) for table in (schema.linked.parent, schema.linked.child)]
        of = "({}: {}; {}: {})".format(*(text for pair in zip(schema.linked.names, own, strict=True) for text in pair))
    strata = f" in {words.groups(certificate)} groups by {listed(by)}" if by else ""
    called = words.CALLED[release.model.returns].cited
    return f"A {called} {of}, made by the mechanism {certificate.mechanism.name}{strata}."


def _protection(release: Release) -> dict[str, Any]:
    """Return the record's dict entries `dp_variant` and `privacy_loss`: notion, unit, epsilon, delta of a release."""
    certificate = release.statement
    guarantee, currency = certificate.guarantee, Currency(certificate.guarantee.currency)
    unit, exchanged = words.unit(certificate), certificate.neighbours == "replace"
    data = "pairs of tables" if isinstance(release.model.schema, CountedTables) else "tables"
    step = f"one {unit} is exchanged for any other" if exchanged else f"one {unit} is added or removed"
    if named := ", ".join(certificate.public_columns):
        step = f"the values of one {unit} in the columns other than {named} change"
    none = words.price(certificate.neighbours, None)
    others = [f"{words.STEPS.get(s, s)}: {none if p is None else f'{p:.6g}'}" for s, p in certificate.prices.items()]
    return {
        "dp_variant": {
            "variant_name": VARIANTS[currency],
            "data_domain": _domain(release.model.schema),
            "unprotected_quantities": " ".join(disclosed(certificate).values()) or "None was declared.",
        },
        "privacy_loss": {
            "privacy_unit": certificate.unit if isinstance(certificate.unit, str) else certificate.unit.column,
            "privacy_unit_details": f"Two {data} are adjacent if {step}.",
            "privacy_parameters": {
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                **({"rho": guarantee.rho} if currency in IN_RHO else {}),
            },
            "privacy_parameters_details": f"Epsilon at this delta, of one {unit}, whether {'; '.join(others)}. "
            f"{CONVERSIONS[currency]['source']}."
            f"{'' if guarantee.mu is None else f' mu is {guarantee.mu:.6g}.'}",
        },
    }


def _domain(schema: Schema) -> str:
    """Return a sentence on all tables that there can be by a schema: columns, with ranges or numbers of levels."""
    if not isinstance(schema, CountedTables):
        return f"Tables of any number of rows with these columns: {'; '.join(_columns(schema))}."
    linked = schema.linked
    parent, child = linked.names
    return (
        f"Pairs of tables of any numbers of rows, linked by {linked.key}. A {parent} has: "
        f"{'; '.join(_columns(linked.parent))}. A {child} has: {'; '.join(_columns(linked.child))}."
    )


def _columns(schema: Schema) -> Iterator[str]:
    """Yield words on each column of a schema: its name, range or number of categories."""
    for name, column in schema.columns.items():
        if isinstance(column, Numeric):
            ends = [
                column.spell(x) if isinstance(column, Temporal) else f"{x:.15g}" for x in (column.lower, column.upper)
            ]
            kind = column.kind if isinstance(column, Temporal) else "number"
            yield f"{name}, a {kind} from {ends[0]} to {ends[1]} in {column.size} categories"
        else:
            yield f"{name}, one of {column.size} categories"


def _composition(certificate: Certificate) -> str:
    conversion = CONVERSIONS[Currency(certificate.guarantee.currency)]
    return (
        f"{certificate.answers} charges, each recorded before anything was read for it: {certificate.composition} "
        "(sequential composition, and parallel composition over disjoint groups). "
        f"{conversion['from']}: {conversion['formula']}; {conversion['source']}."
    )


def _preparation(schema: SchemaStated) -> str:
    reviewed = f", reviewed by {schema.reviewed_by}" if schema.reviewed_by else ""
    return (
        "Values are clipped to declared bounds and put into declared categories, row by row. Columns, levels, bounds "
        f"and groups were declared beforehand; their source: {schema.origin}{reviewed}. Disclosures without noise are "
        "listed as unprotected. The certificate does not state how settings were chosen."
    )


def _mechanisms(certificate: Certificate) -> str:
    """Return sentences on a certificate's mechanism: noise by kind of question, software, unverified claims."""
    kinds = {charge.kind for charge in certificate.charges}
    pure = certificate.guarantee.currency == Currency.PURE
    used = {
        "counts": "discrete Gaussian noise on contingency tables",
        "choose": "the exponential mechanism",
        "total": f"discrete {'Laplace' if pure else 'Gaussian'} noise on clipped sums on an integer grid",
        "minimiser": "discrete Gaussian noise on the minimiser of a sum of losses, rounded to a grid",
        "raw": "third-party code whose claims nobody checked",
    }
    software = ", ".join(f"{name} {version}" for name, version in certificate.software.to_dict().items())
    unverified = f" Unverified: {listed(certificate.unverified)}." if certificate.unverified else ""
    own = "Noise is integers added to integers, never floating point, from the operating system's randomness. "
    own = own if kinds <= {"counts", "choose", "total", "minimiser"} else ""
    asked = listed([used.get(kind, kind) for kind in sorted(kinds)]) or "nothing was asked"
    return f"{certificate.mechanism.name}: {asked}. {own}Timing is not protected. {software}.{unverified}"


def _yaml(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield lines of YAML, behind the text `indent`, of `value`, a mapping of mappings, lists, texts and numbers."""
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield f"{indent}{key}:"
            yield from _yaml(item, f"{indent}  ")
        elif isinstance(item, list):
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {_scalar(each)}" for each in item)
        else:
            yield f"{indent}{key}: {_scalar(item)}"


def _scalar(item: Any) -> str:
    if isinstance(item, float):
        digits, e, power = repr(item).partition("e")
        return digits + (".0" if "." not in digits else "") + e + power  # YAML takes 1e-09 for a text, 1.0e-09 not
    return json.dumps(item, ensure_ascii=False)
