"""Drawn parents and child rows as two Arrow tables with an invented key; counts and sums are those of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stratsynth.adapters.linked.amounts import Amounts
from stratsynth.schema import Categorical
from stratsynth.schema.codec import decode

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.adapters.linked.drawn import DrawnTables
    from stratsynth.adapters.linked.roles import LinkRoles
    from stratsynth.schema import Column
    from stratsynth.schema.inside import Inside


def to_tables(
    roles: LinkRoles,
    drawn: DrawnTables,
    rng: Generator,
    *,
    key: str,
    order: str | None = None,
    start: int = 0,
    laws: tuple[Mapping[str, Inside], Mapping[str, Inside]] = ({}, {}),
) -> tuple[pa.Table, pa.Table]:
    """Return two Arrow tables, parents and child rows, in the columns and types of their schemas, `key` first.

    Args:
        roles: The `LinkRoles` of columns.
        drawn: The `DrawnTables` of parents and child rows.
        rng: Source of numbers within bins, for columns whose numbers are not drawn yet.
        key: Name of the invented key, which counts the parents from `start` + 1 on.
        order: Name of a column of the child rows that counts those of one parent from 1 on, unless the schema has it.
        start: Number of parents in the tables before.
        laws: `Inside` laws of numbers within bins, by column of the parent and of the child; of others the schemas'
            own.
    """
    numbers = start + 1 + np.arange(len(drawn.counts[roles.size]))
    codes: dict[str, Any] = {name: drawn.parent[name] for name in roles.parent.names if name in drawn.parent}
    exact: dict[str, NDArray[Any]] = {}
    for name, counts in drawn.counts.items():
        if name in roles.parent.columns:
            codes[name], exact[name] = _counted(roles.parent.column(name), counts)
    if roles.summed is not None and drawn.total is not None:
        codes[roles.summed.column] = Amounts(roles).band(drawn.total)
        exact[roles.summed.column] = drawn.total
    parents = decode(roles.parent, codes, rng, laws[0], _typed(roles.parent.columns, exact))
    for name, counts in drawn.counts.items():
        if name not in roles.parent.columns:
            parents = parents.append_column(name, pa.array(counts.astype(np.int64)))
    children = decode(roles.child, drawn.child, rng, laws[1], _typed(roles.child.columns, drawn.numbers))
    if order is not None and order not in roles.child.columns:
        children = children.add_column(0, order, pa.array((drawn.place + 1).astype(np.int64)))
    return (
        parents.add_column(0, key, pa.array(numbers)),
        children.add_column(0, key, pa.array(numbers[drawn.owner])),
    )


def _counted(column: Column, counts: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return two arrays, codes and numbers, of counts in a column of the parent.

    Counts without a level have the last code.
    """
    if isinstance(column, Categorical):
        places = np.array(
            [column.codes.get(str(number), column.size - 1) for number in range(counts.max(initial=0) + 1)]
        )
        return places[counts].astype(np.intp), counts.astype(np.float64)
    found = np.searchsorted(np.asarray(column.breaks, np.float64), counts, side="right") - 1
    return np.clip(found, 0, len(column.extents) - 1).astype(np.intp), counts.astype(np.float64)


def _typed(columns: Mapping[str, Column], exact: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a dict of the arrays `exact` of numeric columns, in the type that bins are drawn in.

    NaN, a level without a number, becomes 0; categorical columns are left out.
    """
    found = {}
    for name, numbers in exact.items():
        column = columns[name]
        if not isinstance(column, Categorical):
            real = np.nan_to_num(numbers)
            found[name] = real.astype(np.int64) if column.integer else real
    return found
