"""Sources of tables: the common interface, files that are opened anew for each reading, and Parquet.

Other kinds have a file each: `held` (frames and Arrow tables), `csv_source`, `feather`, `folders`, `duckdb_source`.
"""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, TypeAlias, runtime_checkable

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from stratsynth.checks import quoted_value
from stratsynth.data.csvlines import LeftOut
from stratsynth.data.file_stamps import StampedFiles
from stratsynth.errors import UsageError
from stratsynth.files.reading import open_regular
from stratsynth.schema.encoding import locate


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
    from stratsynth.data.csv_source import CsvSource
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
        """Yield Arrow tables of these columns, of all or these row groups; texts are dictionaries, as stored."""
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
