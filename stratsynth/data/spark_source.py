"""Rows that Spark holds: a DataFrame, or a table by its name; what its columns are, and what tells it from others.

The fingerprint of a DataFrame is keyed and knows no order: Spark's own hashes of each row, two of 64 bits, are added
up modulo 2^64, and the number of rows and the sums go into an HMAC with the columns' names and types. So rows more,
fewer or changed are noticed, whatever the partitions; columns of lists, maps and other things that hold no single
values are not looked at, and nobody is kept from making other rows with the same sums on purpose.
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
"""Hashes of 64 bits of each row."""


def is_spark_frame(data: object) -> bool:
    """Whether it is a DataFrame of PySpark; does not import PySpark."""
    return "pyspark.sql" in sys.modules and isinstance(data, sys.modules["pyspark.sql"].DataFrame)


@dataclass(frozen=True, eq=False)
class SparkSource(Source):
    """A DataFrame of Spark. It is worked out anew whenever it is read."""

    frame: Any = field(repr=False)
    """The DataFrame."""
    name: str = "the DataFrame"
    """The table that it is, where it is one."""
    _known: dict[tuple[str, ...], set[tuple[int, ...]]] = field(default_factory=dict, init=False, repr=False)
    """By columns, the sums of the rows whose fingerprints were taken."""

    def __post_init__(self) -> None:
        """Refuse a frame of Spark Connect, whose exact tables would pass through a server."""
        refuse_connect(self.frame)

    @classmethod
    def table(cls, name: str) -> SparkSource:
        """A table or view by the name that Spark knows it by; UsageError where Spark knows none."""
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
    def held(self) -> object:
        """The DataFrame."""
        return self.frame

    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.frame.columns)

    def types(self) -> pa.Schema:
        """The types that columns have when they come out of Spark; of those that hold no single values, their name."""
        return self._types

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of every row, in this process's memory; those whose fingerprint was taken, if one was.

        Raises:
            LedgerError: Other rows.
            StratsynthError: What Spark cannot hand over: more than spark.driver.maxResultSize, for one.
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
        """A DataFrame of these columns, numbered instead of named.

        Spark takes names for the same that differ in case, and reads dots in them as structure.
        """
        places = locate(columns, self.columns())
        numbered = self.frame.toDF(*(f"c{i}" for i in range(len(self.columns()))))
        return numbered.select(*(f"c{place}" for place in places)).toDF(*(f"c{i}" for i in range(len(places))))

    def hashed(self, columns: Sequence[str]) -> Any:
        """The same, with the hashes of each row after them."""
        frame = self.selected(columns)
        return frame.select("*", *_hashes(frame.columns))

    def fingerprint(self, key: bytes, columns: Sequence[str] = ()) -> str:
        """Which rows these are, under a key that stays in this process.

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
            number, *sums = _told(collected(hashes, SumRows(VERSION))[0], len(lanes))
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
        """LedgerError where a pass has seen other rows than those whose fingerprint was taken."""
        known = self._known.get(tuple(columns))
        if known is not None and known != {_told(sums, LANES)}:
            raise LedgerError(
                f"ledger: {self.name} has other rows than when its fingerprint was taken. What was charged stands; "
                "with the same rows, the same fit is not charged again. A DataFrame that comes out otherwise each time "
                "(random numbers, a limit, sums of reals) must be written to a table or to Parquet files first."
            )

    @cached_property
    def _types(self) -> pa.Schema:
        return pa.schema([(f.name, arrow_type(f.dataType)) for f in self.frame.schema.fields])


def arrow_type(kind: Any) -> pa.DataType:
    """The Arrow type of a column as it comes out of Spark; an opaque one of Spark's name for what nobody can read."""
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


def _told(sums: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    """The number of rows and the sums of their hashes, of which partitions without a row say nothing."""
    return (*sums, *(0,) * (1 + lanes - len(sums)))


def _is_odd(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.OpaqueType)


def _hashes(names: Sequence[str]) -> list[Any]:
    """Spark's own hash of a row's values, from several starts; it passes over nulls, so their places are hashed too."""
    from pyspark.sql import functions

    values = [functions.col(name) for name in names]
    nulls = [functions.isnull(value) for value in values]
    return [functions.xxhash64(functions.lit(start), *values, *nulls) for start in range(1, LANES + 1)]
