"""INTERNAL. A real and a synthetic table side by side, and the declared groups in both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stratsynth.checks import check_integer, is_texts, quoted_value
from stratsynth.errors import UsageError
from stratsynth.evaluation.tables.encoded import Array, EncodedRows, as_schema, chosen
from stratsynth.evaluation.tables.frames import FEW, RESERVED, statuses, tidy
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, crossing

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

By: TypeAlias = "str | Sequence[str] | None"


@dataclass(frozen=True, eq=False)
class Pair:
    """INTERNAL. Two tables whose rows are sorted by group."""

    real: EncodedRows
    """Private rows."""
    synthetic: EncodedRows
    """Rows of the release."""
    by: tuple[str, ...]
    """Columns whose crossing makes the groups; empty for everybody alone."""
    groups: tuple[Stratum, ...]
    """Every declared group: the crossing of the levels of `by`. Without `by`, the one group of everybody."""
    members: tuple[Array, Array] = field(repr=False)
    """Group number of each row of the real and of the synthetic table."""
    few: int = FEW
    """Number of rows below which a group is `small`."""

    @classmethod
    def of(cls, real: Any, synthetic: Any, schema: Schema | str | Path, by: By = None, few: int = FEW) -> Pair:
        """Pair of tables `real`, weighted if the schema names a column of weights, and `synthetic`, by groups of `by`.

        Rows are sorted by group; one with fewer than `few` rows in either table is small.
        """
        check_integer("evaluation: few", few, 0)
        schema = as_schema(schema)
        names, groups = groups_of(schema, by)
        tables, members = [], []
        for data, weigh in ((real, True), (synthetic, False)):
            table = EncodedRows.read(data, schema, weigh=weigh)
            group = group_numbers(table, names)
            order = np.argsort(group, kind="stable")
            tables.append(table.take(order) if names else table)
            members.append(group[order])
        return cls(tables[0], tables[1], names, groups, (members[0], members[1]), few)

    @property
    def schema(self) -> Schema:
        """Schema of both tables."""
        return self.real.schema

    @property
    def tables(self) -> tuple[EncodedRows, EncodedRows]:
        """Pair (real table, synthetic table), both encoded."""
        return self.real, self.synthetic

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Array (2, groups): number of real and of synthetic rows in each group."""
        return np.stack([np.bincount(group, minlength=len(self.groups)) for group in self.members])

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Array (2, scopes): number of real and synthetic rows of the groups, then of everybody."""
        return self.spread(self.sizes, self.sizes.sum(axis=1))

    @cached_property
    def mass(self) -> tuple[Array, Array]:
        """Two arrays, one entry a group: numbers of real and of synthetic rows, or the sums of their weights."""
        weights = [table.weights for table in self.tables]
        each = [
            size if w is None else np.bincount(group, w, len(self.groups))
            for size, w, group in zip(self.sizes, weights, self.members, strict=True)
        ]
        return each[0], each[1]

    @cached_property
    def masses(self) -> Array:
        """Array (2, scopes): number or weight of real and synthetic rows of the groups, then of everybody."""
        return np.stack([self.spread(mass, np.asarray(mass.sum())) for mass in self.mass])

    def spread(self, groups: Array, everybody: Array) -> Array:
        """Array of the figures `groups`, an array (..., groups), and on the same axis `everybody`'s, an array (...).

        Of a pair without groups, everybody's alone.
        """
        return np.concatenate([groups, everybody[..., None]], axis=-1) if self.by else everybody[..., None]

    def totals(self, side: int, values: Array, *, weigh: bool = False) -> Array:
        """Array by groups, then everybody: sum of `values`, an array of one for each row of a table.

        The table is the real one for `side` 0, the synthetic one for 1. With `weigh` each value is multiplied by the
        row's weight.
        """
        weights = self.tables[side].weights if weigh else None
        values = values if weights is None else values * weights
        return self.spread(np.bincount(self.members[side], values, len(self.groups)), values.sum())

    def tabulated(self, side: int, *columns: str, weigh: bool = True) -> Array:
        """Array (groups and everybody, levels of `columns`): counts of the real (side 0) or synthetic rows (side 1).

        With `weigh` they are sums of weights, if the rows have any.
        """
        weights = self.tables[side].weights if weigh else None
        shape = (len(self.groups), *(self.schema.size(name) for name in columns))
        cells = self.members[side]
        for name, size in zip(columns, shape[1:], strict=True):
            cells = cells * size + self.tables[side].codes[name]
        groups = np.bincount(cells, weights, minlength=math.prod(shape)).reshape(shape)
        everybody = groups.sum(axis=0, keepdims=True)
        return np.concatenate([groups, everybody]) if self.by else everybody

    def variables(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Tuple of the names `columns` in the schema's order; for None, all but the groups' columns."""
        if columns is None:
            return tuple(name for name in self.schema.names if name not in self.by)
        return chosen(self.schema, columns)

    def frame(
        self,
        value: Array,
        low: Array | None = None,
        high: Array | None = None,
        *,
        items: Mapping[str, Sequence[Any]] | None = None,
        more: Mapping[str, Array] | None = None,
        n: Array | None = None,
    ) -> pd.DataFrame:
        """Frame of scores: for each item, a row for each declared group and one for everybody.

        Args:
            value: Scores, items x scopes, or scopes alone; NaN if unknown.
            low: Lower ends of their intervals; NaN, or None for all, if unknown.
            high: Upper ends.
            items: Mapping from the columns that identify items to their values, one an item.
            more: Mapping from further columns to arrays shaped like `value`.
            n: Number of rows that each score rests on, 2 x items x scopes; None for all rows of its scope.
        """
        value = np.atleast_2d(value)
        rows = np.broadcast_to(self.counts[:, None, :], (2, *value.shape)) if n is None else n
        counts = {"n": rows[0], "n_synthetic": rows[1]}
        worth = statuses(value, rows.min(axis=0), self.few)
        return tidy(self.by, self.groups, value, low, high, counts=counts, status=worth, items=items, more=more)


def groups_of(schema: Schema, by: By) -> tuple[tuple[str, ...], tuple[Stratum, ...]]:
    """(Tuple of the columns of `by`, tuple of `Stratum`s of a schema): the columns' crossing.

    Without columns, everybody. UsageError for a column with a name that frames of scores reserve.
    """
    names = as_columns(by)
    for name in names:
        if name in RESERVED:
            raise UsageError(f"evaluation: a column to group by cannot be called {name!r}; rename it.")
    return names, crossing(schema, names) if names else (Stratum(()),)


def group_numbers(table: EncodedRows, by: Sequence[str]) -> NDArray[np.int64]:
    """Array of the number of each of a `table`'s encoded rows among the groups of `by`, in the order of `crossing`.

    Without `by` the number is 0.
    """
    group = np.zeros(table.rows, np.int64)
    for name in by:
        group = group * table.schema.size(name) + table.codes[name]
    return group


def as_columns(by: By) -> tuple[str, ...]:
    """Return a tuple of column names from `by`, one name, several, or None (empty); UsageError for anything else."""
    names = () if by is None else (by,) if isinstance(by, str) else by
    if not is_texts(names):
        raise UsageError(f'evaluation: columns are names, such as ["SEX", "RAC1P"], not {quoted_value(by)}.')
    return tuple(names)
