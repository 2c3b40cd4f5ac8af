"""Private rows, behind the few operations that answers need.

Rows are level numbers, one small-integer array a column, and the numbers themselves where sums need them. A
split sorts them once by the cells of its columns; a stratum is a slice of the sorted arrays, or several where
levels were merged, so all strata together are counted in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.driver.clipping import PathRows
from stratsynth.driver.sums import exact_sums
from stratsynth.errors import StratsynthError
from stratsynth.noise import poisson_coins
from stratsynth.questions import Clique, Query
from stratsynth.questions.handler import PublicColumns
from stratsynth.schema import Numeric
from stratsynth.strata import Stratum, StratumPath, within

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.noise import Entropy
    from stratsynth.schema import Schema

BLOCK = 1 << 16
"""Rows counted at a time: index arithmetic on a block stays in the processor's cache."""


class MemoryRows:
    """Rows in memory."""

    def __init__(
        self,
        schema: Schema,
        codes: Mapping[str, NDArray[Any]],
        numbers: Mapping[str, NDArray[np.float64]],
        size: int,
        weights: NDArray[np.int64] | None = None,
    ) -> None:
        """Take the columns; they are not copied until a split sorts them.

        Raises:
            StratsynthError: No weights, where the schema says that rows have their own.
        """
        if (weights is None) != (schema.row_weight.column is None):
            raise StratsynthError(
                "rows: the schema names a column of weights, and the rows came without; or the reverse."
            )
        self._rows = PathRows(schema, dict(codes), dict(numbers), size, weights)
        self._strata: dict[Stratum, MemoryRows] = {}
        self._sorted: dict[tuple[str, ...], tuple[PathRows, NDArray[np.int64]]] = {}
        """By the columns of a split: the rows sorted by cell, and where each cell ends."""

    def counts(self, asked: Sequence[tuple[StratumPath, Sequence[Clique]]]) -> list[list[NDArray[np.int64]]]:
        """Each table from its path's slice."""
        return [[table(self._at(path)._rows, clique) for clique in cliques] for path, cliques in asked]  # noqa: SLF001

    def sums(
        self, asked: Sequence[tuple[StratumPath, Query, float]], entropy: Entropy
    ) -> list[list[NDArray[np.int64]]]:
        """Each sum over its path's slice."""
        found = []
        for path, query, rate in asked:
            rows = self._at(path)._rows  # noqa: SLF001
            chosen = None if rate == 1 else np.flatnonzero(poisson_coins(rows.size, rate, entropy))
            found.append(exact_sums(query, rows, chosen))
        return found

    def columns(self, path: StratumPath, names: Sequence[str]) -> PublicColumns:
        """Copies, in the order of the rows within the path's slice."""
        rows = self._at(path)._rows  # noqa: SLF001
        return PublicColumns(
            rows.size, {c: rows.codes[c].copy() for c in names},
            {c: rows.numbers[c].copy() for c in names if c in rows.numbers},
        )  # fmt: skip

    def frame(self, path: StratumPath) -> pd.DataFrame:
        """A copy, so that nobody can write in the rows."""
        import pandas as pd

        return pd.DataFrame({c: codes.astype(np.int64) for c, codes in self._at(path)._rows.codes.items()})  # noqa: SLF001

    def _at(self, path: StratumPath) -> MemoryRows:
        """The rows of a path."""
        if not path:
            return self
        first, rest = path[0], path[1:]
        if first not in self._strata:
            self._strata[first] = self._stratum(first)
        return self._strata[first]._at(rest)  # noqa: SLF001 - rows of the same class

    def _stratum(self, stratum: Stratum) -> MemoryRows:
        """The rows of one stratum of the crossing; an empty one has its slice too."""
        outer, inner = self._rows.schema, replace(self._rows.schema, rules=())
        inner = within(inner, (stratum,))
        if stratum.columns not in self._sorted:
            self._sorted[stratum.columns] = self._sort(stratum.columns)
        rows, ends = self._sorted[stratum.columns]
        codes = [[outer.index(column, level) for level in levels] for column, levels in stratum.items]
        cells = np.ravel_multi_index(np.ix_(*codes), outer.shape(stratum.columns)).ravel()
        slices = [slice(int(ends[cell - 1]) if cell else 0, int(ends[cell])) for cell in cells]

        def part(array: NDArray[Any]) -> NDArray[Any]:
            return array[slices[0]] if len(slices) == 1 else np.concatenate([array[rows] for rows in slices])

        columns = {c: part(rows.codes[c]) for c in inner.names}
        for column, levels in zip(stratum.columns, codes, strict=True):
            if column in columns:  # merged: its levels are counted from 0 inside
                columns[column] = np.searchsorted(levels, columns[column]).astype(columns[column].dtype)
        numbers = {c: part(a) for c, a in rows.numbers.items() if isinstance(inner.columns.get(c), Numeric)}
        weights = None if rows.weights is None else part(rows.weights)
        return MemoryRows(inner, columns, numbers, sum(s.stop - s.start for s in slices), weights)

    def _sort(self, columns: tuple[str, ...]) -> tuple[PathRows, NDArray[np.int64]]:
        """The rows by cell of the crossing of some columns, and the end of each cell."""
        shape = self._rows.schema.shape(columns)
        cell = np.ravel_multi_index([self._rows.codes[c].astype(np.int64) for c in columns], shape)
        ends = np.cumsum(np.bincount(cell, minlength=int(np.prod(shape))))
        return self._rows.take(np.argsort(cell, kind="stable")), ends


def table(rows: PathRows, clique: Clique) -> NDArray[np.int64]:
    """The contingency table of some columns: one `bincount` over row-major cell numbers, a block at a time.

    Rows with weights of their own count these. Then `bincount` adds in floats, and exactly: 2^32 rows of a weight of at
    most 2^10 come to 2^42.
    """
    shape = rows.schema.shape(clique)
    cells = int(np.prod(shape))
    counted = np.zeros(cells, dtype=np.int64)
    step = max(BLOCK, 4 * cells)  # a table larger than a block is not worth adding up once a block
    for start in range(0, rows.size, step):
        block = slice(start, start + step)
        cell = rows.codes[clique[0]][block].astype(np.intp)
        for column, size in zip(clique[1:], shape[1:], strict=True):
            cell *= size
            cell += rows.codes[column][block]
        weights = None if rows.weights is None else rows.weights[block]
        counted += np.bincount(cell, weights, minlength=cells).astype(np.int64)
    return counted.reshape(shape) * rows.schema.row_weight.each
