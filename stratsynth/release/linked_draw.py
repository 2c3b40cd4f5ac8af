"""Two linked tables drawn from a release, some parents at a time: as many as are asked for, by condition.

A block of parents with all their child rows is drawn, those that meet the conditions are kept, and keys are counted on
from the block before: memory holds a block, whatever the number of parents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import check_integer, check_seed
from stratsynth.errors import UsageError
from stratsynth.models import Returns
from stratsynth.release.linked_where import LinkedWhere
from stratsynth.schema.counted_tables import CountedTables

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.models import Model
    from stratsynth.release.release import Release
    from stratsynth.schema.where import Conditions

STATED = ("parents", "rows", "backed_off", "relaxed", "other_bands")
"""Counts of a drawing that certificates state."""
BLOCK = 50_000
"""Largest number of parents drawn at a time."""
TRIES = 1_000
"""Largest number of parents drawn for each that is asked for, beyond one block: the limit of conditions."""


@dataclass(frozen=True)
class LinkedDrawing:
    """Sample of two linked tables: equal seeds give equal rows."""

    model: Model
    where: LinkedWhere
    n: int
    """Number of parents that are kept."""
    seed: int | None

    @classmethod
    def of(cls, release: Release, n: int | None, seed: int | None, where: Conditions | None = None) -> LinkedDrawing:
        """Return the `LinkedDrawing` of n parents (None: as declared) of a `Release`, by `seed`, that meet `where`.

        UsageError for a release of no linked tables, a number that is unknown or none, and conditions that no parent
        meets; SchemaError for columns and levels that there are not.
        """
        check_integer("n", n, 0, optional=True)
        check_seed(seed)
        schema, number = release.model.schema, release.model.rows_to_draw(n, release.declared_size)
        if release.model.returns != Returns.TABLES:
            release.model.linked_tables(0, np.random.default_rng(0))  # refuses, and says what there is
        assert isinstance(schema, CountedTables)  # noqa: S101 - that of any model of linked tables
        return cls(release.model, LinkedWhere.of(schema.linked, where), number or 0, seed)

    def blocks(self, counted: MutableMapping[str, Any] | None = None) -> Iterator[Mapping[str, pa.Table]]:
        """Yield dicts {table's name: Arrow table}, the parents' first: some parents, and their child rows.

        At least one. What drawing had to give up is added to the numbers in the dict `counted`, by name, over all
        parents that were drawn.
        """
        rng, found = np.random.default_rng(self.seed), {} if counted is None else counted
        evidence = self.model.linked_evidence(self.where.evidence())
        kept = drawn = 0
        while kept < self.n or not drawn:
            missing = self.n - kept
            rejected = drawn > 0 and not self.where.free
            some = min(BLOCK, math.ceil(missing * 1.05 * drawn / max(kept, 1)) if rejected else missing)
            own: dict[str, Any] = {}
            tables = self.model.linked_tables(some, rng, own, **({"where": evidence} if evidence else {}))
            _add(found, own)
            if not self.where.free:
                tables = _first(tables, self.where, missing)
            yield _numbered(tables, self.where.linked.key, kept)
            kept, drawn = kept + next(iter(tables.values())).num_rows, drawn + max(some, 1)
            if kept < self.n and drawn > BLOCK + TRIES * self.n:
                parent = self.where.linked.names[0]
                raise UsageError(
                    f"where: of {drawn:,} {parent}s that were drawn {kept:,} meet it, and no more than {TRIES:,} are "
                    f"drawn for each one that is asked for (and {BLOCK:,} beside). Ask for more common {parent}s, or "
                    "for fewer conditions."
                )


def linked_draw(
    release: Release,
    n: int | None,
    seed: int | None,
    counted: MutableMapping[str, Any] | None = None,
    where: Conditions | None = None,
) -> Mapping[str, pa.Table]:
    """Return {table's name: Arrow table}: n parents (None: as declared) of a `Release`, then their child rows.

    They are drawn by `seed`; parents meet the conditions `where`. What drawing had to give up is noted in the dict
    `counted`, as the certificate's `drawn` states it. Refusals are those of `LinkedDrawing`.
    """
    import pyarrow as pa

    found: dict[str, Any] = {}
    blocks = list(LinkedDrawing.of(release, n, seed, where).blocks(found))
    if counted is not None:
        counted.update((key, value) for key, value in found.items() if key in STATED)
    return {name: pa.concat_tables(block[name] for block in blocks) for name in blocks[0]}


def _add(found: MutableMapping[str, Any], more: Mapping[str, Any]) -> None:
    """Add the numbers of `more` to those of `found`, in place: mappings from name to number, or to such a mapping."""
    for key, value in more.items():
        if isinstance(value, Mapping):
            _add(found.setdefault(key, {}), value)
        else:
            found[key] = found.get(key, 0) + value


def _first(tables: Mapping[str, pa.Table], where: LinkedWhere, most: int) -> dict[str, pa.Table]:
    """Return {name: Arrow table} of the first parents, at most `most`, that meet a `LinkedWhere`, and their child rows.

    `tables` are those drawn, the parents' first, by name too.
    """
    import pyarrow as pa

    (above, parents), (below, children) = tables.items()
    met = where.met(tables)
    met &= np.cumsum(met) <= most
    keys = np.asarray(parents.column(where.linked.key))
    owned = met[np.searchsorted(keys, np.asarray(children.column(where.linked.key)))]
    return {above: parents.filter(pa.array(met)), below: children.filter(pa.array(owned))}


def _numbered(tables: Mapping[str, pa.Table], key: str, start: int) -> dict[str, pa.Table]:
    """Return {name: Arrow table} of two drawn `tables` whose column `key` counts the parents from `start` + 1 on.

    `tables` are by name, the parents' first; keys rise in both.
    """
    import pyarrow as pa

    keys = np.asarray(next(iter(tables.values())).column(key))
    return {
        name: table.set_column(
            table.column_names.index(key),
            table.schema.field(key),
            pa.array(start + 1 + np.searchsorted(keys, np.asarray(table.column(key)))).cast(
                table.schema.field(key).type
            ),
        )
        for name, table in tables.items()
    }
