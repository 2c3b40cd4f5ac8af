"""Tables in a DuckDB database, read in Arrow batches by a connection without write, network or file access.

Rows of a database have no order, so nothing here rests on one. The fingerprint is a sum over the table's rows: see
`contents`. A database in use has changes beside its file, so it must be closed, and be the same file at every reading.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from stratsynth.checks import path as given_path
from stratsynth.checks import quoted_value
from stratsynth.data import sources
from stratsynth.data.duckdb_query import Chosen, chosen_query, chosen_table, quoted, refuse_macros, select
from stratsynth.data.fingerprint import keyed
from stratsynth.data.sources import FileSource, changed, stamp
from stratsynth.driver.counting import cores
from stratsynth.errors import Unsupported, UsageError
from stratsynth.schema.encoding import locate

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = 512
"""Largest memory, in MB, that DuckDB takes for pages of the database."""
AMPLE = 16 << 10
"""Largest memory, in MB, for a fingerprint where one value is too long for MEMORY: it takes twice the value."""
MOST_BYTES = 8 << 30
"""Largest size, in bytes, of rows that are read into memory as a whole."""
_SETTINGS = {
    "access_mode": "READ_ONLY",
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "disabled_optimizers": "common_subexpressions",  # it would move what may fail on a row out of its TRY
    "enable_external_access": "false",  # no other file, no network
    "python_enable_replacements": "false",  # a name in a query is no variable of ours
    "temp_directory": "",  # no copy of rows on disk
}
_LAST = ("SET GLOBAL TimeZone = 'UTC'", "SET lock_configuration = true")
"""Statements run once the database is open: times are written in UTC on every machine, and settings are locked."""
_SETTLED = select("current_setting('TimeZone'), current_setting('lock_configuration')", "(SELECT 1)")


@dataclass(frozen=True)
class DuckDBSource(FileSource):
    """A table of a DuckDB database, or the result of a query on one."""

    table: str | None = None
    """Name of the table, or schema.name; None with a query."""
    query: str | None = None
    """One SELECT from one table, checked by `stratsynth.data.duckdb_query`; None with a table."""

    engine = "duckdb"

    def __post_init__(self) -> None:
        """Raise UsageError on all but exactly one of table and query, before it is opened."""
        check_names(self.path, self.table, self.query)

    @property
    def record(self) -> str | None:  # type: ignore[override]  # read only here
        """Words on what a record is, of a query; None of a table, where they are its rows."""
        return None if self.query is None else "one row of the database's table, as far as the query selects it"

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the names of the columns; no row is read."""
        return tuple(self.types().names)

    def types(self) -> pa.Schema:
        """Return the Arrow schema of the columns; no row is read."""
        with self.connected() as (connection, chosen):
            return connection.sql(chosen.select).limit(0).to_arrow_table().schema

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns, rows in any order; Unsupported if larger than MOST_BYTES."""
        import pyarrow as pa

        wanted = self.types()
        locate(columns, wanted.names)
        parts, size = [pa.schema([wanted.field(name) for name in columns]).empty_table()], 0
        for batch in self.batches(columns):
            parts.append(batch)
            size += batch.nbytes
            if size > MOST_BYTES:
                raise Unsupported(
                    f"{self.path}: this needs the rows in memory, where they take more than {MOST_BYTES >> 30} GB. "
                    "Name a query that selects fewer rows or columns, or write a sample of them into a table."
                )
        return pa.concat_tables(parts)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield Arrow tables of these columns, up to BATCH rows each, in any order."""
        import pyarrow as pa

        with self.connected() as (connection, chosen):
            relation = connection.sql(chosen.select)
            locate(columns, relation.columns)
            for batch in relation.select(*map(quoted, columns)).to_arrow_reader(sources.BATCH):
                yield pa.Table.from_batches([batch])

    def parts_to_read(self) -> int:
        """INTERNAL. Number of batches, by the number of rows in the table; a query may have fewer."""
        with self.connected() as (connection, chosen):
            [(rows,)] = connection.execute(select("count(*)", chosen.base)).fetchall()
            return -(-int(rows) // sources.BATCH)

    def contents(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield the fingerprint's input from a database `file`: column names, number of rows, the rows' hashes in sum.

        Each row gives 128 bits of the MD5 of its values as texts, each with its length before it, a long one as its
        own MD5, null as a mark; these are added up in two halves, so the order of rows does not matter. A row more,
        fewer, twice or with another value is noticed, but for a coincidence of 2^-128; the table's name, its other
        tables, and a type under which all values are written as before are not. All rows and columns of the table
        count, whatever a query selects, so that one ledger serves all queries of a table.
        """
        low = "CAST(row_hash & 18446744073709551615::UHUGEINT AS HUGEINT)"
        return self._summed(file, _value, "md5_number(concat({}))", (low, "CAST(row_hash >> 64 AS HUGEINT)"))

    def older_fingerprint(self, key: bytes) -> str:
        """Return the fingerprint by `key` that 0.3.0 and before took, of 64 bits, by which their ledgers know a table.

        It takes some different rows for the same: null and chr(30), and texts with chr(31).
        """
        with self.open(known=False) as file:
            row = "CAST(md5_number_lower(concat_ws(chr(31), {})) AS HUGEINT)"
            mark = keyed(key, self._summed(file, _older_value, row, ("row_hash",)))
            self.seen.note(key, file, mark)
        return mark

    def _summed(
        self, file: IO[bytes], value: Callable[[str, str], str], row: str, parts: Sequence[str]
    ) -> Iterator[bytes]:
        """Yield bytes of `file`: names, row count, sums of SQL `parts` of `row`; function `value`: a column's SQL."""

        def sums(memory: int) -> bytes:
            with self._open(file, memory) as (connection, chosen):
                table = connection.sql(select("*", chosen.base))
                texts = [value(quoted(name), str(kind)) for name, kind in zip(table.columns, table.types, strict=True)]
                rows = select(f"{row.format(', '.join(texts))} AS row_hash", chosen.base)
                added = ", ".join(f"sum({part})" for part in parts)
                [found] = connection.execute(select(f"count(*), {added}", f"({rows})")).fetchall()
                return repr((tuple(table.columns), *found)).encode()

        try:
            yield sums(MEMORY)
        except UsageError:  # one long value may be the reason
            yield sums(AMPLE)

    @contextmanager
    def connected(self, *, known: bool = True) -> Iterator[tuple[Any, Chosen]]:
        """Yield (connection to the file, its `Chosen` part); `known`: refuse a file whose fingerprint was not taken.

        Raises:
            UsageError: No such file, table or column, no DuckDB, or a database that is in use.
            LedgerError: Not the file whose fingerprint was taken.
        """
        with self.open(known=known) as file, self._open(file) as found:
            yield found

    @contextmanager
    def _open(self, file: IO[bytes], memory: int | None = None) -> Iterator[tuple[Any, Chosen]]:
        duckdb, memory = library(), memory or MEMORY
        refuse_unwritten(self.path)
        # Connections of one program share cached pages of a path, even of a file that has been replaced; DuckDB
        # compares this text, so that only connections to one file share them.
        settings = {"custom_user_agent": repr(stamp(file)), **_SETTINGS, "threads": str(cores())}
        settings["memory_limit"] = f"{memory}MB"
        try:
            connection = duckdb.connect(str(self.path), read_only=True, config=settings)
        except duckdb.Error as error:
            raise UsageError(
                f"{self.path}: cannot be opened ({type(error).__name__}). Is it a DuckDB database, of a version that "
                f"DuckDB {duckdb.__version__} reads, and open nowhere else, not in this program either?"
            ) from None
        try:
            if not os.path.samestat(self.path.stat(), os.fstat(file.fileno())):
                raise changed(self.path)
            self._settle(connection, duckdb.Error)
            refuse_macros(connection)
            yield connection, self._chosen(connection, duckdb.Error)
        except duckdb.Error:  # even its class may depend on a single row
            raise UsageError(
                f"{self.path}: DuckDB cannot read it in {memory:,} MB of memory. Is the file whole?"
            ) from None
        finally:
            connection.close()
        refuse_unwritten(self.path)

    def _settle(self, connection: Any, failed: type[Exception]) -> None:
        """Apply the last settings to a connection; Unsupported unless they hold; `failed` is DuckDB's error class."""
        with suppress(failed):
            for statement in _LAST:
                connection.execute(statement)
        if connection.execute(_SETTLED).fetchall() != [("UTC", True)]:
            raise Unsupported(f"{self.path}: DuckDB {library().__version__} does not keep its settings.")

    def _chosen(self, connection: Any, failed: type[Exception]) -> Chosen:
        """Return the `Chosen` table or query of a connection; UsageError for `failed`, DuckDB's error class."""
        if self.query is None:
            return chosen_table(connection, str(self.table))
        chosen = chosen_query(connection, self.query)
        try:
            connection.sql(chosen.select)  # types fit; nothing is read yet
        except failed as error:
            raise UsageError(f"query: DuckDB does not understand it ({type(error).__name__}).") from None
        return chosen


def _value(column: str, kind: str) -> str:
    """Return SQL text for a row's hash: the part of the quoted `column` of type `kind`; no two rows are alike in it."""
    text = f"CAST({column} AS VARCHAR)"
    length, whole = (f"octet_length({column})", column) if kind == "BLOB" else (f"strlen({text})", text)
    short = f"WHEN {length} < 1000 THEN concat(strlen({text}), ':', {text})"
    return f"CASE WHEN {column} IS NULL THEN '-' {short} ELSE concat('#', md5({whole})) END"


def _older_value(column: str, _: str) -> str:
    return f"coalesce(CAST({column} AS VARCHAR), chr(30))"


def database(path: str | os.PathLike[str], *, table: str | None = None, query: str | None = None) -> DuckDBSource:
    """Return the `DuckDBSource` of rows in a DuckDB database, for everything that takes rows.

    `open_table`, `synthesize` and `Schema.draft` take them, and so do the functions of `stratsynth.evaluation`.

    Args:
        path: The database's file.
        table: The table whose rows are the records, as its name or schema.name.
        query: Instead: one SELECT of columns, expressions of one row's values and a condition, from one table.

    Returns:
        The rows; none is read before they are asked for.

    Raises:
        UsageError: No such database or table, a query that is more than that, or no DuckDB.
    """
    found = DuckDBSource(given_path("the database", path), table, query)
    with found.connected():  # refuses what has no such rows
        return found


def check_names(path: Path, table: object, query: object) -> None:
    """Raise UsageError, on database `path`, but for exactly one of `table` and `query`, a text not blank."""
    for name, value in (("table", table), ("query", query)):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise UsageError(f"{name} is a text, not {quoted_value(value)}.")
    if (table is None) == (query is None):
        raise UsageError(
            f'{path}: of a database either table = "..." or query = "SELECT ..." says which rows are meant'
            f"{'' if table is None else ', not both'}."
        )


def library() -> Any:
    """Return the module duckdb, an optional dependency; UsageError, with the remedy, without it."""
    try:
        import duckdb
    except ImportError:
        raise UsageError('rows in a database need DuckDB: pip install "stratsynth[duckdb]"') from None
    return duckdb


def refuse_unwritten(path: Path) -> None:
    """Raise UsageError for the path of a database with a write-ahead log: changes in no fingerprint."""
    path = path.resolve()  # behind a link, the changes lie beside the file itself
    log = path.with_name(f"{path.name}.wal")
    if log.exists():
        raise UsageError(
            f"{path}: its last changes are in {log.name} still. Close what writes to it, or run CHECKPOINT in DuckDB."
        )
