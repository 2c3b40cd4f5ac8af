"""Private rows, behind the few operations that answers need.

Rows are level numbers, one small-integer array a column. A split sorts them once by stratum; the strata are
slices of the sorted arrays from then on, so all strata together are counted in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from stratsynth.questions import Clique
from stratsynth.strata import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

BLOCK = 1 << 16
"""Rows counted at a time: index arithmetic on a block stays in the processor's cache."""


class Rows(Protocol):
    """What a backend must be able to do. Exact answers: nobody but the driver may call it."""

    def counts(self, asked: Sequence[tuple[Path, Sequence[Clique]]]) -> list[list[NDArray[np.int64]]]:
        """For each path, the exact contingency table of each clique, in one pass for all paths together."""


class MemoryRows:
    """Rows in memory."""

    def __init__(self, schema: Schema, codes: Mapping[str, NDArray[Any]], size: int) -> None:
        """Take the codes of all columns; they are not copied until the first split sorts them."""
        self._schema = schema
        self._codes = dict(codes)
        self._size = size
        self._splits: dict[tuple[str, ...], dict[tuple[int, ...], MemoryRows]] = {}

    def counts(self, asked: Sequence[tuple[Path, Sequence[Clique]]]) -> list[list[NDArray[np.int64]]]:
        """Each table from its path's slice."""
        return [[self._at(path)._table(clique) for clique in cliques] for path, cliques in asked]  # noqa: SLF001

    def _at(self, path: Path) -> MemoryRows:
        """The rows of a path."""
        if not path:
            return self
        first, rest = path[0], path[1:]
        if first.columns not in self._splits:
            self._splits[first.columns] = self._split(first.columns)
        key = tuple(self._schema.index(column, level) for column, level in first.items)
        return self._splits[first.columns][key]._at(rest)  # noqa: SLF001 - rows of the same class

    def _split(self, columns: tuple[str, ...]) -> dict[tuple[int, ...], MemoryRows]:
        """Sort by stratum; every stratum of the crossing gets its slice, an empty one too."""
        shape = self._schema.shape(columns)
        stratum = np.ravel_multi_index([self._codes[c].astype(np.int64) for c in columns], shape)
        order = np.argsort(stratum, kind="stable")
        ends = np.cumsum(np.bincount(stratum, minlength=int(np.prod(shape))))
        rest = self._schema.without(columns)
        sorted_codes = {c: self._codes[c][order] for c in rest.names}
        children = {}
        for number, key in enumerate(np.ndindex(*shape)):
            rows = slice(int(ends[number - 1]) if number else 0, int(ends[number]))
            children[key] = MemoryRows(rest, {c: a[rows] for c, a in sorted_codes.items()}, rows.stop - rows.start)
        return children

    def _table(self, clique: Clique) -> NDArray[np.int64]:
        """The contingency table of some columns: one `bincount` over row-major cell numbers."""
        shape = self._schema.shape(clique)
        cells = int(np.prod(shape))
        total = np.zeros(cells, dtype=np.int64)
        # a table larger than a block is not worth adding up once a block
        step = max(BLOCK, 4 * cells)
        for start in range(0, self._size, step):
            rows = slice(start, start + step)
            cell = self._codes[clique[0]][rows].astype(np.intp)
            for column, size in zip(clique[1:], shape[1:], strict=True):
                cell *= size
                cell += self._codes[column][rows]
            total += np.bincount(cell, minlength=cells)
        return total.reshape(shape)
