"""Schema of the tables that a fit of linked tables counts, side by side, and the bands of their numbers.

`CountedTables` is a schema like any other: columns named `parent.X`, `second.X` and so on, of levels alone. The rows of
a household weigh at most the declared weight in each table, so that every table of counts, and every score made of one,
moves with a household as with one row of that weight.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stratsynth.errors import SchemaError, nearest
from stratsynth.schema.bands import Bands
from stratsynth.schema.columns import Categorical, Numeric
from stratsynth.schema.consistent import Spans, adds_up, differs, rules_where, spans_between, spans_of, takes
from stratsynth.schema.linked import MOST_DRAWN, ChildCount, LinkedSchema
from stratsynth.schema.rules import Rule
from stratsynth.schema.schema import PUBLIC, Schema, Unit
from stratsynth.schema.weight import RowWeight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stratsynth.schema.columns import Column

PARENT, SECOND, OTHERS, REST = "parent", "second", "others", "rest"
"""Counted tables: of households, of their second persons, of all further ones; and of all but the reference, which a
fit asks in place of these two where households are few."""
SLOTS = (PARENT, SECOND, OTHERS, REST)
REFERENCE = "R_"
"""Prefix of the reference person's columns."""
SHARE, LEFT, ALL = "SHR", "REM", "ALL"
"""Bands of the others' sum and of what is left of it, and whether a person has all that is left."""
STATE, PREVIOUS, DIFFERENCE = "ST", "PREV", "DIF"
"""State of the household, the number of the person before, and the difference from it."""
FEW = ("0", "1", "2+")
"""Numbers of persons left that a state tells apart."""
Items = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns of a stratum, each with its levels."""


@dataclass(frozen=True, kw_only=True)
class SharedWeight(Unit):
    """Privacy unit of linked tables: a key with all its rows, which weigh no more together than one row may.

    So they are priced as one row: `max_rows` is 1.
    """

    max_rows: int = 1
    tables: tuple[str, str]
    """Names of the parent table, whose rows are the units, and of the child table."""


@dataclass(frozen=True, eq=False, repr=False)
class CountedTables(Schema):
    """Columns of the counted tables of a linked schema, or some of them.

    Strata name columns of the parent by themselves: `TEN` stands for `parent.TEN`, `second.TEN` and so on.
    """

    linked: LinkedSchema = field(kw_only=True)
    """Schema of the two tables."""

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the linked schema's file and of the columns that are here, in hexadecimal.

        Also of levels and rules, where these are those of a stratum.
        """
        stated: list[Any] = [self.linked.to_toml(), list(self.columns)]
        whole = self.linked.__dict__.get("counted")
        if whole is not None and whole is not self:
            levels = {n: c.all_levels for n, c in self.columns.items() if c.all_levels != whole.levels(n)}
            rules = [rule for rule in whole.rules if rule.names <= self.columns.keys()]
            own = [[rule.when, rule.never] for rule in self.rules] if list(self.rules) != rules else None
            stated += [] if not levels and own is None else [levels, own]
        return hashlib.sha256(json.dumps(stated).encode()).hexdigest()

    def __repr__(self) -> str:
        """Return one line: the linked schema, and the number of columns that are counted of it."""
        return f"CountedTables({self.linked!r}; {len(self.names)} counted columns)"

    @property
    def listed(self) -> str:
        """Names of the columns of both tables, as one text."""
        tables = zip(self.linked.names, (self.linked.parent, self.linked.child), strict=True)
        return "; ".join(f"{name}: {table.listed}" for name, table in tables)

    def column(self, name: str) -> Column:
        """Return the column of this `name`, or the counted one of a parent's column; SchemaError if there is none."""
        of_parents = (PARENT, *self.linked.kinds)
        own = [] if name in self.columns else [s for s in of_parents if named(s, name) in self.columns]
        if name not in self.columns and not own and named(PARENT, REFERENCE + name) in self.columns:
            above, below = self.linked.names
            raise SchemaError(f"there is no column {name!r} of a {above}; that of its first {below} is R_{name}")
        return super().column(named(own[0], name) if own else name)

    def restrict(self, names: Iterable[str]) -> Schema:
        """Return the schema of the columns `names` alone; of columns that the parent's file has, as it has them."""
        wanted = frozenset(names)
        of_file = wanted and wanted.isdisjoint(self.columns) and wanted <= self.linked.parent.columns.keys()
        return self.linked.parent.restrict(wanted) if of_file else super().restrict(wanted)

    def alongside(self, name: str) -> tuple[str, ...]:
        """Return a tuple of the columns that a rule on the column `name` may name too: those of its table, last first.

        The last ones are in every step that has the table.
        """
        return tuple(each for each in reversed(self.names) if slot_of(each) == slot_of(name))

    def at(self, items: Items) -> tuple[CountedTables, Items]:
        """Return (counted tables of the parents of a stratum, its columns in each with their levels).

        `items` are pairs of a parent's column and levels. SchemaError for columns that not all of these parents have,
        and levels of several kinds.
        """
        if any(name in self.columns for name, _ in items):  # of one counted table, by its own names
            return self, items
        slots = self._slots_at(dict(items))
        inner = self._with(slots)
        for name, _ in items:
            if named(slots[0], name) not in inner.columns:
                raise SchemaError(
                    f"strata of linked tables are by columns of a {self.linked.names[0]}, and {name} is none that all "
                    f"of theirs have{nearest(name, [n.partition('.')[2] for n in inner.of(slots[0]).names])}"
                )
        every = ((named(slot, name), levels) for name, levels in items for slot in slots)
        return inner, tuple((name, levels) for name, levels in every if name in inner.columns)

    def _slots_at(self, levels: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return a tuple of the names of the counted tables of parents with these `levels` by column."""
        column = self.linked.kind_column
        if column is None or column not in levels:
            return SLOTS
        mine = set(levels[column])
        kinds = {"occupied": self.linked.occupied[column], **{n: k.levels for n, k in self.linked.kinds.items()}}
        found = [name for name, own in kinds.items() if mine <= set(own)]
        if not found:
            raise SchemaError(
                f"strata: {column} {' and '.join(sorted(mine))} is of no kind, or of several: a stratum is of one kind "
                "of `kinds`, which have all levels of their column between them"
            )
        return SLOTS if found[0] == "occupied" else (found[0],)

    def to_toml(self) -> str:
        """Return the linked schema as TOML text, of format stratsynth-schema/2."""
        return self.linked.to_toml()

    def of(self, slot: str) -> CountedTables:
        """Return `CountedTables` with the columns of the table called `slot` alone, under their names here."""
        return self._with((slot,))

    def _with(self, slots: tuple[str, ...]) -> CountedTables:
        found = self.restrict(name for name in self.columns if slot_of(name) in slots)
        assert isinstance(found, CountedTables)  # noqa: S101 - of the same class
        return found


def slot_of(name: str) -> str:
    """Return the name of the counted table, `slot`, that a column named `slot.column` is of."""
    return name.partition(".")[0]


def named(slot: str, column: str) -> str:
    """Return the name of a column of a counted table: `slot.column`."""
    return f"{slot}.{column}"


def sum_bands(linked: LinkedSchema) -> Bands | None:
    """Return the `Bands` of what is left of the sum of the `LinkedSchema` `linked`; None where nothing is added up."""
    return None if linked.sum is None or linked.sum[1].left is None else Bands(linked.sum[1].left)


def number_bands(linked: LinkedSchema) -> Bands | None:
    """Return the `Bands` of the row before's number; None where the linked schema counts no column's differences."""
    return None if linked.difference is None or linked.previous is None else Bands(linked.previous)


def difference_bands(linked: LinkedSchema) -> Bands | None:
    """Return the `Bands` of differences of the `LinkedSchema` `linked`; None where no column's are counted."""
    return None if linked.difference is None else Bands(linked.differences)


def states(linked: LinkedSchema) -> tuple[str, ...]:
    """Return a tuple of texts, a linked schema's states of rows left: "1/0" (meeting the condition/not), or "1"."""
    if linked.state is None:
        return FEW[1:]
    return tuple(f"{one}/{other}" for one in FEW for other in FEW if (one, other) != ("0", "0"))


def slot_levels(linked: LinkedSchema, slot: str) -> dict[str, tuple[str, ...]]:
    """Return {column: tuple of levels} of the counted table called `slot` of the linked schema, columns in order."""
    parent = {name: linked.parent.levels(name) for name in linked.columns_of(slot)}
    if slot in linked.kinds:
        first = linked.child.columns if linked.kinds[slot].single else {}
        return parent | {REFERENCE + name: column.all_levels for name, column in first.items()}
    for name, each in linked.counts.items():
        parent[name] = each.levels
    own = {name: column.all_levels for name, column in linked.child.columns.items()}
    parent |= {REFERENCE + name: levels for name, levels in own.items()}
    left, before, apart = sum_bands(linked), number_bands(linked), difference_bands(linked)
    if left is not None:
        parent[SHARE] = left.levels
    if slot == PARENT:
        return parent
    state: dict[str, tuple[str, ...]] = {}
    if slot == OTHERS:
        state[STATE] = states(linked)
        state |= {} if left is None else {LEFT: left.levels}
        state |= {} if before is None else {PREVIOUS: before.levels}
    if slot != REST:
        own |= {} if apart is None else {DIFFERENCE: apart.levels}
        own |= {} if left is None else {ALL: ("0", "1")}
    for name in state.keys() | own.keys():
        if name in parent:
            raise SchemaError(f"column {name} is in both tables, or is named as one that is made here; rename it")
    return parent | state | own


def counted_tables(linked: LinkedSchema) -> CountedTables:
    """Return `CountedTables`, the schema of what is counted of the `LinkedSchema` `linked`."""
    columns: dict[str, Column] = {
        named(slot, name): Categorical(levels=levels)
        for slot in (*SLOTS, *linked.kinds)
        for name, levels in slot_levels(linked, slot).items()
    }
    drafted = [table for table in (linked.parent, linked.child) if table.origin != PUBLIC]
    nobody = [table for table in drafted if table.reviewed_by is None]
    stated, plain = [*nobody, *drafted, linked.parent][0], Schema(columns)
    return CountedTables(
        columns,
        unit=SharedWeight(column=linked.key, tables=linked.names),
        row_weight=RowWeight(linked.weight, f"share of {linked.key}", mean=1.0),
        rules=tuple(_rules(linked, plain)),
        linked=linked,
        origin=stated.origin,
        reviewed_by=stated.reviewed_by,
    )


def _rules(linked: LinkedSchema, plain: Schema) -> Iterator[Rule]:
    """Yield each `Rule` of both tables of the linked schema and across them, by counted levels, in a plain schema."""
    size = named(PARENT, linked.size)
    for name, levels in linked.occupied.items():
        others = tuple(level for level in linked.parent.levels(name) if level not in levels)
        if others:
            yield Rule(when={size: plain.levels(size)}, never={named(PARENT, name): others})
    for rule in linked.parent.rules:
        if rule.names.isdisjoint(linked.absent):
            yield from _renamed(rule, linked.parent, {n: named(PARENT, n) for n in rule.names}, linked.counts)
    for rule in linked.child.rules:
        yield from _renamed(rule, linked.child, {n: named(PARENT, REFERENCE + n) for n in rule.names})
        for slot in (SECOND, OTHERS, REST):
            yield from _renamed(rule, linked.child, {n: named(slot, n) for n in rule.names})
    yield from _of_kinds(linked)
    yield from _consistent(linked)
    for number, rule in enumerate(linked.rules, start=1):
        if not isinstance(rule, Rule):
            raise SchemaError("rules must be a list of Rule")
        names = {n: n if slot_of(n) in SLOTS and "." in n else named(PARENT, n) for n in rule.names}
        if len({slot_of(name) for name in names.values()}) > 1:
            raise SchemaError(
                f"rule {number}: a rule is of one counted table, and those of child rows have the parent's columns"
            )
        found = Rule(
            when={names[n]: c for n, c in rule.when.items()}, never={names[n]: c for n, c in rule.never.items()}
        )
        found.cells(plain)  # refuses columns and levels that there are not
        yield found


def _of_kinds(linked: LinkedSchema) -> Iterator[Rule]:
    """Yield each `Rule` of both tables of a `LinkedSchema` on the columns that other kinds of parents have."""
    for slot, kind in linked.kinds.items():
        for rule in linked.parent.rules:
            if rule.names.issubset(linked.columns_of(slot)):
                yield from _renamed(rule, linked.parent, {n: named(slot, n) for n in rule.names})
        for rule in linked.child.rules if kind.single else ():
            yield from _renamed(rule, linked.child, {n: named(slot, REFERENCE + n) for n in rule.names})


def _consistent(linked: LinkedSchema) -> Iterator[Rule]:
    """Yield each `Rule` by which the linked schema's differences and sums are those of numbers: `schema.consistent`."""
    before, apart, left = number_bands(linked), difference_bands(linked), sum_bands(linked)
    if linked.difference is not None and before is not None and apart is not None:
        column, name = linked.child.column(linked.difference), linked.difference
        numbers, differences = spans_of(column), spans_between(apart, column)
        first = named(SECOND, REFERENCE + name), named(SECOND, DIFFERENCE), named(SECOND, name)
        yield from rules_where(first, (numbers, differences, numbers), differs)
        later = named(OTHERS, PREVIOUS), named(OTHERS, DIFFERENCE), named(OTHERS, name)
        yield from rules_where(later, (spans_between(before, column, bounded=True), differences, numbers), differs)
    if linked.sum is not None and left is not None:
        name, total = linked.sum
        column = linked.child.column(total.column)
        own, rest = spans_of(column, nothing=0.0), spans_between(left, column)
        whole = named(PARENT, name), named(PARENT, REFERENCE + total.column), named(PARENT, SHARE)
        yield from rules_where(whole, (spans_of(linked.parent.column(name), beyond=True), own, rest), adds_up)
        everything: Spans = {"0": (0.0, 0.0), "1": (1.0, 1.0)}
        for slot, band in ((SECOND, SHARE), (OTHERS, LEFT)):
            columns = named(slot, band), named(slot, ALL), named(slot, total.column)
            yield from rules_where(columns, (rest, everything, own), takes)


def _renamed(
    rule: Rule, schema: Schema, names: Mapping[str, str], counts: Mapping[str, ChildCount] = MappingProxyType({})
) -> Iterator[Rule]:
    """Yield a schema's `rule` as `Rule`s of levels, columns renamed by a dict `names`; none where it forbids nothing.

    A column in the dict `counts` has the levels of its `ChildCount`: those whose numbers all meet the condition.
    """
    for never, box in zip(rule.never, rule.cells(schema), strict=True):
        levels = {
            name: _counted(counts[name], schema.column(name), codes)
            if name in counts
            else tuple(schema.levels(name)[code] for code in sorted(codes))
            for name, codes in box.items()
        }
        if all(levels.values()):
            yield Rule(
                when={names[n]: found for n, found in levels.items() if n != never}, never={names[never]: levels[never]}
            )


def _counted(count: ChildCount, column: Column, codes: frozenset[int]) -> tuple[str, ...]:
    """Return a tuple of a `ChildCount`'s levels all of whose numbers have one of these codes in a parent's column."""
    if isinstance(column, Numeric):
        spans = [column.extents[code] for code in codes if code < len(column.extents)]
        met = [any(low <= number <= top for low, top in spans) for number in range(MOST_DRAWN + 1)]
        ends = [met[number : number + 1] for number in range(count.least, count.top)]
        ends.append(met[count.top : max(count.top, min(MOST_DRAWN, int(column.upper))) + 1])
        return tuple(level for level, numbers in zip(count.levels, ends, strict=True) if all(numbers))
    texts = {column.all_levels[code] for code in codes}
    return tuple(level for level in count.levels if level in texts)
