"""Sources of tables: the common interface, files that are opened anew for each reading, Parquet and CSV.

Other kinds have a file each: `in_memory` (frames and Arrow tables), `feather`, `folders`, `duckdb_source`.

The file that is read must be the one that an account was opened for. A ledger knows its data by a hash of the file's
content. The file is opened again when the first question has been charged; between the two another file may have taken
its place, whose rows nobody was charged for. Hashing the content twice would double the reading of large files, so the
file's identity is compared: its inode, its size, and the times of its last changes, the second of which no program can
set.
"""

from __future__ import annotations

import gzip
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, TypeAlias, cast, runtime_checkable

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from stratsynth.checks import quoted_value
from stratsynth.data import csvlines
from stratsynth.data.csvlines import LeftOut
from stratsynth.errors import LedgerError, UsageError
from stratsynth.files.reading import open_regular
from stratsynth.schema.encoding import locate

Stamp: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class StampedFiles:
    """The files under one path whose fingerprints were taken."""

    _marks: dict[bytes, dict[Stamp, str]] = field(default_factory=dict, repr=False)
    """Fingerprint of each file, by key and stamp."""

    def note(self, key: bytes, file: IO[bytes], mark: str) -> None:
        """Record, under the bytes `key`, that the text `mark` is the fingerprint of this open file."""
        self._marks.setdefault(key, {})[stamp(file)] = mark

    @contextmanager
    def unchanged(self, file: IO[bytes], path: Path, *, known: bool) -> Iterator[None]:
        """Raise a LedgerError on `path` if `file` changes within the block or, with `known`, since its fingerprint.

        Before any fingerprint was taken, every file passes.
        """
        first = stamp(file)
        marks = self._marks.values()
        same = not marks or any(first in seen for seen in marks)
        if known and (not same or any(len(set(seen.values())) > 1 for seen in marks)):
            raise changed(path)
        yield
        if stamp(file) != first:
            raise changed(path)


def changed(path: Path) -> LedgerError:
    """Return (not raise) a LedgerError that says: the file `path` is not the one that the account was opened for."""
    return LedgerError(
        f"ledger: {path} was changed or replaced while it was read. What was charged stands; put the file back as it "
        "was and run the same again: nothing is charged twice."
    )


def stamp(file: IO[bytes]) -> Stamp:
    """Return a tuple: an open file's device, inode, size, times of change; equal only for the same, unchanged file."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@runtime_checkable
class Streams(Protocol):
    """A frame of another library, such as polars, with Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a PyCapsule of an ArrowArrayStream."""


Data: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | pa.Table | Streams | Source"
"""Types that `open_source` takes."""

BATCH = 1 << 18
"""Rows per batch."""
PIECE = 1 << 20
"""Bytes per read for a fingerprint."""

ACCEPTED = (
    "a .csv, .csv.gz, .parquet, .feather or .arrow file, a folder of .parquet files, a table of a .duckdb database, a "
    "pandas, polars or Spark frame, or an Arrow table"
)


class Source(ABC):
    """A table that can be read, in columns of Arrow."""

    path: Path | None = None
    """Path of the file or folder; None for a table in memory."""

    @property
    def in_memory(self) -> object:
        """Object that holds the rows in memory, else the source: two sources of one object have the same data."""
        return self

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the names of the columns, in order; no row is read."""

    def types(self) -> pa.Schema | None:
        """Return the Arrow schema of the columns, from the structure alone; None if every column is plain text."""
        return None

    def own_types(self) -> Mapping[str, str]:
        """INTERNAL. Mapping from column to its type for drafts ("int64", "ordered"), where types as read hide it."""
        return {}

    record: str | None = None
    """Definition of one record, in words for the certificate, if the format leaves it open; else None."""

    engine: str | None = None
    """Engine that holds the rows in place; None if every engine for files or frames can."""

    def left_out(self) -> LeftOut:
        """INTERNAL. Return `LeftOut`, numbers of lines that are no records; 0 unless the kind of file has such."""
        return LeftOut()

    def all_columns(self) -> pa.Table:
        """Return an Arrow table of all columns and rows, for a fingerprint; the next `read` may reuse it."""
        return self.read(self.columns())

    @abstractmethod
    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns of every row; SchemaError if one is absent or duplicated."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield Arrow tables of these columns, up to BATCH rows each; of a file, one at most is in memory."""
        table = self.read(columns)
        for start in range(0, table.num_rows, BATCH):
            yield table.slice(start, BATCH)

    def looked_at(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield Arrow tables of these columns, as `batches`, for a comparison: the next `read` is as without it."""
        return self.batches(columns)

    def parts_to_read(self) -> int | None:
        """INTERNAL. Approximate number of batches, for a progress bar; None if unknown."""
        return None


def open_source(data: Data, table: str | None = None, query: str | None = None) -> Source:
    """Return the `Source` of a path, frame or Arrow table; `table` (name) or `query` (SQL) selects a database's rows.

    Raises:
        UsageError: Data that do not exist or are of no known kind.
    """
    if isinstance(data, (str, os.PathLike)):
        return _of_path(Path(data), table, query)
    if table is not None or query is not None:
        raise UsageError(f"table and query go with the path of a database, not with {quoted_value(data)}.")
    if isinstance(data, Source):
        return data
    from stratsynth.data.in_memory import ArrowSource, FrameSource

    if isinstance(data, pa.Table):
        return ArrowSource(data)
    if isinstance(data, pd.DataFrame):
        return FrameSource(data)
    from stratsynth.data.spark_source import SparkSource, is_spark_frame

    if is_spark_frame(data):
        return SparkSource(data)
    if isinstance(data, Streams) and not isinstance(data, pd.Series):
        try:
            return ArrowSource(pa.table(data))
        except Exception as error:  # noqa: BLE001 - another library's, whose message may hold values
            raise UsageError(f"the frame cannot be read ({type(error).__name__})") from None
    remedy = {"Release": "; draw rows: release.sample(n)", "PrivateTable": "; this table is open already", "Series":
              "; use data.to_frame()", "dict": "; use pandas.DataFrame(data)"}.get(type(data).__name__, "")  # fmt: skip
    raise UsageError(f"data must be {ACCEPTED}, not {type(data).__name__}{remedy}")


def _of_path(path: Path, table: str | None, query: str | None) -> Source:
    """Return the `Source` of a path, by its ending; `table` or `query` selects rows of a database; or UsageError."""
    if is_database(path, table, query):
        from stratsynth.data.duckdb_source import database

        return database(path, table=table, query=query)
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for names that no system can have
        from stratsynth.data.folders import FolderSource

        folder = FolderSource(path)
        folder.parts()  # raises if there are none
        return folder
    from stratsynth.data.feather import FeatherSource

    kinds: Mapping[tuple[str, ...], type[FileSource]] = {
        (".csv", ".csv.gz"): CsvSource, (".parquet",): ParquetSource, (".feather", ".arrow"): FeatherSource
    }  # fmt: skip
    for endings, kind in kinds.items():
        if path.name.lower().endswith(endings):
            source = kind(path)
            with source.open():  # raises unless it is an existing file
                return source
    raise UsageError(f"{path}: data must be {ACCEPTED}")


DATABASES = (".duckdb", ".ddb")
"""File name endings of databases, recognised without `table` or `query`."""


def is_database(path: Path, table: str | None, query: str | None) -> bool:
    """True if `table` or `query` is not None, or the path ends as a DuckDB database's does."""
    return table is not None or query is not None or path.name.lower().endswith(DATABASES)


@dataclass(frozen=True)
class FileSource(Source):
    """A table in a file, which is opened anew for each reading."""

    path: Path
    """Path of the file."""
    seen: StampedFiles = field(default_factory=StampedFiles, init=False, repr=False, compare=False)
    """Files whose fingerprints were taken for the account: no other one is read."""

    @contextmanager
    def open(self, *, known: bool = True) -> Iterator[IO[bytes]]:
        """Yield the file, open for reading; with `known`, only the one whose fingerprint was taken.

        Raises:
            UsageError: No file, or an unreadable one; the message quotes nothing of it.
            LedgerError: Not the file whose fingerprint was taken, or one that changes while it is open.
        """
        try:
            with open_regular(self.path) as file, self.seen.unchanged(file, self.path, known=known):
                yield file
        except FileNotFoundError:
            raise UsageError(f"{self.path}: there is no such file") from None
        except (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError) as error:
            raise UsageError(
                f"{self.path}: cannot be read ({type(error).__name__}); is the file whole and of the kind it is named?"
            ) from None

    def contents(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield the bytes of an open file of this source, up to PIECE at once: the input of its fingerprint."""
        return iter(lambda: file.read(PIECE), b"")


@dataclass(frozen=True)
class ParquetSource(FileSource):
    """A Parquet file."""

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the names of the columns, from the file's footer."""
        with self.open() as file:
            return tuple(pq.read_schema(file).names)

    def types(self) -> pa.Schema:
        """Return the Arrow schema of the columns, from the file's footer."""
        with self.open() as file:
            return pq.read_schema(file)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns of every row, in the file's order; SchemaError if one is absent."""
        locate(columns, self.columns())
        with self.open() as file:
            return pq.read_table(file, columns=list(columns), partitioning=None)

    def batches(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """Yield Arrow tables of these columns, of row groups numbered `groups` (None: all); texts are dictionaries."""
        locate(columns, self.columns())
        types = self.types()
        texts = [name for name in columns if types.field(name).type in (pa.string(), pa.binary())]
        with self.open() as file:
            parquet = pq.ParquetFile(file, read_dictionary=texts, pre_buffer=False)
            for batch in parquet.iter_batches(BATCH, row_groups=groups, columns=list(columns)):
                yield pa.Table.from_batches([batch]).select(list(columns))

    def parts_to_read(self) -> int:
        """INTERNAL. Number of batches, by the number of rows in the file's footer, for a progress bar."""
        with self.open() as file:
            return -(-int(pq.read_metadata(file).num_rows) // BATCH)


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
