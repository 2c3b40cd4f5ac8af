"""Check that a release folder holds exactly the files its certificate lists, and a schema and model that fit it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.errors import ReleaseError, UsageError
from stratsynth.files.outside import sha256
from stratsynth.mechanisms.prepared import GIVEN
from stratsynth.models.files import made_of_prior, mixed_by
from stratsynth.release.consistency import Stated
from stratsynth.release.hashes import CERTIFICATE, SIGNATURES, names, schema_of
from stratsynth.schema import Schema
from stratsynth.strata import label
from stratsynth.verifying.verdict import Notes
from stratsynth.weights.sources import SOURCES

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate


def check_folder(folder: Path, certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Compare the folder's files, schema, strata, prior and shares with a certificate; add the outcome to `notes`.

    `stated` has its guarantee and charges.
    """
    try:
        listed, present = certificate.files, names(folder)
    except (OSError, ReleaseError) as error:
        notes.findings.append(f"The folder cannot be relied on: {error}")
        return
    if listed is not None:
        _compare(folder, listed, present, notes)
    elif certificate.conversion:
        notes.findings.append("certificate.json lists no hashes of files, as its version does: they were taken out.")
    else:
        notes.unchecked.append(
            "that model, tables and report are those that were made: an older version wrote the certificate, which "
            "lists no hashes of files"
        )
    _schema(folder, certificate, stated, notes)
    _prior(folder, certificate, notes)
    _shares(folder, certificate, stated, notes)
    for name in SIGNATURES:
        if name in present:
            notes.unchecked.append(
                f"the signature {name}: check it with the tool that made it, as docs/verifying.md says"
            )


def _prior(folder: Path, certificate: Certificate, notes: Notes) -> None:
    """Add a finding to `notes` if the folder's model is made of a prior's rows and its certificate names no prior."""
    try:
        made = made_of_prior(folder / "model")
    except (ReleaseError, OSError):
        return  # its hash says so, and loading it
    if made and certificate.prior is None:
        notes.findings.append(
            "The model is made of the rows of a prior, and certificate.json names none: it was taken out."
        )


def _shares(folder: Path, certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` if the groups in the folder's model, and their shares, are not its certificate's.

    Groups are those of the charges `stated`.
    """
    try:
        found = mixed_by(folder / "model")
    except (ReleaseError, OSError):
        return  # its hash says so, and loading it
    weights, strata = certificate.weights, certificate.strata.by
    if found is not None and not any(charge.path for charge in stated.spending.charges):
        if weights.source not in SOURCES:
            notes.findings.append(
                "The model mixes groups by shares of theirs, and certificate.json names none: they were taken out."
            )
        elif not strata and weights.by != tuple(found):
            notes.findings.append(
                f"The model mixes groups by {' x '.join(found)}, and certificate.json names shares of others."
            )
    elif weights.by:
        notes.findings.append("certificate.json names shares of groups that are no strata, and the model mixes none.")


def _compare(folder: Path, listed: Mapping[str, str], present: list[str], notes: Notes) -> None:
    """Compare the files `present`, a list of names in a release folder, with `listed`, {name: SHA-256}.

    Missing, changed and unlisted files are findings in `notes`; without such, a check passed is added.
    """
    before = len(notes.findings)
    notes.findings += [f"{name} is missing." for name in listed if name not in present]
    for name in present:
        if name == CERTIFICATE or name in SIGNATURES:
            continue
        if name not in listed:
            notes.findings.append(f"{name} is not part of the release: it was added later. Keep it beside the folder.")
        elif not _is(folder / name, listed[name]):
            notes.findings.append(f"{name} is not the file that was made: its hash is another.")
    if len(notes.findings) == before:
        notes.checked.append(f"The {len(listed):,} other files are those that certificate.json lists, and no more.")


def _is(path: Path, wanted: str) -> bool:
    """True if `path` is a file with the SHA-256 `wanted`, and no link, whose target a copy of the folder would lack."""
    try:
        return not path.is_symlink() and sha256(path) == wanted
    except (OSError, ReleaseError):
        return False


def _schema(folder: Path, certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Compare the folder's schema with its certificate and the `stated` charges; add the outcome to `notes`."""
    try:
        schema = Schema.from_toml(folder / "model" / "schema.toml")
    except UsageError as error:
        notes.findings.append(f"model/schema.toml is damaged: {error}")
        return
    if schema.sha256 == schema_of(certificate):
        notes.checked.append("model/schema.toml is the schema that the certificate states.")
        _strata(schema, certificate, stated, notes)
        _public(schema, certificate, stated, notes)
        _weight(schema, certificate, stated, notes)
        _unit(schema, certificate, notes)
    else:
        notes.findings.append(
            "model/schema.toml is not the schema that certificate.json states: levels may stand for others."
        )


def _public(schema: Schema, certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` if the public columns that a certificate states are not the schema's, or its text's.

    `stated` has its budget.
    """
    named, before = stated.budget.public, len(notes.findings)
    listed = set(certificate.unprotected)
    if (not listed.issuperset(GIVEN)) if named else GIVEN[0] in listed:
        notes.findings.append("certificate.json's public columns do not go with what it lists as unprotected.")
    if not named:
        return
    if not any(", ".join(named) in sentence for sentence in certificate.not_protected):
        notes.findings.append("certificate.json does not name the public columns where it says what is not protected.")
    if set(named) != set(schema.public):
        notes.findings.append("certificate.json's public columns are not those of its schema.")
    if not {name for charge in stated.spending.charges for s in charge.path for name in s.columns} <= set(named):
        notes.findings.append("Charges were made in strata of a protected column, between which an attribute moves.")
    if next((notice.kind for notice in certificate.notices), "") != "public_columns":
        notes.findings.append("certificate.json does not say first which columns are not protected.")
    if len(notes.findings) == before:
        notes.checked.append(f"NOT PROTECTED are the columns {', '.join(named)}, as the schema declares.")


def _weight(schema: Schema, certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` if a row's largest weight, `stated` in the certificate, is not the schema's.

    Or if the columns of weights differ; else a check passed where rows have weights.
    """
    said = None if certificate.row_weight is None else certificate.row_weight.column
    if (schema.row_weight.column, schema.row_weight.most) != (said, stated.weight):
        notes.findings.append(
            f"certificate.json says that a row counts at most {stated.weight:,}, and model/schema.toml that it counts "
            f"at most {schema.row_weight.most:,}, or they name different columns of weights."
        )
    elif said is not None:
        notes.checked.append(f"Rows count as {said} says, at most {stated.weight:,}, and tables were priced for that.")


def _unit(schema: Schema, certificate: Certificate, notes: Notes) -> None:
    """Add a finding to `notes` if schema and certificate differ in the protected unit, or in the rows it may have."""
    said, declared = (
        f"one {unit}" if isinstance(unit, str) else f"one {unit.column}, of at most {unit.max_rows:,} rows"
        for unit in (certificate.unit, schema.unit)
    )
    if said != declared:
        notes.findings.append(
            f"certificate.json says that the protected unit is {said}, and model/schema.toml that it is {declared}."
        )


def _strata(schema: Schema, certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` if a charge was made in a stratum of other columns or levels, else a check passed.

    Charges are those `stated`; columns are the certificate's, levels the schema's.
    """
    by, paths = set(certificate.strata.by), dict.fromkeys(charge.path for charge in stated.spending.charges)
    wrong = [path for path in paths if path and set(path[0].columns) != by]
    wrong += [
        path
        for path in paths
        for stratum in path
        for column, levels in stratum.items
        if column in schema.columns and not set(levels) <= set(schema.levels(column))
    ]
    if wrong:
        notes.findings.append(
            f"Charges were made in {label(wrong[0])}, which is no stratum of the columns and levels that are declared."
        )
    elif any(paths):
        notes.checked.append(f"Strata that were charged are groups by {' x '.join(certificate.strata.by)}.")
