"""Confusion counts: numbers of records by group, label and prediction, for many classifiers in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, is_plain
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import Block, Norm, Sum, check_norm
from stratsynth.questions.sums.clipping import GRID, Ints
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.kernel import by_feature, cells_of, logits_of

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

    A classifier predicts the second level of `target` if x . theta > 0; with a coefficient vector for each level, the
    level of the largest x . theta, the first of equals. The coordinates of its block are the cells of `by` x label x
    prediction, row-major. Whatever its coefficients, a record enters exactly one of them, with 1: so adding one moves
    the block by 1 in the L2 norm and the L1 norm, and exchanging one moves two coordinates by 1, which is sqrt(2) in
    the L2 norm and 2 in the L1 norm, or none.
    """

    design: Design
    target: str
    """Categorical column outside the design, of two levels, or of as many as the coefficients' third axis has."""
    thetas: NDArray[np.float64]
    """Coefficients: one row per classifier, one column per feature; a third axis for more than two levels."""
    by: tuple[str, ...] = ()
    """Columns whose levels, fully crossed, are the groups; none for one group of all records."""
    norm: Norm = field(default="l2", metadata={"digest": False})
    """Norm of the sensitivity: `l2` for Gaussian noise, `l1` for Laplace noise."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: design, target, groups unsound in `schema`, unsound coefficients.

        The target is a categorical column outside features and groups; coefficients are finite float64, one row per
        classifier and one column per feature, and for more than two levels one layer per level.
        """
        check_target("confusions", self.design, self.target, schema, numeric=False)
        check_norm("confusions", self.norm)
        if self.by:
            check_clique("confusions", self.by, schema)
        if self.target in self.by:
            raise MechanismError(f"confusions: the target {self.target} is among the groups' columns.")
        size, levels, thetas = len(self.design.names(schema)), schema.size(self.target), self.thetas
        shape = (size,) if levels == 2 else (size, levels)
        fits = levels > 1 and is_plain(thetas) and thetas.ndim > 1 and len(thetas) and thetas.shape[1:] == shape
        if not fits or not np.isfinite(thetas).all():
            raise MechanismError(f"confusions: thetas must be finite, one entry a classifier, each of shape {shape}.")

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of coefficients, which earlier answers give."""
        kept = "confusions", self.design, self.target, self.thetas.shape, self.by
        return kept if self.norm == "l2" else (*kept, self.norm)

    def cells(self, schema: Schema) -> int:
        """Return an int, the number of coordinates of a block: label x prediction, per cell of `by` in `schema`."""
        return int(schema.size(self.target) ** 2 * (math.prod(schema.shape(self.by)) if self.by else 1))

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return one `Block` per classifier, by `schema`: sensitivity 1, and sqrt(2) or in the L1 norm 2 exchanged."""
        return (Block(self.cells(schema), 1.0, math.sqrt(2) if self.norm == "l2" else 2.0),) * len(self.thetas)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list, a flat int array a classifier: coded rows `which` by group, label, prediction, times GRID."""
        x, _ = design.integer_features(self.design, rows, which)
        found: list[Ints] = []
        cell, size = cells_of((*self.by, self.target), rows, which), self.cells(rows.schema)
        levels, lines = rows.schema.size(self.target), math.prod(self.thetas.shape[2:])
        together = max(1, MOST // max(len(x) * lines, 1))
        # A few classifiers at a time: rows x classifiers is at most MOST.
        for start in range(0, len(self.thetas), together):
            logits = logits_of(x, self.design, by_feature(self.thetas[start : start + together]))  # whole: exact
            each = logits.reshape(-1, lines, len(x))
            said = each[:, 0] > 0 if lines == 1 else each.argmax(axis=1)
            first = size * np.arange(len(said))[:, None]
            # The cell times the levels plus the prediction, in a range of numbers for each classifier.
            counts = np.bincount((first + levels * cell + said).ravel(), minlength=size * len(said))
            found.extend(counts.reshape(len(said), size) * GRID)
        return found
