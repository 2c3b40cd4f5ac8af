"""Confusion counts: numbers of records by group, label and prediction, for many classifiers in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, is_plain
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import Block, Sum
from stratsynth.questions.sums.clipping import GRID, Ints
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.kernel import cells_of, logits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

MOST = 1 << 22
"""Largest number of rows times classifiers that are computed at a time."""


@known
@dataclass(frozen=True, eq=False)
class Confusions(Sum):
    """Numbers of records by group, label and prediction, one block for each linear classifier.

    A classifier predicts the second level of `target` if x . theta > 0. The coordinates of its block are the cells
    of `by` x label x prediction, row-major. Whatever its coefficients, a record enters exactly one of them, with 1:
    so adding one moves the block by 1 in the L2 norm (and the L1 norm), and exchanging one moves two coordinates by 1,
    sqrt(2), or none.
    """

    design: Design
    target: str
    """Categorical column of two levels, outside the design."""
    thetas: NDArray[np.float64]
    """Coefficients: one row per classifier, one column per feature."""
    by: tuple[str, ...] = ()
    """Columns whose levels, fully crossed, are the groups; none for one group of all records."""

    def check(self, schema: Schema) -> None:
        """Refuse a design, target, group column unsound in `schema`, or an unsound table of coefficients.

        The target is a categorical column of two levels outside features and groups; coefficients are finite float64,
        one row per classifier and one column per feature.
        """
        check_target("confusions", self.design, self.target, schema, numeric=False)
        if schema.size(self.target) != 2:
            raise MechanismError(f"confusions: the target must have two levels; {self.target} has not.")
        if self.by:
            check_clique("confusions", self.by, schema)
        if self.target in self.by:
            raise MechanismError(f"confusions: the target {self.target} is among the groups' columns.")
        size, thetas = len(self.design.names(schema)), self.thetas
        fits = is_plain(thetas) and thetas.ndim == 2 and len(thetas) and thetas.shape[1] == size
        if not fits or not np.isfinite(thetas).all():
            raise MechanismError(f"confusions: thetas must be finite, one row a classifier and {size} columns.")

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of coefficients, which earlier answers give."""
        return "confusions", self.design, self.target, self.thetas.shape, self.by

    def cells(self, schema: Schema) -> int:
        """Return an int, the number of coordinates of a block: 4 (label x prediction) per cell of `by` in `schema`."""
        return 4 * (math.prod(schema.shape(self.by)) if self.by else 1)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return one `Block` per classifier, by `schema`: L2 sensitivity 1 under add-remove, sqrt(2) under replace."""
        return (Block(self.cells(schema), 1.0, math.sqrt(2)),) * len(self.thetas)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return an integer array per classifier: rows `which` by group, label and prediction, counted in 1 / GRID."""
        x, _ = design.integer_features(self.design, rows, which)
        found: list[Ints] = []
        cell, size = cells_of((*self.by, self.target), rows, which), self.cells(rows.schema)
        together = max(1, MOST // max(len(x), 1))
        # A few classifiers at a time: rows x classifiers is at most MOST.
        for start in range(0, len(self.thetas), together):
            said = logits_of(x, self.design, self.thetas[start : start + together].T) > 0  # whole numbers: exact
            first = size * np.arange(len(said))[:, None]
            # Twice the cell plus the prediction, in a range of numbers for each classifier.
            counts = np.bincount((first + 2 * cell + said).ravel(), minlength=size * len(said))
            found.extend(counts.reshape(len(said), size) * GRID)
        return found
