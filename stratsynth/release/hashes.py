"""The hashes that tie a release together: its certificate lists every other file of the folder with its SHA-256.

The certificate is written last and lists no hash of itself, so a signature over it signs the whole release.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.errors import ReleaseError
from stratsynth.files.reading import sha256

CERTIFICATE = "certificate.json"
SIGNATURES = (f"{CERTIFICATE}.sig", f"{CERTIFICATE}.minisig", f"{CERTIFICATE}.asc")
"""Files of signatures over the certificate, made after it: by ssh-keygen, minisign and GnuPG."""
LARGEST_FOLDER = 10_000
"""Largest number of files that a folder is searched for."""


def listed_files(folder: Path) -> dict[str, str]:
    """Return name and SHA-256 of every file of a release folder but its certificate, for the certificate."""
    return {name: sha256(folder / name) for name in names(folder) if name != CERTIFICATE}


def names(folder: Path) -> list[str]:
    """Return the relative paths of all files of a release folder, sorted; links are not followed.

    Raises:
        ReleaseError: The folder has more files than any release.
    """
    found = []
    for path in _below(folder):
        found.append(path.relative_to(folder).as_posix())
        if len(found) > LARGEST_FOLDER:
            raise ReleaseError(f"{folder} holds more than {LARGEST_FOLDER:,} files: it is no release.")
    return sorted(found)


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        else:
            yield path


def hashes_of(record: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return a certificate's list of files; None if its version listed none; ValueError if it is no list."""
    found = record.get("files")
    if found is None:
        return None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError("its `files` are no table of names and hashes")
    return found


def schema_of(record: Mapping[str, Any]) -> Any:
    """Return the SHA-256 of the schema in the model's folder: the table's, unless the model has fewer columns."""
    return record["schema"].get("model_sha256", record["schema"]["sha256"])


def check_files(folder: Path, record: Mapping[str, Any], wanted: Sequence[str]) -> None:
    """Refuse files of a release that differ from the list in its certificate; without a list, refuse none.

    Raises:
        ReleaseError: A file that is missing, unreadable, not listed, or different from the listed one.
    """
    try:
        listed = hashes_of(record)
    except ValueError as error:
        raise ReleaseError(f"{folder}: {CERTIFICATE} is damaged: {error}.") from None
    for name in wanted if listed is not None else ():
        if not os.path.lexists(folder / name):
            raise ReleaseError(f"{folder}: {name} is missing{written_by(record)}.")
        try:
            same = sha256(folder / name) == (listed or {}).get(name)
        except OSError as error:
            raise ReleaseError(f"{folder}: {name} cannot be read ({error.strerror}).") from None
        if not same:
            raise ReleaseError(
                f"{folder}: {name} is not the file that {CERTIFICATE} lists: it was damaged or exchanged. Get the "
                "release again from whoever made it."
            )


def written_by(record: Any) -> str:
    """Return the version that wrote a release, to be added to a refusal; empty if its certificate has none."""
    software = record.get("software") if isinstance(record, dict) else None
    version = software.get("stratsynth") if isinstance(software, dict) else None
    return f"; it was written by stratsynth {version}" if isinstance(version, str) else ""
