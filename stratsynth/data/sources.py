"""Where tables come from and go to: CSV and Parquet files, pandas frames, Arrow tables."""

from __future__ import annotations

import datetime as dt
import gzip
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, TypeAlias, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from stratsynth.data import csvlines
from stratsynth.errors import UsageError
from stratsynth.files.whole import new_file
from stratsynth.schema.codec import locate

Data: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | pa.Table | Source"
"""Anything that `open_source` takes."""

ACCEPTED = "a .csv, .csv.gz or .parquet file, a pandas frame, or an Arrow table"


class Source(ABC):
    """A table that can be read."""

    path: Path | None = None
    """The file that it is; None for a table in memory."""

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

    @abstractmethod
    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row, in order; SchemaError when one is absent or there twice."""


def open_source(data: Data) -> Source:
    """The source for a path, a pandas frame or an Arrow table."""
    if isinstance(data, pa.Table):
        return ArrowSource(data)
    if isinstance(data, pd.DataFrame):
        return FrameSource(data)
    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        name = path.name.lower()
        if not name.endswith((".csv", ".csv.gz", ".parquet")):
            raise UsageError(f"{path}: data must be {ACCEPTED}")
        if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where a name is too long
            raise UsageError(f"{path}: there is no such file")
        return ParquetSource(path) if name.endswith(".parquet") else CsvSource(path)
    if isinstance(data, Source):
        return data
    raise UsageError(f"data must be {ACCEPTED}, not {type(data).__name__}")


@dataclass(frozen=True, eq=False)
class ArrowSource(Source):
    """An Arrow table in memory."""

    table: pa.Table
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

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        return self.table.select(locate(columns, self.table.column_names))


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """A pandas frame in memory."""

    frame: pd.DataFrame
    """The frame; it is only read."""

    @property
    def held(self) -> object:
        """The frame."""
        return self.frame

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, as text."""
        return tuple(str(name) for name in self.frame.columns)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        places = locate(columns, self.columns())
        return pa.table([_series(self.frame.iloc[:, place]) for place in places], names=list(columns))


@dataclass(frozen=True)
class ParquetSource(Source):
    """A Parquet file."""

    path: Path
    """Where it is."""

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, from the file's footer."""
        with _reading(self.path):
            return tuple(pq.read_schema(self.path).names)

    def types(self) -> pa.Schema | None:
        """The types in the file's footer."""
        with _reading(self.path):
            return pq.read_schema(self.path)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        locate(columns, self.columns())
        with _reading(self.path):
            return pq.read_table(self.path, columns=list(columns), partitioning=None)


@dataclass(frozen=True)
class CsvSource(Source):
    """A CSV file with a header, comma-separated, in UTF-8, perhaps compressed; every column is text.

    Rows are read one line at a time: see `stratsynth.data.csvlines`.
    """

    path: Path
    """Where it is."""

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, from the first line."""
        with _reading(self.path), self._open() as file:
            return tuple(csvlines.header(file))

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        with _reading(self.path), self._open() as file:
            names = csvlines.header(file)
            places = locate(columns, names)
            return pa.table(csvlines.read(file, len(names), places), names=list(columns))

    def _open(self) -> IO[bytes]:
        compressed = self.path.name.lower().endswith(".gz")
        return cast("IO[bytes]", gzip.open(self.path) if compressed else self.path.open("rb"))


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


def _write_csv(table: pa.Table, file: IO[bytes]) -> None:
    """Without quotes where no value needs them, which readers like best; otherwise with all text quoted."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
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


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what a file's format or the disk has to say into one sentence that quotes no content."""
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise UsageError(
            f"{path}: cannot be read ({type(error).__name__}); is the file whole and of the kind it is named?"
        ) from None


def _series(series: pd.Series) -> pa.Array | pa.ChunkedArray:
    """A pandas column in Arrow; objects of unknown classes are null, and nothing is asked of them."""
    kind = series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.int64)
        indices = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, _series(series.cat.categories.to_series()))
    if isinstance(kind, np.dtype) and kind.kind in "biufMm":
        return pa.array(series.to_numpy(), from_pandas=True)
    if isinstance(kind, pd.ArrowDtype) or str(kind) in _MASKED:
        return pa.array(series.array, from_pandas=True)
    objects = series.to_numpy(object)
    if {type(value) for value in objects} <= _TEXTS:
        try:
            return pa.array(objects, pa.string(), from_pandas=True)
        except (pa.ArrowException, UnicodeError):  # a number, or text that is not Unicode
            pass
    return pa.array([_plain(value) for value in objects], pa.string())


# Columns of these classes alone convert at once when they can, to the same as `_plain` gives.
_TEXTS = {str, float, type(None), type(pd.NA), type(pd.NaT)}
_MASKED = {f"{kind}{bits}" for kind in ("Int", "UInt", "Float") for bits in (8, 16, 32, 64)} | {"boolean"}


def _plain(value: object) -> str | None:  # noqa: PLR0911 - a table of cases
    """The text of a value of a known class; None for anything else, for NaN, and for what is not Unicode."""
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
        value = value if isinstance(value, dt.datetime) else None
    elif isinstance(value, (np.bool_, np.integer)):
        value = value.item()
    try:
        if value is None or value is pd.NaT:
            return None
        if isinstance(value, str):
            return str.encode(value).decode()
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):  # no float is larger, and Python refuses to spell very long ones
            return int.__repr__(value) if value.bit_length() <= 1024 else None
        if isinstance(value, (float, np.floating)):
            text = float.__repr__(value) if isinstance(value, float) else str(value)
            return None if np.isnan(value) else text.removesuffix(".0")  # 3.0 is "3", as in Arrow
        if isinstance(value, Decimal):
            return None if value.is_nan() else str(value)
        if isinstance(value, dt.datetime):
            return value.isoformat(" ").removesuffix(" 00:00:00")  # a date stored as a moment
        if isinstance(value, (dt.date, dt.time)):
            return value.isoformat()
    except UnicodeError:
        return None
    return None
