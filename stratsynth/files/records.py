"""Small public tables of a user, a CSV file or a frame, as one record per line."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stratsynth.errors import UsageError
from stratsynth.files.reading import read_bytes

MAX_BYTES = 16_000_000
"""Largest size of a small public table, in bytes."""


def records(what: str, given: Any, error: type[UsageError] = UsageError) -> list[dict[str, Any]]:
    """Return lines of a CSV file, or rows of a frame, `given`, at least one, as a list of dicts by column.

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
    """Refuse, with `error` that opens with `what`, a column name that occurs twice: one would be used silently."""
    if len(set(columns)) < len(columns):
        raise error(f"{what}: the table has two columns of one name; keep the one that is meant.")


def level(value: Any) -> str:
    """Return a value as the text of a level: a real that is whole without ".0", as frames have 1.0 for 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _read(what: str, path: Path, error: type[UsageError]) -> list[dict[str, Any]]:
    """Return a list of dicts by column, lines of the CSV file `path`; `error`, opening with `what`, if that fails."""
    try:
        text = read_bytes(path, MAX_BYTES, error=error).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""))
        _once(what, reader.fieldnames or (), error)
        return list(reader)
    except FileNotFoundError:
        raise error(f"{what}: there is no file {path}.") from None
    except (OSError, ValueError, csv.Error) as wrong:  # a text that is not UTF-8 is a ValueError
        raise error(f"{what}: {path} is not a CSV file in UTF-8 ({type(wrong).__name__}).") from None
