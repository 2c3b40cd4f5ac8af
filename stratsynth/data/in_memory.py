"""Tables that are in memory: frames and Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from stratsynth.data.frames import declared, own_types, to_arrow
from stratsynth.data.sources import BATCH, Source
from stratsynth.schema.encoding import locate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ArrowSource(Source):
    """An Arrow table in memory."""

    table: pa.Table = field(repr=False)
    """The table."""

    @property
    def in_memory(self) -> object:
        """Arrow table itself: two sources of one table have the same data."""
        return self.table

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the names of the table's columns, in order."""
        return tuple(self.table.column_names)

    def types(self) -> pa.Schema | None:
        """Return the table's schema, never None: the Arrow types of the columns."""
        return self.table.schema

    def all_columns(self) -> pa.Table:
        """Return the Arrow table itself."""
        return self.table

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns of every row, in order; SchemaError if one is absent or twice."""
        return self.table.select(locate(columns, self.table.column_names))


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """A pandas frame in memory."""

    frame: pd.DataFrame = field(repr=False)
    """The frame, which is never written to."""
    _next: list[pa.Table] = field(default_factory=list, init=False, repr=False)
    """Result of `whole`, kept until the next read, so that a fit converts a frame once."""

    @property
    def in_memory(self) -> object:
        """Frame itself: two sources of one frame have the same data."""
        return self.frame

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the names of the frame's columns as texts, in order."""
        return tuple(str(name) for name in self.frame.columns)

    def types(self) -> pa.Schema | None:
        """Return the Arrow schema, never None, that the frame's columns are read as."""
        return pa.schema([pa.field(str(name), declared(kind)) for name, kind in self.frame.dtypes.items()])

    def own_types(self) -> Mapping[str, str]:
        """INTERNAL. Mapping from column to its type for drafts: numbers are read as reals, categories without order."""
        return own_types(self.frame)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns of every row; the conversion of `all_columns` serves once."""
        places = locate(columns, self.columns())
        if self._next:
            return self._next.pop().select(places)
        return self._converted(places)

    def all_columns(self) -> pa.Table:
        """Return an Arrow table of all columns, converted anew, since the frame may have changed."""
        self._next[:] = [self._converted(range(self.frame.shape[1]))]
        return self._next[0]

    def looked_at(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield Arrow tables of these columns, as `all_columns` has converted them; `read` then takes the same."""
        places = locate(columns, self.columns())
        table = self._next[0].select(places) if self._next else self._converted(places)
        for start in range(0, table.num_rows, BATCH):
            yield table.slice(start, BATCH)

    def _converted(self, places: Sequence[int]) -> pa.Table:
        arrays = [to_arrow(self.frame.iloc[:, place]) for place in places]
        return pa.table(arrays, names=[str(self.frame.columns[place]) for place in places])
