"""Rows that Spark holds: a DataFrame, or a table by its name; their columns, types and fingerprint.

The fingerprint of a DataFrame is keyed and ignores order: Spark's own hashes of each row, two of 64 bits, are added
up modulo 2^64, and the number of rows and the sums go into an HMAC with the columns' names and types. So rows more,
fewer or changed are noticed, whatever the partitions; columns of lists, maps and other types without single
values are not hashed, and other rows with the same sums can be made on purpose.
"""

from __future__ import annotations

import hashlib
import hmac
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from stratsynth.data.sources import Source
from stratsynth.data.spark_jobs import before, collected, refuse_connect, spark_session, tasks
from stratsynth.data.spark_tasks import VERSION, SumRows, row_sums
from stratsynth.errors import LedgerError, StratsynthError, UsageError
from stratsynth.schema.encoding import locate

LANES = 2
"""Number of 64-bit hashes of each row."""


def is_spark_frame(data: object) -> bool:
    """True if `data` is a DataFrame of PySpark; does not import PySpark."""
    return "pyspark.sql" in sys.modules and isinstance(data, sys.modules["pyspark.sql"].DataFrame)


@dataclass(frozen=True, eq=False)
class SparkSource(Source):
    """A DataFrame of Spark, computed anew whenever it is read."""

    frame: Any = field(repr=False)
    """The DataFrame."""
    name: str = "the DataFrame"
    """Name of the Spark table or view, or 'the DataFrame'."""
    _known: dict[tuple[str, ...], set[tuple[int, ...]]] = field(default_factory=dict, init=False, repr=False)
    """Sums of the row hashes whose fingerprints were taken, by columns."""

    def __post_init__(self) -> None:
        """Raise Unsupported on a DataFrame of Spark Connect: its exact tables would pass through a server."""
        refuse_connect(self.frame)

    @classmethod
    def table(cls, name: str) -> SparkSource:
        """Return the `SparkSource` of a Spark table or view of that name; UsageError if Spark has none."""
        session = spark_session()
        try:
            return cls(session.table(name), name)
        except Exception as error:  # noqa: BLE001 - Java's, of many classes; no row was read
            raise UsageError(
                f"Spark cannot open a table {name!r} ({type(error).__name__}); spark.catalog.listTables() lists those "
                "that it knows. Parquet files are given as `path`."
            ) from None

    engine = "spark"

    @property
    def in_memory(self) -> object:
        """Spark DataFrame itself: two sources of one DataFrame have the same data."""
        return self.frame

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the names of the DataFrame's columns, in order."""
        return tuple(self.frame.columns)

    def types(self) -> pa.Schema:
        """Return the Arrow schema of the columns as Spark delivers them; types without single values are opaque."""
        return self._types

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns of every row; refuse rows other than those fingerprinted.

        Raises:
            LedgerError: The rows differ from those whose fingerprint was taken.
            StratsynthError: Spark cannot deliver them: they exceed spark.driver.maxResultSize, for one.
        """
        rows = self.hashed(columns)
        try:
            table = rows.toArrow()
        except Exception:  # noqa: BLE001 - Java's, of many classes, whose message may hold values
            raise StratsynthError(
                "the rows could not be read out of Spark into this process. Are they more than "
                "spark.driver.maxResultSize lets through? Spark's own log says more."
            ) from None
        self.check(columns, tuple(row_sums(table.columns[len(columns) :], table.num_rows).tolist()))
        return table.select(range(len(columns))).rename_columns(list(columns))

    def selected(self, columns: Sequence[str]) -> Any:
        """Return a Spark DataFrame of these columns, named by number.

        Spark takes names that differ in case for equal, and reads dots in them as structure.
        """
        places = locate(columns, self.columns())
        numbered = self.frame.toDF(*(f"c{i}" for i in range(len(self.columns()))))
        return numbered.select(*(f"c{place}" for place in places)).toDF(*(f"c{i}" for i in range(len(places))))

    def hashed(self, columns: Sequence[str]) -> Any:
        """Return a Spark DataFrame of these columns, with LANES hashes of each row as further columns."""
        frame = self.selected(columns)
        return frame.select("*", *_hashes(frame.columns))

    def fingerprint(self, key: bytes, columns: Sequence[str] = ()) -> str:
        """Return the hash, a text, of these columns of all rows under `key`, bytes kept in this process.

        The sums of `columns` are noted, for later passes over them to be compared with.

        Raises:
            UsageError: The executors lack this package.
            StratsynthError: The rows cannot be read.
        """
        names = self.columns()
        told = sorted(n for n in set(names) if names.count(n) == 1 and not _is_odd(self._types.field(n).type))
        frame = self.selected([*told, *columns])
        lanes = [*_hashes(frame.columns[: len(told)]), *_hashes(frame.columns[len(told) :])]
        try:
            hashes = frame.select(*lanes).coalesce(tasks(frame.sparkSession))
            number, *sums = _rows_and_hashes(collected(hashes, SumRows(VERSION))[0], len(lanes))
        except StratsynthError:
            raise
        except Exception as error:  # noqa: BLE001 - Java's, of many classes, whose message may hold values
            raise before(error) from None
        if columns:
            self._known.setdefault(tuple(columns), set()).add((number, *sums[LANES:]))
        state = hmac.new(key, digestmod=hashlib.sha256)
        for text in (f"{name}\0{self._types.field(name).type}".encode() for name in told):
            state.update(len(text).to_bytes(8, "big") + text)
        state.update(b"".join(each.to_bytes(8, "big") for each in (number, *sums[:LANES])))
        return state.hexdigest()

    def check(self, columns: Sequence[str], sums: tuple[int, ...]) -> None:
        """Refuse, with a LedgerError, a pass whose `sums`, a tuple, are not those noted for these columns, if any."""
        known = self._known.get(tuple(columns))
        if known is not None and known != {_rows_and_hashes(sums, LANES)}:
            raise LedgerError(
                f"ledger: {self.name} has other rows than when its fingerprint was taken. What was charged stands; "
                "with the same rows, the same fit is not charged again. A DataFrame that comes out otherwise each time "
                "(random numbers, a limit, sums of reals) must be written to a table or to Parquet files first."
            )

    @cached_property
    def _types(self) -> pa.Schema:
        return pa.schema([(f.name, arrow_type(f.dataType)) for f in self.frame.schema.fields])


def arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type of a column of Spark type `kind`, as delivered; an opaque one for an unreadable type."""
    from pyspark.sql import types

    if isinstance(kind, types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    plain: dict[type, pa.DataType] = {
        types.StringType: pa.string(), types.CharType: pa.string(), types.VarcharType: pa.string(),
        types.BinaryType: pa.binary(), types.BooleanType: pa.bool_(), types.NullType: pa.null(),
        types.ByteType: pa.int8(), types.ShortType: pa.int16(), types.IntegerType: pa.int32(),
        types.LongType: pa.int64(), types.FloatType: pa.float32(), types.DoubleType: pa.float64(),
        types.DateType: pa.date32(), types.TimestampType: pa.timestamp("us", "UTC"),
        types.TimestampNTZType: pa.timestamp("us"), types.DayTimeIntervalType: pa.duration("us"),
    }  # fmt: skip
    return plain.get(type(kind), pa.opaque(pa.null(), kind.typeName(), "spark"))


def _rows_and_hashes(sums: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    """Return a tuple (number of rows, `lanes` sums of hashes) from `sums`, such a tuple, or zeros if it is empty."""
    return (*sums, *(0,) * (1 + lanes - len(sums)))


def _is_odd(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.OpaqueType)


def _hashes(names: Sequence[str]) -> list[Any]:
    """Return a list of LANES Spark expressions, each a hash of a row by the columns `names` and by places of nulls."""
    from pyspark.sql import functions

    values = [functions.col(name) for name in names]
    nulls = [functions.isnull(value) for value in values]
    return [functions.xxhash64(functions.lit(start), *values, *nulls) for start in range(1, LANES + 1)]
