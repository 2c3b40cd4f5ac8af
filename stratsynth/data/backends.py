"""Backends: the engines that hold private rows while questions are asked, one file and one line in `ENGINES` each.

A backend hands out rows and identifies the data. It serves every kind of question whose reads it declares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stratsynth.checks import quoted_value
from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.load import SchemaBackend, load_rows
from stratsynth.data.spark import Spark
from stratsynth.data.spark_source import SparkSource
from stratsynth.data.stream import Stream
from stratsynth.errors import Unsupported, UsageError, nearest
from stratsynth.schema.encoding import width

if TYPE_CHECKING:
    from stratsynth.data.sources import Source
    from stratsynth.questions.reading import Rows
    from stratsynth.schema import Schema

MOST_BYTES = 1 << 29
"""Size in bytes of codes and numbers, at the declared size, above which `auto` keeps rows out of memory."""


class Backend(Protocol):
    """Holder of a table's rows. Nothing is read before `fingerprint` or `rows` is called."""

    @property
    def reads(self) -> frozenset[str]:
        """Set of kinds of reads that its rows support, of `tables`, `sums`, `columns` and `frame`."""

    def fingerprint(self, key: bytes) -> str:
        """Return the data's hash, a text, under the secret bytes `key`: equal for equal content alone."""

    def counted_by(self, schema: Schema) -> Backend:
        """Return a backend of the same data that encodes rows by another schema; nothing is read."""

    def rows(self, *, numbers: bool = True) -> Rows:
        """Return the `Rows`, which the driver asks for after its first charge; sums need `numbers` to be True."""


@dataclass(frozen=True)
class Memory(SchemaBackend):
    """A backend that holds all rows in memory, encoded."""

    reads = frozenset({"tables", "sums", "columns", "frame"})

    def fingerprint(self, key: bytes) -> str:
        """Return the hash of the source's content, a text, under the secret bytes `key`."""
        if isinstance(self.source, SparkSource):  # a frame may yield other rows when it is read: see `SparkSource.read`
            return self.source.fingerprint(key, (*self.schema.names, *self.schema.beside))
        return fingerprint(self.source, key)

    def rows(self, *, numbers: bool = True) -> Rows:
        """Read and encode all rows, and return the `Rows` in memory; sums need `numbers` to be True."""
        return load_rows(self.schema, self.source, numbers=numbers)


def auto(source: Source, schema: Schema, declared_size: int | None) -> Backend:
    """Return a backend on `source`: `Stream` if the data are declared larger than MOST_BYTES and it can, else `Memory`.

    Public facts alone decide: the declared size and the schema. The rows, their number and the size of the file do not.
    """
    if engine_of("auto", schema, declared_size) == "stream" and Stream.refusal(source, schema) is None:
        return Stream(source, schema)
    return Memory(source, schema)


def engine_of(engine: str, schema: Schema, declared_size: int | None) -> str:
    """Return `engine`; for "auto" "stream" if `declared_size` rows of `schema` are large, not units; else "memory"."""
    check_engine(engine)
    if engine != "auto":
        return engine
    rows = None if declared_size is None else declared_size / (schema.row_weight.mean or 1.0)  # it may count weights
    large = rows is not None and rows * width(schema) > MOST_BYTES
    return "stream" if large and isinstance(schema.unit, str) else "memory"


ENGINES: Mapping[str, Callable[[Source, Schema, int | None], Backend]] = {
    "auto": auto,
    "memory": lambda source, schema, _: Memory(source, schema),
    "stream": lambda source, schema, _: Stream.checked(source, schema),
    "spark": lambda source, schema, _: Spark.checked(source, schema),
    "duckdb": lambda source, schema, _: Stream.checked(source, schema),  # its batches come from a database
}
"""Backend by the name that `open_table` takes, made of source, schema and declared size."""


def backend(engine: str, source: Source, schema: Schema, declared_size: int | None = None) -> Backend:
    """Return the `Backend` of the named engine, or of "auto" by declared size, on the rows of `source`, in a schema.

    Unsupported if this engine does not read such a source, or no order of its rows serves the schema's unit.
    """
    check_engine(engine)
    own = source.engine
    if own is not None and not isinstance(schema.unit, str):
        raise Unsupported(
            "engine: rows of Spark or of a database have no order, so nothing says which rows of a unit come first; "
            'write them to a Parquet file in an order, and take engine = "memory".'
        )
    if own is not None and engine not in {"auto", own} and (own, engine) != ("spark", "memory"):
        if own == "spark":
            raise Unsupported(
                f'engine {engine!r}: these rows are held by the engine "spark"; leave `engine` out, or take "memory" '
                "where they fit into the memory of one process."
            )
        raise Unsupported(
            f'engine: rows of a database are held by engine = "{own}"; for {engine!r}, write them to a Parquet file.'
        )
    if own is None and engine == "duckdb":
        raise Unsupported(
            'engine: "duckdb" reads a table of a DuckDB database: name the file of the database, and table or query.'
        )
    return ENGINES[own if own is not None and engine == "auto" else engine](source, schema, declared_size)


def check_engine(engine: str) -> None:
    """Refuse, with a UsageError, the name of an engine that is not in ENGINES."""
    if not isinstance(engine, str) or engine not in ENGINES:
        hint = nearest(engine, ENGINES) if isinstance(engine, str) else ""
        raise UsageError(f"engine: there is no {quoted_value(engine)}{hint}; it is {' or '.join(ENGINES)}.")
