"""Whether the files of a release folder are those that its certificate lists, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stratsynth.errors import ReleaseError, UsageError
from stratsynth.files.reading import sha256
from stratsynth.mechanisms.prepared import GIVEN
from stratsynth.models.files import made_of_prior, mixed_by
from stratsynth.release.hashes import CERTIFICATE, SIGNATURES, hashes_of, names, schema_of
from stratsynth.release.limits import KEY
from stratsynth.release.stated import ROW_WEIGHT, Stated
from stratsynth.schema import Schema
from stratsynth.strata import label
from stratsynth.verifying.verdict import Notes
from stratsynth.weights.sources import SOURCES


def check_folder(folder: Path, record: Mapping[str, Any], stated: Stated, notes: Notes) -> None:
    """Hashes, files that are missing, files that are not part of the release; then the schema, and strata by it."""
    try:
        listed, present = hashes_of(record), names(folder)
    except (ValueError, OSError, ReleaseError) as error:
        notes.findings.append(f"The folder or its list of files cannot be relied on: {error}")
        return
    if listed is not None:
        _compare(folder, listed, present, notes)
    elif "conversion" in record:
        notes.findings.append("certificate.json lists no hashes of files, as its version does: they were taken out.")
    else:
        notes.unchecked.append(
            "that model, tables and report are those that were made: an older version wrote the certificate, which "
            "lists no hashes of files"
        )
    _schema(folder, record, stated, notes)
    _prior(folder, record, notes)
    _shares(folder, record, stated, notes)
    for name in SIGNATURES:
        if name in present:
            notes.unchecked.append(
                f"the signature {name}: check it with the tool that made it, as docs/verifying.md says"
            )


def _prior(folder: Path, record: Mapping[str, Any], notes: Notes) -> None:
    """A model that is made of the rows of a prior goes with a certificate that names it."""
    try:
        made = made_of_prior(folder / "model")
    except (ReleaseError, OSError):
        return  # its hash says so, and loading it
    if made and not isinstance(record.get("prior"), dict):
        notes.findings.append(
            "The model is made of the rows of a prior, and certificate.json names none: it was taken out."
        )


def _shares(folder: Path, record: Mapping[str, Any], stated: Stated, notes: Notes) -> None:
    """A model that mixes groups which are no strata goes with a certificate that says by whose shares of what."""
    try:
        found = mixed_by(folder / "model")
    except (ReleaseError, OSError):
        return  # its hash says so, and loading it
    weights, strata = record["weights"], record["strata"]["by"]
    if found is not None and not any(charge.path for charge in stated.spending.charges):
        if weights.get("source") not in SOURCES:
            notes.findings.append(
                "The model mixes groups by shares of theirs, and certificate.json names none: they were taken out."
            )
        elif not strata and weights.get("by") != list(found):
            notes.findings.append(
                f"The model mixes groups by {' x '.join(found)}, and certificate.json names shares of others."
            )
    elif "by" in weights:
        notes.findings.append("certificate.json names shares of groups that are no strata, and the model mixes none.")


def _compare(folder: Path, listed: Mapping[str, str], present: list[str], notes: Notes) -> None:
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
    """Whether this is a file with this hash, and not a link to one, which is no part of a copy of the folder."""
    try:
        return not path.is_symlink() and sha256(path) == wanted
    except (OSError, ReleaseError):
        return False


def _schema(folder: Path, record: Mapping[str, Any], stated: Stated, notes: Notes) -> None:
    try:
        schema = Schema.from_toml(folder / "model" / "schema.toml")
    except UsageError as error:
        notes.findings.append(f"model/schema.toml is damaged: {error}")
        return
    if schema.sha256 == schema_of(record):
        notes.checked.append("model/schema.toml is the schema that the certificate states.")
        _strata(schema, record, stated, notes)
        _public(schema, record, stated, notes)
        _weight(schema, record, stated, notes)
    else:
        notes.findings.append(
            "model/schema.toml is not the schema that certificate.json states: levels may stand for others."
        )


def _public(schema: Schema, record: Mapping[str, Any], stated: Stated, notes: Notes) -> None:
    """Where some columns alone are protected: which are not, as the schema has it, and that a reader is told first."""
    named, before = stated.budget.public, len(notes.findings)
    listed = set(map(str, record["unprotected"]))
    if (not listed.issuperset(GIVEN)) if named else GIVEN[0] in listed:
        notes.findings.append("certificate.json's public columns do not go with what it lists as unprotected.")
    if not named:
        return
    if not any(", ".join(named) in str(sentence) for sentence in record.get(KEY, ())):
        notes.findings.append("certificate.json does not name the public columns where it says what is not protected.")
    if set(named) != set(schema.public):
        notes.findings.append("certificate.json's public columns are not those of its schema.")
    if not {name for charge in stated.spending.charges for s in charge.path for name in s.columns} <= set(named):
        notes.findings.append("Charges were made in strata of a protected column, between which an attribute moves.")
    if next((notice["kind"] for notice in record.get("notices", ())), "") != "public_columns":
        notes.findings.append("certificate.json does not say first which columns are not protected.")
    if len(notes.findings) == before:
        notes.checked.append(f"NOT PROTECTED are the columns {', '.join(named)}, as the schema declares.")


def _weight(schema: Schema, record: Mapping[str, Any], stated: Stated, notes: Notes) -> None:
    """Sensitivities grow with the largest weight of a row, so that the schema and the certificate must agree on it."""
    said = record.get(ROW_WEIGHT, {}).get("column")
    if (schema.row_weight.column, schema.row_weight.most) != (said, stated.weight):
        notes.findings.append(
            f"certificate.json says that a row counts at most {stated.weight:,}, and model/schema.toml that it counts "
            f"at most {schema.row_weight.most:,}, or they name different columns of weights."
        )
    elif said is not None:
        notes.checked.append(f"Rows count as {said} says, at most {stated.weight:,}, and tables were priced for that.")


def _strata(schema: Schema, record: Mapping[str, Any], stated: Stated, notes: Notes) -> None:
    """Charges add up as a maximum over strata only where these are groups of people: by declared columns and levels."""
    by, paths = set(record["strata"]["by"]), dict.fromkeys(charge.path for charge in stated.spending.charges)
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
        notes.checked.append(f"Strata that were charged are groups by {' x '.join(record['strata']['by'])}.")
