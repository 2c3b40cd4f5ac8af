"""`ParentKind`: parents of another kind than those with child rows, such as vacant housing units and group quarters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.checks import flag, quoted_value
from stratsynth.errors import SchemaError
from stratsynth.schema import checks
from stratsynth.schema.text import check_text

if TYPE_CHECKING:
    from stratsynth.schema.linked import LinkedSchema

RESERVED = ("parent", "second", "others", "rest", "column", "occupied", "absent")
"""Names that no kind has: of counted tables, and of keys of the schema file."""


@dataclass(frozen=True, kw_only=True)
class ParentKind:
    """A kind of parents that is counted in a table of its own, one row a parent."""

    levels: tuple[str, ...]
    """Levels of the column of kinds, that of `occupied`, whose parents these are."""
    columns: tuple[str, ...] = ()
    """Columns of the parent that exist for them, besides that of kinds."""
    single: bool = False
    """True if each has one child row, the first in order, which is counted with it; False if none is counted."""

    def __post_init__(self) -> None:
        for key in ("levels", "columns"):
            found = checks.items(key, getattr(self, key))
            object.__setattr__(self, key, tuple(check_text(key, str(each)) for each in found))
        flag("single", self.single, error=SchemaError)
        checks.count("levels", len(self.levels))


def check_kinds(linked: LinkedSchema) -> None:
    """Refuse, with a SchemaError, kinds of a linked schema that are not disjoint, or have columns that are not there.

    Also columns that the counted kind lacks, `absent`, where something is made of them.
    """
    parent, column = linked.parent, linked.kind_column
    for name in linked.absent:
        parent.column(name)
        if name == column or name in linked.derived:
            raise SchemaError(f"absent: {name} is a column of every counted parent")
    if not isinstance(linked.kinds, Mapping):
        raise SchemaError("kinds is a table from names of kinds to ParentKind")
    if column is None and linked.kinds:
        raise SchemaError('kinds need occupied, the levels of those with child rows, such as {"TYPEHUGQ": ["1"]}')
    taken = dict.fromkeys(linked.occupied.get(column or "", ()), "occupied")
    for name, kind in linked.kinds.items():
        if not isinstance(name, str) or not name.isidentifier() or name in RESERVED:
            raise SchemaError(f"kinds: {quoted_value(name)} is no word, or names something else here; rename the kind")
        if not isinstance(kind, ParentKind):
            raise SchemaError(f"kind {name} must be ParentKind(levels=...), not {quoted_value(kind)}")
        for level in kind.levels:
            parent.index(str(column), level)
            if level in taken:
                raise SchemaError(f"kind {name}: {column} {level} is {taken[level]} already, and kinds are disjoint")
            taken[level] = name
        if not kind.columns and not kind.single:
            raise SchemaError(f"kind {name}: name the columns that exist for it; without any there is nothing to fit")
        for each in kind.columns:
            parent.column(each)
            if each == column or each in linked.derived:
                raise SchemaError(f"kind {name}: {each} is not named; kinds have their own columns of the parent alone")
