"""The hashes that tie a release together: its certificate lists every other file of the folder with its SHA-256.

The certificate is written last and lists no hash of itself, so a signature over it signs the whole release.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.errors import ReleaseError
from stratsynth.files.outside import sha256

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate

CERTIFICATE = "certificate.json"
SIGNATURES = (f"{CERTIFICATE}.sig", f"{CERTIFICATE}.minisig", f"{CERTIFICATE}.asc")
"""Files of signatures over the certificate, made after it: by ssh-keygen, minisign and GnuPG."""
LARGEST_FOLDER = 10_000
"""Largest number of files that a folder is searched for."""


def listed_files(folder: Path) -> dict[str, str]:
    """Return a mapping from relative path to SHA-256 of every file of a release folder but certificate.json."""
    return {name: sha256(folder / name) for name in names(folder) if name != CERTIFICATE}


def names(folder: Path) -> list[str]:
    """Return a sorted list of the paths, relative to it, of all files below a release folder; links are not followed.

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
    """Yield the paths of all files below a folder; links to folders are not followed."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        else:
            yield path


def schema_of(certificate: Certificate) -> str:
    """Return the SHA-256, a text, that a certificate states of the model's schema: by default that of the table's."""
    return certificate.schema.model_sha256 or certificate.schema.sha256


def check_files(folder: Path, certificate: Certificate, wanted: Sequence[str]) -> None:
    """Refuse the files `wanted` (relative paths) of a folder that differ from the hashes in the certificate.

    A certificate that lists none refuses none.

    Raises:
        ReleaseError: A file that is missing, unreadable, not listed, or different from the listed one.
    """
    listed, written = certificate.files, f"; it was written by stratsynth {certificate.software.stratsynth}"
    if listed is None:
        return
    for name in wanted:
        if not os.path.lexists(folder / name):
            raise ReleaseError(f"{folder}: {name} is missing{written}.")
        try:
            same = sha256(folder / name) == listed.get(name)
        except OSError as error:
            raise ReleaseError(f"{folder}: {name} cannot be read ({error.strerror}).") from None
        if not same:
            raise ReleaseError(
                f"{folder}: {name} is not the file that {CERTIFICATE} lists: it was damaged or exchanged. Get the "
                "release again from whoever made it."
            )
