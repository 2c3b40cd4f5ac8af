"""Small public tables that a user hands over: a CSV file or a frame, as one record a line."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from stratsynth.errors import UsageError


def records(what: str, given: Any) -> list[dict[str, Any]]:
    """The lines of a CSV file or the rows of a frame, by column; at least one."""
    if isinstance(given, str | os.PathLike):
        found = _read(Path(given))
    elif hasattr(given, "to_dict") and hasattr(given, "columns"):
        found = [{str(column): value for column, value in record.items()} for record in given.to_dict("records")]
    else:
        raise UsageError(f"{what}: give a CSV file or a frame, not {type(given).__name__}.")
    if not found:
        raise UsageError(f"{what}: the table holds no line.")
    return found


def level(value: Any) -> str:
    """A level, or a whole number, as a file writes it: frames hold 1.0 where it says 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            lines: list[dict[str, Any]] = list(csv.DictReader(handle))
    except (OSError, ValueError, csv.Error) as error:  # a text that is not UTF-8 is a ValueError
        raise UsageError(f"{path}: cannot be read as a CSV file in UTF-8 ({type(error).__name__}).") from None
    if any(None in line or None in line.values() for line in lines):
        raise UsageError(f"{path}: every line must have as many fields as the header.")
    return lines
