"""Strata: the declared groups, and the paths of splits to them.

Every declared group exists, whatever its count: the strata of some columns are the full crossing of their
levels in the schema, never the combinations that occur in the rows. A stratum has one level of each column, or
several that were merged; a merged column still varies inside its stratum, among those levels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from stratsynth.schema import Schema
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.schema.narrow import narrow
from stratsynth.strata.ruled import impossible, inside

KNOWN = 1 << 10
"""Number of schemas of strata in the cache."""

Cell = tuple[str, ...]
"""One level of each column, in the order of the columns' names: an element of a stratum."""


@dataclass(frozen=True, order=True)
class Stratum:
    """One group: for each column that a split divides by, its level, or the levels merged into one."""

    items: tuple[tuple[str, tuple[str, ...]], ...]
    """Columns in the order of the split, each with its levels in the schema's order."""
    names: tuple[str, ...] = field(default=(), compare=False)
    """Name of each column's levels in released files: a level itself, or the public name of a merge."""

    def __post_init__(self) -> None:
        """Name a merge without a name by its levels."""
        if not self.names:
            object.__setattr__(self, "names", tuple("+".join(levels) for _, levels in self.items))

    @classmethod
    def of(cls, levels: Mapping[str, str | Sequence[str]], names: Sequence[str] = ()) -> Stratum:
        """Return the stratum of a mapping from column to level, or to several merged levels; names are optional."""
        items = ((c, (several,) if isinstance(several, str) else tuple(several)) for c, several in levels.items())
        return cls(tuple(items), tuple(names))

    @classmethod
    def from_dict(cls, record: Mapping[str, str]) -> Stratum:
        """Return the stratum of a dict `record`, column to levels, that `to_dict` wrote; merges are named by levels."""
        return cls.of({column: levels.split("|") for column, levels in record.items()})

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that define the stratum, in the order of the split."""
        return tuple(column for column, _ in self.items)

    @cached_property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """Mapping from column to a tuple of the stratum's levels: one level, or several that are merged."""
        return dict(self.items)

    @property
    def label(self) -> str:
        """Names of its levels joined by `|`, as released files write the stratum."""
        return "|".join(self.names)

    @property
    def is_merge(self) -> bool:
        """True if the stratum has several levels of some column."""
        return any(len(levels) > 1 for _, levels in self.items)

    @property
    def size(self) -> int:
        """Number of combinations of one level per column in the stratum; 1 without merged levels."""
        return math.prod(len(levels) for _, levels in self.items)

    def cells(self) -> Iterator[Cell]:
        """Yield each combination of one level per column in the stratum, columns in alphabetical order."""
        return itertools.product(*(levels for _, levels in sorted(self.items)))

    def codes(self, schema: Schema) -> dict[str, list[int]]:
        """Return {column: list of codes of the stratum's levels in a schema}; inside a merge they count from 0."""
        return {column: [schema.index(column, level) for level in levels] for column, levels in self.items}

    def to_dict(self) -> dict[str, str]:
        """Return a dict from column to level, merged levels joined by `|`; names of merges are left out."""
        return {column: "|".join(levels) for column, levels in self.items}


StratumPath = tuple[Stratum, ...]
"""Strata from the outermost split inwards, whose common rows a question is asked of; empty for all records."""


def label(path: StratumPath) -> str:
    """Return a text: the labels of a path's strata joined by `|`; empty for the empty path, all records."""
    return "|".join(stratum.label for stratum in path)


def disjoint(strata: Iterable[Stratum]) -> bool:
    """True if no two of the strata, all of the same columns, have a cell (combination of levels) in common."""
    seen: set[Cell] = set()
    for stratum in strata:
        cells = list(stratum.cells())
        if not seen.isdisjoint(cells):
            return False
        seen.update(cells)
    return True


def within(schema: Schema, path: StratumPath) -> Schema:
    """Return the schema that the rows of a path vary in.

    Columns that a stratum holds constant are dropped; merged ones keep the merged levels alone. Strata that
    differ only in single levels of columns that no rule names share one schema, made once.
    """
    for stratum in path:
        schema, own = schema.at(stratum.items) if isinstance(schema, CountedTables) else (schema, stratum.items)
        ruled, items = {name for rule in schema.rules for name in rule.names}, []
        for name, levels in own:
            column = schema.column(name)
            if ruled:
                for level in levels:
                    schema.index(name, level)
            items.append((name, levels if len(levels) > 1 or name in ruled else column.all_levels[:1]))
        schema = _inner(schema, tuple(items))
    return schema


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
