"""Private tables as users hold them: a backend, public facts and an account.

Opening a table reads its header and nothing else. Rows are read by the driver, after a charge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.ledger import Ledger
from stratsynth.accounting.process import SharedLedger, UnchargedLedger
from stratsynth.accounting.registry import Registry
from stratsynth.checks import check_account, check_integer, path, quoted_value
from stratsynth.errors import SchemaError, UsageError
from stratsynth.schema import Schema

if TYPE_CHECKING:
    from stratsynth.data.backends import Backend
    from stratsynth.data.sources import Source

Marks = Callable[[bytes], list[str]]
"""Function from a ledger's key to marks of the data's rows, which copies share."""


@dataclass(frozen=True)
class PrivateTable:
    """Private rows behind their public facts, made by `open_table`."""

    backend: Backend
    """Holder of the rows, which only the driver reads."""
    schema: Schema
    declared_size: int | None
    """Publicly known approximate number of records, or of the total of their weights; never checked against the
    rows."""
    ledger: Ledger
    """Account that every fit on this table reserves from."""
    public: bool = False
    """True if the rows were declared public: nothing is charged, and no release of them is private."""
    source: Source | None = None
    """Source of the rows, compared with data handed in as public; None if unknown."""

    @property
    def record(self) -> str | None:
        """Words on what one record is, if the kind of file leaves it open; else None."""
        return None if self.source is None else self.source.record

    def counted_by(self, schema: Schema) -> PrivateTable:
        """Return the `PrivateTable` with its rows encoded by another schema of its columns; itself for its own."""
        if schema is self.schema:
            return self
        return replace(self, schema=schema, backend=self.backend.counted_by(schema))

    def __repr__(self) -> str:
        """Return one line of public facts alone, no row: notebooks keep what they show."""
        return f"PrivateTable({self.backend!r}, columns {self.schema.listed})"


def open_table(
    data: Any,
    *,
    schema: Schema | str | PathLike[str],
    ledger: str | PathLike[str] | None = None,
    ledger_epsilon: float | None = None,
    account: str | None = None,
    new_account: str | None = None,
    declared_size: int | None = None,
    public: bool = False,
    engine: str = "auto",
    table: str | None = None,
    query: str | None = None,
) -> PrivateTable:
    """Return a `PrivateTable` to fit on. Its header must have the schema's columns; nothing else is read.

    Args:
        data: A path, a pandas, polars or Spark frame, an Arrow table, or the path of a DuckDB database. One record is
            one row; of a CSV file, one physical line: a field that runs over several lines breaks its record, so such
            tables are better kept as Parquet.
        schema: A `Schema`, or the path of a schema file.
        ledger: The file that keeps the account of these data. Without one the account lasts for the process, and
            certificates state that; data are recognised there by their path, as one object, or by their content.
        ledger_epsilon: The largest total epsilon of all fits on these data; set when the ledger is made.
        account: The name under which several versions of these data share the ledger, such as "persons 2024".
        new_account: The reason to begin a ledger, or to fit without one, beside the account that the data file has
            already. Certificates quote it.
        declared_size: The publicly known approximate number of records; with a column of weights, their total: the
            people whom the records stand for.
        public: True for research on public data: nothing is charged, and every release states that it is not private.
        engine: The holder of the rows: "memory"; "stream", which reads a file a part at a time and keeps codes in a
            scratch file under TMPDIR; "duckdb", which does the same with a table of a database; "spark", whose
            executors count Parquet files and Spark's own frames where these lie; or "auto": "duckdb" for a database,
            "spark" for a Spark frame, "stream" for a file whose declared size comes to more than 512 MiB of codes, else
            "memory".
        table: The table of a database whose rows are the records.
        query: Instead of `table`, one SELECT of columns, of expressions of one row's values, and a condition, from one
            table; whatever else a query can do would let one record change many rows, and is refused.

    Raises:
        SchemaError: An invalid schema, or data that lack one of its columns.
        UsageError: Data that cannot be read, and arguments that contradict each other.
    """
    from stratsynth.data.backends import backend
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.same_rows import marks_of
    from stratsynth.data.sources import open_source
    from stratsynth.inputs import check_ledger
    from stratsynth.schema.encoding import check_source

    check_integer("declared_size", declared_size, 1, 2**53, optional=True)
    check_account(ledger_epsilon, account, new_account)
    check_ledger(ledger, ledger_epsilon, account, public=public)
    if not isinstance(schema, Schema | str | PathLike):
        raise UsageError(
            f"the schema must be a Schema or the path of a schema file, not {quoted_value(schema)}; `stratsynth schema "
            "draft` or Schema.draft(data) makes one to be reviewed."
        )
    known = schema if isinstance(schema, Schema) else Schema.load(schema)
    source = open_source(data, table, query)
    if not known.names:
        raise SchemaError("the schema has no columns")
    check_source(known, source.columns(), source.types())
    rows = backend(engine, source, known, declared_size)
    contents = partial(marks_of, source, known, declared_size)
    registry = None if source.path is None else Registry(source.path)
    if public:
        check_public_inputs(declared=[source])
        return PrivateTable(rows, known, declared_size, UnchargedLedger(), public, source)
    kept = ledger_of(source, rows, registry, contents, ledger, ledger_epsilon, account, new_account)
    return PrivateTable(rows, known, declared_size, kept, public, source)


def ledger_of(
    source: Source, rows: Backend, registry: Registry | None, contents: Callable[[], Marks],
    ledger: str | PathLike[str] | None, cap: float | None, account: str | None, reason: str | None,
) -> Ledger:  # fmt: skip
    """Return the ledger of a source's `Backend`, by `Registry`, `contents` (marks' function), cap, account, reason."""
    from stratsynth.accounting.copies import Copies

    copies = None if registry is None else Copies(registry, contents)
    if ledger is None:
        if registry is not None:
            registry.refuse_other(None, reason)
        place = None if source.path is None else source.path.resolve()
        refuse = (lambda: None) if copies is None else partial(copies.refuse, None, reason)
        return SharedLedger(place, source.in_memory, rows.fingerprint, cap, contents=contents, refuse=refuse)
    from stratsynth.accounting.ledger_file import FileLedger

    older = getattr(source, "older_fingerprint", None)
    return FileLedger(
        path("the ledger", ledger), rows.fingerprint, cap, account=account, registry=registry, reason=reason,
        older=older, copies=copies,
    )  # fmt: skip
