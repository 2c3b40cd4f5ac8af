"""INTERNAL: columns of private rows that are dates, moments, times or durations, and their bounds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from stratsynth.data.guess_bins import numeric_keys
from stratsynth.schema.temporal import KINDS, UNITS, Temporal, microseconds

_TYPES = {
    "date": pa.types.is_date,
    "datetime": pa.types.is_timestamp,
    "time": pa.types.is_time,
    "duration": pa.types.is_duration,
}
_DAY = UNITS["day"]
MOST_YEARS = 40
"""Largest number of years with a bin each; a longer range has 20 bins."""


def moment_kind(kind: pa.DataType, texts: Mapping[str, int]) -> str | None:
    """Return "date", "datetime", "time" or "duration", by Arrow type `kind` or the spelling of `texts`; or None.

    None if not temporal. One text of all may be spelt otherwise, as a word for a missing value.
    """
    for found, is_kind in _TYPES.items():
        if is_kind(kind):
            return found
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)):
        return None
    spelt = [text for text in texts if ":" in text or text.count("-") > 1 or "day" in text]
    if not spelt or len(spelt) < len(texts) - 1:
        return None
    for found in KINDS:
        if all(microseconds(found, text) is not None for text in spelt):
            return "datetime" if found == "date" and any(":" in text for text in spelt) else found
    return None


def temporal(
    kind: str, stored: pa.DataType, texts: Mapping[str, int], *, missing: bool, as_text: bool
) -> tuple[Temporal, list[str]]:
    """Return (`Temporal` column of this `kind`, "date" or such, with rounded bounds; notes) for `texts` (text -> rows).

    `stored` is the Arrow type; `missing`: some row has no value; `as_text`: drawn as text.
    """
    read = {text: microseconds(kind, text) for text in texts}
    words = [text for text, value in read.items() if value is None]
    counts = {value: texts[text] for text, value in read.items() if value is not None}
    keys: dict[str, Any] = {"missing": missing, "not_applicable": words[0] if words else None}
    keys |= {"dtype": "string"} if as_text else {}
    if kind == "time":
        return Temporal(kind="time", lower="00:00:00", upper="23:59:59", bins=24, **keys), []
    if kind == "duration":
        unit = next(unit for unit, size in UNITS.items() if all(value % size == 0 for value in counts))
        found, notes = numeric_keys({v / UNITS[unit]: count for v, count in counts.items()}, whole=True)
        return Temporal(kind="duration", unit=unit, **found, **keys), notes
    days = all(value % _DAY == 0 for value in counts)
    notes = ["moments are in UTC"] if kind == "datetime" and getattr(stored, "tz", None) else []
    if kind == "datetime" and days:  # dates that were stored as moments come back as moments
        kind, keys["dtype"] = "date", "string" if words or as_text else "datetime"
    first, last = (_EPOCH + dt.timedelta(microseconds=value) for value in (min(counts), max(counts)))
    lower, upper, bins = _bounds(first, last)
    if kind == "date":
        return Temporal(kind="date", lower=lower.date(), upper=upper.date(), bins=bins, **keys), notes
    top = dt.datetime.combine(upper, dt.time(23, 59, 59))
    return Temporal(kind="datetime", lower=lower, upper=top, bins=bins, **keys), notes


_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - moments are in UTC, and carry no zone


def _bounds(first: dt.datetime, last: dt.datetime) -> tuple[dt.datetime, dt.datetime, int]:
    """Return (first day, last day, number of bins) of the years around two datetimes; of months within two years."""
    years = last.year - first.year + 1
    if years > 2:
        return (
            first.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0),
            last.replace(month=12, day=31),
            years if years <= MOST_YEARS else 20,
        )
    start = first.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    after = (last.replace(day=1) + dt.timedelta(days=32)).replace(day=1)
    months = (last.year - first.year) * 12 + last.month - first.month + 1
    return start, after - dt.timedelta(days=1), months if months > 2 else 20
