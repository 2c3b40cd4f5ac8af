"""`LinkedSchema`: two tables of which one row of the first owns rows of the second, as a household its persons.

A fit counts tables of it, each a function of one household and all its persons alone. Their columns:

    parent   one row a household: the parent's columns, derived ones (`ChildCount`, `ChildSum`), those of the reference
             person (`R_` before the child's name), and SHR, the band of what the others' sum comes to
    second   one row a household of two and more: all of these, then the second person's own columns, DIF and ALL
    others   one row a person from the third on: the parent's columns, then the state of the household, ST, REM and
             PREV, and the person's own columns, DIF and ALL

The first child row in the declared order is the reference, such as the householder. ST is the number of persons left,
this one included, that meet the first condition of a count, and of those that do not, each 0, 1 or 2+, as "1/2+". REM
is the band of what is left of the sum, and ALL is "1" where this person has all of it. PREV is the band of the
number of the person before, and DIF that of the difference from it: from the reference, for the second person. The
declarations here are public; `stratsynth.data.linked_rows` makes the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING

from stratsynth.checks import check_integer, flag, is_list, is_number, quoted_value
from stratsynth.errors import SchemaError, nearest
from stratsynth.schema import checks
from stratsynth.schema.columns import Numeric
from stratsynth.schema.kinds import ParentKind, check_kinds
from stratsynth.schema.rules import Condition, Rule
from stratsynth.schema.schema import Schema
from stratsynth.schema.text import check_text
from stratsynth.schema.weight import MOST
from stratsynth.schema.where import levels_of

if TYPE_CHECKING:
    from stratsynth.schema.counted_tables import CountedTables

SIZE = "SIZE"
"""Name of the count of all child rows where none is declared."""
WEIGHT = 60
"""Weight of a household in each counted table; its rows share it. 60 has the divisors 1 to 6, 10 and 12."""
MOST_DRAWN = 99
"""Largest number of child rows of a parent that may be drawn."""
DIFFERENCES = (-50, -40, -35, -30, -25, -20, -15, -10, -5, -2, 0, 1, 3, 6, 11, 21, 36)
"""Ends between the bands of a difference where none are declared: for ages in years."""


@dataclass(frozen=True, kw_only=True)
class ChildCount:
    """Column of the parent: the number of its child rows that meet a condition."""

    where: Mapping[str, Condition] = field(default_factory=dict, hash=False)
    """Levels, or for a number a range of whole bins such as "..17", by column of the child; empty for all rows."""
    besides_reference: bool = False
    """True to leave the reference, the first child row, out."""
    top: int = 8
    """Largest number that is told apart: it stands for itself and all above."""

    def __post_init__(self) -> None:
        if not isinstance(self.where, Mapping):
            raise SchemaError("where is a table from columns of the child to levels or ranges")
        object.__setattr__(self, "where", dict(self.where))
        flag("besides_reference", self.besides_reference, error=SchemaError)
        check_integer("top", self.top, 1, MOST_DRAWN, error=SchemaError)

    @property
    def everyone(self) -> bool:
        """True if all child rows are counted, of which a parent has one at least."""
        return not self.where and not self.besides_reference

    @property
    def least(self) -> int:
        """Smallest number that there can be: 1 of all child rows, otherwise 0."""
        return int(self.everyone)

    @property
    def levels(self) -> tuple[str, ...]:
        """Tuple of levels of the counted column, texts: from `least` on, and the top with a plus."""
        return (*map(str, range(self.least, self.top)), f"{self.top}+")


@dataclass(frozen=True, kw_only=True)
class ChildSum:
    """Column of the parent: the sum of a numeric column over its child rows, in the bins of the parent's column."""

    column: str
    """Numeric column of the child; a value without a quantity counts 0."""
    left: tuple[float, ...] | None = None
    """Ends between the bands of what is left of the sum; by default 0, what is just above it, and ends of its bins."""

    def __post_init__(self) -> None:
        check_text("sum", self.column)
        if self.left is not None:
            object.__setattr__(self, "left", _ends("left", self.left))


Derived = ChildCount | ChildSum


@dataclass(frozen=True, eq=False)
class LinkedSchema:
    """A public description of two linked tables; the protected unit is a row of the parent with all its child rows."""

    parent: Schema
    """Columns of the parent table, such as households."""
    child: Schema
    """Columns of the child table, such as persons."""
    key: str
    """Column of both tables that says which child rows are a parent's; it is never released."""
    order: str | tuple[str, ...]
    """Columns of the child whose numbers order the child rows of a parent; ties are broken by all columns."""
    most: int = 12
    """Largest number of child rows that are drawn of a parent; private ones count however many there are."""
    derived: Mapping[str, Derived] = field(default_factory=dict)
    """Columns of the parent that are made of its child rows, in place of what its file says; a count of all child rows
    is added, SIZE, where there is none."""
    difference: str | None = None
    """Numeric column of the child, such as the age, whose differences between persons are counted."""
    differences: tuple[float, ...] = DIFFERENCES
    """Ends between the bands of these differences."""
    previous: tuple[float, ...] | None = None
    """Ends between the bands of the number in the row before; by default decades, or ten parts of its range."""
    weight: int = WEIGHT
    """Weight of a parent in each counted table, which its rows share; it is in the unit of what is measured."""
    occupied: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Levels of one column of the parent whose rows are counted, such as TYPEHUGQ = ["1"]; empty for all."""
    kinds: Mapping[str, ParentKind] = field(default_factory=dict)
    """Other kinds of parents by name, each with levels of the column of `occupied` and its own columns: disjoint strata
    of a fit by that column, of which a fit without strata counts none."""
    absent: tuple[str, ...] = ()
    """Columns of the parent that do not exist for those with child rows, such as VACS."""
    rules: tuple[Rule, ...] = ()
    """Combinations that cannot occur across the tables, by the names of the counted columns; a name without
    `second.` or `others.` before it is of the parent's counted table."""
    names: tuple[str, str] = ("household", "person")
    """Names of the two tables, and of their files."""

    def __post_init__(self) -> None:
        for name in ("parent", "child"):
            table = getattr(self, name)
            if not isinstance(table, Schema):
                raise SchemaError(f"{name} must be a Schema, not {quoted_value(table)}")
            if table.unit != "record":
                raise SchemaError(
                    f"{name}: the unit of linked tables is a {self.names[0]} with all its rows; leave `unit` out"
                )
            if table.row_weight.column is not None or table.row_weight.most != 1:
                raise SchemaError(
                    f"{name}: rows of a {self.names[0]} share one weight, and how far weights of a survey could move a "
                    "table is not proven; leave `weight` out, and bring groups to published shares by strata"
                )
        check_text("key", self.key)
        order = (self.order,) if isinstance(self.order, str) else checks.items("order", self.order)
        object.__setattr__(self, "order", tuple(check_text("order", name) for name in order))
        checks.count("order", len(self.order))
        for table in (self.parent, self.child):
            if self.key in table.columns:
                raise SchemaError(f"key: {self.key} tells people apart, so it must not be released: leave it out")
        if self.key in self.order:
            raise SchemaError(f"order: {self.key} is the key, which is the same in all rows of a parent")
        check_integer("most", self.most, 1, MOST_DRAWN, error=SchemaError)
        object.__setattr__(self, "rules", tuple(checks.items("rules", self.rules)))
        self._check_names()
        self._check_derived()
        check_integer("weight", self.weight, 1, MOST, error=SchemaError)
        if self.difference is not None:
            self._numeric("difference", self.difference)
        object.__setattr__(self, "differences", _ends("differences", self.differences))
        self._settle_bands()
        self._check_occupied()
        object.__setattr__(self, "absent", tuple(checks.items("absent", self.absent)))
        check_kinds(self)
        object.__setattr__(self, "kinds", dict(self.kinds))
        self.counted  # noqa: B018 - a schema whose counted tables cannot be made is refused here

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinkedSchema) and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __repr__(self) -> str:
        """Return one line: the two tables, their numbers of columns, and what links them."""
        parent, child = self.names
        return (
            f"LinkedSchema({parent}: {len(self.parent.names)} columns, {child}: {len(self.child.names)} columns, by "
            f"{self.key}, in the order of {', '.join(self.order)})"
        )

    @cached_property
    def counted(self) -> CountedTables:
        """`CountedTables`, the schema of the counted tables side by side, by which a fit asks."""
        from stratsynth.schema.counted_tables import counted_tables

        return counted_tables(self)

    @property
    def counts(self) -> dict[str, ChildCount]:
        """Mapping from name to `ChildCount` of the derived columns that are counts; {} without any."""
        return {name: each for name, each in self.derived.items() if isinstance(each, ChildCount)}

    @property
    def size(self) -> str:
        """Name of the derived column that counts all child rows."""
        return next(name for name, count in self.counts.items() if count.everyone)

    @property
    def state(self) -> str | None:
        """Name of the count whose condition the state of a household is kept by: the first with one; None without."""
        return next((name for name, count in self.counts.items() if count.where), None)

    @property
    def sum(self) -> tuple[str, ChildSum] | None:
        """Tuple (name, `ChildSum`) of the first derived column that is a sum; None without one."""
        return next(((n, each) for n, each in self.derived.items() if isinstance(each, ChildSum)), None)

    @property
    def kind_column(self) -> str | None:
        """Name of the parent's column that tells kinds apart; None where all parents are counted."""
        return next(iter(self.occupied), None)

    def columns_of(self, kind: str = "occupied") -> tuple[str, ...]:
        """Tuple of names of the parent's columns that exist for a kind, by its name, in the order of the parent."""
        if kind not in self.kinds:
            return tuple(name for name in self.parent.names if name not in self.absent)
        own = {self.kind_column, *self.kinds[kind].columns}
        return tuple(name for name in self.parent.names if name in own)

    def codes_of(self, kind: str = "occupied") -> dict[str, tuple[int, ...]]:
        """Return the level numbers of parents of a kind, by its name, in each of its columns; of others it has all."""
        levels = self.kinds[kind].levels if kind in self.kinds else self.occupied.get(str(self.kind_column), ())
        own = {name: self.parent.levels(name) for name in self.columns_of(kind)}
        own |= {} if self.kind_column is None else {self.kind_column: levels}
        return {name: tuple(self.parent.index(name, level) for level in found) for name, found in own.items()}

    @property
    def beside(self) -> tuple[str, ...]:
        """Tuple of names of columns of the child that are read and not counted: the key, and what orders the rows."""
        return (self.key, *(name for name in self.order if name not in self.child.columns))

    def codes_where(self, count: ChildCount) -> dict[str, frozenset[int]]:
        """Return {column of the child: set of the level numbers that meet it} for the condition of a `ChildCount`."""
        return {
            name: frozenset(self.child.index(name, level) for level in levels_of(self.child, name, condition))
            for name, condition in count.where.items()
        }

    def to_toml(self) -> str:
        """Return the schema as TOML text of format stratsynth-schema/2, which `Schema.from_toml` reads, too."""
        from stratsynth.schema.linked_toml import dumped

        return dumped(self)

    @staticmethod
    def load(path: str | PathLike[str]) -> LinkedSchema:
        """Return the linked schema in a TOML file of format stratsynth-schema/2."""
        from stratsynth.schema.linked_toml import load

        return load(path)

    def _check_names(self) -> None:
        names = checks.items("names", self.names)
        if (
            len(names) != 2
            or names[0] == names[1]
            or not all(isinstance(name, str) and name.isidentifier() for name in names)
        ):
            raise SchemaError('names are two different words, such as ("household", "person"): files are named by them')
        object.__setattr__(self, "names", tuple(names))

    def _check_derived(self) -> None:
        if not isinstance(self.derived, Mapping):
            raise SchemaError("derived is a table from names of columns to ChildCount or ChildSum")
        every = any(isinstance(each, ChildCount) and each.everyone for each in self.derived.values())
        size = {} if every else {SIZE: ChildCount(top=min(self.most, 8))}
        object.__setattr__(self, "derived", {**size, **self.derived})
        sums = 0
        for name, each in self.derived.items():
            check_text("a derived column", name)
            if isinstance(each, ChildSum):
                sums += 1
                self._numeric(f"derived {name}", each.column)
                if not isinstance(self.parent.columns.get(name), Numeric):
                    raise SchemaError(f"derived {name}: the parent needs a numeric column of that name, for its bins")
            elif isinstance(each, ChildCount):
                self.codes_where(each)
            else:
                raise SchemaError(f"derived {name} must be ChildCount(...) or ChildSum(...), not {quoted_value(each)}")
        if self.counts[self.size].top > self.most:
            raise SchemaError(f"derived {self.size}: its top must be at most {self.most}, the most rows that are drawn")
        if sums > 1:
            raise SchemaError("derived: one sum at most is kept up with while the rows of a parent are drawn")

    def _settle_bands(self) -> None:
        """Fill in the bands that were not declared: a schema's file has all of them, whatever later defaults are."""
        from stratsynth.schema.bands import bands_before, bands_left

        if self.previous is not None or self.difference is not None:
            column = self.child.columns.get(self.difference or "")
            found = bands_before(column) if self.previous is None else _ends("previous", self.previous)
            object.__setattr__(self, "previous", found)
        if self.sum is not None and self.sum[1].left is None:
            name, total = self.sum
            left = bands_left(self.child.columns[total.column])
            object.__setattr__(self, "derived", {**self.derived, name: replace(total, left=left)})

    def _check_occupied(self) -> None:
        if not isinstance(self.occupied, Mapping) or len(self.occupied) > 1:
            raise SchemaError("occupied names the levels of one column of the parent")
        for name, levels in self.occupied.items():
            for level in checks.items("occupied", levels):
                self.parent.index(name, str(level))
        object.__setattr__(self, "occupied", {name: tuple(map(str, v)) for name, v in self.occupied.items()})

    def _numeric(self, what: str, name: str) -> None:
        if not isinstance(self.child.columns.get(name), Numeric):
            raise SchemaError(
                f"{what}: {name!r} is no numeric column of the {self.names[1]}{nearest(name, self.child.names)}"
            )


def _ends(key: str, given: object) -> tuple[float, ...]:
    """Return the ascending numbers `given` as a tuple; SchemaError, naming `key`, for anything else."""
    ends = tuple(given) if is_list(given) else ()
    if not ends or not all(map(is_number, ends)) or any(b <= a for a, b in pairwise(ends)):
        raise SchemaError(f"{key} must be numbers in ascending order, each once")
    return ends
