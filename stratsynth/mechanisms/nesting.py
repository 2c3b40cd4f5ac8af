"""Levels at which a fit counts long code lists: decided before anything is asked, by public facts alone.

A code list of hundreds of levels has few records in each, and noise covers them. So each `Nested` column is counted at
the finest level, its own or that of one of its groupings, whose levels have on average enough records for the noise of
a one-way table of the fit; if none has, at the coarsest. Records are drawn as codes in any case.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import IN_RHO, Allotment, Budget, Currency
from stratsynth.errors import SchemaError
from stratsynth.models.base import Returns
from stratsynth.schema import Nested, Schema
from stratsynth.schema.nested import AUTO, named_by, regrouped

if TYPE_CHECKING:
    from stratsynth.layout.layout import Layout
    from stratsynth.mechanisms.contract import Mechanism, Public

EVENLY, SHARED = 1.0, 10.0
"""Least mean count of a level, in standard deviations of its noise, if codes of a group are drawn evenly, and if they
are drawn by public shares. From there on noisy counts of single codes are nearer the truth than groups: measured on the
code lists of the American Community Survey by `scripts/bench census`."""


@dataclass(frozen=True)
class CountedCodeList:
    """Level at which one code list is counted, with the reason."""

    column: str
    """Name of the column."""
    codes: int
    """Number of codes, not applicable included."""
    levels: int
    """Number of levels that are counted: of groups, unless it equals the number of codes."""
    records: float | None
    """Public mean number of records of a level; None without a declared size."""
    noise: float | None
    """Standard deviation of a count's noise that it was compared with; None if unknown."""
    drawn: str
    """Draw of codes within a group: "evenly", "by public shares", or empty if each level is a code."""
    source: str | None
    """Place where the shares were published."""
    why: str
    """Reason for the level."""
    listed: str | None = None
    """Origin of the list, if it was given as a table: its file and citation."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of the fields by name, as certificate and plan state it, without `listed` if it is None."""
        return {key: value for key, value in asdict(self).items() if key != "listed" or value is not None}


def settle(
    mechanism: Mechanism[Any], public: Public, budget: Budget, allot: Allotment
) -> tuple[Schema, tuple[CountedCodeList, ...]]:
    """Return (the `Schema` by which the fit counts, a tuple of a `CountedCodeList` per code list: its level, and why).

    Columns that define strata, or whose shares rows are drawn by, are counted as declared, and so is everything where
    the mechanism draws no rows.

    Args:
        mechanism: The mechanism to be fitted.
        public: The facts about all records, by the schema as declared.
        budget: The budget, with the schema's privacy unit.
        allot: The mechanism's allotment under the schema as declared.
    """
    schema = public.schema
    named = {name: column for name, column in schema.columns.items() if isinstance(column, Nested)}
    if mechanism.returns != Returns.ROWS:
        return schema, ()
    of_strata = mechanism.strata(public, budget) is not None
    size, noise, defining, unknown = known_before(mechanism, public, budget, allot)
    found = []
    for name, column in named.items():
        reason = "" if name not in defining else "it defines strata" if of_strata else "rows are drawn by its shares"
        which, why = _which(schema, name, column, size, noise, single=reason, unknown=unknown)
        schema = regrouped(schema, name, column.grouped(which))
        found.append(_stated(name, schema, size, noise, why))
    return schema, tuple(found)


def known_before(
    mechanism: Mechanism[Any], public: Public, budget: Budget, allot: Allotment
) -> tuple[float | None, float | None, frozenset[str], str]:
    """Return (records; noise; set of columns never counted in groups; reason) by public facts, budget and allotment.

    They decide how finely `mechanism` counts columns. The columns define strata, or shares that rows are drawn by;
    the reason, a text, tells why records or noise are None, and is "" otherwise.
    """
    layout = mechanism.drawn(public, budget)
    size, noise = records_of(public, layout), noise_of(allot, len(public.schema.names), public.schema)
    defining = frozenset(() if layout is None else (*layout.by, *itertools.chain(*layout.families)))
    unknown = "no size is declared" if size is None else "its noise is not known beforehand" if noise is None else ""
    return size, noise, defining, unknown


def records_of(public: Public, layout: Layout | None) -> float | None:
    """Return the public number of records of all, or if the layout's strata alone are asked, a median one's; or None.

    Half of all records are in strata at least as large.
    """
    if public.size is None or layout is None or not layout.only_strata:
        return public.size
    sizes, half = sorted(layout.shares.values(), reverse=True), 0.0
    for share in sizes:
        half += share
        if half >= 0.5:
            return share * public.size
    return public.size * sizes[0]


def noise_of(allot: Allotment, columns: int, schema: Schema) -> float | None:
    """Return a one-way table's sigma, in records, if half of the allotment is split over `columns` columns; or None.

    None if it is unknown. With the schema's weights of rows, sizes are of their total, noise covers the largest.
    """
    if not allot.amount > 0:
        return None
    most = schema.row_weight.most if schema.row_weight.column is not None else 1
    if allot.currency in IN_RHO:
        return most * math.sqrt(columns / allot.amount)
    return most * math.sqrt(2) * 2 * columns / allot.amount if allot.currency == Currency.PURE else None


def _which(
    schema: Schema, name: str, column: Nested, size: float | None, noise: float | None, *, single: str, unknown: str
) -> tuple[int, str]:
    """Return (number of the grouping of code list `name` by `size` and `noise`, 0 for single codes; reason, a text).

    `single` is the reason why single codes must stay, `unknown` the one why size or noise are None; empty if there is
    none. SchemaError if a grouping that the `Nested` column sets splits codes of a rule in the schema.
    """
    if column.measure != AUTO:
        if not _keeps_rules(schema, name, column, int(column.measure)):
            raise SchemaError(
                f"column {name}: a rule names some codes of a group of this grouping and not the others; measure a "
                'finer one, or leave measure = "auto"'
            )
        return int(column.measure), "the schema says so"
    if single:
        return 0, single
    if not column.groupings:
        return 0, "the schema has no groups for it"
    if size is None or noise is None:
        return 0, unknown
    open_to = [which for which in range(len(column.groupings) + 1) if _keeps_rules(schema, name, column, which)]
    least = SHARED if column.shares else EVENLY
    enough = least * noise
    for which in open_to:
        if size / column.grouped(which).size >= enough:
            return which, f"the finest with {enough:,.0f} records a level on average, {least:g} times the noise"
    return open_to[-1], f"the coarsest; none has {enough:,.0f} records a level on average, {least:g} times the noise"


def _keeps_rules(schema: Schema, name: str, column: Nested, which: int) -> bool:
    """True if no rule of `schema` names a part of a group of `column`, called `name`, without the rest of the group.

    Groups are those of the nested column's grouping number `which`.
    """
    own = column.grouped(which)
    groups = [set(own.members.get(level, (level,))) for level in own.levels]
    for rule in schema.rules:
        for conditions in (rule.when, rule.never):
            said = named_by(conditions, name)
            if said and any(said & group and not group <= said for group in groups):
                return False
    return True


def _stated(name: str, schema: Schema, size: float | None, noise: float | None, why: str) -> CountedCodeList:
    """Return the CountedCodeList of a schema's column `name`, with the reason `why`; size and noise may be None."""
    column = schema.column(name)
    assert isinstance(column, Nested)  # noqa: S101 - as `settle` found it
    drawn = ("by public shares" if column.shares else "evenly") if column.members else ""
    records = None if size is None else round(size / column.size, 1)
    return CountedCodeList(
        name,
        column.single.size,
        column.size,
        records,
        None if noise is None else round(noise, 1),
        drawn,
        column.source if drawn and column.shares else None,
        why,
        column.listed,
    )


def described(item: Mapping[str, Any]) -> str:
    """Return a sentence on one code list, `item` of `CountedCodeList.to_dict`, for plans, certificates and reports."""
    origin = f". These are {item['listed']}" if item.get("listed") else ""
    if not item["drawn"]:
        return f"{item['column']}: each of its {item['codes']:,} codes is counted ({item['why']}){origin}"
    by = f", {item['source']}" if item["source"] else ""
    return (
        f"{item['column']}: counted in {item['levels']:,} groups of its {item['codes']:,} codes ({item['why']}); "
        f"within a group codes are drawn {item['drawn']}{by}, and were not measured{origin}"
    )
