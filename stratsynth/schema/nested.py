"""Long code lists: occupations, industries, areas. A column whose codes can be measured in groups of codes.

What is counted, the `levels`, may be single codes, or groups of codes; a group's records come back as codes of the
group, drawn by public shares or evenly. So a group is to its codes what a bin is to its numbers. `groupings` say how
codes go together, from fine to coarse; which of them a fit counts by, public sizes and the budget decide
(`stratsynth.mechanisms.nesting`), never the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratsynth.checks import is_number, is_whole
from stratsynth.schema import checks
from stratsynth.schema.columns import Categorical
from stratsynth.schema.text import MISSING, check_text

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema

Grouping = Mapping[str, tuple[str, ...]]
"""Codes by the name of their group."""
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class Nested(Categorical):
    """A column of codes that can be measured in groups.

    `not_applicable` belongs to no group: it is always a level of its own.
    """

    members: Grouping = field(default_factory=dict, hash=False)
    """The codes of each level that is a group; a level that is not named here is itself a code."""

    shares: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Public shares of codes, of which those within a group count: by these its records come back as codes. A code
    that is not named has the share 0; a group none of whose codes has a share is drawn evenly."""

    source: str | None = None
    """Where the shares were published; wanted where there are shares."""

    groupings: tuple[Grouping, ...] = field(default=(), hash=False)
    """Ways to group the levels, from fine to coarse; each has every level but `not_applicable` in one group."""

    measure: str | int = AUTO
    """What a fit counts: 0, the levels; 1, 2, ..., the groups of that grouping; "auto", whichever public sizes and the
    budget allow."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", _grouping("members", self.members))
        groupings = checks.items("groupings", self.groupings)
        object.__setattr__(self, "groupings", tuple(_grouping("groupings", each) for each in groupings))
        super().__post_init__()
        self._check_members()
        for each in self.groupings:
            self._check_grouping(each)
        self._check_shares()
        if self.measure != AUTO and (not is_whole(self.measure) or not 0 <= int(self.measure) <= len(self.groupings)):
            checks.refuse(f'measure must be "auto", or a number from 0, the levels, to {len(self.groupings)}')

    @cached_property
    def single(self) -> Categorical:
        """The column of the codes alone, as values are read and written."""
        codes = [code for level in self.levels for code in self.members.get(level, (level,))]
        labels = {code: label for code, label in self.labels.items() if code in codes}
        return Categorical(
            levels=tuple(codes), labels=labels, not_applicable=self.not_applicable, outside=self.outside,
            dtype=self.dtype, ordered=self.ordered,
        )  # fmt: skip

    @cached_property
    def places(self) -> tuple[int, ...]:
        """For each category of `single` the category that it is counted in; they never decrease."""
        home = {code: self.codes[level] for level in self.levels for code in self.members.get(level, (level,))}
        return tuple(home.get(code, self.codes.get(code, -1)) for code in self.single.all_levels)

    @cached_property
    def within(self) -> tuple[float, ...]:
        """For each category of `single` its share of the records of its level; those of a level add up to 1."""
        found: list[float] = []
        for level in self.all_levels:
            codes = self.members.get(level, (level,))
            weights = [self.shares.get(code, 0.0) for code in codes]
            whole = sum(weights)
            found += [weight / whole if whole > 0 else 1 / len(codes) for weight in weights]
        return tuple(found)

    def grouped(self, which: int) -> Nested:
        """The column with the groups of a grouping as its levels; 0 are the levels as they are."""
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
        """The column with some of its levels alone."""
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
        """What labels may name: levels, and codes."""
        return (*self.all_levels, *(code for codes in self.members.values() for code in codes))

    def _check_typed(self) -> None:
        """Codes are what is typed: `single` refuses what does not fit."""

    def _check_members(self) -> None:
        if self.outside not in {None, MISSING, self.not_applicable}:
            checks.refuse('outside of a nested column must be "missing" or its not_applicable')
        strangers = [level for level in self.members if level not in self.levels]
        if strangers:
            checks.refuse(
                f"members name {strangers[0]!r}, which is not a level{checks.hint(strangers[0], self.levels)}"
            )
        if self.not_applicable in self.members:
            checks.refuse("not_applicable is no group: it is a level of its own")
        codes = self.single.levels  # refuses codes that are there twice, and types that do not fit
        if MISSING in codes and self.outside == MISSING:
            checks.refuse(f"a code must not be {MISSING!r} where values outside become that")

    def _check_grouping(self, grouping: Grouping) -> None:
        """Every level but not applicable in one group, and no group called as a level of another group is."""
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
                checks.refuse(f"shares name {code!r}, which is not a code{checks.hint(code, self.single.levels)}")
            if not is_number(share) or not 0 <= share <= 1e15:
                checks.refuse(f"the share of {code!r} must be a number that is not below 0")
        object.__setattr__(self, "shares", {code: float(share) for code, share in self.shares.items()})
        if self.source is not None:
            check_text("source", self.source)
        if bool(self.shares) != (self.source is not None):
            checks.refuse("shares of codes need a source, where they were published; and a source needs shares")


def regrouped(schema: Schema, name: str, column: Nested) -> Schema:
    """The schema with another column of that name; rules name the groups of the codes that they named."""
    if column is schema.column(name):
        return schema

    def groups(conditions: Mapping[str, Any]) -> dict[str, Any]:
        said = named_by(conditions, name)
        levels = tuple(level for level in column.levels if said.issuperset(column.members.get(level, (level,))))
        return {**conditions, name: levels} if name in conditions else dict(conditions)

    rules = tuple(replace(rule, when=groups(rule.when), never=groups(rule.never)) for rule in schema.rules)
    return replace(schema, columns={**schema.columns, name: column}, rules=rules)


def named_by(conditions: Mapping[str, Any], name: str) -> set[str]:
    """The levels that a rule's conditions name of a column."""
    said = conditions.get(name, ())
    return {said} if isinstance(said, str) else set(said)


def is_counted(declared: Schema, counted: Schema) -> bool:
    """True for a schema that rows may be read by: the declared one, with code lists in groups and nothing else."""
    schema = declared
    for name, column in declared.columns.items():
        if isinstance(column, Nested) and name in counted.columns:
            ways = (column.grouped(which) for which in range(len(column.groupings) + 1))
            own = next((way for way in ways if way == counted.column(name)), column)
            schema = regrouped(schema, name, own)
    return schema == counted


def _grouping(key: str, value: Any) -> Grouping:
    """A table from names to lists of codes, with at least one code each."""
    if not isinstance(value, Mapping):
        checks.refuse(f"{key} must be tables from a group's name to the list of its codes")
    found = {}
    for name, codes in value.items():
        listed = checks.items(f"{key}: {name}", codes)
        if not listed:
            checks.refuse(f"{key}: the group {name!r} has no codes")
        found[check_text("a group", name)] = tuple(check_text("a code", code) for code in listed)
    return found
