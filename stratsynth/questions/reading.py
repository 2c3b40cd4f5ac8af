"""Reads of a question from the rows, and their exact results, which are as private as the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.noise import Entropy
    from stratsynth.questions.sums.base import Sum

Clique = tuple[str, ...]
"""Columns that are counted together, in the order of the table's axes."""
Ints = NDArray[np.int64]
OUTSIDE: Clique = ()
"""Mark, where a clique stands otherwise, for the numbers of usable records and of values outside; not of strata."""


@dataclass(frozen=True, eq=False)
class PublicColumns:
    """Columns of all rows, one entry per row, without noise: public ones, or for an answer with noise."""

    size: int
    """Number of rows."""
    codes: Mapping[str, NDArray[Any]]
    """Code of each row, by column."""
    numbers: Mapping[str, NDArray[np.float64]]
    """Value of each row within the bounds, by numeric column; NaN if it has none."""
    weights: NDArray[Any] | None = None
    """Weight of each row; None if every row counts 1."""


class Rows(Protocol):
    """Reads that a backend must support. Answers are exact: only the driver may call them."""

    def counts(self, asked: Sequence[tuple[StratumPath, Sequence[Clique]]]) -> list[list[Ints]]:
        """Return a list: per (path, cliques) `asked` a list of exact integer arrays, one a clique, an axis a column."""

    def sums(self, asked: Sequence[tuple[StratumPath, Sum, float]], entropy: Entropy) -> list[list[Ints]]:
        """Return for each (path, sum, rate) `asked` a list of integer arrays: each block's exact sum in grid units.

        Questions multiply by the weight of a row: in unlimited integers, or modulo 2^64 where that is post-processing.
        A rate below 1 draws a fresh Poisson sample by `entropy`: an independent coin a row.
        """

    def columns(self, path: StratumPath, names: Sequence[str]) -> PublicColumns:
        """Return a `PublicColumns`: exact level numbers and numbers of columns `names` in a path's rows, in order."""

    def frame(self, path: StratumPath) -> pd.DataFrame:
        """Return all rows of a path as a pandas frame of level numbers: for third-party code only."""


@dataclass(frozen=True)
class Wanted:
    """Reads that one question asks for."""

    cliques: Sequence[Clique] = ()
    """Contingency tables, by their columns."""
    again: bool = False
    """True if later batches are likely to need the same tables, so that keeping them pays."""
    once: bool = False
    """True if the question remembers what later batches need of the tables."""
    sums: Sequence[tuple[Sum, float]] = ()
    """Clipped sums, each with the probability with which a row takes part."""
    columns: Sequence[str] = ()
    """Columns of all rows, for `PublicColumns`."""
    frame: bool = False
    """True for the rows themselves."""


@dataclass(frozen=True)
class Exact:
    """Exact answers, in the order of `Wanted`. As private as the rows."""

    tables: Sequence[Ints] = field(default=(), repr=False)
    """Tables, as wanted."""
    sums: Sequence[Sequence[Ints]] = field(default=(), repr=False)
    """Sums, as wanted, each a list of blocks in grid units."""
    columns: PublicColumns | None = field(default=None, repr=False)
    """Columns, if wanted."""
    frame: pd.DataFrame | None = field(default=None, repr=False)
    """Rows themselves, if wanted."""
