"""INTERNAL. Evaluation of two linked tables: errors by kind of table, by size and by group, and queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.linked.errors import linked_errors, linked_means
from stratsynth.evaluation.linked.page import linked_page
from stratsynth.evaluation.linked.queries import linked_queries
from stratsynth.evaluation.linked.rows import LinkedCodes, LinkedColumns
from stratsynth.evaluation.linked.structures import Household, broken_rules, household_shares

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from stratsynth.report.page import Page
    from stratsynth.schema.linked import LinkedSchema

WITHIN = ("H", "HP", "P2", "W", "S", "G")
"""Kinds of tables that are compared by default; triples of a person's columns, P3, are many."""


@dataclass(frozen=True)
class LinkedEvaluation:
    """INTERNAL. Scores of two linked tables."""

    linked: LinkedSchema
    errors: pd.DataFrame
    """Total variation of each table; see `linked_errors`."""
    queries: pd.DataFrame
    """Relative errors of queries like PrivPetal's; see `linked_queries`."""
    shares: pd.DataFrame | None
    """Shares of households of some structure, None where the tables lack the columns; see `household_shares`."""
    broken: Mapping[str, int]
    """Numbers of released rows that break a rule, by table; see `broken_rules`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Sizes and settings, as plain values."""

    @property
    def means(self) -> pd.DataFrame:
        """Frame with the mean error, floor and ceiling of each kind of table."""
        return linked_means(self.errors)

    def frames(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield (name, frame) for every score."""
        import pandas as pd

        yield "means", self.means
        yield "errors", self.errors
        yield "queries", self.queries
        if self.shares is not None:
            yield "shares", self.shares
        yield "broken", pd.DataFrame({"rules": list(self.broken), "rows": list(self.broken.values())})

    def page(self, name: str, certificate: Mapping[str, Any] | None) -> Page:
        """Return the Page for readers, on which the release is called `name`; `certificate` is not shown."""
        return linked_page(self, name)


def evaluate_linked(
    real: tuple[Any, Any],
    synthetic: tuple[Any, Any],
    linked: LinkedSchema,
    group: str | None = None,
    *,
    kinds: tuple[str, ...] = WITHIN,
    queries: int = 300,
    repetitions: int = 5,
    seed: int = 0,
) -> LinkedEvaluation:
    """INTERNAL. LinkedEvaluation of two pairs of tables: within households, by their size and by group, and by queries.

    Args:
        real: The private tables, a pair (parents, children): frames or Arrow tables.
        synthetic: The released ones, a pair alike.
        linked: Their LinkedSchema; parents of kinds that a fit leaves out are left out here too.
        group: Column of the child: parents are grouped by its level in their first row.
        kinds: Kinds of tables; see `linked_errors`.
        queries: Number of queries; see `linked_queries`.
        repetitions: Number of bootstrap samples of parents, for floors.
        seed: Seed of queries, samples and random assignments.
    """
    columns = LinkedColumns.of(linked, group)
    mine, theirs = ((counted_parents(linked, above), below) for above, below in (real, synthetic))
    kinds = tuple(kind for kind in kinds if kind != "G" or group is not None)
    errors = linked_errors(mine, theirs, columns, kinds=kinds, repetitions=repetitions, seed=seed)
    asked = linked_queries(mine, theirs, columns, number=queries, repetitions=repetitions, seed=seed)
    of, shares = Household(), None
    if of.age in linked.child.columns and of.kind in linked.parent.columns:
        shares = household_shares(mine, theirs, columns, of, seed=seed)
    sizes = [LinkedCodes.read(*each, columns) for each in (mine, theirs)]
    names = [f"{whose} {name}" for whose in ("real", "synthetic") for name in linked.names]
    numbers = [count for each in sizes for count in (len(each.size), len(each.home))]
    facts = {**dict(zip(names, numbers, strict=True)), "group": group, "seed": seed, "bootstrap samples": repetitions}
    return LinkedEvaluation(linked, errors, asked, shares, broken_rules(theirs, columns), facts)


def counted_parents(linked: LinkedSchema, parents: Any) -> pa.Table:
    """Return `parents`, a frame or Arrow table, as an Arrow table of the kinds that a `LinkedSchema` has counted."""
    import pyarrow as pa

    from stratsynth.schema.encoding import encode_categorical

    table = parents if isinstance(parents, pa.Table) else pa.Table.from_pandas(parents, preserve_index=False)
    for name, levels in linked.occupied.items():
        codes, _ = encode_categorical(linked.parent.column(name), table.column(name))  # type: ignore[arg-type]
        table = table.filter(pa.array(np.isin(codes, [linked.parent.index(name, level) for level in levels])))
    return table
