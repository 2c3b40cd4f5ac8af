"""Refusals of what cannot be meant as a schema declares it: names, a frame, columns of units and weights, rules.

The row of a record depends on that record alone under any schema: a mistake here lets an odd one pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.checks import quoted_value
from stratsynth.errors import SchemaError
from stratsynth.schema import toml, typed
from stratsynth.schema.columns import Categorical, Numeric
from stratsynth.schema.rules import Rule
from stratsynth.schema.text import check_text
from stratsynth.schema.weight import RowWeight

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema


def check_columns(schema: Schema) -> None:
    """Raise SchemaError for a schema's column whose name cannot stand in released files, or that is no column."""
    for name, column in schema.columns.items():
        text = check_text("a column name", name)
        if any(c in text for c in ",|="):
            raise SchemaError(f"column name {text!r} must not hold ',', '|' or '=', which join names in released files")
        if not isinstance(column, (Categorical, Numeric)):
            raise SchemaError(
                f"column {name} must be Categorical(levels=[...]) or Numeric(lower=..., upper=...), "
                f"not {quoted_value(column)}"
            )


def check_beside(schema: Schema) -> None:
    """Raise SchemaError for a schema's unknown frame, and for columns of units or weights released or twice."""
    unit = None if isinstance(schema.unit, str) else schema.unit.column
    if unit in schema.columns:
        raise SchemaError(f"unit: {unit} tells people apart, so it must not be released: leave it out of the columns")
    if schema.frame is not typed.PANDAS:
        typed.check_frame(schema.frame, schema.names)
    weight = schema.row_weight.column if isinstance(schema.row_weight, RowWeight) else None
    if weight in schema.columns:
        raise SchemaError(
            f"weight: rows count as {weight} says, and released rows count 1 each: leave it out of the columns"
        )
    if weight is not None and unit == weight:
        raise SchemaError(f"weight: {weight} tells people apart; no column does both")


def check_rules(schema: Schema) -> None:
    """Raise SchemaError for what is no rule in a schema, and for a rule of levels or columns that do not exist."""
    for i, rule in enumerate(schema.rules, start=1):
        if not isinstance(rule, Rule):
            raise SchemaError("rules must be a list of Rule")
        with toml.blame(f"rule {i}"):
            rule.cells(schema)
