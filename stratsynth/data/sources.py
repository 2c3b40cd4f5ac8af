"""Where tables come from: CSV, Parquet and Arrow files, pandas and other frames, Arrow tables."""

from __future__ import annotations

import gzip
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, cast, runtime_checkable

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from stratsynth.data import csvlines
from stratsynth.data.csvlines import LeftOut
from stratsynth.data.frames import declared, own_types, to_arrow
from stratsynth.data.seen import Seen
from stratsynth.errors import UsageError
from stratsynth.files.reading import open_regular
from stratsynth.files.whole import new_file
from stratsynth.schema.codec import locate


@runtime_checkable
class Streams(Protocol):
    """A frame of another library, such as polars, that hands its columns over as Arrow does."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A PyCapsule of an ArrowArrayStream."""


Data: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | pa.Table | Streams | Source"
"""Anything that `open_source` takes."""

BATCH = 1 << 18
"""Rows read at a time."""

ACCEPTED = (
    "a .csv, .csv.gz, .parquet, .feather or .arrow file, a folder of .parquet files, a pandas, polars or Spark frame, "
    "or an Arrow table"
)


class Source(ABC):
    """A table that can be read."""

    path: Path | None = None
    """The file or folder that it is; None for a table in memory."""

    @property
    def held(self) -> object:
        """The object that holds the rows of a table in memory: two sources of one object are of the same data."""
        return self

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; reads no row."""

    def types(self) -> pa.Schema | None:
        """The declared types of the columns, from the structure alone; None where nothing nested can come out of it."""
        return None

    def own_types(self) -> Mapping[str, str]:
        """INTERNAL. For drafts: "int64" and "ordered", for columns whose types as they are read do not tell."""
        return {}

    record: str | None = None
    """What one record is, in words, where the format leaves that open; for the certificate."""

    engine: str | None = None
    """The engine that holds its rows where they are; None where every engine for files or frames does."""

    def left_out(self) -> LeftOut:
        """INTERNAL. How many lines are no records."""
        return LeftOut()

    def whole(self) -> pa.Table:
        """All columns of every row, for a fingerprint; where it can be, the next `read` is taken from it."""
        return self.read(self.columns())

    @abstractmethod
    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row, in order; SchemaError when one is absent or there twice."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The same, some rows at a time; of a file no more than that is in memory."""
        table = self.read(columns)
        for start in range(0, table.num_rows, BATCH):
            yield table.slice(start, BATCH)

    def parts_to_read(self) -> int | None:
        """INTERNAL. About how many batches there are, for a bar; None where that is unknown."""
        return None


def open_source(data: Data) -> Source:
    """The source for a path, a frame or an Arrow table."""
    if isinstance(data, Source):
        return data
    if isinstance(data, pa.Table | pd.DataFrame):
        return ArrowSource(data) if isinstance(data, pa.Table) else FrameSource(data)
    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        if _is_folder(path):
            from stratsynth.data.folders import FolderSource

            folder = FolderSource(path)
            folder.parts()  # there are some
            return folder
        for endings, kind in _FILES.items():
            if path.name.lower().endswith(endings):
                source = kind(path)
                with source.open():  # is there, and is a file
                    return source
        raise UsageError(f"{path}: data must be {ACCEPTED}")
    from stratsynth.data.spark_source import SparkSource, is_spark_frame

    if is_spark_frame(data):
        return SparkSource(data)
    if isinstance(data, Streams):
        try:
            return ArrowSource(pa.table(data))
        except Exception as error:  # noqa: BLE001 - another library's, whose message may hold values
            raise UsageError(f"the frame cannot be read ({type(error).__name__})") from None
    remedy = {"Release": "; draw rows first: release.sample(n)", "PrivateTable": "; this table is open already",
              "dict": "; make it a frame: pandas.DataFrame(data)"}.get(type(data).__name__, "")  # fmt: skip
    raise UsageError(f"data must be {ACCEPTED}, not {type(data).__name__}{remedy}")


@dataclass(frozen=True, eq=False)
class ArrowSource(Source):
    """An Arrow table in memory."""

    table: pa.Table = field(repr=False)
    """The table."""

    @property
    def held(self) -> object:
        """The Arrow table."""
        return self.table

    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.column_names)

    def types(self) -> pa.Schema | None:
        """The table's types."""
        return self.table.schema

    def whole(self) -> pa.Table:
        """The table."""
        return self.table

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        return self.table.select(locate(columns, self.table.column_names))


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """A pandas frame in memory."""

    frame: pd.DataFrame = field(repr=False)
    """The frame; it is only read."""
    _next: list[pa.Table] = field(default_factory=list, init=False, repr=False)
    """What `whole` has converted, kept until the next read, so that a fit converts a frame once."""

    @property
    def held(self) -> object:
        """The frame."""
        return self.frame

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, as text."""
        return tuple(str(name) for name in self.frame.columns)

    def types(self) -> pa.Schema | None:
        """The types that the columns are read as."""
        return pa.schema([pa.field(str(name), declared(kind)) for name, kind in self.frame.dtypes.items()])

    def own_types(self) -> Mapping[str, str]:
        """INTERNAL. Of numbers, which are all read as reals, and of categories, whose order is not read."""
        return own_types(self.frame)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        places = locate(columns, self.columns())
        if self._next:
            return self._next.pop().select(places)
        return self._converted(places)

    def whole(self) -> pa.Table:
        """All columns, converted anew: the frame may have changed."""
        self._next[:] = [self._converted(range(self.frame.shape[1]))]
        return self._next[0]

    def _converted(self, places: Sequence[int]) -> pa.Table:
        arrays = [to_arrow(self.frame.iloc[:, place]) for place in places]
        return pa.table(arrays, names=[str(self.frame.columns[place]) for place in places])


@dataclass(frozen=True)
class FileSource(Source):
    """A table in a file, which is opened anew whenever it is read."""

    path: Path
    """Where it is."""
    seen: Seen = field(default_factory=Seen, init=False, repr=False, compare=False)
    """Which file the account was opened for: no other one is read."""

    @contextmanager
    def open(self, *, known: bool = True) -> Iterator[IO[bytes]]:
        """The file, open for reading; with `known`, only the one whose fingerprint was taken.

        Raises:
            UsageError: No file, or one that cannot be read; in words that quote nothing of it.
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


@dataclass(frozen=True)
class ParquetSource(FileSource):
    """A Parquet file."""

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, from the file's footer."""
        with self.open() as file:
            return tuple(pq.read_schema(file).names)

    def types(self) -> pa.Schema:
        """The types in the file's footer."""
        with self.open() as file:
            return pq.read_schema(file)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        locate(columns, self.columns())
        with self.open() as file:
            return pq.read_table(file, columns=list(columns), partitioning=None)

    def batches(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """These columns, of all row groups or of some; texts as the dictionaries that Parquet keeps of them."""
        locate(columns, self.columns())
        types = self.types()
        texts = [name for name in columns if _is_text(types.field(name).type)]
        with self.open() as file:
            parquet = pq.ParquetFile(file, read_dictionary=texts, pre_buffer=False)
            for batch in parquet.iter_batches(BATCH, row_groups=groups, columns=list(columns)):
                yield pa.Table.from_batches([batch]).select(list(columns))

    def parts_to_read(self) -> int:
        """INTERNAL. By the number of rows in the file's footer."""
        with self.open() as file:
            return -(-int(pq.read_metadata(file).num_rows) // BATCH)


@dataclass(frozen=True)
class FeatherSource(FileSource):
    """An Arrow file, also called Feather; or an Arrow stream in a file."""

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, from the file's schema."""
        with self.open() as file:
            return tuple(self._reader(file).schema.names)

    def types(self) -> pa.Schema:
        """The types in the file's schema."""
        with self.open() as file:
            return self._reader(file).schema

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        places = locate(columns, self.columns())
        with self.open() as file:
            return _sound(self._reader(file, sorted(places)).read_all().select(list(columns)))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns, a record batch of the file at a time."""
        places = locate(columns, self.columns())
        with self.open() as file:
            for batch in _record_batches(self._reader(file, sorted(places))):
                table = _sound(pa.Table.from_batches([batch]).select(list(columns)))
                for start in range(0, table.num_rows, BATCH):
                    yield table.slice(start, BATCH)

    def _reader(self, file: IO[bytes], places: Sequence[int] = ()) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=list(places))
        whole = file.read(6) == b"ARROW1"
        file.seek(0)
        return pa.ipc.open_file(file, options=options) if whole else pa.ipc.open_stream(file, options=options)


@dataclass(frozen=True)
class CsvSource(FileSource):
    """A CSV file with a header, comma-separated, in UTF-8, perhaps compressed by gzip; every column is text.

    Rows are read one line at a time: see `stratsynth.data.csvlines`.
    """

    record = "one physical line of the CSV file"

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, from the first line."""
        with self.open() as file:
            return tuple(csvlines.header(self._unpacked(file)))

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every record."""
        texts = pa.schema([(name, pa.string()) for name in columns])
        return pa.concat_tables([texts.empty_table(), *self.batches(columns)])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of the records in each block of the file."""
        with self.open() as packed:
            file = self._unpacked(packed)
            names = csvlines.header(file)
            places = locate(columns, names)
            for arrays in csvlines.batches(file, len(names), places):
                yield pa.table(arrays, names=list(columns))

    def parts_to_read(self) -> int | None:
        """INTERNAL. By the size of the file, where it is not packed."""
        with self.open() as packed:
            if self._unpacked(packed) is not packed:
                return None
            return -(-os.fstat(packed.fileno()).st_size // csvlines.BLOCK)

    def left_out(self) -> LeftOut:
        """INTERNAL. How many lines are no records."""
        with self.open() as packed:
            file = self._unpacked(packed)
            return csvlines.left_out(file, len(csvlines.header(file)))

    def _unpacked(self, file: IO[bytes]) -> IO[bytes]:
        """What the file holds, unpacked where its name says so, or where it begins as gzip does and no text can."""
        packed = file.read(2) == b"\x1f\x8b" or self.path.name.lower().endswith(".gz")
        file.seek(0)
        return cast("IO[bytes]", gzip.open(file)) if packed else file


def _is_folder(path: Path) -> bool:
    """Whether there is a folder of that name; a name that no system can have, as a very long one, is none."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for such names


def _is_text(kind: pa.DataType) -> bool:
    """Whether Parquet can hand values of the type over as a dictionary."""
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _sound(table: pa.Table) -> pa.Table:
    """A table of an Arrow file, once all of it is looked through."""
    table.validate(full=True)  # Arrow's reader takes lengths and offsets as they are: wrong ones would crash
    return table


def _record_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    """Of an Arrow file, or of a stream."""
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        yield from reader


_FILES: Mapping[tuple[str, ...], type[FileSource]] = {
    (".csv", ".csv.gz"): CsvSource, (".parquet",): ParquetSource, (".feather", ".arrow"): FeatherSource
}  # fmt: skip
"""What a file holds, by the end of its name."""


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table to a .csv file (null is an empty field) or a .parquet file, whole or not at all."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in {".csv", ".parquet"}:
        raise UsageError(f"{target}: a table is written to a .csv or .parquet file")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no folder {target.parent}")
    with new_file(target) as file:
        if ending == ".csv":
            _write_csv(table, file)
        else:
            pq.write_table(table, file)


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as CSV can hold it: categories as their texts, durations as their seconds."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_duration(column.type):
        count = column.cast(pa.int64())
        fine = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[column.type.unit]
        return count if fine == 1 else pc.divide(count.cast(pa.float64()), fine)
    return column


def _write_csv(table: pa.Table, file: IO[bytes]) -> None:
    """Without quotes where no value needs them, which readers like best; otherwise with all text quoted."""
    columns = [_flat(column) for column in table.columns]
    styles = ["none", "needed"]
    if len(columns) == 1:  # a null must be "" here, as a blank line is no row
        columns, styles = [columns[0].cast(pa.string()).fill_null("")], ["needed"]
    table = pa.table(columns, names=table.column_names)
    for style in styles:
        file.seek(0)
        file.truncate()
        try:
            pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(quoting_style=style, quoting_header=style))
        except pa.ArrowInvalid:
            if style == styles[-1]:
                raise
        else:
            return
