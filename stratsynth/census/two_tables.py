"""Schemas of the households of the census, of their persons, and of both as linked tables, with their rules."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from stratsynth.census.households import PERSON
from stratsynth.census.model import schema
from stratsynth.schema import Rule, Schema
from stratsynth.schema.linked import ChildCount, ChildSum, LinkedSchema

CHILDREN = 5
"""Number of children in a household that stands for all larger ones."""


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


@cache
def linked_schema() -> LinkedSchema:
    """Return the `LinkedSchema` of both tables: sizes, children and incomes are those of the persons."""
    return LinkedSchema(
        parent=household_schema(),
        child=person_schema(),
        key="SERIALNO",
        order="SPORDER",
        derived=derived(),
        difference="AGEP",
        rules=across(household_schema(), person_schema()),
    )


def derived() -> dict[str, ChildCount | ChildSum]:
    """Return a mapping from the columns of households that are made of their persons to `ChildCount` or `ChildSum`."""
    return {
        "NP": ChildCount(top=8),
        "N18": ChildCount(where={"AGEP": "..17"}, besides_reference=True, top=CHILDREN),
        "HINCP": ChildSum(column="PINCP"),
    }


def across(household: Schema, person: Schema) -> tuple[Rule, ...]:
    """Return a tuple of `Rule`, which tie households to their persons, as far as the two schemas have their columns."""
    children = [*map(str, range(CHILDREN)), f"{CHILDREN}+"]
    found = [Rule(when={"NP": str(n)}, never={"N18": tuple(children[n:])}) for n in range(1, CHILDREN + 1)]
    if "HHT" in household.columns:
        several = (*map(str, range(2, 8)), "8+")
        found += [
            Rule(when={"NP": "1"}, never={"HHT": ("1", "2", "3", "5", "7")}),
            Rule(when={"NP": several}, never={"HHT": ("4", "6")}),
        ]
        if "MAR" in person.columns:
            others = tuple(level for level in person.levels("MAR") if level != "1")
            found += [
                Rule(when={"HHT": "1"}, never={"R_MAR": others}),
                Rule(when={"second.HHT": "1"}, never={"second.MAR": others}),
            ]
    return tuple(found)
