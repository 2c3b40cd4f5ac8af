"""Layout of the probabilities: a matrix with a row for each level of each column, a column for each component.

A mixture of products gives a record's probability as the mean over components of the product of its levels'
probabilities. With levels down and components across, the levels of one column are one contiguous block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.questions import Clique

Reals = NDArray[np.floating[Any]]
"""Single precision in fits, double precision in models and checks."""


@dataclass(frozen=True)
class LogitBlocks:
    """Columns with their numbers of levels, one block of rows after the other."""

    sizes: tuple[tuple[str, int], ...]

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Array with the number of the first row of each column's block."""
        return np.cumsum([0, *(size for _, size in self.sizes)])[:-1]

    @cached_property
    def rows(self) -> int:
        """Number of rows of the matrix: levels of all columns together."""
        return sum(size for _, size in self.sizes)

    @cached_property
    def block(self) -> Mapping[str, slice]:
        """Mapping from each column to the slice of rows that hold its levels."""
        ends = (slice(int(a), int(a) + size) for a, (_, size) in zip(self.starts, self.sizes, strict=True))
        return {name: place for (name, _), place in zip(self.sizes, ends, strict=True)}

    @cached_property
    def column(self) -> NDArray[np.intp]:
        """Array with the number of the column that each row belongs to."""
        return np.repeat(np.arange(len(self.sizes)), [size for _, size in self.sizes])

    def softmax(self, logits: Reals) -> Reals:
        """Return an array of probabilities from logits, levels x components: a softmax over each column's levels."""
        if not self.rows:
            return logits
        odds = np.exp(logits - np.maximum.reduceat(logits, self.starts, axis=0)[self.column])
        odds /= np.add.reduceat(odds, self.starts, axis=0)[self.column]
        return odds

    def softmax_back(self, odds: Reals, slope: Reals) -> Reals:
        """Return the gradient by logit from probabilities `odds` and their gradient `slope`, arrays of one shape."""
        if not self.rows:
            return slope
        # Jacobian of the softmax: p_i (g_i - sum_j p_j g_j) within each column
        back: Reals = odds * slope
        back -= odds * np.add.reduceat(back, self.starts, axis=0)[self.column]
        return back


def joint(blocks: Sequence[Reals]) -> Reals:
    """Return an array of joint probabilities, cells x components, of columns that are independent in a component.

    Cells are combinations of levels, row-major; `blocks` has each column's array, levels x components.
    """
    table = blocks[0]
    for block in blocks[1:]:
        table = (table[:, None, :] * block[None, :, :]).reshape(-1, block.shape[1])
    return table


def marginals(layout: LogitBlocks, odds: Reals, weights: Reals, cliques: Sequence[Clique]) -> list[Reals]:
    """Return a list of arrays, each clique's cell probabilities, an axis a column, from `odds` and `weights`.

    `odds` is an array, levels of all columns x components, by the `LogitBlocks`; `weights` has one number a component.
    """
    known: tuple[Clique, Reals] | None = None
    found: list[Reals] = []
    for clique in cliques:
        blocks = [odds[layout.block[name]] for name in clique]
        if len(clique) == 1:
            found.append(blocks[0] @ weights)
            continue
        # sorted cliques share the joint probabilities of all columns but the last
        if known is None or known[0] != clique[:-1]:
            known = clique[:-1], joint(blocks[:-1]) * weights
        table = known[1] @ blocks[-1].T
        found.append(table.reshape([block.shape[0] for block in blocks]))
    return found
