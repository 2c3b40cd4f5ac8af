"""Allocation of a sample's rows to groups: numbers that a user gives, or equal ones.

A group is a level for each of some columns. Whatever the numbers, rows within a group follow the model, so
such a sample has no information about the sizes of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stratsynth.checks import is_texts, quoted_value
from stratsynth.errors import UsageError
from stratsynth.files.outside import level, records
from stratsynth.models.mixture import allot
from stratsynth.models.rules import broken
from stratsynth.schema.where import level_of
from stratsynth.strata import crossing

if TYPE_CHECKING:
    import os

    import pandas as pd
    from numpy.random import Generator

    from stratsynth.models import TableModel, Where
    from stratsynth.schema import Schema

ROWS = "rows"
"""Column of the numbers of rows in a table by group."""

RowsByGroup: TypeAlias = "Mapping[Any, int] | pd.DataFrame | str | os.PathLike[str]"
"""Numbers of rows by group: a mapping from levels or tuples of them; a frame with the groups' columns and `rows`; or
such a CSV file."""


def wanted(
    model: TableModel, n_by_group: Any, by: Sequence[str], where: Where, n: int | None = None
) -> list[tuple[Where, int]]:
    """Return a list of (condition, rows), one for each group in `n_by_group` with rows: a mapping, frame or file.

    A condition maps columns to sets of level numbers; `where`, one too, is part of each. `by` are the columns that a
    mapping's keys, levels or tuples of levels, are of. UsageError: a group twice, one without weight in the model, a
    total that is not `n`; None allows any.
    """
    schema, seen, found, total = model.schema, set(), [], 0
    for named, number in _numbers(n_by_group, by):
        levels = tuple((column, _level(schema, column, value)) for column, value in named)
        condition = _both({column: frozenset({schema.index(column, value)}) for column, value in levels}, where)
        if frozenset(levels) in seen:
            raise UsageError(f"n_by_group: {_name(levels)} is there twice.")
        if number and not _possible(model, condition):
            raise UsageError(f"n_by_group: the model gives no weight to {_name(levels)}; there is nothing to draw.")
        seen.add(frozenset(levels))
        total += number
        if number:
            found.append((condition, number))
    if n is not None and n != total:
        raise UsageError(f"n_by_group adds up to {total:,} rows, not {n:,}; leave n out.")
    return found


def balanced(
    model: TableModel, n: int, columns: Sequence[str], where: Where, rng: Generator
) -> list[tuple[Where, int]]:
    """Return a list of (condition, rows), one for each group of `columns` within `where`: equal numbers, `n` in all.

    A condition, as `where`, maps columns to sets of level numbers. Numbers differ by one at most, drawn by `rng`.
    Groups without weight in the model, or that a rule or `where` forbids, get none. If all are such and n is not 0,
    UsageError.
    """
    schema = model.schema
    groups = [
        {column: frozenset(schema.index(column, level) for level in levels) for column, levels in stratum.items}
        for stratum in crossing(schema, _columns("balance", columns))
    ]
    conditions = [condition for condition in (_both(group, where) for group in groups) if _possible(model, condition)]
    if n and not conditions:
        raise UsageError(f"balance: the model gives no weight to any group of {' x '.join(columns)}.")
    numbers = allot(n, np.ones(len(conditions)), rng) if n else np.zeros(len(conditions), dtype=np.int64)
    return [(condition, int(number)) for condition, number in zip(conditions, numbers, strict=True) if number]


def _both(group: Where, where: Where) -> Where:
    """Return one condition, a mapping from column to set of level numbers, that demands both `group` and `where`.

    These are such mappings. Sets are empty where they exclude each other.
    """
    return {**where, **{column: codes & where.get(column, codes) for column, codes in group.items()}}


def _possible(model: TableModel, condition: Where) -> bool:
    """True if the model gives weight to a `condition` that no rule of its schema forbids.

    False if a set in it is empty. It maps columns to sets of level numbers.
    """
    if not all(condition.values()):
        return False
    fixed = {column: np.array(sorted(codes)) for column, codes in condition.items() if len(codes) == 1}
    if fixed and broken(model.schema.restrict(fixed), fixed).any():
        return False
    return model.mass(condition) > 0


def _level(schema: Schema, column: str, value: Any) -> str:
    """Return the text of the level of the schema's `column` that `value` names, as a user has it in `n_by_group`.

    UsageError or SchemaError, opening with `n_by_group`, unless it is one.
    """
    try:
        return level_of(schema, column, value)
    except UsageError as error:
        raise type(error)(f"n_by_group: {error}") from None


def _numbers(given: Any, by: Sequence[str]) -> list[tuple[tuple[tuple[str, Any], ...], int]]:
    """Return a list of (tuple of (column, value) pairs, rows), one a group of `given`: a mapping, frame or CSV file.

    `by` are the columns that a mapping's keys, values or tuples of values, are of. UsageError for other keys, columns
    or numbers.
    """
    if isinstance(given, Mapping):
        names = _columns("by", by)
        if not names:
            raise UsageError("n_by_group: this release has no strata; name the columns of the groups with by=[...].")
        pairs = [(key if isinstance(key, tuple) else (key,), number) for key, number in given.items()]
        if any(len(key) != len(names) for key, _ in pairs):
            raise UsageError(f"n_by_group: each key must be one level of each of {', '.join(names)}.")
        return [(tuple(zip(names, key, strict=True)), _checked_count(number)) for key, number in pairs]
    lines = records("n_by_group", given)
    if ROWS not in lines[0] or len(lines[0]) < 2:
        raise UsageError(f"n_by_group: a table of numbers has the groups' columns and one named {ROWS!r}.")
    return [
        (tuple((column, level(value)) for column, value in line.items() if column != ROWS), _checked_count(line[ROWS]))
        for line in lines
    ]


def _checked_count(number: Any) -> int:
    """Return a group's `number` of rows as an int; UsageError unless it is whole, at least 0 and below 10^15."""
    text = level(number)
    if isinstance(number, bool) or not text.isascii() or not text.isdigit() or len(text) > 15:
        raise UsageError("n_by_group: the number of rows of a group must be a whole number of at least 0.")
    return int(text)


def _columns(what: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return `columns`, a list of names, as a tuple; UsageError, opening with `what`, for a text or anything else."""
    if isinstance(columns, str):
        raise UsageError(f'{what} is a list of columns; write ["{columns}"].')
    if not is_texts(columns):
        raise UsageError(f"{what} is a list of columns, not {quoted_value(columns)}.")
    return tuple(columns)


def _name(levels: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{column}={level}" for column, level in levels)
