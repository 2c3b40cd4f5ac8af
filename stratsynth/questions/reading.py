"""Reads: what a question can have read from the rows, and what comes back. Exact answers are as private as the rows."""

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


@dataclass(frozen=True, eq=False)
class PublicColumns:
    """Columns declared public, one entry for each row, without noise."""

    size: int
    """The number of rows."""
    codes: Mapping[str, NDArray[Any]]
    """The level number of each row, one array a column."""
    numbers: Mapping[str, NDArray[np.float64]]
    """For numeric columns, the value within its bounds; NaN where there is none."""


class Rows(Protocol):
    """The reads that a backend must be able to do. Exact answers: nobody but the driver may call it."""

    def counts(self, asked: Sequence[tuple[StratumPath, Sequence[Clique]]]) -> list[list[Ints]]:
        """For each path, the exact contingency table of each clique, in one pass for all paths together."""

    def sums(self, asked: Sequence[tuple[StratumPath, Sum, float]], entropy: Entropy) -> list[list[Ints]]:
        """For each path, query and rate, the exact sum of each block in units of its grid, every row counting 1.

        Questions multiply by the weight of a row, where it cannot wrap around 64 bits unnoticed.
        A rate below 1 draws a fresh Poisson sample: a coin of its own for each row.
        """

    def columns(self, path: StratumPath, names: Sequence[str]) -> PublicColumns:
        """Some columns of all rows of a path, in the order of the rows: for `PublicRows` only."""

    def frame(self, path: StratumPath) -> pd.DataFrame:
        """All rows of a path, as level numbers: for third-party code only."""


@dataclass(frozen=True)
class Wanted:
    """The reads that one question asks for."""

    cliques: Sequence[Clique] = ()
    """Contingency tables."""
    again: bool = False
    """True if later moments are likely to want the same tables, so that keeping them pays."""
    once: bool = False
    """True if the question remembers what later moments need of the tables, which are then wanted no more."""
    sums: Sequence[tuple[Sum, float]] = ()
    """Clipped sums, each with the probability with which a row takes part."""
    columns: Sequence[str] = ()
    """Columns declared public, of all rows."""
    frame: bool = False
    """True for the rows themselves."""


@dataclass(frozen=True)
class Exact:
    """Exact answers, in the order of `Wanted`. As private as the rows."""

    tables: Sequence[Ints] = field(default=(), repr=False)
    """The tables wanted."""
    sums: Sequence[Sequence[Ints]] = field(default=(), repr=False)
    """The sums wanted, each a list of numbers."""
    columns: PublicColumns | None = field(default=None, repr=False)
    """The columns wanted."""
    frame: pd.DataFrame | None = field(default=None, repr=False)
    """The rows themselves, where they are wanted."""
