"""Values of the release's model for cells that no measured table covers: without intervals, labelled as the model's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.answers.quantiles import numbers_at
from stratsynth.answers.query import codes
from stratsynth.errors import UsageError
from stratsynth.schema import Numeric
from stratsynth.schema.inside import declared, middles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from stratsynth.answers.query import Query
    from stratsynth.models import Model, TableModel
    from stratsynth.schema.inside import Inside

    Floats = NDArray[np.float64]

MOST = 2_000
"""Largest number of cell probabilities that one query asks of the model; beyond, no value is given."""


def modelled(
    model: Model, query: Query, wanted: NDArray[np.bool_], total: float, laws: Mapping[str, Inside] | None = None
) -> Floats:
    """Return the model's value in each of a query's cells that is wanted, NaN in the others.

    Args:
        model: The release's model.
        query: The query.
        wanted: Mask of the cells to answer.
        total: Number of records, which a count multiplies a probability by.
        laws: `Inside` laws of numbers within bins, by column, where they are more than the schema's; None for none.

    Returns:
        A value for each cell; NaN if not wanted, if the model has no distribution of rows, or if more than `MOST`
        probabilities would be needed.
    """
    found = np.full(len(wanted), np.nan)
    try:
        table = model.table_model()
    except UsageError:
        return found
    # the cost is counted in cell probabilities: two for a share or rate, one per bin for a number
    each = model.schema.size(query.columns[0]) if query.numeric else 2
    if wanted.sum() * each * (1 + bool(query.versus)) > MOST:
        return found
    shape = model.schema.shape(query.cells)
    for place in np.flatnonzero(wanted):
        cell = dict(zip(query.cells, (int(i) for i in np.unravel_index(place, shape)), strict=True)) if shape else {}
        found[place] = _value(table, query, cell, total, laws or {})
        if query.versus:
            other = {name: codes(model.schema, name, level)[0] for name, level in query.versus.items()}
            found[place] -= _value(table, query, {**cell, **other}, total, laws or {})
    return found


def _value(model: TableModel, query: Query, cell: dict[str, int], total: float, laws: Mapping[str, Inside]) -> float:
    """Return a query's count of `total`, share, rate, mean or quantile in a cell (column -> code), by a model.

    Numbers within bins follow `laws`, a mapping from column to `Inside`.
    """
    where = {name: frozenset(codes(model.schema, name, levels)) for name, levels in query.where.items()}
    group = _narrowed(where, {name: cell[name] for name in query.by})
    if query.numeric:
        return _number(model, query, group, laws)
    inside = _mass(model, _narrowed(where, cell))
    if query.statistic == "count":
        return total * inside
    of = _mass(model, where if query.statistic == "share" else group)
    return inside / of if of > 0 else math.nan


def _number(model: TableModel, query: Query, group: dict[str, frozenset[int]], laws: Mapping[str, Inside]) -> float:
    """Return the model's mean or quantile of the query's column in a group, column -> codes; NaN if it has no mass.

    Numbers are as drawn within bins, by `laws`, a mapping from column to `Inside`.
    """
    name = query.columns[0]
    column = cast("Numeric", model.schema.column(name))
    law = laws[name] if name in laws else declared(column)
    masses = np.array([_mass(model, _narrowed(group, {name: i})) for i in range(len(column.extents))])
    if not masses.sum() > 0:
        return math.nan
    if query.statistic == "mean":
        return float(masses @ np.array(middles(column, law)) / masses.sum())
    below = np.concatenate([[0.0], np.cumsum(masses)]) / masses.sum()
    i = min(max(int(np.searchsorted(below, query.order)) - 1, 0), len(masses) - 1)
    part = (query.order - below[i]) * masses.sum() / max(masses[i], 1e-300)
    return float(numbers_at(column, law, i, min(part, 1.0)))


def _narrowed(where: dict[str, frozenset[int]], cell: dict[str, int]) -> dict[str, frozenset[int]]:
    """Return the condition `where`, column -> codes, with the code of each column of `cell` demanded too."""
    narrowed = dict(where)
    for name, code in cell.items():
        narrowed[name] = narrowed.get(name, frozenset({code})) & {code}
    return narrowed


def _mass(model: TableModel, where: dict[str, frozenset[int]]) -> float:
    """Return the model's probability, 0 to 1, of the condition `where`, column -> codes; 0 if a column has none."""
    return model.mass(where) if all(where.values()) else 0.0
