"""Roles of columns in the models of two linked tables.

The parent's model has the parent's columns, those of its first child row (`R_` before the name), and columns derived of
all its child rows. The model of the second row, and that of all further ones, has some columns of the parent's model,
the state of the parent before the row, and the row: all that is in the model and not the row's own is known when it is
drawn.

    R_X    column X of the first child row
    SHR    band of the sum over all child rows but the first
    ST     child rows left, this one included, that meet the condition of the state, and that do not: 0, 1 or 2 and more
    REM    band of what is left of the sum
    PREV   band of the stepped column's number in the row before
    DIF    band of the difference from that number
    ALL    "1" if the row has all that is left of the sum
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine import Graphical
from stratsynth.errors import SchemaError, Unsupported
from stratsynth.models import TableModel
from stratsynth.schema import Numeric, Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST, SHARE = "R_", "SHR"
STATE, REMAINS, PREVIOUS = "ST", "REM", "PREV"
DIFFERENCE, ALL = "DIF", "ALL"
BACK_OFF = (REMAINS, PREVIOUS, SHARE)
"""Known columns that are given up first where a row has probability 0; the order of the others is the model's."""


@dataclass(frozen=True, kw_only=True)
class CountRole:
    """Column of the parent: number of its child rows that meet a condition."""

    where: Mapping[str, frozenset[int]] = field(default_factory=dict, hash=False)
    """Codes that meet the condition, by column of the child, all of which must; empty for all rows."""
    besides_first: bool = False
    """True if the first row is left out."""
    least: int = 0
    """Number that the first level stands for; each further level is one more."""


@dataclass(frozen=True, kw_only=True)
class SumRole:
    """Column of the parent: sum of a numeric column of its child rows, in which a row without a number adds 0."""

    column: str
    """Column of the parent."""
    of: str
    """Column of the child."""
    ends: tuple[float, ...]
    """Ends between the bands of `SHARE` and `REMAINS`: the first is below all, the last from the last end on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkRoles:
    """Roles of the columns of two linked tables."""

    parent: Schema
    """Columns of the parent table."""
    child: Schema
    """Columns of the child table."""
    size: str
    """Name, among `counts`, of the number of all child rows."""
    counts: Mapping[str, CountRole]
    """Counts by the parent's column."""
    state: str | None = None
    """Name, among `counts`, of the one whose condition `STATE` is about; None for all child rows."""
    summed: SumRole | None = None
    stepped: str | None = None
    """Numeric column of the child whose difference from the row before is `DIFFERENCE`."""
    differences: tuple[float, ...] = ()
    """Ends between the bands of `DIFFERENCE`; one more band, the last, is of rows without a number."""
    previous: tuple[float, ...] = ()
    """Ends between the bands of `PREVIOUS`, and one more likewise."""
    most: int = 12
    """Largest number of child rows that are drawn."""
    tail: tuple[float, ...] = (1.0,)
    """Public shares of the sizes that the last level stands for: its own number, one more, two more, ..."""

    def __post_init__(self) -> None:
        """Refuse names and shares that do not fit (SchemaError)."""
        if self.size not in self.counts or self.counts[self.size].where:
            raise SchemaError("size names the count of all child rows, without a condition")
        if self.state is not None and not self.counts[self.state].where:
            raise SchemaError("state names a count with a condition")
        for name in (self.stepped, None if self.summed is None else self.summed.of):
            if name is not None and not isinstance(self.child.column(name), Numeric):
                raise SchemaError(f"{name}: only numbers have sums and differences")
        for ends in (self.differences, self.previous, () if self.summed is None else self.summed.ends):
            if any(b <= a for a, b in pairwise(ends)):
                raise SchemaError("ends between bands rise")
        if not self.tail or min(self.tail) < 0 or not sum(self.tail) > 0:
            raise SchemaError("tail: shares are numbers from 0 on, of which one is larger")

    @cached_property
    def condition(self) -> Mapping[str, frozenset[int]]:
        """Mapping from child column to the codes that meet the state's condition; empty if the state is of all rows."""
        return {} if self.state is None else self.counts[self.state].where

    def number(self, name: str) -> Numeric:
        """Return the `Numeric`, a declaration, of the child's column `name`, which is known to be one."""
        column = self.child.column(name)
        assert isinstance(column, Numeric)  # noqa: S101 - checked above
        return column

    def meets(self, count: CountRole, codes: Mapping[str, NDArray[np.integer[Any]]], n: int) -> NDArray[np.bool_]:
        """Return a mask of the `n` child rows, `codes` by column, that meet the condition of a `CountRole`."""
        found = np.ones(n, dtype=bool)
        for column, levels in count.where.items():
            found &= np.isin(codes[column], list(levels))
        return found


def bands(ends: tuple[float, ...], numbers: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return an array, the code of each number's band between `ends`; the one after the last for NaN."""
    found = np.searchsorted(np.asarray(ends), numbers, side="right")
    codes: NDArray[np.intp] = np.where(np.isnan(numbers), len(ends) + 1, found).astype(np.intp)
    return codes


def extent(ends: tuple[float, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two arrays, the smallest number and the end of each band between `ends`; infinite where a band is open.

    The end is not in the band.
    """
    return np.array([-np.inf, *ends]), np.array([*ends, np.inf])


def state_code(met: NDArray[np.intp], others: NDArray[np.intp], *, condition: bool) -> NDArray[np.intp]:
    """Return an array of codes of `STATE` for arrays of rows left: `met` meet the condition, `others` do not.

    Each number counts up to 2; without `condition` (a flag) only their sum does. No row left has the code -1.
    """
    found: NDArray[np.intp] = (
        3 * np.minimum(met, 2) + np.minimum(others, 2) if condition else np.minimum(met + others, 2)
    )
    return found - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedModels:
    """Three fitted models of two linked tables."""

    parent: TableModel
    second: Graphical | None
    """Model of the second child row; None if it is drawn as all others are."""
    others: Graphical | None
    """Model of further child rows; None where there is none."""
    prefixes: tuple[str, str, str] = ("", "", "")
    """Beginnings of the models' column names, before the names of roles."""

    def slot(self, place: int) -> tuple[Graphical, str]:
        """Return (`Graphical` of the child row at a place, 1 for the second; the beginning of its columns' names).

        Unsupported if there is no such model.
        """
        if place == 1 and self.second is not None:
            return self.second, self.prefixes[1]
        if self.others is None:
            raise Unsupported("linked: there is no model of the third child row, and of further ones.")
        return self.others, self.prefixes[2]
