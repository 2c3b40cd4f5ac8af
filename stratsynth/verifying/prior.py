"""Check that a certificate's section `prior` is the one that the fit was made with.

A ledger's reservation holds the digest of that section, and the section the hashes of the files that the prior was read
from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.errors import ReleaseError
from stratsynth.files.outside import sha256
from stratsynth.priors.certificate_section import FILE, section_digest
from stratsynth.priors.prior import KEPT, ROWS
from stratsynth.release.certificate import read_record
from stratsynth.release.hashes import CERTIFICATE
from stratsynth.release.limits import KEY
from stratsynth.verifying.verdict import Notes


def check_prior(given: Sequence[Path], record: Mapping[str, Any], notes: Notes) -> None:
    """Add a finding to `notes` unless a certificate's `record`, a mapping, says that its prior is unprotected.

    Else a check. Each of the paths `given`, files or folders, is compared with the hashes of the prior; a path without
    a prior is a finding too.
    """
    section = record.get("prior")
    if section is None:
        notes.findings += [f"{path.name} was given as its prior, and certificate.json names none." for path in given]
        return
    named = [section["citation"], *(table["citation"] for table in section.get("tables", ()))]
    said = "\n".join(map(str, record.get(KEY, ())))
    if not all(str(citation) in said for citation in named):
        notes.findings.append(
            "certificate.json does not name its prior where it says what is not protected: one of the two was changed."
        )
    for path in given:
        _compare(path, section, notes)
    if not given:
        notes.unchecked.append("the prior's files: give them with --prior, to see that they are those that were read")


def _compare(path: Path, section: Mapping[str, Any], notes: Notes) -> None:
    """Add a finding to `notes` if `path`, a file or release folder, is unreadable or not that of a prior's `section`.

    Else a check passed. `section` is the certificate's mapping; without a hash of a file or release in it, an entry in
    `unchecked`.
    """
    listed = {part.get(FILE) for part in (section, *section.get("tables", ()))} - {None}
    release = path.is_dir()
    if release and "release" not in section and FILE in section:
        notes.findings.append(f"{path} is a folder, and the prior was read from a file.")
        return
    if not listed or (release and "release" not in section):
        notes.unchecked.append(f"{path}: the certificate has no hash of a prior that is a frame or a folder of files")
        return
    try:
        found = sha256(path / ROWS if release else path)
        kept = read_record(path) if release else {}
    except (OSError, ReleaseError) as error:
        notes.findings.append(f"{path.name} cannot be compared with the prior: {error}.")
        return
    if release and section.get("release") != {key: kept[key] for key in KEPT if key in kept}:
        notes.findings.append(
            f"certificate.json's statements on the release that was its prior are not those of {path.name}."
        )
    elif found in listed:
        notes.checked.append(f"{path.name} is what the prior was read from, by its hash.")
    else:
        notes.findings.append(f"{path.name} is not what the prior was read from: its hash is another.")


def check_reserved(lines: Sequence[Mapping[str, Any]], record: Mapping[str, Any], notes: Notes) -> None:
    """Compare the certificate's prior with the one in the ledger's reservations; add the outcome to `notes`.

    Args:
        lines: Reservations that may be this fit's, mappings of a ledger's lines.
        record: Certificate, a mapping.
        notes: Collects the sentences.
    """
    section = record.get("prior")
    wanted = None if section is None else section_digest(section)
    reserved = {line.get("prior") for line in lines}
    if wanted not in reserved:
        notes.findings.append(
            f"{CERTIFICATE} names another prior than the ledger's reservation was made with, or says other things of "
            "it: one of the two was changed."
        )
    elif len(reserved) > 1:
        notes.unchecked.append(
            "that the prior is this fit's: it went on after an interruption, as others of its charges may have, which "
            "were reserved with other priors"
        )
    elif wanted is not None:
        notes.checked.append(
            "The certificate's section on the prior is the one that the ledger's reservation was made with."
        )
