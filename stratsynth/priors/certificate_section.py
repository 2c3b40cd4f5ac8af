"""Hashes that tie the section `prior` of a certificate to the files it was read from, and to the ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from stratsynth.digest import digest
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.files.outside import sha256

FILE = "file"
"""Key of a file's SHA-256, by which anybody with the public file can check that it is the one that was read."""


def file_hash(data: object) -> dict[str, str]:
    """Return a dict {FILE: SHA-256} of `data` if that is the path of a file; {} for frames and for folders.

    Raises:
        UsageError: A file that has become unreadable.
    """
    if not isinstance(data, str | PathLike) or Path(data).is_dir():
        return {}
    try:
        return {FILE: sha256(Path(data))}
    except (OSError, ValueError, StratsynthError) as error:
        raise UsageError(f"prior: {Path(data).name} cannot be read any more ({type(error).__name__}).") from None


def section_digest(section: Mapping[str, Any]) -> str:
    """Return a digest, a text, of `section`, a certificate's mapping on a prior, whatever the order of its keys."""
    return digest(json.dumps(section, sort_keys=True))
