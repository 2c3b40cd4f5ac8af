"""INTERNAL. Tables by which linked rows are compared, by kind.

H    pairs of the parent's columns, and of the number of its rows
HP   a column of the parent, and one of its rows
P2   pairs of columns of one row
P3   triples of them
W    within a parent: a column in the first row and in the second, in the first and in each further one, in a row and
     the next one; differences; counts, and the sum, by the number of rows
S    the column of differences in two rows, in some ten bands, by the number of rows
G    by the first row's group: the number of rows, and its column in the first row and the others
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.checks import one_of
from stratsynth.evaluation.linked.rows import SIZE, Condition, LinkedCodes
from stratsynth.evaluation.tables.encoded import Array

if TYPE_CHECKING:
    from stratsynth.evaluation.linked.rows import LinkedColumns

KINDS = ("H", "HP", "P2", "P3", "W", "S", "G")
SIZES = (2, 3, 4, 5, 6)
"""Numbers of rows whose parents are compared by themselves; those of more are with the last."""
FEW = 5
"""Largest number that a count tells apart in its table by the number of rows."""
WIDE = 10
"""Number of bands of a column that is compared by the number of rows."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Entries of one table: the cell of each, and the parent that it is of."""

    cell: Array
    home: Array
    size: int
    """Number of cells."""

    def shares(self, weights: Array | None = None) -> Array:
        """Return an array, the share of each cell; zeros of an empty table.

        `weights` is an array of one a parent, as which it counts; None counts each as 1.
        """
        counts = np.bincount(self.cell, None if weights is None else weights[self.home], minlength=self.size)
        found: Array = counts / max(counts.sum(), 1e-300)
        return found


@dataclass(frozen=True, eq=False)
class LinkedTable:
    """One table: its kind, its name, and how rows become its cells."""

    kind: str
    name: str
    cells: Callable[[LinkedCodes], Cells]


def tables_of(columns: LinkedColumns, kinds: tuple[str, ...] = KINDS) -> Iterator[LinkedTable]:
    """Yield the LinkedTables of some kinds, names from `KINDS`, else UsageError, for these LinkedColumns."""
    above, below = (SIZE, *columns.parent.names), columns.child.names
    makers: dict[str, Callable[[], Iterator[LinkedTable]]] = {
        "H": lambda: (LinkedTable("H", f"{a} x {b}", _above(a, b)) for a, b in combinations(above, 2)),
        "HP": lambda: (LinkedTable("HP", f"{a} x {b}", _both(a, b)) for a in above for b in below),
        "P2": lambda: (LinkedTable("P2", " x ".join(c), _below(*c)) for c in combinations(below, 2)),
        "P3": lambda: (LinkedTable("P3", " x ".join(c), _below(*c)) for c in combinations(below, 3)),
        "W": lambda: _within(columns),
        "S": lambda: _by_size(columns),
        "G": lambda: _by_group(columns),
    }
    for kind in kinds:
        one_of("kinds", kind, KINDS)
        yield from makers[kind]()


def crossed(codes: list[Array], sizes: list[int], home: Array) -> Cells:
    """Return Cells, the table of several codes of the same entries, crossed.

    `codes` has an array for each code, one number an entry, and `sizes` the number of levels of each; `home` is an
    array of each entry's parent.
    """
    cell = np.zeros(len(home), dtype=np.int64)
    for code, size in zip(codes, sizes, strict=True):
        cell = cell * size + code
    return Cells(cell, home, math.prod(sizes))


def _size_of(rows: LinkedCodes, name: str) -> int:
    return rows.columns.top if name == SIZE else rows.columns.parent.size(name)


def _above(*names: str) -> Callable[[LinkedCodes], Cells]:
    return lambda rows: crossed(
        [rows.parent[name] for name in names], [_size_of(rows, name) for name in names], np.arange(len(rows.size))
    )


def _both(name: str, other: str) -> Callable[[LinkedCodes], Cells]:
    return lambda rows: crossed(
        [rows.parent[name][rows.home], rows.child[other]],
        [_size_of(rows, name), rows.columns.child.size(other)],
        rows.home,
    )


def _below(*names: str) -> Callable[[LinkedCodes], Cells]:
    return lambda rows: crossed(
        [rows.child[name] for name in names], [rows.columns.child.size(name) for name in names], rows.home
    )


PAIRS = {
    "first x second": lambda rows: (rows.first[rows.home], rows.place == 1),
    "first x later": lambda rows: (rows.first[rows.home], rows.place > 1),
    "row before x later": lambda rows: (np.arange(len(rows.home)) - (rows.place > 0), rows.place > 1),
}
"""Pairs of rows of one parent: the number of the other row, and a mask of the rows that are paired."""


def _pair(which: str, codes: Callable[[LinkedCodes], Array], size: int) -> Callable[[LinkedCodes], Cells]:
    def cells(rows: LinkedCodes) -> Cells:
        other, paired = PAIRS[which](rows)
        code = codes(rows)
        return crossed([code[other][paired], code[paired]], [size, size], rows.home[paired])

    return cells


def _within(columns: LinkedColumns) -> Iterator[LinkedTable]:
    for name in columns.child.names:
        for which in PAIRS:
            yield LinkedTable("W", f"{name}: {which}", _pair(which, _code(name), columns.child.size(name)))
    if columns.difference is not None:
        for which in PAIRS:
            yield LinkedTable("W", f"{columns.difference}: difference, {which}", _apart(which, columns))
    for name, condition in columns.counted.items():
        yield LinkedTable("W", f"{name} x size", _count(condition))
    if columns.summed is not None:
        yield LinkedTable("W", f"{columns.summed[0]} as the sum x size", _sum(columns))


def _code(name: str) -> Callable[[LinkedCodes], Array]:
    return lambda rows: rows.child[name]


def _apart(which: str, columns: LinkedColumns) -> Callable[[LinkedCodes], Cells]:
    """Return a function from LinkedCodes to Cells, a table of differences of numbers of one parent's rows.

    A difference is a row's number less that of the other row, as `which`, a key of `PAIRS`, pairs them; the number is
    in the column `difference` of the `LinkedColumns`.
    """

    def cells(rows: LinkedCodes) -> Cells:
        assert columns.difference is not None  # noqa: S101 - the caller looked
        other, paired = PAIRS[which](rows)
        numbers = rows.numbers[columns.difference]
        apart = (numbers - numbers[other])[paired]
        real = ~np.isnan(apart)
        codes = np.searchsorted(np.asarray(columns.ends), apart[real], side="right")
        return Cells(codes, rows.home[paired][real], len(columns.ends) + 1)

    return cells


def _count(condition: Condition) -> Callable[[LinkedCodes], Cells]:
    def cells(rows: LinkedCodes) -> Cells:
        met = rows.met(condition) & (rows.place > 0)
        counts = np.minimum(np.bincount(rows.home[met], minlength=len(rows.size)), FEW)
        return crossed([counts, rows.parent[SIZE]], [FEW + 1, rows.columns.top], np.arange(len(rows.size)))

    return cells


def _sum(columns: LinkedColumns) -> Callable[[LinkedCodes], Cells]:
    def cells(rows: LinkedCodes) -> Cells:
        assert columns.summed is not None  # noqa: S101 - the caller looked
        of = columns.parent.column(columns.summed[0])
        total = np.bincount(rows.home, np.nan_to_num(rows.numbers[columns.summed[1]]), minlength=len(rows.size))
        band = np.searchsorted(np.asarray(getattr(of, "breaks", ()))[1:-1], total, side="right")
        return crossed([band, rows.parent[SIZE]], [of.size, columns.top], np.arange(len(rows.size)))

    return cells


def _by_size(columns: LinkedColumns) -> Iterator[LinkedTable]:
    name = columns.difference
    if name is None:
        return
    column = columns.child.column(name)

    def wide(rows: LinkedCodes) -> Array:
        numbers = rows.numbers[name]
        low, top = (float(getattr(column, end)) for end in ("lower", "upper"))
        codes = np.clip((np.nan_to_num(numbers, nan=low) - low) / max(top - low, 1e-300) * WIDE, 0, WIDE - 1)
        found: Array = np.where(np.isnan(numbers), WIDE, codes).astype(np.int64)
        return found

    for size in SIZES:
        for which in ("first x second", "row before x later"):
            if size > 2 or which == "first x second":
                yield LinkedTable("S", f"{name}: {which}, {size} rows", _of_size(_pair(which, wide, WIDE + 1), size))


def _of_size(cells: Callable[[LinkedCodes], Cells], size: int) -> Callable[[LinkedCodes], Cells]:
    """Return a function like `cells`, from LinkedCodes to `Cells`, of parents of `size` rows alone.

    The last of SIZES stands for that or more.
    """

    def some(rows: LinkedCodes) -> Cells:
        whole = cells(rows)
        kept = np.minimum(rows.size, SIZES[-1])[whole.home] == size
        return Cells(whole.cell[kept], whole.home[kept], whole.size)

    return some


def _by_group(columns: LinkedColumns) -> Iterator[LinkedTable]:
    name = columns.group
    if name is None:
        return
    tables = {
        "size": _above(SIZE),
        f"{name}: first x second": _pair("first x second", _code(name), columns.child.size(name)),
    }
    for level, text in enumerate(columns.child.levels(name)):
        for what, cells in tables.items():
            yield LinkedTable("G", f"{name} = {text}: {what}", _of_group(cells, name, level))


def _of_group(cells: Callable[[LinkedCodes], Cells], name: str, level: int) -> Callable[[LinkedCodes], Cells]:
    def some(rows: LinkedCodes) -> Cells:
        whole = cells(rows)
        kept = rows.child[name][rows.first][whole.home] == level
        return Cells(whole.cell[kept], whole.home[kept], whole.size)

    return some
