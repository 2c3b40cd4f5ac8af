"""What a step of fair learning asks of rows: gradients of a penalised loss, and what each group is predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import known
from stratsynth.questions.base import Clique, check_clique, fixed, is_plain
from stratsynth.questions.queries import Block, Design, Query, check_clip, check_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

MOST_CELLS = 2**16
"""The most cells that a row's predicted probabilities are added up in."""


@known
@dataclass(frozen=True, eq=False)
class FairGradients(Query):
    """Two blocks a model, several models side by side, F being the probabilities that a model gives to a row's classes.

    The gradient by the coefficients of  log loss + <slopes of the row's cell, F>,  clipped as one vector: what a
    penalty that is linear in F adds is in the same clip as the loss.

    The sum of F in each cell. A row adds F to its own cell and nothing to others; F is not negative and adds up to at
    most 1, so its norm is at most 1, and exchanging a row moves the sum by at most sqrt(2). Whatever is linear in
    these sums, such as the gradient of that penalty by the penalty's own numbers, follows without another question.
    """

    design: Design
    target: str
    link: Literal["logistic", "softmax"]
    thetas: NDArray[np.float64]
    """Coefficients: one row a model and one column a feature; for `softmax` a third axis, one entry a class."""
    clip: float
    """The most L2 norm of a row's gradient."""
    by: Clique = ()
    """The columns whose levels, fully crossed, are the cells; none where nothing is added to the loss."""
    slopes: NDArray[np.float64] | None = None
    """Public numbers: one axis for models, one for each column of `by`, and one for classes."""

    def __post_init__(self) -> None:
        """Keep copies of the arrays that nobody can change."""
        object.__setattr__(self, "thetas", fixed(self.thetas))
        object.__setattr__(self, "slopes", fixed(self.slopes))

    @property
    def theta(self) -> NDArray[np.float64]:
        """One row a feature, one column a model and class."""
        return np.moveaxis(self.thetas, 1, 0).reshape(self.thetas.shape[1], -1)

    def check(self, schema: Schema) -> None:
        """A sound design, a target of classes, finite coefficients and slopes of the right shapes."""
        what = "fair gradients"
        one_of(f"{what}: link", self.link, ("logistic", "softmax"), error=MechanismError)
        check_target(what, self.design, self.target, schema, numeric=False)
        check_clip(what, self.clip)
        classes = schema.size(self.target)
        if self.link == "logistic" and classes != 2:
            raise MechanismError(f"{what}: logistic needs a target of two levels; {self.target} has not.")
        shape = (len(self.design.names(schema)), *([classes] if self.link == "softmax" else []))
        if not _finite(self.thetas) or not len(self.thetas) or self.thetas.shape[1:] != shape:
            raise MechanismError(f"{what}: thetas must be finite, one entry a model, each of shape {shape}.")
        if (self.slopes is None) != (not self.by):
            raise MechanismError(f"{what}: `by` and `slopes` go together.")
        if self.slopes is not None:
            check_clique(what, self.by, schema)
            if schema.cells(self.by) > MOST_CELLS:
                raise Unsupported(f"{what}: {', '.join(self.by)} have {schema.cells(self.by):,} cells, too many.")
            if not _finite(self.slopes) or self.slopes.shape != (len(self.thetas), *schema.shape(self.by), classes):
                raise MechanismError(f"{what}: slopes must be finite, one a model, cell of `by` and class.")

    def replayed(self) -> Any:
        """All but the values of coefficients and slopes, which come from earlier answers."""
        return (
            "fair gradients", self.design, self.target, self.link, self.thetas.shape, f"{self.clip:.9g}", self.by
        )  # fmt: skip

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """For each model its gradient, and its sums of F where there are cells."""
        cells = schema.cells(self.by) * schema.size(self.target) if self.by else 0
        return _blocks(len(self.thetas), self.thetas[0].size, self.clip, cells)


@lru_cache(maxsize=64, typed=True)  # every step of a fit asks for them many times
def _blocks(models: int, size: int, clip: float, cells: int) -> tuple[Block, ...]:
    gradient = Block(size, clip)
    if not cells:
        return (gradient,) * models
    return (gradient, Block(cells, 1.0, exchange=math.sqrt(2))) * models


def _finite(values: Any) -> bool:
    """Whether this is a plain array of at least two axes that holds finite numbers."""
    return is_plain(values) and values.ndim > 1 and bool(np.isfinite(values).all())
