"""Dates, moments, times of day and durations: integers of a unit, between public bounds, counted in bins.

Everything that holds for a numeric column of whole numbers holds for these: a bin is an interval, a value outside the
bounds is clipped or missing, and within a bin the shape is as declared. Only reading and writing of values
differ. Moments with a zone are read in UTC, and drawn without one; a finer value is rounded down to its unit.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

from stratsynth.checks import is_number, quoted_value
from stratsynth.schema import checks
from stratsynth.schema.columns import Numeric
from stratsynth.schema.text import MAX_TEXT, number

KINDS = ("date", "datetime", "time", "duration")
UNITS = {
    "day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000,
    "second": 1_000_000, "millisecond": 1_000, "microsecond": 1,
}  # fmt: skip
"""Length of each unit, in microseconds."""

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - moments are in UTC, and carry no zone
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,12})?)?) ?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,12}))?)?", re.ASCII)
_DAYS = re.compile(r"(?:(-?\d{1,9}) days?,? ?)?([+-]?)(?:(\d{1,9}):(\d\d)(?::(\d\d)(?:\.(\d{1,12}))?)?)?", re.ASCII)
_DAY = UNITS["day"]


@dataclass(frozen=True, kw_only=True)
class Temporal(Numeric):
    """A column of dates, moments, times of day or durations.

    Bounds, edges and spikes are given as text in ISO form, as Python's or pandas' own objects, or, for durations, as
    numbers of `unit`; they are kept as whole numbers of `unit`, since 1970 or midnight. In files, a duration is a
    number of seconds, or text such as "2 days 03:30:00" or "03:30:00".
    """

    lower: Any = field(kw_only=False)
    """Earliest or smallest value that a record can have."""

    upper: Any = field(kw_only=False)
    """Latest or largest value that a record can have."""

    edges: Any = None
    """Ends of the bins, as for numbers."""

    spikes: Any = ()
    """Values that many records have exactly: each is a bin of its own."""

    kind: str = "date"
    """Kind of the values: "date", "datetime", "time" or "duration"."""

    unit: str = ""
    """Unit of counting: "day", "hour", "minute", "second", "millisecond" or "microsecond"; if empty, a day for dates,
    and a second otherwise."""

    integer: bool = True
    """Always True: values are whole numbers of the unit."""

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, KINDS)
        checks.choice("unit", self.unit, ("", *UNITS))
        object.__setattr__(self, "unit", self.unit or ("day" if self.kind == "date" else "second"))
        if self.kind == "date" and self.unit != "day":
            checks.refuse('dates are counted in days; take kind = "datetime"')
        if self.kind == "time" and self.unit == "day":
            checks.refuse("times of day are counted in hours, minutes, seconds or less")
        if self.integer is not True:
            checks.refuse("integer is true of dates, times and durations")
        for key in ("lower", "upper"):
            object.__setattr__(self, key, self._count(key, getattr(self, key)))
        for key in ("edges", "spikes"):
            given = getattr(self, key)
            if key == "spikes" or given is not None:
                object.__setattr__(self, key, tuple(self._count(key, item) for item in checks.items(key, given)))
        super().__post_init__()

    def quantity(self, text: str) -> float | None:
        """Return the whole units that `text` spells, since 1970 or midnight or as a length; None if it spells none."""
        found = microseconds(self.kind, text)
        return None if found is None else float(found // UNITS[self.unit])

    def spell(self, value: float) -> str:
        """Return text for `value`, a number of this column's units: a moment in ISO form; a duration's number."""
        if self.kind == "duration":
            return super().spell(value)
        moment = _EPOCH + dt.timedelta(microseconds=int(value) * UNITS[self.unit])
        if self.kind == "time":
            return moment.time().isoformat()
        return moment.date().isoformat() if self.unit == "day" else moment.isoformat(" ")

    def spell_range(self, low: float, top: float) -> str:
        """Return the name of the bin from `low` to `top`, numbers of units, such as `2024-01-01..2024-01-31`."""
        if self.kind == "duration":
            return super().spell_range(low, top)
        return f"{self.spell(low)}..{self.spell(top)}"

    def _count(self, key: str, value: Any) -> float:
        """Return the bound `value` (number, text, date) as a whole number of units; SchemaError on `key` for others."""
        if is_number(value) and float(value).is_integer():
            return int(value)  # as `replace` gives it, and durations are declared
        found = self.quantity(_text(value))
        if found is None:
            example = {"date": "2024-12-31", "datetime": "2024-12-31 23:59:59", "time": "23:59:59", "duration": "90"}
            checks.refuse(f"{key} must be a {self.kind} such as {example[self.kind]!r}, not {quoted_value(value)}")
        return int(found)

    def _check_dtype(self) -> None:
        if self.dtype is not None and not isinstance(self.dtype, str):
            checks.refuse(f"dtype must be a text, not {quoted_value(self.dtype)}")
        object.__setattr__(self, "dtype", self.dtype or ("string" if self.not_applicable else self.kind))
        moments = ("datetime",) if self.kind == "date" else ()
        checks.choice("dtype", self.dtype, (self.kind, *moments, "string"))
        low, top = {"time": (0, _DAY), "duration": (-math.inf, math.inf)}.get(self.kind, (_FIRST, _LAST))
        if not low <= self.lower * UNITS[self.unit] <= self.upper * UNITS[self.unit] < top:
            span = "one day" if self.kind == "time" else "the years 1 to 9999"
            checks.refuse(f"bounds of a {self.kind} lie within {span}")


EXACT = Context(prec=400)
"""Decimal context of this module, so that nobody's settings of decimals change the value of a text."""
_FIRST = (dt.date.min - _EPOCH.date()).days * _DAY
_LAST = (dt.date.max - _EPOCH.date()).days * _DAY + _DAY


def microseconds(kind: str, text: str) -> int | None:
    """Return the microseconds that `text` spells as a `kind`, since 1970 or midnight, or a duration's; None: none.

    Fractions of a microsecond are cut off.
    """
    text = text.strip(" \t")
    if len(text) > MAX_TEXT:
        return None
    if kind == "duration":
        return _duration(text)
    return _clock(text) if kind == "time" else _moment(text)


def _moment(text: str) -> int | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    try:
        days = (dt.date.fromisoformat(match[1]) - _EPOCH.date()).days
    except ValueError:  # the 30th of February
        return None
    clock = 0 if match[2] is None else _clock(match[2])
    if clock is None:
        return None
    zone = match[3] or "Z"
    ahead = 0 if zone == "Z" else int(f"{zone[0]}1") * (int(zone[1:3]) * 60 + int(zone[-2:])) * UNITS["minute"]
    return days * _DAY + clock - ahead


def _clock(text: str) -> int | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    found = _hours(*match.groups())
    return None if found is None or int(match[1]) > 23 else found


def _hours(hours: str, minutes: str, seconds: str | None, fraction: str | None) -> int | None:
    if int(minutes) > 59 or int(seconds or 0) > 59:
        return None
    whole = int(hours) * UNITS["hour"] + int(minutes) * UNITS["minute"] + int(seconds or 0) * UNITS["second"]
    return whole + int((fraction or "0")[:6].ljust(6, "0"))


def _duration(text: str) -> int | None:
    if number(text) is not None:
        try:
            exact = EXACT.multiply(EXACT.create_decimal(text), UNITS["second"])
        except ArithmeticError:  # an exponent beyond all that decimals have: no text may raise
            return None
        return math.floor(exact) if exact.copy_abs() < 2**63 else None
    match = _DAYS.fullmatch(text)
    if match is None or (match[1] is None and match[3] is None):
        return None
    clock = 0 if match[3] is None else _hours(*match.groups()[2:])
    if clock is None:
        return None
    return int(match[1] or 0) * _DAY + (-clock if match[2] == "-" else clock)


def _text(value: Any) -> str:
    """Return the bound `value` as text: dates and times in ISO form, durations in seconds; "" for other objects."""
    if isinstance(value, dt.timedelta):
        return str(Decimal(value // dt.timedelta(microseconds=1)) / UNITS["second"])
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return value if isinstance(value, str) else ""
