"""INTERNAL. Two linked tables as they are scored: child rows beside their parents, in order, as codes and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from stratsynth.errors import UsageError, nearest
from stratsynth.evaluation.tables.encoded import Array
from stratsynth.schema import Categorical, Numeric, Rule, Schema
from stratsynth.schema.encoding import encode_categorical, encode_numeric
from stratsynth.schema.values import check_type

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema.linked import LinkedSchema

SIZE = "(size)"
"""Name of the number of child rows among a parent's columns."""
Condition: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Levels, or for a number a range such as "..17", by column of the child."""
AGES = (-50, -40, -35, -30, -25, -20, -15, -10, -5, -2, 0, 1, 3, 6, 11, 21, 36)
"""Ends between bands of differences, in years."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedColumns:
    """Columns of two linked tables, and what scores look at."""

    parent: Schema
    child: Schema
    key: str
    """Column of both tables that says whose a child row is."""
    order: str
    """Column of the child table whose numbers order the rows of a parent."""
    difference: str | None = None
    """Numeric column of the child, differences of which are compared between rows of a parent: ages."""
    ends: tuple[float, ...] = AGES
    """Ends between bands of these differences."""
    counted: Mapping[str, Condition] = field(default_factory=dict)
    """Names of counts of child rows after the first, with their conditions as `where` of a sample has them."""
    summed: tuple[str, str] | None = None
    """Numeric columns (parent's, child's) of which the first is the sum of the second over all rows of a parent."""
    group: str | None = None
    """Column of the child: households are grouped by its level in their first row."""
    top: int = 8
    """Number of child rows from which on sizes are one."""
    rules: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    """Rules across the tables, by "parent", "second" and "others": their names are the parent's columns, those of the
    first row after `R_`, and in the last two the row's own."""

    @classmethod
    def of(cls, linked: LinkedSchema, group: str | None = None) -> LinkedColumns:
        """Return the LinkedColumns of a LinkedSchema, those of its parents with child rows; `group` is of the child.

        UsageError for a group that is none.
        """
        if group is not None and group not in linked.child.columns:
            raise UsageError(f"group: {group!r} is no column of the child{nearest(group, linked.child.columns)}.")
        summed = None if linked.sum is None else (linked.sum[0], linked.sum[1].column)
        return cls(
            parent=linked.parent.restrict(name for name in linked.columns_of() if name not in linked.occupied),
            child=linked.child,
            key=linked.key,
            order=linked.order[0],
            difference=linked.difference,
            ends=linked.differences if linked.difference is not None else AGES,
            counted={name: count.where for name, count in linked.counts.items() if count.where},
            summed=summed,
            group=group,
        )


@dataclass(frozen=True, eq=False)
class LinkedCodes:
    """INTERNAL. Parents that have child rows, and these rows by parent and in order."""

    columns: LinkedColumns
    parent: Mapping[str, Array]
    """Codes by the parent's column, and `SIZE`."""
    child: Mapping[str, Array]
    numbers: Mapping[str, Array]
    """Numbers of the child's numeric columns; NaN for none."""
    totals: Array | None
    """Numbers of the parent's summed column."""
    home: Array
    """Number of each child row's parent."""
    place: Array
    """Place of each child row among its parent's, from 0 on."""
    size: Array
    """Number of child rows of each parent."""

    @classmethod
    def read(cls, parents: Any, children: Any, columns: LinkedColumns) -> LinkedCodes:
        """Return LinkedCodes of `parents` and `children`, frames or Arrow tables, with LinkedColumns.

        Rows that a schema leaves out, and orphans, are left out here too.
        """
        above, below = (_arrow(each) for each in (parents, children))
        own, own_numbers, own_kept = _encoded(columns.parent, above)
        child, numbers, kept = _encoded(columns.child, below)
        key, owner = _keys(above.column(columns.key), below.column(columns.key))
        own_kept &= key >= 0
        # one place more, for rows without a key
        place_of = np.full(max(key.max(initial=-1), owner.max(initial=-1)) + 2, -1)
        place_of[key[own_kept]] = np.flatnonzero(own_kept)
        at = place_of[owner]
        order = np.asarray(below.column(columns.order).cast(pa.float64()))
        rows = np.flatnonzero(kept & (at >= 0))
        rows = rows[np.lexsort((order[rows], at[rows]))]
        present, home = np.unique(at[rows], return_inverse=True)
        size = np.bincount(home, minlength=len(present))
        start = np.cumsum(size) - size
        codes = {name: each[present] for name, each in own.items()}
        codes[SIZE] = np.minimum(size, columns.top) - 1
        return cls(
            columns,
            codes,
            {name: each[rows] for name, each in child.items()},
            {name: each[rows] for name, each in numbers.items()},
            None if columns.summed is None else own_numbers[columns.summed[0]][present],
            home,
            np.arange(len(rows)) - start[home],
            size,
        )

    @property
    def first(self) -> Array:
        """Array of the number of each parent's first child row."""
        found: Array = np.cumsum(self.size) - self.size
        return found

    def shuffled(self, rng: Generator) -> LinkedCodes:
        """LinkedCodes of the same parents and sizes with all child rows exchanged at random: the ceiling of errors."""
        order = rng.permutation(len(self.home))
        return replace(
            self,
            child={name: each[order] for name, each in self.child.items()},
            numbers={name: each[order] for name, each in self.numbers.items()},
        )

    def met(self, condition: Condition) -> Array:
        """Return a mask of child rows that meet `condition`, {column of the child: level, levels or range}."""
        from stratsynth.schema.where import levels_of

        found = np.ones(len(self.home), dtype=bool)
        schema = self.columns.child
        for name, asked in condition.items():
            levels = levels_of(schema, name, asked)
            found &= np.isin(self.child[name], [schema.index(name, level) for level in levels])
        return found


def _arrow(data: Any) -> pa.Table:
    return data if isinstance(data, pa.Table) else pa.Table.from_pandas(data, preserve_index=False)


def _encoded(schema: Schema, data: pa.Table) -> tuple[dict[str, Array], dict[str, Array], Array]:
    """Return ({column: array of codes}, {numeric column: array of numbers}, mask of rows the schema admits) of a table.

    The arrays are over all rows of `data`, an Arrow table. UsageError if it lacks a column of the schema.
    """
    codes: dict[str, Array] = {}
    numbers: dict[str, Array] = {}
    kept = np.ones(data.num_rows, dtype=bool)
    for name, column in schema.columns.items():
        if name not in data.column_names:
            raise UsageError(f"evaluation: a table lacks the column {name}.")
        values = data.column(name)
        check_type(name, values.type)
        if isinstance(column, Categorical):
            codes[name], _ = encode_categorical(column, values)
        elif isinstance(column, Numeric):
            codes[name], numbers[name], _ = encode_numeric(column, values)
        kept &= codes[name] >= 0
    return codes, numbers, kept


def _keys(above: pa.ChunkedArray, below: pa.ChunkedArray) -> tuple[Array, Array]:
    """Return two arrays of key numbers, one a parent row and one a child row; equal for keys that are equal as texts.

    `above` and `below` are the Arrow columns of keys of both; a null is -1.
    """
    both = pa.chunked_array([*above.cast(pa.string()).chunks, *below.cast(pa.string()).chunks], pa.string())
    found = np.asarray(both.dictionary_encode().combine_chunks().indices.fill_null(-1))
    return found[: len(above)], found[len(above) :]
