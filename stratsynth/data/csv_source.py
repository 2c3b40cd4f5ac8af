"""CSV files, plain or compressed by gzip; `stratsynth.data.csvlines` defines their records."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, cast

import pyarrow as pa

from stratsynth.data import csvlines
from stratsynth.data.csvlines import LeftOut
from stratsynth.data.sources import FileSource
from stratsynth.schema.encoding import locate


@dataclass(frozen=True)
class CsvSource(FileSource):
    """A CSV file with a header, comma-separated, in UTF-8, perhaps compressed by gzip; every column is text.

    Rows are read one line at a time: see `stratsynth.data.csvlines`.
    """

    record = "one physical line of the CSV file"

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the names of the columns, from the file's header."""
        with self.open() as file:
            return tuple(csvlines.header(self._unpacked(file)))

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns of every record, as text, null where a field is empty."""
        texts = pa.schema([(name, pa.string()) for name in columns])
        return pa.concat_tables([texts.empty_table(), *self.batches(columns)])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield an Arrow table of these columns, as text, for each block of the file, in order."""
        with self.open() as packed:
            file = self._unpacked(packed)
            names = csvlines.header(file)
            places = locate(columns, names)
            for arrays in csvlines.batches(file, len(names), places):
                yield pa.table(arrays, names=list(columns))

    def parts_to_read(self) -> int | None:
        """INTERNAL. Number of blocks by the size of the file; None for a compressed file."""
        with self.open() as packed:
            if self._unpacked(packed) is not packed:
                return None
            return -(-os.fstat(packed.fileno()).st_size // csvlines.BLOCK)

    def left_out(self) -> LeftOut:
        """INTERNAL. Return `LeftOut`, numbers of lines that are no records: bad quotes, or another number of fields."""
        with self.open() as packed:
            file = self._unpacked(packed)
            return csvlines.left_out(file, len(csvlines.header(file)))

    def _unpacked(self, file: IO[bytes]) -> IO[bytes]:
        """Return the open file as it is, or decompressed if its name ends in .gz or it begins with gzip's two bytes."""
        packed = file.read(2) == b"\x1f\x8b" or self.path.name.lower().endswith(".gz")
        file.seek(0)
        return cast("IO[bytes]", gzip.open(file)) if packed else file
