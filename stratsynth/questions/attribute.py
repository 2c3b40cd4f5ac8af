"""What a step of fair learning asks of rows whose features and labels are public: what a group's attribute adds.

A classifier gives a public row of features x and label y the probabilities F(x), and a penalty adds <a_s, F(x)> to its
loss, s being its secret group. Two sums depend on s: the gradient of that penalty, and the sum of F by group. Their
public part is that of a row whose group is not known, the mean over all groups; what is asked is the rest,

    (J' (a_s - mean of a)) x         and         F at the row's own group, less F / K at each of the K groups,

J being the derivative of F by the logits. The first is clipped. The second has the length |F| sqrt(1 - 1/K), and |F| is
at most 1, so sqrt(1 - 1/K) is its clip, and nothing is lost. When s alone changes, the first moves by at most twice its
clip, and the second by |F| sqrt(2), which is at most twice its own.

Why the public part is taken off. On a secret Poisson sample a row that takes part adds its whole vector, and one that
does not adds nothing, so what noise has to hide is the vector's length, and not only what s changes of it. Any part of
known and unbounded length, such as the gradient of the loss, would show who takes part, and undo what sampling gains.
(Paper 004 and its code add the loss of the very same batch, unclipped.) Taken over public rows, which are no secret
sample, it costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import known
from stratsynth.questions.base import Clique, check_clique, fixed, is_plain
from stratsynth.questions.fairness import MOST_CELLS
from stratsynth.questions.queries import Block, Design, Query, check_clip, check_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema


@known
@dataclass(frozen=True, eq=False)
class AttributeGradients(Query):
    """Two blocks a model, several models side by side, as the head of this file says."""

    design: Design
    target: str
    link: Literal["logistic", "softmax"]
    thetas: NDArray[np.float64]
    """Coefficients: one row a model and one column a feature; for `softmax` a third axis, one entry a class."""
    clip: float
    """The most L2 norm of what a row adds to a model's gradient."""
    groups: Clique
    """The secret columns whose levels, fully crossed, are the groups."""
    given: Clique
    """The columns within whose levels groups are compared, such as the target; none where they are at all."""
    slopes: NDArray[np.float64]
    """a: one axis for models, one for each column of `groups` and of `given`, and one for classes."""

    def __post_init__(self) -> None:
        """Keep copies of the arrays that nobody can change."""
        object.__setattr__(self, "thetas", fixed(self.thetas))
        object.__setattr__(self, "slopes", fixed(self.slopes))

    @property
    def theta(self) -> NDArray[np.float64]:
        """One row a feature, one column a model and class."""
        return np.moveaxis(self.thetas, 1, 0).reshape(self.thetas.shape[1], -1)

    @property
    def by(self) -> Clique:
        """The columns that make the cells."""
        return (*self.groups, *self.given)

    def check(self, schema: Schema) -> None:
        """A sound design, a target of classes, several groups, finite coefficients and slopes of the right shapes."""
        what = "attribute gradients"
        one_of(f"{what}: link", self.link, ("logistic", "softmax"), error=MechanismError)
        check_target(what, self.design, self.target, schema, numeric=False)
        check_clip(what, self.clip)
        check_clique(what, self.groups, schema)
        check_clique(what, self.by, schema)
        classes = schema.size(self.target)
        if self.link == "logistic" and classes != 2:
            raise MechanismError(f"{what}: logistic needs a target of two levels; {self.target} has not.")
        if schema.cells(self.groups) < 2:
            raise MechanismError(f"{what}: there is one group only.")
        if schema.cells(self.by) > MOST_CELLS:
            raise Unsupported(f"{what}: {', '.join(self.by)} have {schema.cells(self.by):,} cells, too many.")
        shape = (len(self.design.names(schema)), *([classes] if self.link == "softmax" else []))
        if not _finite(self.thetas) or not len(self.thetas) or self.thetas.shape[1:] != shape:
            raise MechanismError(f"{what}: thetas must be finite, one entry a model, each of shape {shape}.")
        if not _finite(self.slopes) or self.slopes.shape != (len(self.thetas), *schema.shape(self.by), classes):
            raise MechanismError(f"{what}: slopes must be finite, one a model, cell and class.")

    def replayed(self) -> Any:
        """All but what may come from earlier answers: coefficients, slopes and the clip that suits them."""
        return ("attribute gradients", self.design, self.target, self.link, self.thetas.shape, self.groups, self.given)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """For each model what the attribute adds to its gradient, and to its sums by cell."""
        gradient = Block(self.thetas[0].size, self.clip)
        sums = Block(schema.cells(self.by) * schema.size(self.target), reach(schema.cells(self.groups)))
        return (gradient, sums) * len(self.thetas)


def reach(groups: int) -> float:
    """How far a group's point is from the middle of all, where any two are sqrt(2) apart."""
    return math.sqrt(1 - 1 / groups)


def _finite(values: Any) -> bool:
    """Whether this is a plain array of at least two axes that holds finite numbers."""
    return is_plain(values) and values.ndim > 1 and bool(np.isfinite(values).all())
