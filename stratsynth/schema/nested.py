"""Long code lists: occupations, industries, areas. A column whose codes can be counted in groups of codes.

The categories counted, the `levels`, are single codes or groups of codes; a group's records are drawn as codes of the
group, by public shares or evenly. A group is to its codes as a bin is to its numbers. `groupings` are partitions of
the codes, from fine to coarse; public sizes and the budget decide which of them a fit counts
(`stratsynth.mechanisms.nesting`), never the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratsynth.checks import is_number, is_whole
from stratsynth.errors import nearest
from stratsynth.schema import checks
from stratsynth.schema.bins import SMOOTH
from stratsynth.schema.columns import Categorical, Numeric
from stratsynth.schema.text import MISSING, check_text

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema

Grouping = Mapping[str, tuple[str, ...]]
"""Codes by the name of their group."""
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class Nested(Categorical):
    """A column of codes that can be counted in groups.

    `not_applicable` belongs to no group: it is always a level of its own.
    """

    members: Grouping = field(default_factory=dict, hash=False)
    """Codes of each level that is a group; a level not named here is itself a code."""

    shares: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Public shares of codes, used within each group to draw its records as codes. A code that is not named has the
    share 0; a group whose codes have no share is drawn evenly."""

    source: str | None = None
    """Place where the shares were published; required with shares."""

    groupings: tuple[Grouping, ...] = field(default=(), hash=False)
    """Partitions of the levels, from fine to coarse; each has every level but `not_applicable` in one group."""

    measure: str | int = AUTO
    """Categories that a fit counts: 0, the levels; 1, 2, ..., the groups of that grouping; "auto", the ones that public
    sizes and the budget allow."""

    listed: str | None = field(default=None, metadata={"digest": False})
    """Origin of the list of codes, if it was given as a table: its file, and where that is said to be published."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", _grouping("members", self.members))
        groupings = checks.items("groupings", self.groupings)
        object.__setattr__(self, "groupings", tuple(_grouping("groupings", each) for each in groupings))
        super().__post_init__()
        self._check_members()
        for each in self.groupings:
            self._check_grouping(each)
        self._check_shares()
        if self.listed is not None:
            check_text("listed", self.listed)
        auto = isinstance(self.measure, str) and self.measure == AUTO
        if not auto and (not is_whole(self.measure) or not 0 <= self.measure <= len(self.groupings)):
            checks.refuse(f'measure must be "auto", or a number from 0, the levels, to {len(self.groupings)}')

    @cached_property
    def single(self) -> Categorical:
        """Categorical column of the single codes, by which values are read and written."""
        codes = [code for level in self.levels for code in self.members.get(level, (level,))]
        labels = {code: label for code, label in self.labels.items() if code in codes}
        return Categorical(
            levels=tuple(codes), labels=labels, not_applicable=self.not_applicable, outside=self.outside,
            dtype=self.dtype, ordered=self.ordered, stored=self.stored,
        )  # fmt: skip

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Tuple, by code of `single`: index of the category in which it is counted; never decreasing."""
        home = {code: self.codes[level] for level in self.levels for code in self.members.get(level, (level,))}
        return tuple(home.get(code, self.codes.get(code, -1)) for code in self.single.all_levels)

    @cached_property
    def within(self) -> tuple[float, ...]:
        """Tuple, by code of `single`: its share of the records of its level, whose shares add up to 1."""
        found: list[float] = []
        for level in self.all_levels:
            codes = self.members.get(level, (level,))
            weights = [self.shares.get(code, 0.0) for code in codes]
            whole = sum(weights)
            found += [weight / whole if whole > 0 else 1 / len(codes) for weight in weights]
        return tuple(found)

    def grouped(self, which: int) -> Nested:
        """Return this column with the groups of grouping number `which`, from 1, as its levels; itself for 0."""
        if which == 0:
            return self
        grouping = self.groupings[which - 1]
        own = () if self.not_applicable is None else (self.not_applicable,)
        members = {
            name: tuple(code for level in levels for code in self.members.get(level, (level,)))
            for name, levels in grouping.items()
        }
        return replace(self, levels=(*own, *grouping), members=members, groupings=(), measure=AUTO)

    def keep(self, levels: Sequence[str]) -> Nested:
        """Return this column with only these `levels` of it, and with their codes, shares and labels; no groupings."""
        members = {level: codes for level, codes in self.members.items() if level in levels}
        codes = [code for level in levels for code in members.get(level, (level,))]
        known = {*levels, *codes, MISSING}
        shares = {code: share for code, share in self.shares.items() if code in codes}
        return replace(
            self,
            levels=tuple(levels),
            members=members,
            shares=shares,
            source=self.source if shares else None,
            labels={level: label for level, label in self.labels.items() if level in known},
            not_applicable=self.not_applicable if self.not_applicable in levels else None,
            outside=self.outside if self.outside in known else None,
            groupings=(),
            measure=AUTO,
        )

    @property
    def _named(self) -> tuple[str, ...]:
        """Tuple of names that `labels` may have texts for: all categories, then all codes in groups."""
        return (*self.all_levels, *(code for codes in self.members.values() for code in codes))

    def _check_typed(self) -> None:
        """Refuse nothing: levels may be groups, and making `single` refuses codes that do not fit the type."""

    def _check_members(self) -> None:
        if self.outside not in {None, MISSING, self.not_applicable}:
            checks.refuse('outside of a nested column must be "missing" or its not_applicable')
        strangers = [level for level in self.members if level not in self.levels]
        if strangers:
            checks.refuse(f"members name {strangers[0]!r}, which is not a level{nearest(strangers[0], self.levels)}")
        if self.not_applicable in self.members:
            checks.refuse("not_applicable is no group: it is a level of its own")
        codes = self.single.levels  # refuses codes that are there twice, and types that do not fit
        if MISSING in codes and self.outside == MISSING:
            checks.refuse(f"a code must not be {MISSING!r} where values outside become that")

    def _check_grouping(self, grouping: Grouping) -> None:
        """Raise SchemaError for a `grouping` that is no partition of the levels, or names a group as a level."""
        listed = [level for levels in grouping.values() for level in levels]
        checks.unique("levels in a grouping", listed)
        wanted = {level for level in self.levels if level != self.not_applicable}
        for wrong, what in ((set(listed) - wanted, "is no such level"), (wanted - set(listed), "is in no group")):
            if wrong:
                checks.refuse(f"groupings: {min(wrong)!r} {what}; every level but not_applicable is in one group")
        for name, levels in grouping.items():
            if name in {self.not_applicable, MISSING} or (name in wanted and tuple(levels) != (name,)):
                checks.refuse(f"groupings: a group must not be called {name!r}, as a level is")

    def _check_shares(self) -> None:
        if not isinstance(self.shares, Mapping):
            checks.refuse("shares must be a table from code to share")
        known = set(self.single.levels)
        for code, share in self.shares.items():
            if code not in known:
                checks.refuse(f"shares name {code!r}, which is not a code{nearest(code, self.single.levels)}")
            if not is_number(share) or not 0 <= share <= 1e15:
                checks.refuse(f"the share of {code!r} must be a number that is not below 0")
        object.__setattr__(self, "shares", {code: float(share) for code, share in self.shares.items()})
        if self.source is not None:
            check_text("source", self.source)
        if bool(self.shares) != (self.source is not None):
            checks.refuse("shares of codes need a source, where they were published; and a source needs shares")


def regrouped(schema: Schema, name: str, column: Nested) -> Schema:
    """Return the schema with a `Nested` column `name`; rules on it name the column's groups instead of their codes."""
    if column is schema.column(name):
        return schema

    def groups(conditions: Mapping[str, Any]) -> dict[str, Any]:
        said = named_by(conditions, name)
        levels = tuple(level for level in column.levels if said.issuperset(column.members.get(level, (level,))))
        return {**conditions, name: levels} if name in conditions else dict(conditions)

    rules = tuple(replace(rule, when=groups(rule.when), never=groups(rule.never)) for rule in schema.rules)
    return replace(schema, columns={**schema.columns, name: column}, rules=rules)


def named_by(conditions: Mapping[str, Any], name: str) -> set[str]:
    """Return the set of levels of column `name` in a rule's `conditions`, column -> level(s); empty if not in them."""
    said = conditions.get(name, ())
    return {said} if isinstance(said, str) else set(said)


def is_counted(declared: Schema, counted: Schema) -> bool:
    """True if `counted` is the declared schema with code lists in declared groups, smooth numbers in bands, no more."""
    schema = declared
    for name, column in declared.columns.items():
        own = counted.columns.get(name)
        if isinstance(column, Nested) and own is not None:
            ways = (column.grouped(which) for which in range(len(column.groupings) + 1))
            schema = regrouped(schema, name, next((way for way in ways if way == own), column))
        elif isinstance(column, Numeric) and isinstance(own, Numeric) and _are_bands(column, own):
            banded = replace(column, edges=own.breaks, bins=None)
            schema = replace(schema, columns={**schema.columns, name: banded})
    return schema == counted


def _are_bands(declared: Numeric, counted: Numeric) -> bool:
    """True if the declared numeric column is smooth, and each bin of the counted one is made of bins of it."""
    return declared.shape == SMOOTH and set(counted.breaks) < set(declared.breaks)


def _grouping(key: str, value: Any) -> Grouping:
    """Return a dict from group name to tuple of codes; SchemaError, naming `key`, for other values and empty groups."""
    if not isinstance(value, Mapping):
        checks.refuse(f"{key} must be tables from a group's name to the list of its codes")
    found = {}
    for name, codes in value.items():
        listed = checks.items(f"{key}: {name}", codes)
        if not listed:
            checks.refuse(f"{key}: the group {name!r} has no codes")
        found[check_text("a group", name)] = tuple(check_text("a code", code) for code in listed)
    return found
