"""Schemas of the households of the census, and of their persons, with the rules of each table."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from stratsynth.census.households import PERSON
from stratsynth.census.model import schema
from stratsynth.schema import Rule, Schema


@cache
def household_schema() -> Schema:
    """Return the schema of households, from household.toml."""
    return Schema.from_toml(Path(__file__).parent / "household.toml")


@cache
def person_schema() -> Schema:
    """Return the schema of the persons of households: some columns of people, with their rules."""
    rules = []
    for rule in schema().rules:
        never = {name: levels for name, levels in rule.never.items() if name in PERSON}
        if rule.when.keys() <= set(PERSON) and never:
            rules.append(Rule(when=rule.when, never=never))
    return replace(schema().restrict(PERSON), rules=tuple(rules))
