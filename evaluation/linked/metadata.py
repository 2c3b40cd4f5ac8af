"""Two linked tables described as SDMetrics' multi-table reports read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stratsynth.schema import Numeric, Temporal
from stratsynth.schema.linked import SIZE

if TYPE_CHECKING:
    from stratsynth.schema import Column, Schema
    from stratsynth.schema.linked import LinkedSchema

KEY = {"sdtype": "id"}


def linked_metadata(linked: LinkedSchema) -> dict[str, Any]:
    """Return the metadata of a `LinkedSchema`, a dict as SDMetrics' multi-table reports take it, of what is drawn.

    With `metadata = linked_metadata(schema)`, `sdmetrics.reports.QualityReport().generate(real, synthetic, metadata)`
    takes each pair of tables as a dict by name, `{"household": households, "person": persons}`. Counts of child rows
    are columns of the parent, which the real table has to have as well.
    """
    (parent, child), number = linked.names, {"sdtype": "numerical"}
    counts = {name: number for name in linked.counts if name not in (SIZE, *linked.parent.names)}
    order = {name: number for name in linked.order[:1] if name not in linked.child.columns}
    return {
        "tables": {
            parent: {"primary_key": linked.key, "columns": {linked.key: KEY, **_columns(linked.parent), **counts}},
            child: {"columns": {linked.key: KEY, **order, **_columns(linked.child)}},
        },
        "relationships": [
            {
                "parent_table_name": parent,
                "parent_primary_key": linked.key,
                "child_table_name": child,
                "child_foreign_key": linked.key,
            }
        ],
    }


def _columns(schema: Schema) -> dict[str, dict[str, str]]:
    return {name: {"sdtype": _kind(column)} for name, column in schema.columns.items()}


def _kind(column: Column) -> str:
    if isinstance(column, Temporal):
        return "datetime" if column.kind in {"date", "datetime"} else "categorical"
    return "numerical" if isinstance(column, Numeric) else "categorical"
