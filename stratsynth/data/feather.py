"""Feather and Arrow files, whose lengths and offsets are validated before use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from stratsynth.data import sources
from stratsynth.data.sources import FileSource
from stratsynth.schema.encoding import locate


@dataclass(frozen=True)
class FeatherSource(FileSource):
    """An Arrow file (Feather), or a file with an Arrow stream."""

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the names of the columns, from the file's own schema."""
        with self.open() as file:
            return tuple(self._reader(file).schema.names)

    def types(self) -> pa.Schema:
        """Return the Arrow schema of the columns, the file's own."""
        with self.open() as file:
            return self._reader(file).schema

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns of every row, in the file's order; SchemaError if one is absent."""
        places = locate(columns, self.columns())
        with self.open() as file:
            return _sound(self._reader(file, sorted(places)).read_all().select(list(columns)))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield Arrow tables of these columns, each of one record batch or a part of one, up to BATCH rows."""
        places = locate(columns, self.columns())
        with self.open() as file:
            for batch in _record_batches(self._reader(file, sorted(places))):
                table = _sound(pa.Table.from_batches([batch]).select(list(columns)))
                for start in range(0, table.num_rows, sources.BATCH):
                    yield table.slice(start, sources.BATCH)

    def _reader(self, file: IO[bytes], places: Sequence[int] = ()) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=list(places))
        whole = file.read(6) == b"ARROW1"
        file.seek(0)
        return pa.ipc.open_file(file, options=options) if whole else pa.ipc.open_stream(file, options=options)


def _sound(table: pa.Table) -> pa.Table:
    """Return the Arrow `table` itself after full validation; pyarrow's error if it is invalid."""
    table.validate(full=True)  # Arrow's reader takes lengths and offsets as they are: wrong ones would crash
    return table


def _record_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    """Yield the record batches that a reader of an Arrow file or stream has, in order."""
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        yield from reader
