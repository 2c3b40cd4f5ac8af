"""Files that somebody else may have written: JSON documents, small public tables (or frames), and hashes of files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.errors import ReleaseError, UsageError
from stratsynth.files.reading import open_regular, read_bytes

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


MAX_BYTES = 16_000_000
"""Largest size of a small public table, in bytes."""


def records(what: str, given: Any, error: type[UsageError] = UsageError) -> list[dict[str, Any]]:
    """Return a list of dicts, column -> value: the lines of a CSV file, or the rows of a frame, `given`; at least one.

    `what` begins the messages of `error`, raised for anything else.
    """
    if isinstance(given, str | os.PathLike):
        found = _read(what, Path(given), error)
    elif hasattr(given, "to_dict") and hasattr(given, "columns"):
        _once(what, [str(column) for column in given.columns], error)
        found = [{str(column): value for column, value in record.items()} for record in given.to_dict("records")]
    else:
        raise error(f"{what}: give a CSV file or a frame, not {type(given).__name__}.")
    if not found:
        raise error(f"{what}: the table holds no lines.")
    for i, record in enumerate(found):
        if None in record or None in record.values():
            raise error(f"{what}: line {i + 2} has not as many fields as the header.")
    return found


def _once(what: str, columns: Sequence[str], error: type[UsageError]) -> None:
    """Refuse, with `error` begun by `what`, a name that is twice in the list `columns`: one would be used silently."""
    if len(set(columns)) < len(columns):
        raise error(f"{what}: the table has two columns of one name; keep the one that is meant.")


def level(value: Any) -> str:
    """Return a value as the text of a level: a real that is whole without ".0", as frames have 1.0 for 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _read(what: str, path: Path, error: type[UsageError]) -> list[dict[str, Any]]:
    """Return a list of dicts, column -> text, of the CSV file `path`; `error`, opening with `what`, if that fails."""
    try:
        text = read_bytes(path, MAX_BYTES, error=error).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""))
        _once(what, reader.fieldnames or (), error)
        return list(reader)
    except FileNotFoundError:
        raise error(f"{what}: there is no file {path}.") from None
    except (OSError, ValueError, csv.Error) as wrong:  # a text that is not UTF-8 is a ValueError
        raise error(f"{what}: {path} is not a CSV file in UTF-8 ({type(wrong).__name__}).") from None
