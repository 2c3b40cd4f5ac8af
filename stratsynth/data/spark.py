"""Rows in Spark: encoded and counted by its executors, whose partial tables are added up in this process.

Noise and account stay in this one process; nothing is kept on the executors between passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow.parquet as pq

from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.folders import FolderSource
from stratsynth.data.sources import ParquetSource, Source, changed
from stratsynth.data.spark_jobs import after, before, cells_at_once, collected, spark_session, tasks
from stratsynth.data.spark_source import LANES, SparkSource
from stratsynth.data.spark_tasks import NOT_HERE, VERSION, CheckFiles, CountTables, FromFiles, FromSpark, Piece, stamp
from stratsynth.errors import LedgerError, Unsupported
from stratsynth.questions.reading import OUTSIDE
from stratsynth.strata import within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.data.spark_tasks import Asked
    from stratsynth.noise import Entropy
    from stratsynth.questions import Clique, Query
    from stratsynth.schema import Schema
    from stratsynth.strata import StratumPath

PIECE_ROWS = 1 << 18
"""Approximate number of rows of a file that are read at a time: row groups that lie beside each other."""


@dataclass(frozen=True)
class Spark:
    """A backend for rows of a Spark DataFrame or table, or of Parquet files, counted by Spark's executors."""

    source: Source
    """Source of the rows; its representation shows none."""
    schema: Schema = field(repr=False)
    """Schema that the rows are encoded by."""
    session: Any = field(repr=False)
    """Session of Spark."""
    reads = frozenset({"tables"})

    @classmethod
    def checked(cls, source: Source, schema: Schema) -> Spark:
        """Return the `Spark` backend on `source` for a schema; refuse, before any charge, rows that Spark cannot count.

        Raises:
            Unsupported: Units of several rows, other files than Parquet, frames in memory; or no PySpark.
            UsageError: Spark cannot be started.
        """
        if not isinstance(schema.unit, str):
            raise Unsupported(
                'engine "spark" counts rows where they are, and the rows of one unit may lie anywhere; write them to '
                'Parquet files in an order and take engine = "memory", or keep one row of each and leave the unit out.'
            )
        if isinstance(source, SparkSource):
            return cls(source, schema, source.frame.sparkSession)
        if not isinstance(source, ParquetSource | FolderSource):
            what = "a frame in memory" if source.path is None else source.path.name
            raise Unsupported(
                f'engine "spark" reads DataFrames and tables of Spark, and Parquet files, not {what}; write it as '
                'Parquet, or take engine = "auto".'
            )
        return cls(source, schema, spark_session())

    def counted_by(self, schema: Schema) -> Spark:
        """Return a backend of the same source that encodes rows by another schema; nothing is read."""
        return replace(self, schema=schema)

    def fingerprint(self, key: bytes) -> str:
        """Return the data's hash, a text, under `key`, secret bytes; executors must see the same files.

        Raises:
            UsageError: The executors lack this package, or the files.
            StratsynthError: The rows cannot be read.
        """
        if isinstance(self.source, SparkSource):
            return self.source.fingerprint(key, self.columns)
        found, pieces = fingerprint(self.source, key), self.pieces()
        try:
            collected(self._numbers(pieces), CheckFiles(VERSION, pieces))
        except Exception as error:  # noqa: BLE001 - Java's, of many classes
            raise before(error) from None
        return found

    def rows(self, *, numbers: bool = True) -> SparkRows:
        """Return `SparkRows`, which count rows in Spark; `numbers` changes nothing; nothing is read until asked."""
        return SparkRows(self)

    def count(self, asked: Asked, cells: int) -> NDArray[np.int64]:
        """Return a flat array of `cells` counts: the exact tables of pairs (path, cliques) `asked`, in one pass."""
        if isinstance(self.source, SparkSource):
            rows = self.source.hashed(self.columns).coalesce(tasks(self.session))
            task = CountTables(VERSION, self.schema, asked, FromSpark(self.columns, LANES))
            sums, found = collected(rows, task, cells)
            self.source.check(self.columns, sums)
            return found
        pieces = self.pieces()
        task = CountTables(VERSION, self.schema, asked, FromFiles(pieces, self.columns))
        found = collected(self._numbers(pieces), task, cells)[1]
        if self.pieces() != pieces:  # which refuses other files too: executors know them by size and time alone
            raise changed(Path(self.source.path or ""))
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """Tuple of the names of the columns that are read: the schema's, and those of its unit and weights."""
        return (*self.schema.names, *self.schema.beside)

    def pieces(self) -> tuple[Piece, ...]:
        """Return a tuple of `Piece`, the files' row groups in runs of about PIECE_ROWS rows, in order."""
        if isinstance(self.source, FolderSource):
            files = [(name, part, tuple(own)) for name, part, own in self.source.wanted(self.columns)]
        else:
            assert isinstance(self.source, ParquetSource)  # noqa: S101 - `checked` let in nothing else
            files = [("", self.source, self.columns)]
        found = []
        for name, part, own in files:
            with part.open() as file:
                known, mark = pq.read_metadata(file), stamp(file.fileno())  # of the very file that was opened
            sizes = [known.row_group(i).num_rows for i in range(known.num_row_groups)]
            found += [Piece(str(part.path.resolve()), name, own, run, mark) for run in runs(sizes)]
        return tuple(found)

    def _numbers(self, pieces: Sequence[Piece]) -> Any:
        """Return a Spark DataFrame of the indices 0, 1, ... of the list `pieces`, spread over tasks."""
        return self.session.range(0, len(pieces), 1, max(1, min(len(pieces), tasks(self.session))))


@dataclass(frozen=True)
class _Table:
    """One contingency table to be counted."""

    place: int
    """Index of the table's path among those asked."""
    clique: Clique
    shape: tuple[int, ...]

    @property
    def cells(self) -> int:
        return math.prod(self.shape)


class SparkRows:
    """Rows in Spark, of which exact contingency tables can be counted, and nothing else."""

    def __init__(self, held: Spark) -> None:
        """Refer to the backend, `held`; nothing is read."""
        self._held = held

    def counts(self, asked: Sequence[tuple[StratumPath, Sequence[Clique]]]) -> list[list[NDArray[np.int64]]]:
        """Return a list: per (path, cliques) `asked` a list, each clique's exact int array, an axis a column.

        Raises:
            LedgerError: The rows are not those whose fingerprint was taken.
            StratsynthError: Anything else, of whatever class; the message depends on no row.
        """
        found: list[list[NDArray[np.int64]]] = [[] for _ in asked]
        for tables in in_passes(self._tables(asked), cells_at_once(self._held.session)):
            by_path = groupby(tables, key=lambda table: table.place)
            wanted = [(asked[place][0], [table.clique for table in those]) for place, those in by_path]
            ends = np.cumsum([table.cells for table in tables])
            flat = self._counted(wanted, int(ends[-1]))
            for table, cells in zip(tables, np.split(flat, ends[:-1]), strict=True):
                found[table.place].append(cells.reshape(table.shape))
        return found

    def _tables(self, asked: Asked) -> Iterator[_Table]:
        plain = replace(self._held.schema, rules=())  # tables do not depend on rules
        for place, (path, cliques) in enumerate(asked):
            inner = within(plain, path) if cliques else plain
            numbers = (1 + len(plain.names),)
            yield from (_Table(place, c, inner.shape(c) if c != OUTSIDE else numbers) for c in cliques)

    def _counted(self, asked: Asked, cells: int) -> NDArray[np.int64]:
        try:
            return self._held.count(asked, cells)
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - of many classes, whose message may hold values
            path = self._held.source.path
            raise (changed(path) if path is not None and NOT_HERE in str(error) else after()) from None

    def sums(self, asked: Sequence[tuple[StratumPath, Query, float]], entropy: Entropy) -> NoReturn:
        """Raise Unsupported, whatever is `asked`, with any `entropy`: `Spark.reads` does not declare sums."""
        raise _only_tables()

    def columns(self, path: StratumPath, names: Sequence[str]) -> NoReturn:
        """Raise Unsupported, whatever `path` and `names`: `Spark.reads` does not declare columns."""
        raise _only_tables()

    def frame(self, path: StratumPath) -> NoReturn:
        """Raise Unsupported, whatever the `path`: `Spark.reads` does not declare frames."""
        raise _only_tables()


def in_passes(tables: Iterable[_Table], most: int) -> Iterator[list[_Table]]:
    """Yield lists of `tables`, in order: each of at most `most` cells in all, or of one table that has more."""
    waiting: list[_Table] = []
    for table in tables:
        if waiting and sum(each.cells for each in waiting) + table.cells > most:
            yield waiting
            waiting = []
        waiting.append(table)
    if waiting:
        yield waiting


def runs(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield tuples of consecutive indices into `sizes`, a sequence: the number of rows of each row group.

    Each run has as many row groups as fit into PIECE_ROWS rows, or is a single larger one.
    """
    waiting: list[int] = []
    for number, rows in enumerate(sizes):
        if waiting and sum(sizes[i] for i in waiting) + rows > PIECE_ROWS:
            yield tuple(waiting)
            waiting = []
        waiting.append(number)
    if waiting:
        yield tuple(waiting)


def _only_tables() -> Unsupported:
    return Unsupported('engine "spark" answers tables of counts alone; take engine = "memory".')
