"""Types of values in synthetic tables: typed levels instead of texts, and the exact types that `stored` declares.

`dtype` says what kind of value a column has, `stored` in which type tables hold it. Only the schema decides, never the
rows, so that no row changes a type.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias
from zoneinfo import ZoneInfo

from stratsynth.checks import quoted_value
from stratsynth.errors import SchemaError
from stratsynth.schema import checks
from stratsynth.schema.text import INFINITE, MISSING, meaning, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stratsynth.schema.columns import Categorical, Numeric


TypedValue: TypeAlias = str | float | Decimal | None
"""Value of a level in a synthetic table, a whole number or truth value too; None for null."""
MIXED = "mixed"
"""Stored type of texts that stand among numbers in one column of a frame: what spells a number is one."""
NUMBERED, PANDAS, POLARS = "numbered", "pandas", "polars"
FRAMES = (PANDAS, NUMBERED, POLARS)
"""Kinds of frame: pandas; pandas whose columns are named by whole numbers; polars."""

_INTEGERS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
_FLOATS = {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DECIMAL = re.compile(r"decimal128\((\d{1,2}), (\d{1,2})\)")
_TIMES = re.compile(r"(timestamp|duration|time(?=32\[m?s\]|64\[[un]s\])(?:32|64))\[(s|ms|us|ns)(?:, tz=([\w/+:-]+))?\]")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_OFFSET = re.compile(r"[+-]\d\d:\d\d")


def value(column: Categorical, level: str) -> TypedValue:
    """Return the value of a categorical column's `level` in synthetic tables, in its type; None if written as null."""
    kind = column.stored or column.dtype
    if kind in {"string", "category", MIXED}:
        return None if level == MISSING and MISSING not in column.levels else level
    if level in {column.not_applicable, MISSING}:
        return None
    exact = meaning(level)
    if exact is None:
        return INFINITE.get(level)
    if kind in _INTEGERS:
        return int(exact)
    return bool(exact) if kind == "bool" else float(exact) + 0.0 if kind in _FLOATS else exact


def check(column: Categorical) -> None:
    """Raise SchemaError if some level of a categorical column is not told by its value in `dtype` and `stored`."""
    if column.stored is not None:
        check_stored(column)
    kind = column.stored or column.dtype
    if kind in {"string", "category", MIXED}:
        return
    spelt = [meaning(level) for level in column.levels]
    times = Counter(spelt)
    for level, exact in zip(column.levels, spelt, strict=True):
        if level in {column.not_applicable, MISSING} or (kind in _FLOATS and level in INFINITE):
            continue
        if exact is None or not _holds(kind, exact):
            checks.refuse(f'dtype {kind!r} cannot hold level {level!r}; use dtype = "string"')
        if times[exact] > 1:
            checks.refuse(f'dtype {kind!r} cannot tell level {level!r} from another; use dtype = "string"')


def _holds(kind: str, exact: Decimal) -> bool:
    """True if the type `kind`, such as "int8", holds the number `exact` of a level; a float32 need only be in range."""
    if kind in _INTEGERS:
        low, high = span(kind)
        return low <= exact <= high and exact == exact.to_integral_value()
    if kind == "bool":
        return exact in {0, 1}
    if parts := _DECIMAL.fullmatch(kind):
        return abs(exact) < Decimal(10) ** (int(parts[1]) - int(parts[2])) and round(exact, int(parts[2])) == exact
    if kind == "float32":
        return abs(exact) <= _FLOATS[kind]
    return math.isfinite(float(exact)) and meaning(repr(float(exact))) == exact


def span(kind: str) -> tuple[int, int]:
    """Return (smallest, largest) whole number of the integer type `kind`: (0, 255) for "uint8"."""
    bits = _INTEGERS[kind]
    return (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def check_dtype(column: Numeric) -> None:
    """Raise SchemaError if a numeric column's `dtype` is none of its kind, or cannot hold its special codes."""
    checks.choice("dtype", column.dtype, ("int64", "float64", "string"))
    if column.dtype != "int64":
        return
    if not column.integer:
        checks.refuse('dtype "int64" needs integer = true')
    for word in column.special:
        number = column.quantity(word)
        if number is not None and (number != int(number) or abs(number) > 2**53):
            checks.refuse(f'dtype "int64" cannot hold the special code {word!r}; use dtype = "string"')


def check_stored(column: Categorical | Numeric) -> None:
    """Raise SchemaError if a column's `stored` is no type of its `dtype`, or one that its numbers do not fit."""
    kind, dtype = column.stored, str(column.dtype)
    if not isinstance(kind, str):
        checks.refuse(f'stored must be a text, such as "float32", not {quoted_value(kind)}')
    known = {
        "int64": tuple(_INTEGERS),
        "float64": (*_FLOATS, "decimal128(P, S)"),
        "category": (*_INTEGERS, *_FLOATS, "bool"),
        "string": (MIXED,),
        "datetime": ("timestamp[UNIT]", "timestamp[UNIT, tz=ZONE]"),
        "duration": ("duration[UNIT]",),
        "time": ("time32[s]", "time32[ms]", "time64[us]", "time64[ns]"),
    }.get(dtype, ())
    times = _TIMES.fullmatch(kind)
    form = f"{times[1]}[UNIT{', tz=ZONE' * bool(times[3])}]" if times else kind
    form = "decimal128(P, S)" if _DECIMAL.fullmatch(kind) else form
    if kind not in known and form not in known:
        words = f"be one of {', '.join(known)}" if known else "be left out"
        checks.refuse(f"stored must {words}, where the dtype is {dtype}, not {kind!r}")
    if times:
        _check_times(column, times)
    elif dtype in {"int64", "float64"} and hasattr(column, "lower"):
        _check_numbers(column, kind)


def _check_numbers(column: Any, kind: str) -> None:
    """Raise SchemaError for a column's bounds or special codes that the type `kind` of numbers does not hold."""
    words = [column.quantity(word) for word in column.special]
    if any(word in INFINITE for word in column.special) and kind not in _FLOATS:
        checks.refuse(f"stored {kind!r} has no infinity, which `special` names")
    if (parts := _DECIMAL.fullmatch(kind)) and not column.integer and not (column.digits or 0) <= int(parts[2]):
        checks.refuse(f"stored {kind!r} has fewer decimals than digits = {column.digits}")
    for bound in (column.lower, column.upper, *(word for word in words if word is not None)):
        exact = Decimal(bound)
        exact = round(exact, int(parts[2])) if parts else exact
        if kind != "float64" and not _holds(kind, exact):
            checks.refuse(f"stored {kind!r} cannot hold {column.spell(bound)}")


def _check_times(column: Any, times: re.Match[str]) -> None:
    """Raise SchemaError for a column's `stored` type, `times` its match of `_TIMES`, of unfit zone or unit."""
    fine = {"millisecond": 3, "microsecond": 6}.get(column.unit, 0)
    if _UNITS[times[2]] < fine:
        checks.refuse(f"stored {times[0]!r} is coarser than the column's unit, the {column.unit}")
    per_unit = {"day": 86_400, "hour": 3_600, "minute": 60}.get(column.unit, 1)
    most = max(abs(column.lower), abs(column.upper)) * per_unit * 10 ** (_UNITS[times[2]] - fine)
    if most >= 2**63:
        checks.refuse(f"stored {times[0]!r} cannot hold the bounds; take a coarser unit")
    if times[3] and not _OFFSET.fullmatch(times[3]):
        try:
            ZoneInfo(times[3])
        except (ValueError, OSError, KeyError):
            checks.refuse(f"stored {times[0]!r}: there is no time zone {times[3]}")


def check_frame(frame: object, names: Sequence[str]) -> None:
    """Raise SchemaError if the text `frame` is none of FRAMES, or NUMBERED and one of `names` is no whole number."""
    if not isinstance(frame, str) or frame not in FRAMES:
        raise SchemaError(f"frame must be one of {', '.join(FRAMES)}")
    if frame == NUMBERED and not all(_WHOLE.fullmatch(name) for name in names):
        raise SchemaError(f'frame "{NUMBERED}" is for columns that are all named by whole numbers')


def parts_of(stored: str) -> tuple[str, ...]:
    """Return a tuple of the parts of a type `stored`: ("timestamp", "us", "UTC"), ("decimal128", "10", "2")."""
    if exact := _DECIMAL.fullmatch(stored):
        return ("decimal128", exact[1], exact[2])
    times = _TIMES.fullmatch(stored)
    return (stored,) if times is None else (times[1], times[2], times[3] or "")


def figure(value: Any) -> float:
    """Return the number in `value`, a cell of a small table, or that its text spells (`number`); NaN if none."""
    if isinstance(value, str | bool):
        found = number(str(value))
        return math.nan if found is None else found
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
