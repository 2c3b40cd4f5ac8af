"""Tables that are known before anything is asked: published figures, as shares of some columns' cells.

Nothing here comes from private rows. A mechanism gets them in `Public.known`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.strata import Stratum

Clique = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Known:
    """A published table of shares."""

    clique: Clique
    """Columns, in the schema's order."""
    shares: NDArray[Any] = field(repr=False)
    """Share of each cell, one axis per column; the sum is 1."""
    certain: bool = False
    """True if it is taken for exact and nothing is asked of its columns, as shares that rows are drawn by. Other tables
    are compared with paid answers of their columns."""
    error: float = 0.0
    """Standard error of a share, root mean square over all cells; 0 for counts of a population."""
    of_rows: bool = False
    """True if the prior's rows were made from it: a fit that starts from these rows knows it already."""

    def tells(self, clique: Iterable[str]) -> bool:
        """True if the table has all columns of the clique, so that its shares give theirs."""
        return set(clique) <= set(self.clique)

    def table(self, clique: Clique) -> NDArray[Any]:
        """Return an array of shares of the cells of the columns in the clique, some of this table's, an axis each."""
        import numpy as np

        kept = tuple(name for name in self.clique if name in clique)
        away = tuple(axis for axis, name in enumerate(self.clique) if name not in clique)
        return np.transpose(self.shares.sum(axis=away), [kept.index(name) for name in clique])

    def without(self, names: Iterable[str]) -> Known | None:
        """Return a `Known` summed over the columns `names`; itself if it has none of them, None if none is left."""
        left = tuple(name for name in self.clique if name not in set(names))
        if left == self.clique:
            return self
        cells = self.shares.size / math.prod(self.shares.shape[self.clique.index(name)] for name in left)
        return (
            replace(self, clique=left, shares=self.table(left), error=self.error * math.sqrt(cells)) if left else None
        )

    def within(self, stratum: Stratum, numbers: Mapping[str, Sequence[int]]) -> Known | None:
        """Return the `Known` shares within a stratum; None if it lacks its columns, has no others, or no share there.

        Args:
            stratum: The `Stratum`.
            numbers: List of the codes of its levels, by column; a column of several levels stays.
        """
        import numpy as np

        if not set(stratum.columns) <= set(self.clique):
            return None
        part = self.shares[
            np.ix_(*(numbers.get(name, range(n)) for name, n in zip(self.clique, self.shares.shape, strict=True)))
        ]
        left = tuple(name for name in self.clique if len(numbers.get(name, (0, 0))) > 1)
        mass = float(part.sum())
        if not left or not mass > 0:
            return None
        part = part.reshape([n for n, name in zip(part.shape, self.clique, strict=True) if name in left])
        return replace(self, clique=left, shares=part / mass, error=self.error / mass)

    def variance(self, clique: Clique, total: float) -> float:
        """Return the variance of a cell's number of records, mean over the cells of the columns `clique`; at least 1.

        The `total` N records are a sample: a share of p has the variance p (1 - p) / N, beside its own error.
        """
        import numpy as np

        shares = np.clip(self.table(clique), 0, 1)  # those of a noisy table may be outside
        sampled = total * float((shares * (1 - shares)).mean())
        return max(1.0, sampled + (total * self.error) ** 2 * (self.shares.size / int(shares.size)))
