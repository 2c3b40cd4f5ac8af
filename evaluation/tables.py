"""INTERNAL. A real and a synthetic table side by side, the declared groups in both, and the frames scores come in.

Every score of this package is a frame made by `Pair.frame`: one row for everybody and one for each declared group,
whatever its count, with the columns

    scope                    "group", or "everybody", whose columns of `by` are null
    the columns of `by`      the levels that make the group
    n, n_synthetic           its real and its synthetic rows
    value, low, high         the score, and what it would be in 95 of 100 pairs of tables drawn from like populations
    status                   "ok"; "small", a table has few rows there; "not_estimable", and the value is null
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.text import MISSING, number
from stratsynth.strata import Stratum, crossing

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Codes: TypeAlias = Mapping[str, Array]
By: TypeAlias = "str | Sequence[str] | None"

STAMP = "INTERNAL: computed from private rows without a charge; not differentially private, not for publication"
OK, SMALL, NOT_ESTIMABLE = "ok", "small", "not_estimable"
FEW = 30
"""Fewer rows than this make a group `small`: its score is mostly chance."""
EVERYBODY, GROUP = "everybody", "group"
RESERVED = frozenset({"scope", "n", "n_synthetic", "value", "low", "high", "status"})


@dataclass(frozen=True, eq=False)
class Table:
    """INTERNAL. Rows as level numbers, and the numbers themselves."""

    schema: Schema
    codes: Codes
    """For each column, the level number of each row."""
    numbers: Codes
    """For each numeric column, the value of each row within its bounds; NaN where there is none."""
    rows: int
    left_out: int = 0
    """Rows that the schema's policy leaves out."""

    @classmethod
    def read(cls, data: Any, schema: Schema | str | Path) -> Table:
        """A pandas frame, an Arrow table or a path; a `Table` of the same schema is taken as it is."""
        schema = as_schema(schema)
        if isinstance(data, Table):
            if data.schema != schema:
                raise UsageError("evaluation: the table was read with another schema.")
            return data
        from stratsynth.data.sources import open_source
        from stratsynth.schema.codec import encode

        numeric = [name for name, column in schema.columns.items() if isinstance(column, Numeric)]
        source = open_source(data).read(schema.names)
        coded = encode(schema, source, numbers=numeric)
        return cls(schema, coded.codes, coded.numbers, coded.n, source.num_rows - coded.n)

    def take(self, rows: Array) -> Table:
        """The rows with these numbers, or where this is true, in that order."""
        codes = {name: column[rows] for name, column in self.codes.items()}
        numbers = {name: column[rows] for name, column in self.numbers.items()}
        return replace(self, codes=codes, numbers=numbers, rows=len(rows) if rows.dtype != bool else int(rows.sum()))

    def values(self, name: str) -> NDArray[np.float64]:
        """A column as numbers, NaN where it is missing or does not apply.

        Those of a numeric column. Of a categorical one, the numbers its levels spell, as for the codes of a census;
        where some level spells none, its place among the levels, from 1.
        """
        column = self.schema.column(name)
        if isinstance(column, Numeric):
            return self.numbers[name]
        found: NDArray[np.float64] = spelt(column)[self.codes[name]]
        return found


@dataclass(frozen=True, eq=False)
class Pair:
    """INTERNAL. Two tables whose rows are sorted by group."""

    real: Table
    synthetic: Table
    by: tuple[str, ...]
    groups: tuple[Stratum, ...]
    """Every declared group: the crossing of the levels of `by`. Without `by`, the one group of everybody."""
    members: tuple[Array, Array]
    """For the real and the synthetic table, the group number of each row."""
    few: int = FEW
    """Fewer rows than this make a group small."""

    @classmethod
    def of(cls, real: Any, synthetic: Any, schema: Schema | str | Path, by: By = None, few: int = FEW) -> Pair:
        """Read two tables, and sort their rows by group."""
        schema = as_schema(schema)
        names, groups = groups_of(schema, by)
        tables, members = [], []
        for data in (real, synthetic):
            table = Table.read(data, schema)
            group = group_numbers(table, names)
            order = np.argsort(group, kind="stable")
            tables.append(table.take(order) if names else table)
            members.append(group[order])
        return cls(tables[0], tables[1], names, groups, (members[0], members[1]), few)

    @property
    def schema(self) -> Schema:
        """The schema of both."""
        return self.real.schema

    @property
    def tables(self) -> tuple[Table, Table]:
        """The real one first."""
        return self.real, self.synthetic

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Real and synthetic rows of each group: 2 x groups."""
        return np.stack([np.bincount(group, minlength=len(self.groups)) for group in self.members])

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Real and synthetic rows of each scope: the groups, then everybody."""
        return self.spread(self.sizes, self.sizes.sum(axis=1))

    def spread(self, groups: Array, everybody: Array) -> Array:
        """Figures of the groups (last axis) and of everybody, by scope. Without `by` the one group is everybody."""
        return np.concatenate([groups, everybody[..., None]], axis=-1) if self.by else everybody[..., None]

    def variables(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The columns asked for; by default all but those of `by`, which are constant in a group."""
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
        """A tidy frame: for each item, a row for each scope.

        Args:
            value: Scores, items x scopes, or scopes alone; NaN where there is none.
            low: The lower ends of their intervals; NaN, or None for all, where there is none.
            high: The upper ends.
            items: Columns that say what each item is.
            more: Further figures, shaped like `value`.
            n: Rows that each score rests on, 2 x items x scopes, where that is not all rows of its scope.
        """
        value = np.atleast_2d(value)
        rows = np.broadcast_to(self.counts[:, None, :], (2, *value.shape)) if n is None else n
        counts = {"n": rows[0], "n_synthetic": rows[1]}
        worth = statuses(value, rows.min(axis=0), self.few)
        return tidy(self.by, self.groups, value, low, high, counts=counts, status=worth, items=items, more=more)


def tidy(
    by: Sequence[str],
    groups: Sequence[Stratum],
    value: Array,
    low: Array | None,
    high: Array | None,
    *,
    counts: Mapping[str, Array],
    status: Array,
    items: Mapping[str, Sequence[Any]] | None = None,
    more: Mapping[str, Array] | None = None,
) -> pd.DataFrame:
    """The frame of `Pair.frame`, for figures of items x scopes however they were come by."""
    import pandas as pd

    scopes = value.shape[1]
    nothing = np.full(value.shape, np.nan)
    made: dict[str, Any] = {name: np.repeat(pd.array(list(what)), scopes) for name, what in (items or {}).items()}
    made["scope"] = pd.array([*[GROUP] * (scopes - 1), EVERYBODY] * len(value), "string")
    for name in by:
        levels = [*[group.to_dict()[name] for group in groups], None]
        made[name] = pd.array(levels * len(value), "string")
    made |= {name: np.ravel(rows) for name, rows in counts.items()}
    made["value"] = value.ravel()
    for name, ends in (("low", low), ("high", high)):
        made[name] = np.where(np.isnan(value), np.nan, nothing if ends is None else ends).ravel()
    made["status"] = pd.array(status.ravel(), "string")
    made |= {name: np.atleast_2d(figures).ravel() for name, figures in (more or {}).items()}
    return stamped(pd.DataFrame(made))


def statuses(value: Array, rows: Array, few: int = FEW) -> Array:
    """What each score is worth, by whether there is one and the rows it rests on."""
    return np.where(np.isnan(value), NOT_ESTIMABLE, np.where(rows < few, SMALL, OK))


def stamped(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its stamp, which `evaluate` writes into every file."""
    frame.attrs["stamp"] = STAMP
    return frame


def groups_of(schema: Schema, by: By) -> tuple[tuple[str, ...], tuple[Stratum, ...]]:
    """The columns of `by`, and every declared group: their crossing, or the one group of everybody."""
    names = as_columns(by)
    for name in names:
        if name in RESERVED:
            raise UsageError(f"evaluation: a column to group by cannot be called {name!r}; rename it.")
    return names, crossing(schema, names) if names else (Stratum(()),)


def group_numbers(table: Table, by: Sequence[str]) -> NDArray[np.int64]:
    """The number of the group that each row lies in, in the order of `crossing`."""
    group = np.zeros(table.rows, np.int64)
    for name in by:
        group = group * table.schema.size(name) + table.codes[name]
    return group


def spelt(column: Categorical) -> NDArray[np.float64]:
    """The number of each level, as `Table.values` says."""
    own = (column.not_applicable, MISSING)
    found = [None if level in own else number(level) for level in column.all_levels]
    if any(value is None and level not in own for value, level in zip(found, column.all_levels, strict=True)):
        found = [None if level in own else float(i) for i, level in enumerate(column.all_levels, start=1)]
    return np.array([np.nan if value is None else value for value in found])


def as_schema(schema: Schema | str | Path) -> Schema:
    """A schema, or the path of one."""
    return schema if isinstance(schema, Schema) else Schema.load(schema)


def as_columns(by: By) -> tuple[str, ...]:
    """One column, several, or none."""
    return () if by is None else (by,) if isinstance(by, str) else tuple(by)


def chosen(schema: Schema, columns: Sequence[str]) -> tuple[str, ...]:
    """These columns, which must exist, in the schema's order."""
    for name in columns:
        schema.column(name)
    return tuple(name for name in schema.names if name in set(columns))
