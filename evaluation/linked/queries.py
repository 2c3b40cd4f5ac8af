"""INTERNAL. Queries like those of PrivPetal: households of some size and kind, with one or two persons of other kinds.

PrivPetal's published code (`evaluate_2table_1individual_relative.py` and `evaluate_2table_2individual_relative.py`)
draws queries with one or two attributes of the household and of one, or of two different, persons in it, sizes from a
range of a fifth of 1 to 7, and a selectivity of 0.2 over the domains of all attributes together. An error is the
difference of the two counts over the larger of the true one and 1 % of the households. This follows it in all of that;
its tables, groups cut at 8 rows, and ranges are not the same, so that figures are no comparison with published ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.linked.rows import LinkedCodes, LinkedColumns
from stratsynth.evaluation.tables.encoded import Array
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.random import Generator

SELECTIVITY, SIZES, PART, LEAST = 0.2, 7, 0.2, 0.01
"""Part of the domain that all attributes together select; sizes from 1 to it; part of them that a query has; and part
of the households that an error is at least relative to."""
MOST = 2
"""Largest number of attributes of a household, and of a person, in a query."""


@dataclass(frozen=True)
class HouseholdQuery:
    """Count of households of some sizes that meet conditions, with one or two different persons who meet others."""

    sizes: tuple[int, ...]
    """Numbers of persons."""
    household: Mapping[str, frozenset[int]]
    """Level numbers allowed by column of the parent."""
    persons: tuple[Mapping[str, frozenset[int]], ...]
    """Level numbers allowed by column of the child, of each person."""

    @classmethod
    def draw(cls, columns: LinkedColumns, persons: int, rng: Generator) -> HouseholdQuery:
        """Return a `HouseholdQuery` with so many `persons`, 1 or 2, drawn by `rng` over the levels of LinkedColumns."""
        width = max(1, round(PART * SIZES))
        start = int(rng.integers(persons, SIZES - width + 2))
        above, below = (
            [name for name in schema.names if schema.size(name) > 1] for schema in (columns.parent, columns.child)
        )
        chosen = [
            tuple(rng.choice(names, min(int(rng.integers(1, MOST + 1)), len(names)), replace=False)) if names else ()
            for names in (above, *[below] * persons)
        ]
        part = SELECTIVITY ** (1 / max(sum(map(len, chosen)), 1))
        first, *others = chosen
        return cls(
            tuple(range(start, start + width)),
            {str(name): _levels(columns.parent.column(str(name)), part, rng) for name in first},
            tuple({str(name): _levels(columns.child.column(str(name)), part, rng) for name in some} for some in others),
        )

    def met(self, rows: LinkedCodes) -> Array:
        """Return a mask of the parents of LinkedCodes that the query counts."""
        found: Array = np.isin(np.minimum(rows.size, SIZES), self.sizes)
        for name, levels in self.household.items():
            found &= np.isin(rows.parent[name], list(levels))
        masks = [_met(rows, person) for person in self.persons]
        counts = [np.bincount(rows.home[mask], minlength=len(found)) for mask in masks]
        if len(masks) == 1:
            return found & (counts[0] > 0)
        both = np.bincount(rows.home[masks[0] & masks[1]], minlength=len(found))
        return found & (counts[0] * counts[1] > both)  # a pair of two different ones

    def words(self) -> str:
        """Return the query as text: sizes, and the columns that each part has conditions on."""
        persons = " and ".join(f"a person by {', '.join(each)}" for each in self.persons)
        return f"{self.sizes[0]} to {self.sizes[-1]} persons, household by {', '.join(self.household)}, {persons}"


def linked_queries(
    real: tuple[Any, Any],
    synthetic: tuple[Any, Any],
    columns: LinkedColumns,
    *,
    number: int = 300,
    repetitions: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """INTERNAL. Relative errors of queries like PrivPetal's, beside a bootstrap of parents and persons at random.

    Args:
        real: The private tables, a pair (parents, children): frames or Arrow tables.
        synthetic: The released ones, a pair alike; counts are brought to as many parents.
        columns: Their LinkedColumns.
        number: Number of queries, half of them with one person and half with two; the same for equal seeds.
        repetitions: Number of bootstrap samples of parents, for the floor.
        seed: Seed of the queries, these samples, and of the random assignment of persons, which is the ceiling.

    Returns:
        A frame with a row a query: `query`, `persons`, the counts `real` and `synthetic`, the relative error `value`,
        `floor` and `ceiling`.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    asked = [HouseholdQuery.draw(columns, 1 + i % 2, rng) for i in range(number)]
    one, other = (LinkedCodes.read(*each, columns) for each in (real, synthetic))
    shuffled, n = one.shuffled(rng), len(one.size)
    weights = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(repetitions)] if n else []
    scale, found = n / max(len(other.size), 1), []
    for query in asked:
        mask = query.met(one)
        exact, made, mixed = float(mask.sum()), float(query.met(other).sum()) * scale, float(query.met(shuffled).sum())
        below = max(exact, LEAST * n, 1.0)
        chance = [abs(float(each[mask].sum()) - exact) / below for each in weights]
        found.append(
            {
                "query": query.words(),
                "persons": len(query.persons),
                "real": exact,
                "synthetic": made,
                "value": abs(made - exact) / below,
                "floor": float(np.mean(chance)) if chance else np.nan,
                "ceiling": abs(mixed - exact) / below,
            }
        )
    return pd.DataFrame(found)


def _met(rows: LinkedCodes, condition: Mapping[str, frozenset[int]]) -> Array:
    """Return a mask of the child rows of LinkedCodes that meet `condition`, {column: set of level numbers allowed}."""
    found = np.ones(len(rows.home), dtype=bool)
    for name, levels in condition.items():
        found &= np.isin(rows.child[name], list(levels))
    return found


def _levels(column: Any, part: float, rng: Generator) -> frozenset[int]:
    """Return a frozenset of level numbers drawn by `rng`, about the share `part` of a column's, at least one.

    Of a column of numbers they are bins side by side.
    """
    width = max(1, round(part * column.size))
    if isinstance(column, Numeric):
        start = int(rng.integers(0, column.size - width + 1))
        return frozenset(range(start, start + width))
    return frozenset(int(code) for code in rng.choice(column.size, width, replace=False))
