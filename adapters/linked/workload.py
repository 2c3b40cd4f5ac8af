"""Columns that a child row is drawn given by default, and the tables that AIM chooses from in each step.

What is given costs twice: it is counted along with the row's own columns, and the model of all of it is too large for
the tables that matter. So a row is given what no other column says, by the declared schema alone.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from stratsynth.schema.counted_tables import (
    LEFT,
    OTHERS,
    PARENT,
    PREVIOUS,
    REFERENCE,
    SHARE,
    STATE,
    named,
    slot_levels,
)

if TYPE_CHECKING:
    from stratsynth.questions import Clique
    from stratsynth.schema import Schema
    from stratsynth.schema.linked import LinkedSchema

FEW = 8
"""Largest number of levels of a parent's column that child rows are fitted with by default."""
SMALL = 2**9
"""Largest number of cells of a triple that AIM chooses from."""
COUNTS = 2.0
"""Importance of a table of parents with a count that child rows are drawn by, beside one without."""


def own_columns(linked: LinkedSchema, slot: str) -> frozenset[str]:
    """Return a frozen set of names of a LinkedSchema's columns that are drawn in step `slot`, not in the parent's."""
    given = set(slot_levels(linked, PARENT)) if slot != PARENT else set()
    return frozenset(
        named(slot, name)
        for name in slot_levels(linked, slot)
        if name not in given and name not in {STATE, LEFT, PREVIOUS}
    )


def usual_conditions(linked: LinkedSchema, slot: str) -> list[str]:
    """Return a list of names of the parent's counted columns that are given in step `slot` by default, by LinkedSchema.

    Columns of few levels, derived ones and the first row's; not those of one counted level, nor a sum, whose parts are
    known. Where the row's state is known, not what it stands for, nor columns of the first row that a rule of the child
    ties to the stepped one: the row's own number says more of them.
    """
    out = {*linked.occupied, *(() if linked.sum is None else (linked.sum[0],))}
    if slot == OTHERS:
        tied = {name for rule in linked.child.rules if linked.difference in rule.names for name in rule.names}
        out |= {REFERENCE + name for name in tied - {linked.difference}}
        out |= {name for name in (linked.size, linked.state, SHARE) if name is not None}
    return [
        name
        for name, levels in slot_levels(linked, PARENT).items()
        if name not in out and (len(levels) <= FEW or name not in linked.parent.columns or name in linked.derived)
    ]


def usual_workload(linked: LinkedSchema, slot: str, schema: Schema) -> list[Clique]:
    """Return a list of the tables, tuples of columns of a Schema, that AIM is to choose from in step `slot`.

    The step is of a LinkedSchema; each table is a `Clique`.

    Pairs of the row's own columns; pairs of these with columns of the parent and of the state, with the first row's
    column of the same name, and with its stepped one. Beside the pairs triples of few cells: a column with two counts,
    as the second row's state is that of both; and with the first row's, and one of the parent, as sexes in a couple.
    """
    alone = slot == PARENT or slot in linked.kinds
    own = [name for name in schema.names if alone or name in own_columns(linked, slot)]
    found: list[Clique] = list(combinations(own, 2))
    if alone:
        return found or [(name,) for name in own]
    given = [name for name in schema.names if name not in own]
    first = {name for name in given if name.startswith(named(slot, REFERENCE))}
    counts = [named(slot, name) for name in linked.counts if named(slot, name) in schema.columns]
    stepped = named(slot, f"{REFERENCE}{linked.difference}")
    triples: list[Clique] = []
    for name in own:
        same = named(slot, REFERENCE + name.removeprefix(named(slot, "")))
        found += [(other, name) for other in given if other not in first or other in {same, stepped}]
        triples += [(*pair, name) for pair in combinations(counts, 2)]
        if slot != OTHERS and same in first:
            triples += [(other, same, name) for other in given if other not in first]
    return [*found, *(clique for clique in triples if schema.cells(clique) <= SMALL)] or [(name,) for name in own]


def importance(linked: LinkedSchema, slot: str, schema: Schema) -> dict[str, float]:
    """Return {column: factor} on AIM's tables of step `slot` of a LinkedSchema: of parents, `COUNTS` for their counts.

    The columns are those of the step's Schema.

    Counts are the size and the state's. Child rows are drawn by both, and repeat their errors. A name with a comma,
    which would be two, has none.
    """
    counts = (linked.size, linked.state) if slot == PARENT else ()
    names = {named(slot, name) for name in counts if name is not None and "," not in name}
    return dict.fromkeys(sorted(names & schema.columns.keys()), COUNTS)
