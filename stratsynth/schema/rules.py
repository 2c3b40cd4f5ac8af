"""Structural zeros: combinations of values that no record can have."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from stratsynth.errors import SchemaError
from stratsynth.schema.columns import Column, Numeric

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema

Condition: TypeAlias = str | tuple[str, ...]
"""A level, several levels, or for a numeric column a comparison with a number such as "< 15" or ">= 65"."""

_COMPARISON = re.compile(r"\s*(<=|>=|<|>)(.*)", re.DOTALL)
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A record that meets every condition of `when` never meets any condition of `never`.

    Rules are checked against the columns and kept with the schema. No sample of a release breaks one: models may
    hold them, and rows that break one are drawn again (`stratsynth.models.rules`). Private rows are not checked:
    a record that breaks a rule is counted as it is.
    """

    when: Mapping[str, Condition] = field(hash=False)
    """Conditions by column, all of which must hold for the rule to apply."""

    never: Mapping[str, Condition] = field(hash=False)
    """Conditions by column, each of which is impossible if the rule applies."""

    def __post_init__(self) -> None:
        for key in ("when", "never"):
            object.__setattr__(self, key, _conditions(key, getattr(self, key)))
        if both := self.when.keys() & self.never.keys():
            raise SchemaError(f"when and never must not both name column {min(both)}")

    @property
    def names(self) -> frozenset[str]:
        """Set of the names of all columns that the rule mentions."""
        return frozenset(self.when.keys() | self.never.keys())

    def cells(self, schema: Schema) -> tuple[dict[str, frozenset[int]], ...]:
        """Return a tuple of forbidden boxes of a schema, {column: codes}, one for each of `never`: no record is in one.

        A bin meets a comparison only if all its values do, so that forbidden cells are
        certainly empty. Not applicable and missing meet no comparison.
        """
        when = {name: _codes(schema, name, condition) for name, condition in self.when.items()}
        return tuple({**when, name: _codes(schema, name, condition)} for name, condition in self.never.items())


def _conditions(key: str, conditions: object) -> dict[str, Condition]:
    if not isinstance(conditions, Mapping) or not conditions:
        raise SchemaError(f"{key} must be a table from column to levels, with at least one column")
    found: dict[str, Condition] = {}
    for name, condition in conditions.items():
        levels = isinstance(condition, (list, tuple)) and condition and all(isinstance(c, str) for c in condition)
        if not isinstance(condition, str) and not levels:
            raise SchemaError(
                f"{key}: the condition on {name} must be a level, a list of levels, or a comparison in quotes"
            )
        found[name] = condition if isinstance(condition, str) else tuple(condition)
    return found


def _codes(schema: Schema, name: str, condition: Condition) -> frozenset[int]:
    column = schema.column(name)
    if isinstance(condition, str):
        compared = None if condition in column.codes else _compared(column, condition)
        return compared if compared is not None else frozenset({schema.index(name, condition)})
    return frozenset(schema.index(name, level) for level in condition)


def _compared(column: Column, condition: str) -> frozenset[int] | None:
    """Return the codes of a column's bins wholly inside a comparison, `condition`, such as `>= 18`; None if none."""
    match = _COMPARISON.fullmatch(condition)
    if match is None or not isinstance(column, Numeric) or (bound := column.quantity(match[2])) is None:
        return None
    compare = _COMPARE[match[1]]
    return frozenset(code for code, ends in enumerate(column.extents) if all(compare(end, bound) for end in ends))
