"""Private rows, behind the few operations that answers need.

Rows are level numbers, one small-integer array a column, and the numbers themselves where sums need them. A
split sorts them once by stratum; the strata are slices of the sorted arrays from then on, so all strata
together are counted in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from stratsynth.driver.sums import PathRows, exact_sums
from stratsynth.noise import poisson_coins
from stratsynth.questions import Clique, Query
from stratsynth.strata import Path

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.noise import Entropy
    from stratsynth.schema import Schema

BLOCK = 1 << 16
"""Rows counted at a time: index arithmetic on a block stays in the processor's cache."""


class Rows(Protocol):
    """What a backend must be able to do. Exact answers: nobody but the driver may call it."""

    def counts(self, asked: Sequence[tuple[Path, Sequence[Clique]]]) -> list[list[NDArray[np.int64]]]:
        """For each path, the exact contingency table of each clique, in one pass for all paths together."""

    def sums(self, asked: Sequence[tuple[Path, Query, float]], entropy: Entropy) -> list[list[NDArray[np.int64]]]:
        """For each path, query and rate, the exact sum of each block in units of its grid.

        A rate below 1 draws a fresh Poisson sample: a coin of its own for each row.
        """

    def frame(self, path: Path) -> pd.DataFrame:
        """All rows of a path, as level numbers: for third-party code only."""


class MemoryRows:
    """Rows in memory."""

    def __init__(
        self, schema: Schema, codes: Mapping[str, NDArray[Any]], numbers: Mapping[str, NDArray[np.float64]], size: int
    ) -> None:
        """Take the columns; they are not copied until a split sorts them."""
        self._rows = PathRows(schema, dict(codes), dict(numbers), size)
        self._splits: dict[tuple[str, ...], dict[tuple[int, ...], MemoryRows]] = {}

    def counts(self, asked: Sequence[tuple[Path, Sequence[Clique]]]) -> list[list[NDArray[np.int64]]]:
        """Each table from its path's slice."""
        return [[table(self._at(path)._rows, clique) for clique in cliques] for path, cliques in asked]  # noqa: SLF001

    def sums(self, asked: Sequence[tuple[Path, Query, float]], entropy: Entropy) -> list[list[NDArray[np.int64]]]:
        """Each sum over its path's slice."""
        found = []
        for path, query, rate in asked:
            rows = self._at(path)._rows  # noqa: SLF001
            chosen = None if rate == 1 else np.flatnonzero(poisson_coins(rows.size, rate, entropy))
            found.append(exact_sums(query, rows, chosen))
        return found

    def frame(self, path: Path) -> pd.DataFrame:
        """A copy, so that nobody can write in the rows."""
        import pandas as pd

        return pd.DataFrame({c: codes.astype(np.int64) for c, codes in self._at(path)._rows.codes.items()})  # noqa: SLF001

    def _at(self, path: Path) -> MemoryRows:
        """The rows of a path."""
        if not path:
            return self
        first, rest = path[0], path[1:]
        if first.columns not in self._splits:
            self._splits[first.columns] = self._split(first.columns)
        key = tuple(self._rows.schema.index(column, level) for column, level in first.items)
        return self._splits[first.columns][key]._at(rest)  # noqa: SLF001 - rows of the same class

    def _split(self, columns: tuple[str, ...]) -> dict[tuple[int, ...], MemoryRows]:
        """Sort by stratum; every stratum of the crossing gets its slice, an empty one too."""
        schema = self._rows.schema
        shape = schema.shape(columns)
        stratum = np.ravel_multi_index([self._rows.codes[c].astype(np.int64) for c in columns], shape)
        order = np.argsort(stratum, kind="stable")
        ends = np.cumsum(np.bincount(stratum, minlength=int(np.prod(shape))))
        rest = schema.without(columns)
        codes = {c: self._rows.codes[c][order] for c in rest.names}
        numbers = {c: self._rows.numbers[c][order] for c in rest.names if c in self._rows.numbers}
        children = {}
        for number, key in enumerate(np.ndindex(*shape)):
            rows = slice(int(ends[number - 1]) if number else 0, int(ends[number]))
            children[key] = MemoryRows(
                rest,
                {c: a[rows] for c, a in codes.items()},
                {c: a[rows] for c, a in numbers.items()},
                rows.stop - rows.start,
            )
        return children


def table(rows: PathRows, clique: Clique) -> NDArray[np.int64]:
    """The contingency table of some columns: one `bincount` over row-major cell numbers, a block at a time."""
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
        counted += np.bincount(cell, minlength=cells)
    return counted.reshape(shape)
