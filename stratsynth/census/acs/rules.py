"""Structural rules that concern the columns of a schema."""

from __future__ import annotations

from typing import Any

from stratsynth.census.acs.catalogue import rules
from stratsynth.schema import Categorical, Numeric, Rule, Schema


def rules_of(schema: Schema) -> tuple[tuple[Rule, ...], int]:
    """Return (tuple of `Rule`, those whose columns a schema has; number of those that were counted on no file)."""
    found, unchecked = list[Rule](), 0
    for each in rules():
        if not each.when.keys() <= schema.columns.keys():
            continue
        when = {name: _condition(schema, name, said) for name, said in each.when.items()}
        never = {name: _condition(schema, name, said) for name, said in each.never.items() if name in schema.columns}
        never = {name: said for name, said in never.items() if said}
        if never and all(when.values()):
            found.append(Rule(when=when, never=never))
            unchecked += not each.held
    return tuple(found), unchecked


def _condition(schema: Schema, name: str, said: Any) -> Any:
    """Return a rule's condition `said` on column `name` as a schema has it: a range, a text; else a tuple of levels.

    `said` is a text or list of texts; the words "numbers" and "codes", and spans of codes such as "1..3", are written
    out.
    """
    column = schema.column(name)
    if isinstance(column, Numeric):
        return f">= {column.lower:g}" if said == "numbers" else said
    levels = _codes(column)
    parts = [said] if isinstance(said, str) else said
    found: list[str] = []
    for part in parts:
        if part == "codes":
            found += levels
        elif ".." in part:
            first, _, last = part.partition("..")
            found += [code for code in levels if code.isdigit() and int(first) <= int(code) <= int(last)]
        else:
            found += [part] if part in column.all_levels else []
    return tuple(found)


def _codes(column: Categorical) -> list[str]:
    """Return the list of all levels of a categorical column but the one for not applicable."""
    return [level for level in column.levels if level != column.not_applicable]
