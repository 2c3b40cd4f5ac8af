"""Plan of two linked tables: a row for each counted table, and words on the order in which child rows are drawn."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from stratsynth.planning.stratum import NOISE_SIZE, StratumPlan
from stratsynth.schema.counted_tables import OTHERS, PARENT, REST, SLOTS, CountedTables, slot_of
from stratsynth.strata import label, within

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stratsynth.mechanisms import Prepared
    from stratsynth.planning.rehearsal import Rehearsal
    from stratsynth.strata import StratumPath

CELL = 16
"""Bytes of a cell in an exact and a noisy table."""
NEAR = 0.5
"""Part of the declared size with which a plan looks for the border of few parents."""


def linked_plans(prepared: Prepared, found: Rehearsal) -> tuple[StratumPlan, ...]:
    """Return a tuple, a `StratumPlan` per counted table of a prepared fit, by its rehearsal; () for one table.

    With strata, one for each counted table of each stratum.
    """
    if not isinstance(prepared.public.schema, CountedTables):
        return ()
    return tuple(
        _plan(prepared, found, path, slot, parents)
        for path, sizes in planned(prepared).items()
        for slot, parents in sizes.items()
    )


def planned(prepared: Prepared, part: float = 1.0) -> dict[StratumPath, Mapping[str, float]]:
    """Return, of a `Prepared` fit, {path of a stratum, () without: {counted table: number of parents planned with}}.

    With `part`, the plan is that of a declared size that is so much of what is declared.
    """
    how, layout, budget = prepared.mechanism.fitted, prepared.strata, prepared.budget
    public = prepared.public
    if part < 1.0 and public.size is not None:
        public = replace(public, size=max(1, round(part * public.size)))
    if layout is None:
        return {(): how.planned_tables(public, prepared.allot)}
    found: dict[StratumPath, Mapping[str, float]] = {}
    for stratum in layout.strata:
        inside = public.within(stratum, layout.shares[stratum], exact=layout.weights.exact)
        own = how.price(inside, replace(budget, epsilon=layout.epsilons[stratum]))
        found[stratum,] = how.planned_tables(inside, own)
    return found


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
    alone = (
        f"each {child} row but the first is drawn by itself, given the {parent} and its first {child}, as a "
        f'fit of few {parent}s at its epsilon does unless children = "chain" says otherwise: two models of further '
        f"{child} rows would learn too little. What ties these to one another is given up"
    )
    sizes, fewer = planned(prepared), planned(prepared, NEAR)
    few = [path for path, slots in sizes.items() if REST in slots]
    many = [path for path, slots in sizes.items() if OTHERS in slots]
    chain = f"{child} rows are drawn one after another, with the state of their {parent}"
    if any(REST in fewer[path] for path in many):
        chain += (
            f". Of half as many {parent}s a fit would draw each by itself: so near that border, tables of a {child}'s "
            f'columns alone may be nearer with children = "independent", and those within {parent}s farther away'
        )
    if few and many:
        return f"{said} In {' and '.join(map(label, few))}, {alone}. In {' and '.join(map(label, many))}, {chain}"
    one = alone if few else chain
    return f"{said} {one[0].upper()}{one[1:]}" if few or many else said


def _plan(prepared: Prepared, found: Rehearsal, path: StratumPath, slot: str, parents: float) -> StratumPlan:
    """Return the `StratumPlan` of the counted table `slot` at `path`, of so many `parents`, with noise in parents.

    Its questions are those of `found`, a rehearsal of the prepared fit.
    """
    schema, weight = prepared.public.schema, prepared.public.schema.row_weight.most
    asked = [one for one in found.answers.seen if one.path == found.answers.first(path)]
    seen = [one for one in asked if _is_of(one.cliques or [(c, 0, 0) for c, _ in one.candidates], slot)]
    tables = [(clique, cells, sigma / weight) for one in seen for clique, cells, sigma in one.cliques]
    one, two = (
        median(errors) if parents and (errors := [NOISE_SIZE * s * n / parents for c, n, s in tables if len(c) == k])
        else None
        for k in (1, 2)
    )  # fmt: skip
    measured = {name for clique, _, _ in tables for name in clique}
    columns = [name for name in within(schema, path).names if slot_of(name) == slot]
    said = "" if one is None else "noise: small" if one < SMALL else "noise: large" if one < 1 else "noise: too large"
    given = f"; {len(measured)} of {len(columns)} columns measured" if slot in SLOTS and slot != PARENT else ""
    return StratumPlan(
        stratum=": ".join(filter(None, (label(path), slot))),
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
