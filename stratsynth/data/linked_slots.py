"""The counted tables of parent and child rows: each entry a function of one key's own rows, each sum of integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.schema import Numeric
from stratsynth.schema import counted_tables as tables

if TYPE_CHECKING:
    from stratsynth.schema.bands import Bands
    from stratsynth.schema.linked import ChildCount, LinkedSchema

GRID, MOST = 2**10, 2.0**52
"""Units of a number that is not whole in a sum, and the most of them that one row adds."""

Array = np.ndarray[Any, np.dtype[Any]]
Columns = dict[str, Array]


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows of one of the two tables: codes, and numbers within the bounds, NaN for none, by column."""

    codes: Columns = field(repr=False)
    numbers: Columns = field(repr=False)

    def take(self, which: Array) -> FileRows:
        """Return a FileRows of the rows at the places `which`, an int array or mask, in this order."""
        return FileRows(_at(self.codes, which), _at(self.numbers, which))


@dataclass(frozen=True, eq=False)
class Slot:
    """A counted table before its weights are judged: codes by column, and each row's key and weight."""

    codes: Columns = field(repr=False)
    owner: Array = field(repr=False)
    weight: Array = field(repr=False)


def counted_slots(
    linked: LinkedSchema, parent: FileRows, child: FileRows, owned: Array, weight: int
) -> dict[str, Slot]:
    """Return {slot: `Slot`}, by the linked schema, of `FileRows`: parents, one a key; children, by key, in order.

    `owned` has the key of each child row, in the order of the parent rows; a key weighs `weight` in each table.
    """
    first = np.flatnonzero(np.diff(owned, prepend=-1))  # of each key
    ends = np.append(first[1:], len(owned)) if len(first) else first
    home = np.repeat(np.arange(len(first)), ends - first)
    place = np.arange(len(owned)) - first[home]

    def sums(values: Array) -> Array:
        """Return, by row, the sum of integer `values` over this and all later rows of its key; exact modulo 2^64."""
        before = np.append(0, np.cumsum(values, dtype=np.int64))
        return np.asarray(before[ends[home]] - before[:-1])

    above, state, own = {name: parent.codes[name] for name in linked.columns_of()}, Columns(), dict(child.codes)
    for name, count in linked.counts.items():
        met = _met(linked, count, child, len(place)) & ~(count.besides_reference & (place == 0))
        above[name] = np.clip(sums(met)[first], count.least, count.top) - count.least
    above |= {tables.REFERENCE + name: codes[first] for name, codes in child.codes.items()}
    met = _met(linked, linked.counts[linked.state or linked.size], child, len(place))
    one, other = (np.minimum(sums(each), 2) for each in (met, ~met))
    state[tables.STATE] = 3 * one + other - 1 if linked.state is not None else one - 1  # in the order of `states`
    if linked.sum is not None:
        name, total = linked.sum
        column, target = linked.child.column(total.column), linked.parent.column(name)
        assert isinstance(column, Numeric) and isinstance(target, Numeric)  # noqa: S101, PT018 - checked by the schema
        grid, bands = 1 if column.integer else GRID, tables.sum_bands(linked)
        numbers = np.clip(np.nan_to_num(child.numbers[total.column], nan=0.0) * grid, -MOST, MOST)
        units = np.rint(numbers).astype(np.int64)
        left = sums(units)
        within = np.clip(left[first] / grid, target.lower, target.upper)
        bins = np.searchsorted(np.asarray(target.breaks, float), within, side="right") - 1
        above[name] = np.minimum(bins, len(target.extents) - 1)
        above[tables.SHARE] = banded(bands, (left - units)[first] / grid)
        state[tables.LEFT], own[tables.ALL] = banded(bands, left / grid), (units == left).astype(np.int64)
    if linked.difference is not None:
        numbers = child.numbers[linked.difference]
        before = np.where(place > 0, np.roll(numbers, 1), np.nan)
        state[tables.PREVIOUS] = banded(tables.number_bands(linked), before)
        own[tables.DIFFERENCE] = banded(tables.difference_bands(linked), numbers - before)
    found = {tables.PARENT: Slot(above, owned[first], np.full(len(first), weight))}
    plain, both = dict(child.codes), state | own
    kinds = {tables.SECOND: (place == 1, own), tables.OTHERS: (place > 1, both), tables.REST: (place > 0, plain)}
    for slot, (which, more) in kinds.items():
        rows, key = np.flatnonzero(which), home[which]
        times = np.bincount(key, minlength=len(first))  # rows of a key in this table, which share its weight
        found[slot] = Slot({**_at(above, key), **_at(more, rows)}, owned[rows], weight // times[key])
    return found


def of_kind(linked: LinkedSchema, parent: FileRows, kind: str) -> Array:
    """Return a mask of `parent`, `FileRows`, of a `kind` in a `LinkedSchema`, with a value in each column of it."""
    codes = linked.codes_of(kind)
    found: Array = np.all([np.isin(parent.codes[name], own) for name, own in codes.items()], axis=0)
    return found


def kind_slot(
    linked: LinkedSchema, kind: str, parent: FileRows, keys: Array, child: FileRows, owned: Array, weight: int
) -> Slot:
    """Return the `Slot` of a `kind` in a `LinkedSchema`: a row of this weight for each key, with its first child row.

    That is left out of kinds that have none. Keys, and those of the child `FileRows`, `owned`, ascend.
    """
    codes = {name: parent.codes[name] for name in linked.columns_of(kind)}
    if linked.kinds[kind].single:
        first = np.flatnonzero(np.diff(owned, prepend=-1))  # of each key
        there = np.isin(keys, owned[first])
        keys, codes = keys[there], _at(codes, there)
        codes |= {tables.REFERENCE + name: each[first] for name, each in child.codes.items()}
    return Slot(codes, keys, np.full(len(keys), weight))


def banded(bands: Bands | None, numbers: Array) -> Array:
    """Return an int array: for each of the array `numbers` the index of its band in `bands`; the last one for NaN."""
    ends = () if bands is None else bands.ends
    found: Array = np.where(np.isnan(numbers), len(ends) + 1, np.searchsorted(ends, numbers, side="right"))
    return found


def _met(linked: LinkedSchema, count: ChildCount, child: FileRows, rows: int) -> Array:
    """Return a mask by row of the child `FileRows`, `rows` in all: True for a `ChildCount`'s condition in `linked`."""
    met: Array = np.ones(rows, bool)
    for name, codes in linked.codes_where(count).items():
        met &= np.isin(child.codes[name], sorted(codes))
    return met


def _at(columns: Columns, which: Array) -> Columns:
    return {name: each[which] for name, each in columns.items()}
