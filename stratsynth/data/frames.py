"""pandas columns as Arrow arrays, in one form for all types that a value may be stored in.

pandas chooses a column's type by all its rows: one null makes whole numbers real, one text makes objects
of datetimes. A row's values must not depend on that choice, since one other row can change it. So every
number is read as the nearest real number of 64 bits, every truth value as "true" or "false", every moment without
its zone, in UTC, every duration as its seconds, and objects one by one, by their exact class: what is of a subclass,
which could run code of its own, is null.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa

from stratsynth.schema.values import seconds, spelt


def declared(kind: Any) -> pa.DataType:  # noqa: PLR0911 - a table of cases
    """Return the Arrow type that a column of the pandas dtype `kind` is read as; an opaque one if it is unreadable.

    The type of a category is that of its categories.
    """
    if isinstance(kind, pd.CategoricalDtype):
        return pa.dictionary(pa.int64(), declared(kind.categories.dtype))
    if isinstance(kind, pd.ArrowDtype):
        return _canonical(kind.pyarrow_dtype)
    if _is_number(kind):
        return pa.float64()
    if isinstance(kind, pd.DatetimeTZDtype):
        return pa.timestamp(kind.unit)
    if isinstance(kind, np.dtype) and kind.kind in "Mm":
        made = pa.timestamp if kind.kind == "M" else pa.duration
        return made(np.datetime_data(kind)[0])
    if isinstance(kind, (pd.StringDtype, pd.BooleanDtype)) or (isinstance(kind, np.dtype) and kind.kind in "Ob"):
        return pa.string()
    return pa.opaque(pa.null(), kind.name.split("[")[0], "pandas")


def own_types(frame: pd.DataFrame) -> dict[str, str]:
    """INTERNAL. Mapping from a frame's column to its type, for drafts: "int64" (whole), "ordered", "any" (objects)."""
    found: dict[str, str] = {}
    for name, kind in frame.dtypes.items():
        if isinstance(kind, pd.CategoricalDtype):
            found |= {str(name): "ordered"} if kind.ordered else {}
        elif pd.api.types.is_integer_dtype(kind):
            found[str(name)] = "int64"
        elif not isinstance(kind, pd.StringDtype):
            found[str(name)] = "any"  # objects and truth values are read as text, and need not be
    return found


def to_arrow(series: pd.Series) -> pa.Array | pa.ChunkedArray:
    """Return the pandas column `series` as an Arrow array of the type `declared`; null where a value is unreadable."""
    kind = series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.int64)
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, mask=codes < 0), to_arrow(series.cat.categories.to_series())
        )
    if isinstance(kind, pd.ArrowDtype):
        found = pa.array(series.array)
        return found.cast(_canonical(found.type), safe=False)
    if _is_number(kind):
        return pa.array(series.to_numpy(np.float64, na_value=np.nan), from_pandas=True)
    kept = declared(kind)
    if pa.types.is_timestamp(kept):
        plain = series.dt.tz_convert(None) if isinstance(kind, pd.DatetimeTZDtype) else series
        return pa.array(plain.to_numpy().astype(f"=M8[{kept.unit}]"), from_pandas=True)
    if pa.types.is_duration(kept):
        return pa.array(series.to_numpy().astype(f"=m8[{kept.unit}]"), from_pandas=True)
    return _objects(series.to_numpy(object)) if pa.types.is_string(kept) else pa.nulls(len(series), pa.string())


def _is_number(kind: Any) -> bool:
    """True if the pandas dtype `kind` is of numpy numbers up to 64 bits, or pandas' numbers with nulls."""
    if isinstance(kind, np.dtype):
        return kind.kind in "iuf" and kind.itemsize <= 8
    return kind.name in _MASKED


_MASKED = {f"{kind}{bits}" for kind in ("Int", "UInt", "Float") for bits in (8, 16, 32, 64)}


def _canonical(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pa.float64()
    return pa.string() if pa.types.is_boolean(kind) else kind


def _objects(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return an array of objects, `values`, as an Arrow array of texts, each by its exact class; null stays null."""
    if {type(value) for value in values} <= _TEXTS:
        try:
            return pa.array(values, pa.string(), from_pandas=True)
        except (pa.ArrowException, UnicodeError):  # a number, or text that is not Unicode
            pass
    return pa.array([_text(value) for value in values], pa.string())


_TEXTS = {str, float, type(None), type(pd.NA), type(pd.NaT)}
"""Classes whose columns convert at once, with the result of `_text` on each value, if at all."""


def _text(value: object) -> str | None:
    """Return `value` as text if its class is known; None for null, other classes, and text that is not Unicode."""
    spell = _SPELT.get(type(value))
    try:
        return None if spell is None else spell(value)
    except (UnicodeError, OverflowError, ValueError):
        return None


def _number(value: Any) -> str | None:
    """Return a whole or real number `value` of any class as the text of a float; None for NaN."""
    number = float(value)
    return spelt(number) if number == number else None  # noqa: PLR0124 - NaN


def _moment(value: dt.datetime) -> str | None:
    """Return the moment `value` as text in UTC, without its zone; None if the zone is of an unknown library."""
    if value.tzinfo is not None:
        if type(value.tzinfo).__module__.split(".")[0] not in _ZONES:
            return None
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return _shortest(value.isoformat(" "))


_ZONES = {dt.timezone.__module__, ZoneInfo.__module__, "pytz", "dateutil"}


def _shortest(text: str) -> str:
    """Return the `text` of a moment without trailing zeros of its fraction, and without midnight, as of a date."""
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.removesuffix(" 00:00:00")


def _numpy_moment(value: np.datetime64) -> str | None:
    if np.isnat(value):
        return None
    coarse = np.datetime_data(value.dtype)[0] in {"h", "m"}  # numpy would leave out minutes or seconds
    return _shortest(str(value.astype("M8[s]") if coarse else value).replace("T", " "))


def _length(value: dt.timedelta) -> str | None:
    """Return `value`, a timedelta or pandas Timedelta, as text of its seconds, in its unit's digits; None for null."""
    if isinstance(value, pd.Timedelta):
        return _numpy_length(value.to_timedelta64())
    return seconds(value // dt.timedelta(microseconds=1), 6)


def _numpy_length(value: np.timedelta64) -> str | None:
    """Return the numpy duration `value` as its seconds' text; None for null, months, years and under a nanosecond."""
    unit, step = np.datetime_data(value.dtype)
    if np.isnat(value) or unit not in _SECONDS | _DIGITS:
        return None
    return seconds(int(value.astype(np.int64)) * step * _SECONDS.get(unit, 1), _DIGITS.get(unit, 0))


_SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


_SPELT: Mapping[type, Callable[[Any], str | None]] = {
    str: lambda value: value.encode().decode(),
    np.str_: lambda value: str.encode(value).decode(),
    bytes: bytes.decode,
    np.bytes_: bytes.decode,
    bool: lambda value: "true" if value else "false",
    np.bool_: lambda value: "true" if value else "false",
    **dict.fromkeys(
        (int, float, np.float16, np.float32, np.float64, *(np.dtype(kind).type for kind in "bhilqBHILQ")), _number
    ),
    Decimal: lambda value: None if value.is_nan() else str(value),
    dt.datetime: _moment,
    pd.Timestamp: lambda value: _shortest((value if value.tz is None else value.tz_convert(None)).isoformat(" ")),
    np.datetime64: _numpy_moment,
    dt.timedelta: _length,
    pd.Timedelta: _length,
    np.timedelta64: _numpy_length,
    dt.date: lambda value: value.isoformat(),
    dt.time: lambda value: _shortest(value.isoformat()),
}
"""Spelling of values by exact class."""
