"""Conditions on a column as users write them: levels, labels, numbers, dates and ranges, made into levels.

A release knows a number by its bin alone. So a number names a bin only where the bin holds no other, and a range must
be made of whole bins; anything else is refused with the bins that are meant.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stratsynth.errors import SchemaError, UsageError
from stratsynth.schema.columns import Categorical, Numeric
from stratsynth.schema.text import meaning, number

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema

Value: TypeAlias = str | float | dt.date | dt.time | dt.timedelta
"""A level or its label, a number, a date, a time or a length of time; or a range as text: "20..39", "65..", "20-39"."""
Condition: TypeAlias = Value | Sequence[Value]
"""One value or several of a column; a Python `range` is the whole numbers of it."""
Conditions: TypeAlias = Mapping[str, Condition]
"""Conditions by column."""

_SINGLE = (str, Number, np.bool_, dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)
_RANGES = (re.compile(r"(.*?)\.\.(.*)"), re.compile(r"([\d.]+)-([\d.]+)"))
_SHOWN = 12
"""Largest number of levels that a message lists."""


def levels_of(schema: Schema, name: str, condition: object) -> tuple[str, ...]:
    """Return a tuple of the levels of the schema's column `name` in a user's `condition`: a value, a list or a range.

    Raises:
        SchemaError: No such column or level; or a number or a range that bins cannot tell from others.
        UsageError: A condition of another type, or an empty one.
    """
    column = schema.column(name)
    if isinstance(condition, range) and condition.step == 1 and condition:
        return tuple(_between(column, name, str(condition[0]), str(condition[-1])))
    several: Any = condition if isinstance(condition, Sequence) and not isinstance(condition, str) else (condition,)
    if not several or not all(isinstance(value, _SINGLE) for value in several):
        raise UsageError(f"a condition on {name} is one value or a list of values, such as {example(schema, name)}.")
    found = (level for value in several for level in _named(schema, name, str(value)))
    return tuple(dict.fromkeys(found))


def example(schema: Schema, name: str | None = None) -> str:
    """Return a condition on column `name`, or the schema's first, that holds for this schema, as Python text."""
    column = schema.names[0] if name is None else name
    return repr({column: schema.levels(column)[0]})


def level_of(schema: Schema, name: str, value: object) -> str:
    """Return the one level, a text, of the schema's column `name` that a user's `value` names.

    Refused like a condition of `levels_of`.

    Raises:
        UsageError: Several levels.
    """
    levels = levels_of(schema, name, value)
    if len(levels) != 1:
        raise UsageError(f"one level of {name} is wanted here, such as {example(schema, name)}, not {len(levels):,}.")
    return levels[0]


def _named(schema: Schema, name: str, text: str) -> Sequence[str]:
    """Return a sequence of levels of the schema's column `name` that `text` names: a level, label, number or range.

    SchemaError for none, or for part of a bin.
    """
    column = schema.column(name)
    if text in column.codes:
        return (text,)
    same = [level for level, label in column.labels.items() if label == text and level in column.codes]
    same = same or _of_equal_value(column, text)
    if len(same) == 1:
        return same
    if isinstance(column, Numeric) and (quantity := column.quantity(text)) is not None:
        return (_bin(column, name, quantity),)
    for form in _RANGES:
        if ends := form.fullmatch(text):
            return _between(column, name, ends[1].strip(), ends[2].strip())
    try:
        schema.index(name, text)  # names the group of a code, or the nearest level
    except SchemaError as error:
        raise SchemaError(f"{error}; {_there_are(column)}") from None
    raise AssertionError(name)  # a level is found above


def _of_equal_value(column: Categorical | Numeric, text: str) -> list[str]:
    """Return a list of a column's levels with the number or truth value that `text` spells: "3" for "3.0"."""
    if isinstance(column, Categorical):
        exact = meaning(text)
        return [level for level in column.all_levels if exact is not None and meaning(level) == exact]
    value = column.quantity(text)
    return [word for word in column.words if value is not None and column.quantity(word) == value]


def _bin(column: Numeric, name: str, value: float) -> str:
    """Return the level, a bin of numeric `column`, called `name`, that holds `value` and no other number.

    SchemaError if there is none.
    """
    for level, (low, top) in zip(column.all_levels, column.extents, strict=False):
        if low == value == top:
            return level
        if low <= value <= top:
            raise SchemaError(
                f"column {name} is counted in bins, and {column.spell(value)} is one number of {level!r}: name that, "
                f"or a range of whole bins, such as {_spelt(column, low, top)!r}; {_there_are(column)}"
            )
    ends = f"{column.spell(column.lower)} to {column.spell(column.upper)}"
    raise SchemaError(f"column {name} has numbers from {ends} alone, and no {column.spell(value)}")


def _between(column: Categorical | Numeric, name: str, first: str, last: str) -> Sequence[str]:
    """Return a sequence of levels of `column`, called `name`, from `first` to `last`, texts of values; "" is no end.

    SchemaError for none, or where an end cuts a bin.
    """
    low, high = _end(column, name, first, -math.inf), _end(column, name, last, math.inf)
    if isinstance(column, Categorical):
        numbers = {level: number(level) for level in column.levels if level != column.not_applicable}
        found = [level for level, value in numbers.items() if value is not None and low <= value <= high]
        if not found:
            raise SchemaError(f"column {name} has no level from {first} to {last}; {_there_are(column)}")
        return found
    bins = list(zip(column.all_levels, column.extents, column.breaks[1:], strict=False))
    inside = [level for level, (start, top), _ in bins if low <= start and top <= high]
    touched = [
        (level, start, top)
        for level, (start, top), end in bins
        if start <= high and low <= top and not (start == high and start != top and not column.integer)
    ]
    if inside and inside == [level for level, _, _ in touched]:
        return inside
    if not touched:
        ends_known = f"{column.spell(column.lower)} to {column.spell(column.upper)}"
        raise SchemaError(f"column {name} has numbers from {ends_known} alone, and none in {first}..{last}")
    cut = [repr(level) for level, _, _ in touched if level not in inside]
    nearest = _spelt(column, touched[0][1], touched[-1][2])
    raise SchemaError(
        f"column {name} is counted in bins, and a range from {first or 'the first'} to {last or 'the last'} cuts "
        f"{' and '.join(cut)}; whole bins are {nearest!r}; {_there_are(column)}"
    )


def _end(column: Categorical | Numeric, name: str, text: str, open_end: float) -> float:
    """Return the number that `text`, an end of a range of the `column` called `name`, spells; `open_end` for "".

    SchemaError if it spells none.
    """
    value = open_end if not text else number(text) if isinstance(column, Categorical) else column.quantity(text)
    if value is None:
        raise SchemaError(f"column {name}: {text!r} is no end of a range of its values; {_there_are(column)}")
    return value


def _spelt(column: Numeric, low: float, top: float) -> str:
    """Return text: a range `low` to `top` of a numeric column's whole bins as a user writes it: 20..39.

    A range of reals goes up to the end of the last bin.
    """
    end = top if column.integer or top == column.upper else math.nextafter(top, math.inf)
    return f"{column.spell(low)}..{column.spell(end)}"


def _there_are(column: Categorical | Numeric) -> str:
    """Return words that list a column's first levels or bins, to end a message."""
    known = column.all_levels
    what = "the bins of its numbers" if isinstance(column, Numeric) else "its levels"
    more = f", and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
    return f"{what} are {', '.join(known[:_SHOWN])}{more}"
