"""Tables that are known before anything is asked: published figures, as probabilities of some columns' cells.

Nothing here comes from private rows. A mechanism gets them in `Public.known`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Clique = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Known:
    """A published table."""

    clique: Clique
    """Its columns, in the schema's order."""
    shares: NDArray[Any] = field(repr=False)
    """The share of each cell, an axis a column; together 1."""
    certain: bool = False
    """Whether it is taken as it is, and nothing is asked of its columns: so are the shares that rows are drawn by.
    All other tables are compared with paid answers of their columns."""
    error: float = 0.0
    """The standard error of a share, the root of the mean square over all cells; 0 for counts of a population."""
    counted: NDArray[np.bool_] | None = field(default=None, repr=False)
    """The cells that it knows; all of them when not given."""

    def tells(self, clique: Iterable[str]) -> bool:
        """Whether it has all of these columns."""
        return set(clique) <= set(self.clique)

    def table(self, clique: Clique) -> NDArray[Any]:
        """The shares of the cells of some of its columns, axes in the order in which these are given."""
        import numpy as np

        kept = tuple(name for name in self.clique if name in clique)
        away = tuple(axis for axis, name in enumerate(self.clique) if name not in clique)
        return np.transpose(self.shares.sum(axis=away), [kept.index(name) for name in clique])

    def variance(self, clique: Clique, total: float) -> float:
        """By how much the number of records of a cell may be off, squared: the mean over the cells of some columns.

        The N people who are fitted are a sample: a share of p is off by a variance of p (1 - p) / N, beside its error.
        """
        shares = self.table(clique)
        sampled = total * float((shares * (1 - shares)).mean())
        return max(1.0, sampled + (total * self.error) ** 2 * self.shares.size / shares.size)
