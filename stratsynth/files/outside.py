"""JSON documents that somebody else may have written, and the hashes of files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.errors import ReleaseError
from stratsynth.files.reading import open_regular

if TYPE_CHECKING:
    from io import BufferedReader

MAX_VALUES = 2**22
"""Largest number of values in a JSON document: Python takes up to 100 bytes for one of two bytes in a file."""
_MARKS = (b",", b":", b"[", b"{")


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON document, bytes `content` in UTF-8.

    ValueError for anything wrong with the document, its depth and size included.
    """
    if sum(content.count(mark) for mark in _MARKS) > MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES:,} values")
    try:
        document = json.loads(content.decode("utf-8"))
        if b"\\u" in content:  # escapes can spell half a character, which no text holds and nothing can print
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return document


def sha256(path: Path) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal.

    Raises:
        OSError: No such file, or an unreadable one.
        ReleaseError: The path is no regular file.
    """
    with open_regular(path, error=ReleaseError) as file:
        return hashlib.file_digest(cast("BufferedReader", file), "sha256").hexdigest()
