"""Rows that Spark holds, and jobs on them: a session, a DataFrame or a table by its name, their types and fingerprint.

The fingerprint of a DataFrame is keyed and ignores order: Spark's own hashes of each row, two of 64 bits, are added
up modulo 2^64, and the number of rows and the sums go into an HMAC with the columns' names and types. So rows more,
fewer or changed are noticed, whatever the partitions; columns of lists, maps and other types without single
values are not hashed, and other rows with the same sums can be made on purpose.

A job is a task for every partition, whose answers are added up in this process. An action of Spark delivers one answer
of each partition, however often its task was tried or run twice, so nothing is counted twice. Error messages are fixed
sentences: Java's may hold values.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stratsynth.data.sources import Source
from stratsynth.data.spark_progress import quiet, watched
from stratsynth.data.spark_tasks import ANSWER, NOT_HERE, OTHER_VERSION, SUMS, VERSION, SumRows, row_sums
from stratsynth.errors import LedgerError, StratsynthError, Unsupported, UsageError
from stratsynth.progress import phase
from stratsynth.schema.encoding import locate

EXTRA = 'engine "spark" needs PySpark: pip install ".[spark]", or the PySpark of your cluster\'s version.'
JAVA = "Spark needs Java 17 or newer: install it, or name its folder by JAVA_HOME."
PRIVATE = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.eventLog.enabled": "false"}
"""Settings of a session that is started here: no page shows, and no log keeps, how many rows a task has read."""
MOST_CELLS = 1 << 23
"""Largest number of cells that one task counts in one pass: 64 MiB of an executor's memory."""
TASKS = 2
"""Tasks per core of the cluster: more would make more partial tables, fewer leave cores waiting."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def spark_session() -> Any:
    """Return the active session of this process, or a new one by Spark's own settings.

    Raises:
        Unsupported: PySpark is not installed.
        UsageError: There is no Java, or Spark could not be started.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Unsupported(EXTRA) from None
    running = SparkSession.getActiveSession()
    if running is not None:
        return refuse_connect(running)
    home = os.environ.get("JAVA_HOME")
    if shutil.which(str(Path(home) / "bin" / "java") if home else "java") is None:
        raise UsageError(JAVA)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's own default is any python3 on the path
    builder = SparkSession.builder.appName("stratsynth")
    for key, value in PRIVATE.items():
        builder = builder.config(key, value)
    try:
        with quiet():
            return refuse_connect(builder.getOrCreate())
    except Unsupported:
        raise
    except Exception as error:  # noqa: BLE001 - Java's, of many classes
        raise UsageError(f"Spark could not be started ({type(error).__name__}). {JAVA}") from None


def refuse_connect(held: Any) -> Any:
    """Return `held`, a Spark session or DataFrame, itself; Unsupported for Spark Connect, of other processes."""
    if "connect" in type(held).__module__:
        raise Unsupported(
            "Spark Connect counts in another process, which would see exact tables. Run in the driver's own process: a "
            "session with a master and without SPARK_REMOTE; or give df.toPandas() where rows fit into memory."
        )
    return held


def collected(frame: Any, task: Callable[..., Any], cells: int = 0) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Run the function `task` on all partitions of a DataFrame, `frame`; return (hash sums, `cells` sums), exact.

    Returns:
        (tuple: the number of rows and the sums of their hashes modulo 2^64; array of `cells` sums of cells).
    """
    sums, total, session = dict[int, int](), np.zeros(cells, np.int64), frame.sparkSession
    with quiet(), phase("counting in Spark", lambda: tasks(session)) as done, watched(session, done):
        answers = frame.mapInArrow(task, ANSWER).toArrow()
    for first, found in zip(answers["first"].to_pylist(), answers["cells"], strict=True):
        if first == SUMS:
            for place, number in enumerate(np.frombuffer(found.as_buffer(), np.uint64).tolist()):
                sums[place] = (sums.get(place, 0) + number) % 2**64
        else:
            part = np.frombuffer(found.as_buffer(), np.int64)
            total[first : first + len(part)] += part
    return tuple(sums.values()), total


def tasks(session: Any) -> int:
    """Return the largest number of tasks, at least 2, that a job of a Spark session is split into."""
    return max(2, TASKS * int(session.sparkContext.defaultParallelism))


def cells_at_once(session: Any) -> int:
    """Return the most cells that a Spark session counts in a job, at least 1: partial tables must fit its limit."""
    said = session.sparkContext.getConf().get("spark.driver.maxResultSize", "1g")
    number, unit = re.fullmatch(r"(\d+) *([kmgtp]?)b?", said.strip().lower()).groups()  # type: ignore[union-attr]
    size = int(number) * _UNITS[unit] or 1 << 40  # none stands for no limit
    return max(1, min(MOST_CELLS, size // 2 // 8 // tasks(session)))


def before(error: Exception) -> StratsynthError:
    """Return (not raise) the StratsynthError of a job that failed before anything was charged, by what `error` says."""
    said = str(error)
    if OTHER_VERSION in said or "No module named 'stratsynth" in said or "No module named 'pyarrow'" in said:
        return UsageError(
            f"Spark's executors lack stratsynth {VERSION}: install the very version of the driver where they run, for "
            "the Python that PYSPARK_PYTHON (or spark.pyspark.python) names."
        )
    if NOT_HERE in said:
        return UsageError(
            "Spark's executors do not see the files as they are here: put them where every machine has them under the "
            "same path, or give them to Spark as a table (`table` instead of `path`)."
        )
    return StratsynthError("the data could not be read in Spark; its own log says more.")  # a class may tell of a row


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
        told = sorted(
            n for n in set(names) if names.count(n) == 1 and not isinstance(self._types.field(n).type, pa.OpaqueType)
        )
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


def _hashes(names: Sequence[str]) -> list[Any]:
    """Return a list of LANES Spark expressions, each a hash of a row by the columns `names` and by places of nulls."""
    from pyspark.sql import functions

    values = [functions.col(name) for name in names]
    nulls = [functions.isnull(value) for value in values]
    return [functions.xxhash64(functions.lit(start), *values, *nulls) for start in range(1, LANES + 1)]
