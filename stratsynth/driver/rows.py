"""Private rows behind the few operations that answers need.

Rows are codes, one small-integer array per column, and numbers for columns that sums need, in memory or
in a scratch file. A split sorts them once by the cells of its columns; a stratum is a slice of the sorted arrays, or
several slices if levels were merged, so all strata together are counted in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.driver.counting import BLOCK, add, cell_numbers, pieces, tables
from stratsynth.driver.sums import exact_sums
from stratsynth.errors import StratsynthError
from stratsynth.files.space import Heap, Space
from stratsynth.noise import poisson_coins
from stratsynth.progress import phase
from stratsynth.questions import Clique, Query
from stratsynth.questions.reading import PublicColumns
from stratsynth.questions.sums.clipping import Ints
from stratsynth.schema import Numeric
from stratsynth.schema.rows import CodedRows
from stratsynth.strata import Stratum, StratumPath, within

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.noise import Entropy


def by_cell(parts: Sequence[CodedRows], columns: tuple[str, ...], space: Space) -> tuple[CodedRows, Ints]:
    """Return (`CodedRows`: all of the list `parts` sorted by cell of crossed columns, in `space`; array: cell ends)."""
    schema = parts[0].schema
    shape, counts = schema.shape(columns), np.zeros(schema.cells(columns), np.int64)
    with phase("sorting", lambda: -(-2 * sum(rows.size for rows in parts) // BLOCK)) as done:
        for rows in pieces(parts, space, BLOCK):
            add(rows, columns, counts)
            done()
        ends = np.cumsum(counts)
        size = int(ends[-1])
        found = parts[0].mapped(lambda array: space.empty(array.dtype, size), size)
        free = ends - counts  # where the next row of each cell goes
        for rows in pieces(parts, space, BLOCK):
            cell = cell_numbers(rows, columns, shape, slice(None))
            order = np.argsort(cell, kind="stable")
            here = np.bincount(cell.astype(np.intp), minlength=len(free))
            place = np.arange(rows.size) + np.repeat(free - (np.cumsum(here) - here), here)
            for target, source in ((found.codes, rows.codes), (found.numbers, rows.numbers)):
                for name, array in source.items():
                    target[name][place] = array[order]
            if found.weights is not None and rows.weights is not None:
                found.weights[place] = rows.weights[order]
            free += here
            done()
    return found, ends


def joined(array: NDArray[Any], slices: Sequence[slice], space: Space) -> NDArray[Any]:
    """Return the slices of an array as one new array in `space`, in order; a view of it for a single slice."""
    if len(slices) == 1:
        return array[slices[0]]
    found, at = space.empty(array.dtype, sum(s.stop - s.start for s in slices)), 0
    for part in slices:
        found[at : at + part.stop - part.start] = array[part]
        at += part.stop - part.start
    space.touched(2 * found.nbytes)
    return found


def renamed(codes: NDArray[Any], levels: Sequence[int], space: Space) -> NDArray[Any]:
    """Return an array in `space`: the index of each of the array `codes` in `levels`, which ascend and hold all."""
    found = space.empty(codes.dtype, len(codes))
    for start in range(0, len(codes), BLOCK):
        block = slice(start, start + BLOCK)
        found[block] = np.searchsorted(levels, codes[block])
    space.touched(2 * found.nbytes)
    return found


PIECE = 1 << 18
"""Rows of a scratch file that are summed at a time."""


class StoredRows:
    """Rows in one part or several, in memory or on disk, and their strata."""

    def __init__(self, parts: Sequence[CodedRows], space: Space | None = None) -> None:
        """Take the parts, at least one; they are not copied until a split sorts them.

        Args:
            parts: The rows in order, all of one schema.
            space: Storage of sorted copies; memory if None.

        Raises:
            StratsynthError: Rows lack weights though the schema names their column, or have weights though it does not.
        """
        if any((rows.weights is None) != (rows.schema.row_weight.column is None) for rows in parts):
            raise StratsynthError("rows: the schema names a column of weights, the rows came without; or the reverse.")
        self._schema = parts[0].schema
        self._parts = list(parts)
        self._space = space or Heap()
        self._strata: dict[Stratum, StoredRows] = {}
        self._sorted: dict[tuple[str, ...], tuple[CodedRows, NDArray[np.int64]]] = {}
        """Rows sorted by cell and the end of each cell, by the columns of a split."""

    def counts(self, asked: Sequence[tuple[StratumPath, Sequence[Clique]]]) -> list[list[NDArray[np.int64]]]:
        """Return a list: per (path, cliques) `asked` a list, each clique's exact int array, an axis a column."""
        return [tables(self._at(path)._parts, cliques, self._space) for path, cliques in asked]  # noqa: SLF001

    def sums(
        self, asked: Sequence[tuple[StratumPath, Query, float]], entropy: Entropy
    ) -> list[list[NDArray[np.int64]]]:
        """Return a list: per (path, query, rate) `asked` a list, a flat exact array a block; rates < 1 use entropy."""
        found: dict[int, list[NDArray[np.int64]]] = {}
        by_path: dict[StratumPath, list[int]] = {}
        for number, (path, _, _) in enumerate(asked):
            by_path.setdefault(path, []).append(number)
        for path, numbers in by_path.items():
            for rows in self._at(path)._pieces():  # noqa: SLF001 - rows of the same class
                for number in numbers:
                    _, query, rate = asked[number]
                    chosen = None if rate == 1 else np.flatnonzero(poisson_coins(rows.size, rate, entropy))
                    part = self._sum(query, rows, chosen)
                    before = found.get(number)
                    found[number] = part if before is None else [x + y for x, y in zip(before, part, strict=True)]
        return [found[number] for number in range(len(asked))]

    def _pieces(self) -> Iterator[CodedRows]:
        """Return an iterator of `CodedRows`: in memory the parts themselves, with caches; else few rows at a time."""
        if self._space.lasting or not any(rows.size for rows in self._parts):
            return iter(self._parts)
        return pieces(self._parts, self._space, PIECE)

    def _sum(self, query: Query, rows: CodedRows, chosen: NDArray[np.intp] | None) -> list[NDArray[np.int64]]:
        if chosen is None or self._space.lasting:
            return exact_sums(query, rows, chosen)
        return exact_sums(query, rows.take(chosen))  # nothing is worked out of rows that are not in the sample

    def columns(self, path: StratumPath, names: Sequence[str]) -> PublicColumns:
        """Return a `PublicColumns`: copies of columns `names` of a path's rows, codes and numbers by name; weights."""
        parts = self._at(path)._parts  # noqa: SLF001 - rows of the same class
        return PublicColumns(
            sum(rows.size for rows in parts),
            {c: np.concatenate([rows.codes[c] for rows in parts]) for c in names},
            {c: np.concatenate([rows.numbers[c] for rows in parts]) for c in names if c in parts[0].numbers},
            None if parts[0].weights is None else np.concatenate([rows.weights for rows in parts]),
        )

    def frame(self, path: StratumPath) -> pd.DataFrame:
        """Return a pandas frame of a path's rows, a copy of level numbers by column: nobody can write to the rows."""
        import pandas as pd

        rows = self._at(path)
        return pd.DataFrame(
            {
                c: np.concatenate([part.codes[c] for part in rows._parts]).astype(np.int64)  # noqa: SLF001
                for c in rows._schema.names  # noqa: SLF001
            }
        )

    def _at(self, path: StratumPath) -> StoredRows:
        """Return `StoredRows`, those in a path's strata, sorted out when first asked for; all for the empty path."""
        if not path:
            return self
        first, rest = path[0], path[1:]
        if first not in self._strata:
            self._strata[first] = self._stratum(first)
        return self._strata[first]._at(rest)  # noqa: SLF001 - rows of the same class

    def _stratum(self, stratum: Stratum) -> StoredRows:
        """Return `StoredRows`, those of one stratum of these, coded by the schema inside it; no rows if it is empty."""
        outer, inner = self._schema, replace(self._schema, rules=())
        inner = within(inner, (stratum,))
        if stratum.columns not in self._sorted:
            self._sorted[stratum.columns] = by_cell(self._parts, stratum.columns, self._space)
        rows, ends = self._sorted[stratum.columns]
        codes = list(stratum.codes(outer).values())
        cells = np.ravel_multi_index(np.ix_(*codes), outer.shape(stratum.columns)).ravel()
        slices = [slice(int(ends[cell - 1]) if cell else 0, int(ends[cell])) for cell in cells]

        columns = {c: joined(rows.codes[c], slices, self._space) for c in inner.names}
        for column, levels in zip(stratum.columns, codes, strict=True):
            if column in columns:  # merged: its levels are counted from 0 inside
                columns[column] = renamed(columns[column], levels, self._space)
        numbers = {
            c: joined(a, slices, self._space)
            for c, a in rows.numbers.items()
            if isinstance(inner.columns.get(c), Numeric)
        }
        weights = None if rows.weights is None else joined(rows.weights, slices, self._space)
        part = CodedRows(inner, columns, numbers, sum(s.stop - s.start for s in slices), weights)
        return StoredRows([part], self._space)
