"""Tables of the prototype that the targets of linked tables were set by, in its bands.

The prototype's report has figures of `NAMED_TABLES` tables within households, and says how many there were: the rest
of `W`, and the bands of education, Hispanic origin and incomes, are put together so that a bootstrap sample and persons
assigned at random come near the floors and ceilings that it reports.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.linked.rows import SIZE, LinkedCodes
from stratsynth.evaluation.linked.tables import PAIRS, Cells, LinkedTable, crossed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stratsynth.evaluation.linked.rows import LinkedColumns

    Coded = Callable[[LinkedCodes], tuple[NDArray[Any], int]]
    Paired = Callable[[LinkedCodes], tuple[NDArray[Any], NDArray[Any]]]

INCOMES = (1, 5_001, 15_001, 25_001, 40_001, 60_001, 100_001, 200_001)
"""Ends between bands of incomes."""
SCHOOL = (1, 12, 16, 18, 20, 21, 22)
"""First SCHL of each band of education but the first, which is of those without one."""
ADULT, MARRIED = 18, "1"
COLUMNS = ("AGEP", "SEX", "RAC1P", "HISP", "SCHL", "MAR", "ESR", "PINCP")
NAMED_TABLES = 12
"""Number of the first tables of `W` here, of which the prototype's report has figures."""


def lists(columns: LinkedColumns) -> list[LinkedTable]:
    """Return the LinkedTables of kinds P2 (28), W (20) and S (10); an empty list without the survey's columns."""
    if not set(COLUMNS) <= set(columns.child.names) or not {"HHT", "HINCP"} <= set(columns.parent.names):
        return []
    return [*_persons(), *_within(), *_sizes()]


def total_variation(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return half the sum of the differences between two tables' shares."""
    return float(np.abs(one - other).sum() / 2)


def coded(name: str) -> Coded:
    """Return a function from rows to (codes of their column `name` in the prototype's bands, number of bands)."""

    def codes(rows: LinkedCodes) -> tuple[NDArray[Any], int]:
        own = rows.child[name]
        if name == "AGEP":
            return np.minimum(rows.numbers[name] // 5, 18).astype(np.int64), 19
        if name == "PINCP":
            number = rows.numbers[name]
            band = np.searchsorted(INCOMES, np.nan_to_num(number), side="right")
            return np.where(np.isnan(number), len(INCOMES) + 1, band), len(INCOMES) + 2
        if name == "HISP":
            return np.minimum(own, 1), 2
        if name == "SCHL":
            return np.searchsorted(SCHOOL, own, side="right"), len(SCHOOL) + 1
        return own, rows.columns.child.size(name)

    return codes


def _persons() -> list[LinkedTable]:
    def cells(names: tuple[str, ...]) -> Callable[[LinkedCodes], Cells]:
        return lambda rows: _crossed([coded(name)(rows) for name in names], rows.home)

    return [LinkedTable("P2", " x ".join(pair), cells(pair)) for pair in combinations(COLUMNS, 2)]


def _within() -> list[LinkedTable]:
    second, later, before = (PAIRS[which] for which in ("first x second", "first x later", "row before x later"))
    pairs = [("AGEP", "second", second), ("RAC1P", "second", second), ("MAR", "second", second)]
    pairs += [("PINCP", "second", second), ("AGEP", "later", later), ("AGEP", "row before x later", before)]
    more = [(name, "second", second) for name in ("HISP", "SCHL", "ESR")]
    more += [(name, "later", later) for name in ("SEX", "RAC1P", "HISP", "MAR", "PINCP")]
    return [
        *(LinkedTable("W", f"{name}: first x {what}", _pair(name, paired)) for name, what, paired in pairs),
        LinkedTable("W", "couples' difference of ages", _couples),
        LinkedTable("W", "gap between siblings", _siblings),
        LinkedTable("W", "both sexes x HHT", _sexes),
        LinkedTable(
            "W", "children x size", lambda rows: _counted(rows, (rows.numbers["AGEP"] < ADULT) & (rows.place > 0))
        ),
        LinkedTable(
            "W",
            "married persons x size",
            lambda rows: _counted(rows, rows.child["MAR"] == rows.columns.child.index("MAR", MARRIED)),
        ),
        LinkedTable("W", "sum of incomes x size", _incomes),
        *(LinkedTable("W", f"{name}: first x {what}", _pair(name, paired)) for name, what, paired in more),
    ]


def _sizes() -> list[LinkedTable]:
    def decade(rows: LinkedCodes) -> tuple[NDArray[Any], int]:
        return np.minimum(rows.numbers["AGEP"] // 10, 9).astype(np.int64), 10

    def cells(size: int, last: bool) -> Callable[[LinkedCodes], Cells]:
        def some(rows: LinkedCodes) -> Cells:
            mine = (rows.size[rows.home] == size) & ((rows.place == 1) if last else (rows.place > 0))
            code, n = decade(rows)
            return crossed([code[rows.first[rows.home]][mine], code[mine]], [n, n], rows.home[mine])

        return some

    return [
        LinkedTable("S", f"AGEP: first x {'second' if last else 'each other'}, {size} rows", cells(size, last))
        for size in range(2, 7)
        for last in (True, False)
    ]


def _pair(name: str, paired: Paired) -> Callable[[LinkedCodes], Cells]:
    def cells(rows: LinkedCodes) -> Cells:
        other, mine = paired(rows)
        code, n = coded(name)(rows)
        return crossed([code[other][mine], code[mine]], [n, n], rows.home[mine])

    return cells


def _couples(rows: LinkedCodes) -> Cells:
    """Return the Cells of differences of ages, in the second row less the first, of married couples."""
    couple = rows.parent["HHT"][rows.home] == rows.columns.parent.index("HHT", MARRIED)
    mine = np.flatnonzero((rows.place == 1) & couple)
    age = rows.numbers["AGEP"]
    apart = age[mine] - age[rows.first[rows.home[mine]]]
    ends = rows.columns.ends
    return crossed([np.searchsorted(ends, apart, side="right")], [len(ends) + 1], rows.home[mine])


def _siblings(rows: LinkedCodes) -> Cells:
    """Return the Cells of differences of ages, in years, of children next to each other in age."""
    age = rows.numbers["AGEP"]
    children = np.flatnonzero((rows.place > 0) & (age < ADULT))
    order = children[np.lexsort([age[children], rows.home[children]])]
    same = np.flatnonzero(np.diff(rows.home[order]) == 0)
    apart = (age[order[same + 1]] - age[order[same]]).astype(np.int64)
    return crossed([apart], [ADULT], rows.home[order[same]])


def _sexes(rows: LinkedCodes) -> Cells:
    second = np.flatnonzero(rows.place == 1)
    sex, n = coded("SEX")(rows)
    home = rows.home[second]
    kinds = rows.columns.parent.size("HHT")
    return crossed([sex[rows.first[home]], sex[second], rows.parent["HHT"][home]], [n, n, kinds], home)


def _counted(rows: LinkedCodes, met: NDArray[Any]) -> Cells:
    """Return the Cells of numbers of rows that meet a mask, by the size of households of two and more."""
    several = np.flatnonzero(rows.size > 1)
    counts = np.minimum(np.bincount(rows.home[met], minlength=len(rows.size)), 5)[several]
    return crossed([counts, rows.parent[SIZE][several]], [6, rows.columns.top], several)


def _incomes(rows: LinkedCodes) -> Cells:
    n = len(rows.size)
    total = np.bincount(rows.home, np.nan_to_num(rows.numbers["PINCP"]), minlength=n)
    band = np.searchsorted(INCOMES, total, side="right")
    return crossed([band, rows.parent[SIZE]], [len(INCOMES) + 1, rows.columns.top], np.arange(n))


def _crossed(codes: list[tuple[NDArray[Any], int]], home: NDArray[Any]) -> Cells:
    return crossed([code for code, _ in codes], [n for _, n in codes], home)
