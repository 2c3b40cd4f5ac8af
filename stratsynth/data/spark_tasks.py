"""Tasks that run on Spark's executors: rows become codes there, and codes partial tables; nothing else is returned.

A task is sent as a value: the schema, the tables that are asked for, and the place of its rows. It holds no key and no
ledger. Its answer has as many bytes whatever the rows are, since Spark notes sizes in its logs; and what goes wrong is
one fixed sentence, since Spark notes messages too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from stratsynth.data.folders import with_partitions
from stratsynth.data.sources import BATCH, ParquetSource
from stratsynth.driver.counting import STEP
from stratsynth.driver.rows import StoredRows
from stratsynth.errors import StratsynthError
from stratsynth.schema.encoding import encode
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions import Clique
    from stratsynth.schema import Schema
    from stratsynth.strata import StratumPath

Asked: TypeAlias = "Sequence[tuple[StratumPath, Sequence[Clique]]]"

ANSWER = "first long, cells binary"
"""Columns of a task's answer: index of the first cell of a block, and its counts; SUMS marks number and hashes of
rows."""
SUMS = -1
BLOCK = 1 << 17
"""Cells in a block of an answer: 1 MiB."""
ROWS = STEP // 2
"""Rows whose tables are counted at once: few enough for one thread, as a task has one core."""

VERSION = version("stratsynth")
OTHER_VERSION = "stratsynth is another version here than on the driver"
NOT_HERE = "a file is not here as the driver sees it"
FAILED = "the rows could not be read or counted"


@dataclass(frozen=True)
class Piece:
    """Adjacent row groups of one Parquet file."""

    path: str
    """Path of the file, the same on every machine."""
    name: str
    """Path relative to its folder, which may have values of partitions; empty for a single file."""
    columns: tuple[str, ...]
    """Columns that are read from the file, not from its path."""
    groups: tuple[int, ...]
    """Indices of the row groups."""
    stamp: tuple[int, int]
    """Size and time of the last change of the file when the driver saw it."""

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield Arrow tables of `columns` of its rows; StratsynthError if its file changed before or meanwhile."""
        self.check()
        for batch in ParquetSource(Path(self.path)).batches(self.columns, self.groups):
            yield with_partitions(batch, self.name, columns)
        self.check()

    def check(self) -> None:
        """Refuse, with a StratsynthError, a file that is missing or was changed since the driver read its stamp."""
        try:
            same = stamp(self.path) == self.stamp
        except OSError:
            same = False
        if not same:
            raise StratsynthError(NOT_HERE)


def stamp(file: str | int) -> tuple[int, int]:
    """Return (size, time of change) of a file, by path or descriptor: equal on all machines that share it."""
    found = os.stat(file)  # noqa: PTH116 - of a text, as it travels
    return found.st_size, found.st_mtime_ns


class Reading(Protocol):
    """Source of a task's rows."""

    def tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, NDArray[np.uint64]]]:
        """Yield pairs (Arrow table of rows, array [their number, hash sums]) for `batches`, those of a task's rows."""


@dataclass(frozen=True)
class FromFiles:
    """Rows of files: Spark hands out the indices of pieces, which the task reads."""

    pieces: tuple[Piece, ...]
    columns: tuple[str, ...]

    def tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, NDArray[np.uint64]]]:
        """Yield pairs (Arrow table of rows, array [their number]), by batch of pieces whose indices `batches` hold."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for table in self.pieces[number].tables(self.columns):
                    yield table, row_sums([], table.num_rows)


@dataclass(frozen=True)
class FromSpark:
    """Rows that Spark hands out; the last `lanes` columns are hashes of the row."""

    columns: tuple[str, ...]
    lanes: int

    def tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, NDArray[np.uint64]]]:
        """Yield (Arrow table, array [rows, hash sums]) of `batches`, joined to larger ones, faster to encode."""
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(one.num_rows for one in waiting) >= BATCH:
                yield self._joined(waiting)
                waiting = []
        if waiting:
            yield self._joined(waiting)

    def _joined(self, batches: Sequence[pa.RecordBatch]) -> tuple[pa.Table, NDArray[np.uint64]]:
        table = pa.Table.from_batches(batches)
        named = [*self.columns, *(f"lane {i}" for i in range(self.lanes))]  # Spark's are numbered, as names may be odd
        table = table.rename_columns(named)
        return table.select(list(self.columns)), row_sums(table.columns[len(self.columns) :], table.num_rows)


@dataclass(frozen=True)
class CountTables:
    """Task that counts the tables asked for over the rows of one partition."""

    version: str
    """Version of the package on the driver."""
    schema: Schema
    asked: Asked
    reading: Reading

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield Arrow batches for a task's `batches`: number of rows with hash sums, then cells, whatever the rows."""
        return quietly(self.version, lambda: self._answer(batches))

    def _answer(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = (*self.schema.names, *self.schema.beside)
        none = self._part(pa.schema([(name, pa.string()) for name in names]).empty_table())
        told, total = row_sums([], 0), self._tables([none])
        parts = [none]
        for table, sums in self.reading.tables(batches):
            told = told + sums
            parts.append(self._part(table))
            if sum(part.size for part in parts) >= ROWS:
                total, parts = total + self._tables(parts), [none]
        yield answer(SUMS, told)
        total += self._tables(parts)
        for first in range(0, len(total), BLOCK):
            yield answer(first, total[first : first + BLOCK])

    def _part(self, table: pa.Table) -> CodedRows:
        return encode(self.schema, table, weigh=True)

    def _tables(self, parts: Sequence[CodedRows]) -> NDArray[np.int64]:
        """Return a flat array: the exact tables of the list `parts` of `CodedRows`, row-major, one after the other."""
        counted = StoredRows(parts).counts(self.asked)
        return np.concatenate([table.ravel() for tables in counted for table in tables])


@dataclass(frozen=True)
class SumRows:
    """Task that counts rows and adds up their hashes, independent of order and partitions."""

    version: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one Arrow batch on a task's `batches`: their number of rows and the sums of their hashes."""
        return quietly(self.version, lambda: self._answer(batches))

    def _answer(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told = row_sums([], 0)
        for batch in batches:
            told = told + row_sums(batch.columns, batch.num_rows)
        yield answer(SUMS, told)


@dataclass(frozen=True)
class CheckFiles:
    """Task that checks that the package is installed and that files are as the driver sees them."""

    version: str
    pieces: tuple[Piece, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one Arrow batch, of no rows, if version and files are the driver's; else raise a StratsynthError."""
        return quietly(self.version, lambda: self._answer(batches))

    def _answer(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                self.pieces[number].check()
        yield answer(SUMS, row_sums([], 0))


def row_sums(lanes: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> NDArray[np.uint64]:
    """Return [`rows`, each lane's sum modulo 2^64] as an array; `lanes` are arrays of hashes by row, () for none."""
    sums = [int(lane.to_numpy().view(np.uint64).sum()) for lane in lanes]
    return np.array([rows, *sums], np.uint64)


def answer(first: int, cells: NDArray[np.int64] | NDArray[np.uint64]) -> pa.RecordBatch:
    """Return an Arrow batch of one row, a task's answer: `first`, the place of its first cell, and `cells` as bytes."""
    return pa.RecordBatch.from_pydict({"first": [first], "cells": [cells.tobytes()]})


def quietly(wanted: str, work: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of the function `work`; StratsynthError of fixed words if it fails, or VERSION is not `wanted`."""
    if wanted != VERSION:
        raise StratsynthError(OTHER_VERSION)
    try:
        yield from work()
    except Exception as error:  # noqa: BLE001 - even the class of what went wrong may depend on a single row
        known = str(error) if type(error) is StratsynthError and str(error) == NOT_HERE else FAILED
    else:
        return
    raise StratsynthError(known)
