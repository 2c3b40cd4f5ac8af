"""Plan of two linked tables: a row for each counted table, and words on the order in which child rows are drawn."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from stratsynth.planning.stratum import NOISE_SIZE, StratumPlan
from stratsynth.schema.counted_tables import PARENT, REST, CountedTables, slot_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stratsynth.mechanisms import Prepared
    from stratsynth.planning.rehearsal import Rehearsal

CELL = 16
"""Bytes of a cell in an exact and a noisy table."""


def linked_plans(prepared: Prepared, found: Rehearsal) -> tuple[StratumPlan, ...]:
    """Return a tuple, a `StratumPlan` for each counted table of a prepared fit of linked tables, by its rehearsal.

    () for a schema of one table.
    """
    schema = prepared.public.schema
    if not isinstance(schema, CountedTables):
        return ()
    sizes = prepared.mechanism.planned_tables(prepared.public, prepared.allot)
    return tuple(_plan(prepared, found, slot, parents) for slot, parents in sizes.items())


def linked_words(prepared: Prepared) -> str:
    """Return sentences on what a prepared fit of two linked tables protects, and on child rows; "" for one table."""
    schema = prepared.public.schema
    if not isinstance(schema, CountedTables):
        return ""
    parent, child = schema.linked.names
    said = (
        f"a {parent} with all its {child} rows is one unit: its rows weigh in every table what one row does. Sizes "
        f"below are of {parent}s, and guessed for {child} rows; a fit takes them from noisy answers."
    )
    if REST in prepared.mechanism.planned_tables(prepared.public, prepared.allot):
        return (
            f"{said} Each {child} row but the first is drawn by itself, given the {parent} and its first {child}, as a "
            f'fit of few {parent}s at its epsilon does unless children = "chain" says otherwise: two models of further '
            f"{child} rows would learn too little. What ties these to one another is given up"
        )
    return (
        f"{said} {child.capitalize()} rows are drawn one after another, with the state of their {parent}; columns of "
        f'single {child} rows are better with children = "independent"'
    )


def _plan(prepared: Prepared, found: Rehearsal, slot: str, parents: float) -> StratumPlan:
    """Return the `StratumPlan` of the counted table called `slot`, of so many `parents`, with noise in parents.

    Its questions are those of `found`, a rehearsal of the prepared fit.
    """
    schema, weight = prepared.public.schema, prepared.public.schema.row_weight.most
    seen = [one for one in found.answers.seen if _is_of(one.cliques or [(c, 0, 0) for c, _ in one.candidates], slot)]
    tables = [(clique, cells, sigma / weight) for one in seen for clique, cells, sigma in one.cliques]
    one, two = (
        median(errors) if parents and (errors := [NOISE_SIZE * s * n / parents for c, n, s in tables if len(c) == k])
        else None
        for k in (1, 2)
    )  # fmt: skip
    measured = {name for clique, _, _ in tables for name in clique}
    columns = [name for name in schema.names if slot_of(name) == slot]
    said = "" if one is None else "noise: small" if one < SMALL else "noise: large" if one < 1 else "noise: too large"
    given = f"; {len(measured)} of {len(columns)} columns measured" if slot != PARENT else ""
    return StratumPlan(
        stratum=slot,
        size=round(parents),
        size_low=None,
        size_high=None,
        one_way=False,
        epsilon=None,
        questions=len(seen),
        rounds=sum(one.kind == "choose" for one in seen),
        tables=len(tables),
        sigma=median(s for _, _, s in tables) if tables else None,
        oneway_error=one,
        twoway_error=two,
        megabytes=CELL * sum(one.cells for one in seen) / 2**20,
        verdict=f"{said}{given}",
        small="",
    )


SMALL = 0.1
"""Expected error of a one-way count below which noise is called small."""


def _is_of(cliques: Sequence[tuple[tuple[str, ...], int, float]], slot: str) -> bool:
    return any(slot_of(clique[0]) == slot for clique, _, _ in cliques)
