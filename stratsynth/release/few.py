"""Groups of very few people, and merged groups: listed in certificates, named when rows of them are drawn.

A sample has as many rows of a group as a user asks for, however few people it was learned from. Declared sizes, shares
and merges, which are public, and the noise decide which groups are listed.
"""

from __future__ import annotations

import itertools
import math
import operator
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.certificate import SmallGroup
from stratsynth.errors import FewPeopleWarning
from stratsynth.release.declared import NORMAL_95, SHARE, Comparison, MeasuredCount
from stratsynth.strata import Cell

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate
    from stratsynth.mechanisms import Prepared
    from stratsynth.models import Where
    from stratsynth.schema import Schema

FEW = 50
"""Public size in people below which a group is very small."""
NAMED = 5
"""Largest number of groups that a warning names."""
LISTED = 1000
"""Largest number of groups that a certificate lists, the smallest first."""


def small_groups(prepared: Prepared, found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return a list of dicts (levels, people, fitted_in, few), one a group of a prepared fit that is small or merged.

    Small is a public size below FEW, or below its noise in `found`, a list of `Comparison`. Groups that cannot occur
    are left out. People is None if no size is public. Without strata, [].
    """
    layout, size, weight = prepared.strata, prepared.public.size, prepared.public.schema.row_weight
    if layout is None:
        return []
    noise = {c.stratum: NORMAL_95 * c.noise_sd for c in found if c.what == SHARE}
    known = size is not None and layout.weights.given.informative
    rows = FEW * (weight.mean or 1.0)  # of weighted rows the size is a total, of about this many rows
    listed: list[tuple[float, dict[str, Any]]] = []
    for group in layout.groups:
        for member in group.members:
            share = layout.declared_shares.get(member, 0.0)
            people = size * share if size is not None and known else None
            least = max(rows, noise.get(group.stratum.label, 0.0))
            few = people is not None and people < least
            if (few or group.stratum.is_merge) and share > 0:
                record = {
                    "levels": {column: list(levels) for column, levels in member.items},
                    "people": people,
                    "fitted_in": group.stratum.label if group.stratum.is_merge else None,
                    "few": few,
                }
                listed.append((math.inf if people is None else people, record))
    return [record for _, record in sorted(listed, key=operator.itemgetter(0))[:LISTED]]


def warn_of_few(certificate: Certificate, schema: Schema, parts: Iterable[tuple[Where, int]]) -> None:
    """Issue a FewPeopleWarning for each of `parts`, (condition, rows), that allows only small groups in a certificate.

    A condition maps columns of the schema to sets of level numbers.
    """
    listed, by = certificate.small_groups, certificate.strata.by
    if not listed or any(group.levels.keys() != {*by} for group in listed):
        return
    if not all(column in schema.columns for column in by):  # a certificate of another model
        return
    order, cells = sorted(by), dict[Cell, SmallGroup]()
    for group in listed:
        for cell in itertools.product(*(group.levels[column] for column in order)):
            cells[cell] = group
    measured = {c.stratum: MeasuredCount(c.measured, c.noise_sd) for c in certificate.declared_and_measured}
    named = dict.fromkeys(
        text
        for where, number in parts
        if number and any(column in where for column in by)
        for text in _warnings(where, schema, order, cells, measured)
    )
    if named:
        more = f"; and {len(named) - NAMED} more groups" if len(named) > NAMED else ""
        warnings.warn(
            f"rows are drawn of {'; '.join(list(named)[:NAMED])}{more}. However many rows: they say no more than that.",
            FewPeopleWarning,
            stacklevel=5,
        )


def _warnings(
    where: Where,
    schema: Schema,
    order: Sequence[str],
    cells: Mapping[Cell, SmallGroup],
    measured: Mapping[str, MeasuredCount],
) -> Iterator[str]:
    """Yield one text, or none, on the condition `where`: size, or merge, of the small groups that it allows.

    It maps columns of the schema to sets of level numbers. `cells` maps tuples of levels of the columns `order` to
    `SmallGroup`s; none if a group that it allows is not there. `measured` maps groups' labels to `MeasuredCount`s.
    """
    allowed = {c: [schema.levels(c)[code] for code in sorted(where[c])] for c in order if c in where}
    asked = [
        group
        for cell, group in cells.items()
        if all(level in allowed.get(column, (level,)) for column, level in zip(order, cell, strict=True))
    ]
    if len(asked) < math.prod(len(allowed.get(column, schema.levels(column))) for column in order):
        return
    groups = list(unique(asked))
    people = [group.people for group in groups]
    known = [number for number in people if number is not None]
    total = math.fsum(known) if len(known) == len(people) else None
    merged, of = (Counter(group.fitted_in for group in several) for several in (asked, cells.values()))
    split = [label for label, number in merged.items() if label is not None and number < of[label]]
    few = total is not None and (total < FEW or all(group.few for group in groups))
    if few or split:
        name = " ".join(f"{column}={'|'.join(levels)}" for column, levels in allowed.items())
        size = "" if total is None else f", about {total:,.0f} people by declared figures"
        merge = f", who were fitted only together with others, as {', '.join(split)}" if split else ""
        noise = ", fewer than the noise of a count" if few and total is not None and total >= FEW else ""
        counts = [measured.get("|".join("|".join(levels) for levels in group.levels.values())) for group in groups]
        yield f"{name}{size}{_measured(counts)}{noise}{merge}"


def _measured(counts: Sequence[MeasuredCount | None]) -> str:
    """Return words on the `MeasuredCount` of groups together; "" where one was not measured alone (None)."""
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return ""
    noise = math.hypot(*(count.noise_sd for count in known))
    return f", measured {MeasuredCount(math.fsum(count.value for count in known), noise)} at 95 per cent"


def unique(groups: Iterable[SmallGroup]) -> Iterable[SmallGroup]:
    """Return an iterable of the `SmallGroup`s of `groups`, each object once, in order of first appearance.

    Objects are told apart, not values.
    """
    return {id(group): group for group in groups}.values()
