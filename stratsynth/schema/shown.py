"""HTML of a schema, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.report.notebook import render
from stratsynth.report.page import Column, Figure, Page, Row, Section, Table
from stratsynth.schema.columns import Categorical
from stratsynth.schema.nested import Nested
from stratsynth.schema.temporal import Temporal

if TYPE_CHECKING:
    from stratsynth.schema.columns import Column as SchemaColumn
    from stratsynth.schema.schema import Schema

LEVELS = 8
"""Largest number of levels that are named."""


def schema_html(schema: Schema) -> str:
    """Return HTML with a schema's facts, and a table of its columns' kinds, numbers of categories and values."""
    rows: list[Row] = [[name, _kind(column), column.size, _values(column)] for name, column in schema.columns.items()]
    unit = "a record" if isinstance(schema.unit, str) else f"{schema.unit.column}, up to {schema.unit.max_rows} rows"
    reviewed = "" if schema.reviewed_by is None else f", reviewed by {schema.reviewed_by}"
    facts = [("From", f"{schema.origin}{reviewed}"), ("Protects", unit), ("Rules", f"{len(schema.rules)}")]
    heads = [Column("column", "text"), Column("kind", "text"), Column("categories", "count"), Column("values", "text")]
    columns = Figure("", table=Table("", heads, rows))
    return render(Page("Schema", sections=[Section("columns", "", facts=facts, figures=[columns])]))


def _kind(column: SchemaColumn) -> str:
    """Return words for a column's kind, such as "ordered categories", "whole numbers" or "dates, by the day"."""
    if isinstance(column, Nested):
        return f"codes in groups, {len(column.single.levels)} codes" if column.members else "codes"
    if isinstance(column, Categorical):
        return "ordered categories" if column.ordered else "categories"
    if isinstance(column, Temporal):
        return f"{column.kind}s, by the {column.unit}"
    return "whole numbers" if column.integer else "numbers"


def _values(column: SchemaColumn) -> str:
    """Return text: a column's range, "0 to 99", or its first levels by commas and their number."""
    if not isinstance(column, Categorical):
        return f"{column.spell(column.lower)} to {column.spell(column.upper)}"
    levels = column.all_levels
    return ", ".join(levels[:LEVELS]) + (f", ... ({len(levels)} in all)" if len(levels) > LEVELS else "")
