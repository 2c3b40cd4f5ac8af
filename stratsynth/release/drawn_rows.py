"""Rows of two linked tables as they were drawn: child rows beside their parents, by number and by place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.schema.columns import Numeric
from stratsynth.schema.encoding import encode_categorical, encode_numeric

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.linked import ChildCount, LinkedSchema

    Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Synthetic rows of a parent table and its child table, child rows sorted by parent and by place."""

    linked: LinkedSchema
    tables: Mapping[str, pa.Table]
    """Both tables by name, parents first, as a release draws them: keys rise in both."""

    @cached_property
    def home(self) -> Array:
        """Array with the number, from 0, of each child row's parent."""
        above, below = (np.asarray(table.column(self.linked.key)) for table in self.tables.values())
        return np.searchsorted(above, below)

    @cached_property
    def size(self) -> Array:
        """Array with the number of child rows of each parent."""
        return np.bincount(self.home, minlength=next(iter(self.tables.values())).num_rows)

    @cached_property
    def place(self) -> Array:
        """Array with the place of each child row among its parent's, 0 for the reference."""
        start = np.cumsum(self.size) - self.size
        found: Array = np.arange(len(self.home)) - start[self.home]
        return found

    def numbers(self, of: str, name: str) -> Array:
        """Return an array, an entry a row: the numbers of the numeric column `name` in the table named `of`.

        NaN for none.
        """
        column = self._schema(of).column(name)
        assert isinstance(column, Numeric)  # noqa: S101 - callers ask for declared numbers
        codes, found, _ = encode_numeric(column, self.tables[of].column(name))
        return np.where(codes < len(column.extents), found, np.nan)

    def codes(self, of: str, name: str) -> Array:
        """Return an array, an entry a row: the level number in the column `name` of the table named `of`."""
        column, data = self._schema(of).column(name), self.tables[of].column(name)
        return encode_numeric(column, data)[0] if isinstance(column, Numeric) else encode_categorical(column, data)[0]

    def counted(self, count: ChildCount) -> Array:
        """Return an array, an entry a parent: the number of its child rows that a `ChildCount` counts."""
        met = np.ones(len(self.home), dtype=bool)
        child = self.linked.names[1]
        for name, allowed in self.linked.codes_where(count).items():
            met &= np.isin(self.codes(child, name), sorted(allowed))
        met &= ~((self.place == 0) & count.besides_reference)
        return np.bincount(self.home[met], minlength=len(self.size))

    def _schema(self, of: str) -> Schema:
        return self.linked.parent if of == self.linked.names[0] else self.linked.child
