"""How well the probabilities of classifiers fit each group: squared and log losses, summed by group and label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, fixed
from stratsynth.questions.gradients import check_models
from stratsynth.questions.queries import Block, Design, Query

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

Measure = Literal["squared", "log"]
MEASURES: tuple[Measure, ...] = ("squared", "log")


@known
@dataclass(frozen=True, eq=False)
class GroupLosses(Query):
    """For each logistic model the sums of its losses by group and label, a row's being cut at the clip; one block each.

    The coordinates of a block are the cells of `by` x label, row-major. Whatever the coefficients, a record adds to
    exactly one of them, and a number between 0 and the clip. So adding one moves the block by at most the clip in the
    L2 norm; exchanging one moves one coordinate by at most the clip, or two by at most the clip each: sqrt(2) clip.
    """

    design: Design
    target: str
    """A categorical column of two levels, outside the design; the probability is that of the second."""
    thetas: NDArray[np.float64]
    """Coefficients: one row a model, one column a feature."""
    clip: float
    """The most that a row's loss can be."""
    measure: Measure = "squared"
    """`squared`: (p - y)^2. `log`: the negative natural logarithm of the probability of the row's own label."""
    by: tuple[str, ...] = ()
    """The columns whose levels, fully crossed, are the groups; none is one group of everybody."""
    link: ClassVar[Literal["logistic"]] = "logistic"

    def __post_init__(self) -> None:
        """Keep a copy of the coefficients that nobody can change."""
        object.__setattr__(self, "thetas", fixed(self.thetas))

    @property
    def theta(self) -> NDArray[np.float64]:
        """One row a feature, one column a model."""
        return self.thetas.T

    def check(self, schema: Schema) -> None:
        """As for `Losses`, and groups without the target."""
        check_models("group losses", self, schema)
        one_of("group losses: measure", self.measure, MEASURES, error=MechanismError)
        if self.by:
            check_clique("group losses", self.by, schema)
        if self.target in self.by:
            raise MechanismError(f"group losses: the target {self.target} is among the groups' columns.")

    def replayed(self) -> Any:
        """All but the coefficients' values, which come from earlier answers."""
        return "group losses", self.design, self.target, self.thetas.shape, f"{self.clip:.9g}", self.measure, self.by

    def cells(self, schema: Schema) -> int:
        """The number of coordinates of one block."""
        return 2 * (math.prod(schema.shape(self.by)) if self.by else 1)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One block a model."""
        return (Block(self.cells(schema), self.clip, math.sqrt(2)),) * len(self.thetas)
