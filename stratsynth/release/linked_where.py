"""Conditions on two linked tables: a parent meets its own, and one of its child rows meets all of those on child rows.

Parents are kept by what was drawn, so that what a condition leaves is what it would leave of a large sample. Columns
that a model draws by are evidence as well, so that hardly any parent is drawn in vain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import quoted_value
from stratsynth.errors import SchemaError, UsageError, nearest
from stratsynth.models import Where
from stratsynth.release.drawn_rows import DrawnRows
from stratsynth.schema.counted_tables import REFERENCE
from stratsynth.schema.where import example, levels_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.linked import LinkedSchema
    from stratsynth.schema.where import Conditions


@dataclass(frozen=True)
class LinkedWhere:
    """Conditions on two linked tables: column -> level numbers allowed."""

    linked: LinkedSchema
    parent: Where
    """Level numbers allowed by column of the parent."""
    reference: Where
    """Level numbers allowed of the first child row, by column of the child."""
    child: Where
    """Level numbers allowed by column of the child: one child row has to meet them all."""
    counts: Where
    """Numbers of child rows allowed by derived count that the parent's schema lacks; the top is for all larger ones."""

    @classmethod
    def of(cls, linked: LinkedSchema, where: Conditions | None) -> LinkedWhere:
        """Return the `LinkedWhere` of the conditions `where`, a user's, on columns of either table of a `LinkedSchema`.

        `R_` before the name of a column of the child is the first child row's. SchemaError for a column or level that
        there is not; UsageError for conditions of another form.
        """
        if where is not None and not isinstance(where, Mapping):
            raise UsageError(
                f"where is a table from columns to levels, such as {example(linked.parent)}, not {quoted_value(where)}."
            )
        found: dict[str, dict[str, frozenset[int]]] = {"parent": {}, "reference": {}, "child": {}, "counts": {}}
        for name, condition in (where or {}).items():
            own = str(name).removeprefix(REFERENCE)
            if name in linked.parent.columns:
                found["parent"][name] = _codes(linked.parent, name, condition)
            elif name in linked.counts:
                found["counts"][name] = _numbers(linked, name, condition)
            elif name in linked.child.columns:
                found["child"][name] = _codes(linked.child, name, condition)
            elif own != name and own in linked.child.columns:
                found["reference"][own] = _codes(linked.child, own, condition)
            else:
                names = (*linked.parent.names, *linked.counts, *linked.child.names)
                raise SchemaError(f"where: neither table has a column {quoted_value(name)}{nearest(str(name), names)}.")
        return cls(linked, **found)

    @property
    def free(self) -> bool:
        """True without any condition."""
        return not (self.parent or self.reference or self.child or self.counts)

    def evidence(self) -> dict[str, frozenset[int]]:
        """Return {column of the parent's counted table: set of level numbers} of columns that are drawn as released.

        Those are the parent's own, the reference's, and the number of all child rows.
        """
        linked = self.linked
        found = {name: codes for name, codes in self.parent.items() if name not in linked.derived}
        found |= {f"{REFERENCE}{name}": codes for name, codes in self.reference.items()}
        count = linked.counts[linked.size]
        if linked.size in self.parent or linked.size in self.counts:
            sizes = [n for n in range(count.least, linked.most + 1) if self._size_met(n)]
            found[linked.size] = frozenset(min(n, count.top) - count.least for n in sizes)
        return found

    def met(self, tables: Mapping[str, pa.Table]) -> NDArray[np.bool_]:
        """Return a mask of the parents in two drawn `tables`, {name: Arrow table}, that meet all conditions."""
        rows = DrawnRows(self.linked, tables)
        above, below = self.linked.names
        found = np.ones(len(rows.size), dtype=bool)
        for name, allowed in self.parent.items():
            if name not in tables[above].column_names:
                column = self.linked.kind_column
                raise UsageError(
                    f"where: {name} is a column of other kinds of {above} alone, and this release has none of them: a "
                    f"fit in strata by {column} would."
                )
            found &= np.isin(rows.codes(above, name), list(allowed))
        for name, allowed in self.counts.items():
            count = self.linked.counts[name]
            found &= np.isin(np.minimum(rows.counted(count), count.top), list(allowed))
        for some, which in ((self.reference, rows.place == 0), (self.child, np.ones(len(rows.home), dtype=bool))):
            if some:
                one = which.copy()
                for name, allowed in some.items():
                    one &= np.isin(rows.codes(below, name), list(allowed))
                found &= np.bincount(rows.home[one], minlength=len(found)) > 0
        return found

    def _size_met(self, number: int) -> bool:
        """True if a parent of so many child rows meets the conditions on their number."""
        from stratsynth.schema.columns import Numeric

        size, count = self.linked.size, self.linked.counts[self.linked.size]
        if size in self.counts:
            return min(number, count.top) in self.counts[size]
        column = self.linked.parent.column(size)
        if isinstance(column, Numeric):
            code = int(np.searchsorted(np.asarray(column.breaks, float), number, side="right")) - 1
            return min(max(code, 0), len(column.extents) - 1) in self.parent[size]
        return column.codes.get(str(number), column.size - 1) in self.parent[size]


def _codes(schema: Schema, name: str, condition: object) -> frozenset[int]:
    """Return a frozenset of the level numbers of the schema's column `name` that a user's `condition` names.

    That is a level, a range, or a list of such. UsageError or SchemaError, opening with "where", for others.
    """
    try:
        return frozenset(schema.index(name, level) for level in levels_of(schema, name, condition))
    except UsageError as error:
        raise type(error)(f"where: {error}") from None


def _numbers(linked: LinkedSchema, name: str, condition: Any) -> frozenset[int]:
    """Return a frozenset of the numbers of child rows that a user's `condition` on the count `name` names.

    `name` is a count of the `LinkedSchema`.
    """
    from stratsynth.schema import Categorical, Schema

    count = linked.counts[name]
    codes = _codes(Schema({name: Categorical(levels=count.levels)}), name, condition)
    return frozenset(code + count.least for code in codes)
