"""How often classifiers are right and wrong in each group: a count of records, many classifiers in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, fixed, is_plain
from stratsynth.questions.queries import Block, Design, Query, check_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema


@known
@dataclass(frozen=True, eq=False)
class Confusions(Query):
    """For each linear classifier the number of records by group, label and prediction; one block a classifier.

    A classifier predicts the second level of `target` where x . theta > 0. The coordinates of its block are the cells
    of `by` x label x prediction, row-major. Whatever its coefficients, a record enters exactly one of them, with 1:
    so adding one moves the block by 1 in the L2 norm (and the L1 norm), and exchanging one moves two coordinates by 1,
    sqrt(2), or none.
    """

    design: Design
    target: str
    """A categorical column of two levels, outside the design."""
    thetas: NDArray[np.float64]
    """Coefficients: one row a classifier, one column a feature."""
    by: tuple[str, ...] = ()
    """The columns whose levels, fully crossed, are the groups; none is one group of everybody."""

    def __post_init__(self) -> None:
        """Keep a copy of the coefficients that nobody can change."""
        object.__setattr__(self, "thetas", fixed(self.thetas))

    @property
    def theta(self) -> NDArray[np.float64]:
        """One row a feature, one column a classifier."""
        return self.thetas.T

    def check(self, schema: Schema) -> None:
        """A sound design, a target of two levels, groups without the target, finite coefficients."""
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
        """All but the coefficients' values, which come from earlier answers."""
        return "confusions", self.design, self.target, self.thetas.shape, self.by

    def cells(self, schema: Schema) -> int:
        """The number of coordinates of one block."""
        return 4 * (math.prod(schema.shape(self.by)) if self.by else 1)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One block a classifier."""
        return (Block(self.cells(schema), 1.0, math.sqrt(2)),) * len(self.thetas)
