"""Strata: the declared groups, and the paths of splits that lead to them.

Every declared group exists, whatever its count: the strata of some columns are the full crossing of their
levels in the schema, never what happens to occur in the rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stratsynth.errors import Unsupported, UsageError
from stratsynth.schema import Rule, Schema

MOST_STRATA = 100_000
"""Each stratum is a program and a model of its own."""


@dataclass(frozen=True, order=True)
class Stratum:
    """One group: a level for each of the columns that a split divides by."""

    items: tuple[tuple[str, str], ...]
    """The (column, level) pairs, in the order of the split."""

    @classmethod
    def of(cls, levels: Mapping[str, str]) -> Stratum:
        """The stratum that has these levels."""
        return cls(tuple(levels.items()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that define it."""
        return tuple(column for column, _ in self.items)

    @property
    def label(self) -> str:
        """Its levels joined by `|`, as released files write it."""
        return "|".join(level for _, level in self.items)

    def to_dict(self) -> dict[str, str]:
        """Column to level."""
        return dict(self.items)


Path = tuple[Stratum, ...]
"""The splits that lead from everybody (the empty path) to the rows a question is asked of."""


def label(path: Path) -> str:
    """The label of a path: its strata's labels joined by `|`; empty for everybody."""
    return "|".join(stratum.label for stratum in path)


def crossing(schema: Schema, by: Sequence[str]) -> tuple[Stratum, ...]:
    """All strata of `by`: the full crossing of the columns' declared levels, in the schema's order of levels."""
    if not by:
        raise UsageError("strata: name at least one column to stratify by.")
    if not all(isinstance(column, str) for column in by):
        raise UsageError("strata: `by` is a list of column names.")
    if len(set(by)) < len(by):
        raise UsageError("strata: a column is named twice in `by`.")
    levels = [schema.levels(column) for column in by]
    if math.prod(map(len, levels)) > MOST_STRATA:
        raise Unsupported(f"strata: {' x '.join(by)} has more than {MOST_STRATA:,} groups; use fewer columns or bins.")
    barred = [level for column in levels for level in column if "|" in level]
    if barred:
        raise UsageError(f"strata: the level {barred[0]!r} holds a |, which joins levels in released files.")
    return tuple(Stratum(tuple(zip(by, combination, strict=True))) for combination in itertools.product(*levels))


def within(schema: Schema, path: Path) -> Schema:
    """The schema that the rows of a path vary in: the columns that the path holds constant are gone."""
    constants = {column: level for stratum in path for column, level in stratum.items}
    left = schema.without(constants)
    return replace(left, rules=(*left.rules, *_inside(schema, constants))) if schema.rules else left


def _inside(schema: Schema, constants: Mapping[str, str]) -> Iterator[Rule]:
    """What the rules that mention constant columns say of the others."""
    for rule in schema.rules:
        if rule.names.isdisjoint(constants):
            continue
        for box in rule.cells(schema):
            if any(schema.index(c, level) not in box[c] for c, level in constants.items() if c in box):
                continue
            left = {c: sorted(codes) for c, codes in box.items() if c not in constants}
            rest = {c: tuple(schema.levels(c)[i] for i in codes) for c, codes in left.items()}
            if not rest or not all(rest.values()):
                continue
            name, levels = rest.popitem()
            # a level that cannot occur at all is written as a rule on whatever another column holds
            others = [c for c in schema.names if c != name and c not in constants]
            when = rest or {c: schema.levels(c) for c in others[:1]}
            if when:
                yield Rule(when=when, never={name: levels})
