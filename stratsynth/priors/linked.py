"""Tables of a prior of two linked tables, such as last year's households with their persons: pairs of counted columns.

A fit of linked tables draws child rows from graphical models, which start from tables, not from rows. Of each counted
table those pairs are taken that say most of each other in the prior's rows, a tree of the columns (Chow and Liu 1968):
with more tables fits take minutes. All rows here are public.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.data.linked_rows import slots_of
from stratsynth.digest import digest
from stratsynth.errors import UsageError
from stratsynth.mechanisms.known import Known
from stratsynth.priors.certificate_section import file_hash
from stratsynth.schema.counted_tables import OTHERS, PARENT, REST, SECOND, named, slot_levels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from stratsynth.data.linked_slots import Slot
    from stratsynth.data.sources import Source
    from stratsynth.schema.counted_tables import CountedTables

Pair = tuple[str, str]
LEAST_KEPT = 0.5
"""Smallest part of the prior's parents that must be counted by the schema."""
MOST_CELLS = 2**14
"""Largest number of cells of a pair's table."""


def linked_tables(
    parents: Source, children: Source, counted: CountedTables, citation: str
) -> tuple[tuple[Known, ...], list[dict[str, Any]]]:
    """Return (`Known` tables of counted columns; entries of the certificate) of two public files, a `Source` each.

    UsageError for files without a column of the schema, or of which it counts less than half the parents.
    """
    linked = counted.linked
    for source, names in (
        (parents, (*linked.parent.names, linked.key)),
        (children, (*linked.child.names, *linked.beside)),
    ):
        lacking = [name for name in names if source.columns().count(name) != 1]
        if lacking:
            raise UsageError(f"prior: one of its two tables has no column {lacking[0]}, or more than one.")
    above = parents.read((*linked.parent.names, linked.key))
    below = children.read((*linked.child.names, *linked.beside))
    slots = slots_of(linked, above, below, counted.row_weight.most)
    homes = sum(len(slots[slot].owner) for slot in (PARENT, *linked.kinds))
    if homes < LEAST_KEPT * max(1, above.num_rows) or not len(slots[PARENT].owner):
        raise UsageError(
            f"prior: the schema counts {homes:,} of its {above.num_rows:,} {linked.names[0]} rows. Give its columns "
            "the schema's names and levels."
        )
    found = [known for slot, rows in slots.items() for known in _tables(counted, slot, rows) if len(rows.owner)]
    said = [
        {
            "columns": list(names),
            "citation": citation,
            "people": homes,
            "error": 0.0,
            "sha256": digest(*(table.shares for table in found)),
            **file_hash(source.path),
        }
        for source, names in ((parents, linked.parent.names), (children, linked.child.names))
    ]
    return tuple(found), said


def _tables(counted: CountedTables, slot: str, rows: Slot) -> list[Known]:
    """Return a list of `Known`: pairs of columns of the counted table `slot` by the prior's `rows`, closest first."""
    codes = {named(slot, name): column for name, column in rows.codes.items()}
    above = frozenset(slot_levels(counted.linked, PARENT)) if slot in {SECOND, OTHERS, REST} else frozenset()
    own = [name for name in codes if name.partition(".")[2] not in above]
    pairs = [pair for pair in combinations(codes, 2) if not set(own).isdisjoint(pair)]
    tables = {pair: _table(counted, pair, codes, rows.weight) for pair in pairs if counted.cells(pair) <= MOST_CELLS}
    worth = {pair: _information(table) for pair, table in tables.items()}
    units = len(np.unique(rows.owner))
    tree = _tree(sorted(tables, key=worth.__getitem__, reverse=True))
    return [Known(pair, tables[pair], error=sampling_error(tables[pair], units)) for pair in tree]


def sampling_error(shares: NDArray[Any], units: float) -> float:
    """Return the standard error of a share, root mean square over the cells, in a sample of so many `units`."""
    return math.sqrt(float((shares * (1 - shares)).mean()) / max(units, 1.0))


def _table(
    counted: CountedTables, pair: Pair, codes: Mapping[str, NDArray[Any]], weights: NDArray[Any]
) -> NDArray[np.float64]:
    shape = counted.shape(pair)
    cells = np.ravel_multi_index([codes[name].astype(np.intp) for name in pair], shape)
    counts = np.asarray(np.bincount(cells, weights, math.prod(shape)), np.float64).reshape(shape)
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def _information(shares: NDArray[np.float64]) -> float:
    """Return the mutual information, in nats, of two columns with these `shares` of cells."""
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    there = shares > 0
    return float((shares[there] * np.log(shares[there] / apart[there])).sum())


def _tree(ordered: list[Pair]) -> list[Pair]:
    """Return the pairs of a spanning forest of their columns, taken in the order given."""
    home: dict[str, str] = {}

    def root(name: str) -> str:
        while home.get(name, name) != name:
            name = home[name]
        return name

    found = []
    for one, other in ordered:
        if root(one) != root(other):
            home[root(one)] = root(other)
            found.append((one, other))
    return found
