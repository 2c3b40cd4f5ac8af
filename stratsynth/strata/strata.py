"""Strata: the declared groups, and the paths of splits that lead to them.

Every declared group exists, whatever its count: the strata of some columns are the full crossing of their
levels in the schema, never what happens to occur in the rows. A stratum has one level of each column, or
several that were merged; a merged column still varies inside its stratum, among those levels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from stratsynth.schema import Schema
from stratsynth.schema.narrow import narrow
from stratsynth.strata.ruled import impossible, inside

KNOWN = 1 << 10
"""How many schemas of strata are kept, to be handed out again."""

Cell = tuple[str, ...]
"""A level for each column, in the order of the columns' names: what a stratum is made of."""


@dataclass(frozen=True, order=True)
class Stratum:
    """One group: for each of the columns that a split divides by, its level, or the levels merged into one."""

    items: tuple[tuple[str, tuple[str, ...]], ...]
    """The columns in the order of the split, each with its levels, in the schema's order."""
    names: tuple[str, ...] = field(default=(), compare=False)
    """What each column's levels are called in released files: a level itself, a merge by its public name."""

    def __post_init__(self) -> None:
        """A merge without a name is called by its levels."""
        if not self.names:
            object.__setattr__(self, "names", tuple("+".join(levels) for _, levels in self.items))

    @classmethod
    def of(cls, levels: Mapping[str, str | Sequence[str]], names: Sequence[str] = ()) -> Stratum:
        """The stratum that has these levels."""
        items = ((c, (several,) if isinstance(several, str) else tuple(several)) for c, several in levels.items())
        return cls(tuple(items), tuple(names))

    @classmethod
    def from_dict(cls, record: Mapping[str, str]) -> Stratum:
        """The stratum that `to_dict` wrote; the names of its merges are not kept there."""
        return cls.of({column: levels.split("|") for column, levels in record.items()})

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that define it."""
        return tuple(column for column, _ in self.items)

    @cached_property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """Each column's levels."""
        return dict(self.items)

    @property
    def label(self) -> str:
        """Its names joined by `|`, as released files write it."""
        return "|".join(self.names)

    @property
    def is_merge(self) -> bool:
        """Whether some column has several levels."""
        return any(len(levels) > 1 for _, levels in self.items)

    @property
    def size(self) -> int:
        """The number of cells of the full crossing that it is made of."""
        return math.prod(len(levels) for _, levels in self.items)

    def cells(self) -> Iterator[Cell]:
        """The cells of the full crossing that it is made of."""
        return itertools.product(*(levels for _, levels in sorted(self.items)))

    def codes(self, schema: Schema) -> dict[str, list[int]]:
        """The codes of each column's levels in a schema; a model inside a merge counts these from 0, in this order."""
        return {column: [schema.index(column, level) for level in levels] for column, levels in self.items}

    def to_dict(self) -> dict[str, str]:
        """Column to level, merged levels joined by `|`: texts that say everything, whatever a merge is called."""
        return {column: "|".join(levels) for column, levels in self.items}


StratumPath = tuple[Stratum, ...]
"""The splits that lead from everybody (the empty path) to the rows a question is asked of."""


def label(path: StratumPath) -> str:
    """The label of a path: its strata's labels joined by `|`; empty for everybody."""
    return "|".join(stratum.label for stratum in path)


def disjoint(strata: Iterable[Stratum]) -> bool:
    """Whether strata of the same columns have no cell in common."""
    seen: set[Cell] = set()
    for stratum in strata:
        cells = list(stratum.cells())
        if not seen.isdisjoint(cells):
            return False
        seen.update(cells)
    return True


def within(schema: Schema, path: StratumPath) -> Schema:
    """The schema that the rows of a path vary in.

    Columns that a stratum holds constant are gone; merged ones are there with the merged levels alone. Strata that
    differ in nothing but single levels of columns that no rule names have one schema, made once.
    """
    for stratum in path:
        ruled, items = _ruled(schema), []
        for name, levels in stratum.items:
            column = schema.column(name)
            if ruled:
                for level in levels:
                    schema.index(name, level)
            items.append((name, levels if len(levels) > 1 or name in ruled else column.all_levels[:1]))
        schema = _inner(schema, tuple(items))
    return schema


@lru_cache(maxsize=KNOWN)
def _ruled(schema: Schema) -> frozenset[str]:
    """The columns that rules name."""
    return frozenset(name for rule in schema.rules for name in rule.names)


@lru_cache(maxsize=KNOWN)
def _inner(schema: Schema, items: tuple[tuple[str, tuple[str, ...]], ...]) -> Schema:
    stratum = Stratum(items)
    columns = dict(schema.columns)
    if not all(schema.column(name).public for name in stratum.columns):  # who is in it is no public knowledge
        columns = {n: replace(c, public=False) if c.public else c for n, c in columns.items()}
    for name, levels in stratum.items:
        if len(levels) == 1:
            del columns[name]
        else:
            columns[name] = narrow(columns[name], levels)
    inner = replace(schema, columns=columns, rules=())
    if not schema.rules or impossible(schema, [stratum]):  # where no row can be, no rule says anything
        return inner
    kept = (rule for rule in schema.rules if rule.names.isdisjoint(stratum.levels))
    return replace(inner, rules=(*kept, *inside(schema, inner, stratum)))
